"""A package that hosts can have without a network: out of an archive on their own disks."""

from __future__ import annotations

from tests.lab.cluster_control import ClusterControl

NAME = "lab-greeting"
_ARCHIVE = f"""
mkdir -p /srv/archive /tmp/package/DEBIAN /tmp/package/usr/share/{NAME}
echo hello > /tmp/package/usr/share/{NAME}/greeting
cat > /tmp/package/DEBIAN/control <<'END'
Package: {NAME}
Version: 1.0
Architecture: all
Maintainer: The Lab <root@localhost>
Description: a greeting
END
cd /srv/archive
dpkg-deb --build --root-owner-group /tmp/package {NAME}.deb
rm -r /tmp/package
{{
  dpkg-deb --field {NAME}.deb
  echo "Filename: ./{NAME}.deb"
  echo "Size: $(stat --format %s {NAME}.deb)"
  echo "SHA256: $(sha256sum {NAME}.deb | cut -d ' ' -f 1)"
}} > Packages
echo 'deb [trusted=yes] file:/srv/archive ./' > /etc/apt/sources.list.d/archive.list
apt-get update
# The first time that packages come and go, their list is put into another order.
apt-get install --yes {NAME}
apt-get purge --yes {NAME}
"""


def offer(control: ClusterControl, host: str) -> None:
    """Let a host know of it."""
    control.on(host, "bash", "-eu", "-s", stdin=_ARCHIVE)


def install(control: ClusterControl, host: str) -> None:
    """Let a host that knows of it have it."""
    control.on(host, "apt-get", "install", "--yes", NAME)


def is_installed(control: ClusterControl, host: str) -> bool:
    return control.tried_on(host, "test", "-e", f"/usr/share/{NAME}/greeting").returncode == 0
