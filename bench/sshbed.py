"""Many SSH hosts to measure with: one real host of the lab, which answers at many addresses.

    python bench/sshbed.py up 50      a bed with 50 addresses; it says where
    python bench/sshbed.py down       nothing of it stays

It needs root and what the lab needs. Its place, with the disk of the host, is in memory if that can
be: disks differ more than what is measured. `bed` in it has the addresses, what gets in there, and
the same work for kubexm, Ansible and pyinfra; what uses it runs in the lab's network:

    python -m lab --path PLACE run -- kubexm run -f PLACE/bed/kubexm/50/w1.yaml
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
# The lab is a package of the repository, and this is run as a script.
sys.path.append(str(HERE.parent))

from lab import building, demolition, network, requirements, roster  # noqa: E402
from lab import site as sites  # noqa: E402
from lab.commands import run  # noqa: E402
from lab.errors import LabError  # noqa: E402
from lab.site import Site  # noqa: E402

MEMORY = Path("/dev/shm")
PLACE = MEMORY / "kubexm-bench" if os.access(MEMORY, os.W_OK) else HERE.parent / ".lab-bench"
MOST = 500
HOSTS = 50
FEW = 3
PAYLOADS = {"small.bin": 1 << 20, "large.bin": 200 << 20}
_NETWORK = "10.98"
_PER_NET = 250
# The most lines that an sshd reads.
_PER_SSHD = 16
_HOST = roster.plain(1)
_SSHD = """\
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile none
UsePAM no
LogLevel ERROR
Subsystem sftp /usr/lib/openssh/sftp-server
"""
_PATIENT = "MaxStartups 1000\nMaxSessions 100\n"
_UNIT = """\
[Service]
ExecStart=/usr/sbin/sshd -D -f /etc/ssh/bench/%i.conf
TasksMax=infinity
LimitNOFILE=65536
"""
_IDLE = """\
[Service]
ExecStart=/usr/bin/sleep infinity

