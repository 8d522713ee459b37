"""Programs answer where their files are; packages bring theirs, with settings and services."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.sim.site import Site

from kubexm.sim import Machine, PackageSettings, standins
from kubexm.sim.programs import PROGRAMS

Make = Callable[..., Site]


def test_a_program_that_nobody_brought_is_not_found(site: Site) -> None:
    by_name = site.ask("conntrack", "-V")
    by_path = site.ask("/usr/local/bin/ctr", "version")

    assert (by_name.exit, by_name.error_text) == (127, "bash: conntrack: command not found")
    assert by_path.exit == 127
    assert by_path.error_text == "bash: /usr/local/bin/ctr: No such file or directory"


def test_a_file_that_cannot_be_executed_is_no_program(site: Site) -> None:
    site.put("/usr/local/bin/runc", standins.text("runc", "v1.4.3", "amd64"), 0o644)

    assert site.ask("runc", "--version").exit == 127
    assert site.ask("/usr/local/bin/runc", "--version").exit == 126


def test_a_program_tells_the_version_of_its_file(site: Site) -> None:
    site.bring("runc", "v1.4.3")
    site.bring("containerd", "v2.2.7")
    site.bring("crictl", "v1.36.0")

    assert site.do("runc", "--version") == "runc version v1.4.3"
    assert "v2.2.7" in site.do("/usr/local/bin/containerd", "--version")
    assert site.do("crictl", "--version") == "crictl version v1.36.0"


def test_a_program_for_another_machine_is_not_executed(made: Make) -> None:
    site = made(machines={"arm*": Machine(arch="aarch64")})
    for host, arch in (("n1", "arm64"), ("arm1", "arm64")):
        site.bring("runc", "v1.4.3", arch, host)

    done = site.ask("runc", "--version")

    assert done.exit == 126
    assert "cannot execute binary file: Exec format error" in done.error_text
    assert site.ask("runc", "--version", host="arm1").ok


def test_a_file_is_the_program_that_it_stands_for(site: Site) -> None:
    site.put("/usr/local/bin/ctr", standins.text("runc", "v1.4.3", "amd64"), 0o755)

    assert site.do("ctr", "--version") == "runc version v1.4.3"


@pytest.mark.parametrize(
    ("package", "program"),
    [
        ("conntrack", "conntrack"),
        ("socat", "socat"),
        ("ethtool", "ethtool"),
        ("iptables", "ip6tables-restore"),
        ("nftables", "nft"),
    ],
)
def test_packages_bring_programs(site: Site, package: str, program: str) -> None:
    site.do("apt-get", "install", "-y", package)

    found = standins.found(site.world.host("n1").shell(), program)
    assert found is not None
    assert found.program == program
    site.do("apt-get", "purge", "-y", package)
    assert site.world.snapshot() == {}


def test_services_of_packages_run_at_once_on_debian_and_not_elsewhere(made: Make) -> None:
    site = made(machines={"rocky*": Machine(os_id="rocky")})
    site.do("apt-get", "install", "-y", "chrony")
    site.do("dnf", "-y", "install", "chrony", host="rocky1")

    assert site.state("chrony") == "active"
    assert site.do("systemctl", "is-enabled", "chrony") == "enabled"
    assert site.state("chronyd", "rocky1") == "inactive"
    site.do("systemctl", "start", "chronyd", host="rocky1")
    assert site.state("chronyd", "rocky1") == "active"


def test_the_settings_of_a_world_win_over_what_is_known_of_a_package(made: Make) -> None:
    site = made(packages={"haproxy": PackageSettings(files={"/etc/other": "x"})})

    site.do("apt-get", "install", "-y", "haproxy")

    assert site.ask("test", "-e", "/etc/other").ok
    assert site.ask("haproxy", "-v").exit == 127


def test_a_machine_has_the_programs_of_the_packages_it_was_delivered_with(made: Make) -> None:
    site = made(machine=Machine(packages={"iptables": "1.8.9"}))

    assert site.do("iptables", "-S", "INPUT") == "-P INPUT ACCEPT"
    assert site.world.snapshot() == {}


def test_every_program_that_needs_a_file_is_known_by_a_package_or_brought_by_kubexm() -> None:
    assert {"containerd", "ctr", "haproxy", "keepalived", "nft"} <= standins.NEEDED & {*PROGRAMS}
