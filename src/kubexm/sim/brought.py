"""What packages of operating systems bring along: programs, settings and units, as far as a
cluster needs them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubexm.sim import standins

_UNITS = "/usr/lib/systemd/system"


class Package(msgspec.Struct, frozen=True):
    """What comes with a package."""

    version: str
    programs: tuple[str, ...] = ()
    """Paths of programs."""
    files: Mapping[str, str] = {}
    units: Mapping[str, str] = {}
    """What is in their files, by name."""
    users: Mapping[str, int] = {}
    """Users with a group of the same name, by their ids."""
    starts: bool = True
    """Whether its units run at once, on systems that do so."""

    @property
    def content(self) -> dict[str, str]:
        """Its files by path, but for its programs."""
        return {**self.files, **{f"{_UNITS}/{name}": text for name, text in self.units.items()}}

    @property
    def executables(self) -> dict[str, str]:
        """Its programs by path."""
        return {path: standins.text(_name(path), self.version) for path in self.programs}


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _unit(command: str, kind: str = "notify", *more: str, before: str = "") -> str:
    head = f"[Unit]\n{before}\n" if before else ""
    service = "\n".join((f"Type={kind}", *more, f"ExecStart={command}", "Restart=on-failure"))
    return f"{head}[Service]\n{service}\n\n[Install]\nWantedBy=multi-user.target\n"


_HAPROXY_CONFIG = """global
    stats socket /run/haproxy/admin.sock mode 660 level admin
    user haproxy
    group haproxy
    daemon

defaults
    mode http
    timeout connect 5000
    timeout client 50000
    timeout server 50000
"""
_NGINX_CONFIG = "events {}\nhttp {\n    server {\n        listen 80;\n    }\n}\n"
_CHRONY_CONFIG = "pool 2.debian.pool.ntp.org iburst\ndriftfile /var/lib/chrony/chrony.drift\n"
_HAPROXY = Package(
    version="2.6.12-1+deb12u1",
    programs=("/usr/sbin/haproxy",),
    files={"/etc/haproxy/haproxy.cfg": _HAPROXY_CONFIG},
    units={
        "haproxy.service": _unit(
            "/usr/sbin/haproxy -Ws -f $CONFIG -p $PIDFILE",
            "notify",
            "EnvironmentFile=-/etc/default/haproxy",
            "Environment=CONFIG=/etc/haproxy/haproxy.cfg PIDFILE=/run/haproxy.pid",
            "ExecStartPre=/usr/sbin/haproxy -f $CONFIG -c -q",
        )
    },
    users={"haproxy": 110},
)
_KEEPALIVED = Package(
    version="1:2.2.7-1+b2",
    programs=("/usr/sbin/keepalived",),
    files={"/etc/keepalived/keepalived.conf.sample": "! Configuration File for keepalived\n"},
    units={
        "keepalived.service": _unit(
            "/usr/sbin/keepalived --dont-fork $DAEMON_ARGS",
            "notify",
            "EnvironmentFile=-/etc/default/keepalived",
            before="ConditionFileNotEmpty=/etc/keepalived/keepalived.conf",
        )
    },
)
_NGINX = Package(
    version="1.22.1-9+deb12u3",
    programs=("/usr/sbin/nginx",),
    files={"/etc/nginx/nginx.conf": _NGINX_CONFIG},
    units={
        "nginx.service": _unit(
            "/usr/sbin/nginx -g 'daemon on; master_process on;'",
            "forking",
            "ExecStartPre=/usr/sbin/nginx -t -q -g 'daemon on; master_process on;'",
        )
    },
)
_CONTAINERD = Package(
    version="1.6.20~ds1-1+deb12u1",
    programs=("/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2", "/usr/bin/ctr"),
    units={"containerd.service": _unit("/usr/bin/containerd")},
)
_CHRONYD = ("/usr/sbin/chronyd", "/usr/bin/chronyc")
_IPTABLES = tuple(
    f"/usr/sbin/{name}{end}"
    for name in ("iptables", "ip6tables")
    for end in ("", "-save", "-restore")
)
_COMMON: Mapping[str, Package] = {
    "ebtables": Package("2.0.11-5", ("/usr/sbin/ebtables",)),
    "ethtool": Package("1:6.1-1", ("/usr/sbin/ethtool",)),
    "haproxy": _HAPROXY,
    "ipset": Package("7.17-1", ("/usr/sbin/ipset",)),
    "iptables": Package("1.8.9-2", _IPTABLES),
    "ipvsadm": Package("1:1.31-1+b1", ("/usr/sbin/ipvsadm",)),
    "keepalived": _KEEPALIVED,
    "nginx": _NGINX,
    "runc": Package("1.1.5+ds1-1+deb12u1", ("/usr/sbin/runc",)),
    "socat": Package("1.7.4.4-2", ("/usr/bin/socat",)),
}
_DEBIAN: Mapping[str, Package] = {
    **_COMMON,
    "chrony": Package(
        version="4.3-2+deb12u1",
        programs=_CHRONYD,
        files={"/etc/chrony/chrony.conf": _CHRONY_CONFIG},
        units={"chrony.service": _unit("/usr/sbin/chronyd -F 1", "forking")},
        users={"_chrony": 111},
    ),
    "conntrack": Package("1:1.4.7-1+b2", ("/usr/sbin/conntrack",)),
    "containerd": _CONTAINERD,
    "nfs-common": Package("1:2.6.2-4+deb12u1", ("/usr/sbin/mount.nfs", "/usr/sbin/mount.nfs4")),
    "nftables": Package(
        "1.0.6-2+deb12u2",
        ("/usr/sbin/nft",),
        units={"nftables.service": _unit("/bin/true", "oneshot", "RemainAfterExit=yes")},
        starts=False,
    ),
}
_OTHERS: Mapping[str, Package] = {
    **{name: msgspec.structs.replace(each, starts=False) for name, each in _COMMON.items()},
    "chrony": Package(
        version="4.6.1-1",
        programs=_CHRONYD,
        files={"/etc/chrony.conf": _CHRONY_CONFIG},
        units={"chronyd.service": _unit("/usr/sbin/chronyd", "forking")},
        users={"chrony": 990},
        starts=False,
    ),
    "conntrack-tools": Package("1.4.8-2", ("/usr/sbin/conntrack",)),
    "nfs-utils": Package("1:2.7.1-1", ("/usr/sbin/mount.nfs", "/usr/sbin/mount.nfs4")),
    "nfs-client": Package("2.1.1-1", ("/usr/sbin/mount.nfs", "/usr/sbin/mount.nfs4")),
    "nftables": Package("1:1.0.9-1", ("/usr/sbin/nft",)),
}
_LIKE_DEBIAN = frozenset(("debian", "ubuntu"))


def package(name: str, os_id: str) -> Package | None:
    """What a package of an operating system brings; None if nothing is known of it."""
    known = _DEBIAN if os_id in _LIKE_DEBIAN else _OTHERS
    return known.get(name)