[Install]
WantedBy=multi-user.target
"""
_SERVICES = ("bench-one", "bench-two")


@dataclass(frozen=True, slots=True)
class Bed:
    """Addresses of one lab host, and the files that lead to them."""

    site: Site
    count: int

    @property
    def path(self) -> Path:
        return self.site.path / "bed"

    @property
    def root(self) -> Path:
        """The root directory of the host, from outside."""
        return self.site.home(_HOST.name).root

    @property
    def key(self) -> Path:
        return self.site.keys / "plain"

    @property
    def known_hosts(self) -> Path:
        return self.path / "known_hosts"

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(_address(number) for number in range(self.count))

    def hosts(self, count: int) -> Iterator[tuple[str, str]]:
        """The names and addresses of the first so many."""
        return ((f"h{n + 1:03}", _address(n)) for n in range(count))

    def pipeline(self, work: str, count: int) -> Path:
        return self.path / "kubexm" / str(count) / f"{work}.yaml"


def up(count: int, path: Path = PLACE, *, stock: bool = False) -> Bed:
    """A bed with so many addresses; one that is there is laid out anew.

    `stock` leaves `MaxStartups` and `MaxSessions` of every sshd as they come.
    """
    if not FEW <= count <= MOST:
        raise LabError(f"a bed has {FEW} to {MOST} addresses, not {count}")
    requirements.check(requirements.this_machine())
    bed = Bed(building.up(path, (_HOST,), lambda _: None), count)
    _route(bed.site)
    _serve(bed, stock=stock)
    _describe(bed)
    return bed


def down(path: Path = PLACE) -> bool:
    """Take the bed and its lab away; False if there is none."""
    return demolition.down(path)


def throttled(bed: Bed) -> int:
    """How often an sshd of the bed began to turn logins away, as `MaxStartups` says."""
    words = ("journalctl", "--quiet", "--unit", "bench-sshd@*", "--output", "cat")
    return _on_host(bed.site, *words).count("beginning MaxStartups throttling")


def _address(number: int) -> str:
    return f"{_NETWORK}.{number // _PER_NET}.{number % _PER_NET + 1}"


def _route(site: Site) -> None:
    """Every address of a whole network is one of the host."""
    whole = f"{_NETWORK}.0.0/16"
    outer, inner = site.netns, site.home(_HOST.name).netns
    run(*network.inside(outer), *f"ip route replace {whole} via {_HOST.address}".split())
    run(*network.inside(inner), *f"ip route replace local {whole} dev lo".split())


def _serve(bed: Bed, *, stock: bool) -> None:
    """As many sshd as it takes, in place of those that were there."""
    root = bed.root
    folder, units = root / "etc/ssh/bench", root / "etc/systemd/system"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    # The host's own sshd would hold the port at all addresses.
    own = root / "etc/ssh/sshd_config.d/bench.conf"
    own.write_text(f"ListenAddress {_HOST.address}\n")
    groups = [bed.addresses[n : n + _PER_SSHD] for n in range(0, bed.count, _PER_SSHD)]
    for number, addresses in enumerate(groups):
        lines = "".join(f"ListenAddress {address}\n" for address in addresses)
        (folder / f"{number}.conf").write_text(_SSHD + ("" if stock else _PATIENT) + lines)
    for name, _ in bed.hosts(bed.count):
        (root / "srv/bench" / name).mkdir(parents=True, exist_ok=True)
    (units / "bench-sshd@.service").write_text(_UNIT)
    for name in _SERVICES:
        (units / f"{name}.service").write_text(_IDLE)
    _on_host(bed.site, "systemctl", "daemon-reload")
    _on_host(bed.site, "systemctl", "stop", "bench-sshd@*")
    _on_host(bed.site, "systemctl", "restart", "ssh")
    _on_host(bed.site, "systemctl", "enable", "--now", *_SERVICES)
    _on_host(bed.site, "systemctl", "start", *(f"bench-sshd@{n}" for n in range(len(groups))))


def _on_host(site: Site, *words: str) -> str:
    login = ("ssh", "-F", site.ssh_config, f"root@{_HOST.name}")
    return run(*network.inside(site.netns), *login, shlex.join(words))


def _describe(bed: Bed) -> None:
    """Write the files that lead to the addresses, and the work to be done there."""
    shutil.rmtree(bed.path, ignore_errors=True)
    bed.path.mkdir()
    for name, size in PAYLOADS.items():
        (bed.path / name).write_bytes(os.urandom(size))
    public = bed.site.home(_HOST.name).path / "ssh_host_ed25519_key.pub"
    kind, key, *_ = public.read_text().split()
    known = "".join(f"{address} {kind} {key}\n" for address in bed.addresses)
    bed.known_hosts.write_text(known)
    (bed.path / "addresses").write_text("".join(f"{one}\n" for one in bed.addresses))
    for count in {1, FEW, bed.count}:
        _write_pipelines(bed, count)
        _write_ansible(bed, count)
        _write_pyinfra(bed, count)
    shutil.copytree(HERE / "peers" / "ssh", bed.path, dirs_exist_ok=True)


def _write_pipelines(bed: Bed, count: int) -> None:
    folder = bed.path / "kubexm" / str(count)
    folder.mkdir(parents=True)
    hosts = "".join(
        f"    - {{name: {name}, address: {address}, roles: [node]}}\n"
        for name, address in bed.hosts(count)
    )
    ssh = f"{{user: root, keys: [{bed.key}], knownHosts: [{bed.known_hosts}], config: false}}"
    for work in (HERE / "sshwork").glob("*.yaml"):
        body = "".join(f"  {line}\n" for line in work.read_text().splitlines())
        (folder / work.name).write_text(
            f"apiVersion: kubexm.io/v1alpha1\nkind: Pipeline\nmetadata: {{name: {work.stem}}}\n"
            f"spec:\n  ssh: {ssh}\n  hosts:\n{hosts}{body}"
        )


def _write_ansible(bed: Bed, count: int) -> None:
    folder = bed.path / "ansible"
    folder.mkdir(exist_ok=True)
    lines = [f"{name} ansible_host={address}\n" for name, address in bed.hosts(count)]
    login = f"ansible_user=root ansible_ssh_private_key_file={bed.key}"
    python = "ansible_python_interpreter=/usr/bin/python3"
    settings = "".join(f"{word}\n" for word in (*login.split(), python))
    (folder / f"hosts{count}").write_text(f"[all]\n{''.join(lines)}[all:vars]\n{settings}")


def _write_pyinfra(bed: Bed, count: int) -> None:
    folder = bed.path / "pyinfra"
    folder.mkdir(exist_ok=True)
    login = {"ssh_user": "root", "ssh_key": str(bed.key), "ssh_strict_host_key_checking": "off"}
    hosts = [(name, {"ssh_hostname": address} | login) for name, address in bed.hosts(count)]
    (folder / f"hosts{count}.py").write_text(f"hosts = {hosts!r}\n")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--path", type=sites.place, default=PLACE, help="where it lies")
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("up", help="make a bed, or lay out another in its place")
    making.add_argument("count", type=int, help=f"{FEW} to {MOST} addresses")
    making.add_argument("--stock", action="store_true", help="sshd with its stock limits")
    commands.add_parser("down", help="take it away")
    options = parser.parse_args(words)
    try:
        if options.command == "up":
            bed = up(options.count, options.path, stock=options.stock)
            print(f"{bed.count} addresses, in {bed.path}")
        else:
            print("the bed is gone" if down(options.path) else "there is no bed")
    except LabError as error:
        parser.exit(1, f"error: {error}\n")


if __name__ == "__main__":
    main()
