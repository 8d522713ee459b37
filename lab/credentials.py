"""What opens the hosts of a lab: keys, a certificate and passwords, new for each lab."""

from __future__ import annotations

import secrets
from pathlib import Path

from lab import site as sites
from lab.commands import run
from lab.roster import Entry, Host
from lab.site import Site

USERS = ("root", "admin", "ops")
PLAIN = "plain"
LOCKED = "locked"
SIGNED = "signed"
KEYS = (PLAIN, LOCKED, SIGNED)
_AUTHORITY = "authority"
_PASSPHRASE = "passphrase"  # noqa: S105 - the name of a file


def make(site: Site) -> None:
    """All that is not there yet."""
    site.keys.mkdir(mode=0o700, exist_ok=True)
    site.passwords.mkdir(mode=0o700, exist_ok=True)
    for name in ("admin", "ops", _PASSPHRASE):
        if not (site.passwords / name).exists():
            sites.write(site.passwords / name, secrets.token_urlsafe(12), mode=0o600)
    for name in (PLAIN, SIGNED, _AUTHORITY):
        _key(site.keys / name)
    _key(site.keys / LOCKED, password(site, _PASSPHRASE))
    if not certificate(site).exists():
        _sign(site)


def users(host: Host) -> tuple[str, ...]:
    """Who may log in at a host."""
    return USERS if host.entry is Entry.KEY else ("admin", "ops")


def password(site: Site, name: str) -> str:
    return (site.passwords / name).read_text()


def passphrase_file(site: Site) -> Path:
    return site.passwords / _PASSPHRASE


def certificate(site: Site) -> Path:
    return site.keys / f"{SIGNED}-cert.pub"


def authority(site: Site) -> str:
    """The public key that sshd trusts to sign users' keys."""
    return (site.keys / f"{_AUTHORITY}.pub").read_text()


def authorized(site: Site) -> str:
    """The keys that get in by themselves; the signed one needs its certificate."""
    return "".join((site.keys / f"{name}.pub").read_text() for name in (PLAIN, LOCKED))


def host_key(site: Site, host: Host) -> Path:
    """A host's own key, made before its first start."""
    path = site.home(host.name).path / "ssh_host_ed25519_key"
    _key(path)
    return path


def write_known_hosts(site: Site) -> None:
    """So that nobody ever has to trust a host on first sight."""
    lines = []
    for host in site.hosts():
        public = host_key(site, host).with_suffix(".pub").read_text().split()
        lines.append(f"{host.name},{host.address} {public[0]} {public[1]}\n")
    sites.write(site.known_hosts, "".join(lines))


def write_ssh_config(site: Site) -> None:
    """For `ssh -F`: every host by its name, also the hidden one."""
    lines = [f"UserKnownHostsFile {site.known_hosts}\nIdentityFile {site.keys / PLAIN}\n"]
    lines += ["IdentitiesOnly yes\nStrictHostKeyChecking yes\n"]
    for host in site.hosts():
        jump = f"  ProxyJump root@{host.behind}\n" if host.behind else ""
        lines.append(f"Host {host.name}\n  HostName {host.address}\n{jump}")
    sites.write(site.ssh_config, "".join(lines))


def _key(path: Path, passphrase: str = "") -> None:
    if path.with_suffix(".pub").exists():
        return
    # A half-made pair would make ssh-keygen ask whether to replace it.
    path.unlink(missing_ok=True)
    words = ("-q", "-t", "ed25519", "-N", passphrase, "-C", path.name, "-f", path)
    run("ssh-keygen", *words)


def _sign(site: Site) -> None:
    public = site.keys / f"{SIGNED}.pub"
    words = ("-q", "-s", site.keys / _AUTHORITY, "-I", "lab", "-n", ",".join(USERS), public)
    run("ssh-keygen", *words)
