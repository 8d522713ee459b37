"""The name of a host, its clock and SELinux."""

from __future__ import annotations

import platform

import pytest
from tests.runner.apart import work_apart
from tests.runner.hosts import complained, said, scripted

from kubexm.errors import StepFailed
from kubexm.runner import clock, hostname, selinux, services
from kubexm.runner.host import Host


def test_a_host_is_renamed_now_and_at_boot(apart: int) -> None:
    async def work(host: Host) -> None:
        await hostname.set_now(host, "web1")
        await hostname.set_at_boot(host, "web2")
        assert await hostname.names(host) == hostname.Names("web1", "web2")

    before = platform.node()
    work_apart(apart, work)
    assert platform.node() == before


def test_a_host_that_has_no_name_at_boot_says_nothing() -> None:
    gone = complained("cat: /etc/hostname: No such file or directory\n")

    assert hostname.names_of((said("here\n"), gone)) == hostname.Names("here", "")
    assert hostname.names_of((said("a"), said("# set by hand\n\nb\n"))).at_boot == "b"


CLOCK = "Timezone=Europe/Berlin\nNTP=yes\nNTPSynchronized=yes\n"
KEEPERS = "inactive\nactive\ninactive\ninactive\ninactive\n"


def test_the_clock_tells_its_zone_and_its_keeper() -> None:
    found = clock.state_of((said(CLOCK), said(KEEPERS)))

    assert found == clock.ClockState("Europe/Berlin", synchronised=True, keeper="chrony")
    assert clock.state_of((said("Timezone=Etc/UTC"), complained("no", 3))).keeper == ""


def test_the_zone_is_changed_by_what_the_host_has() -> None:
    _, connector = scripted(lambda host: clock.set_zone(host, "Asia/Tokyo"))

    assert connector.changes == ["timedatectl set-timezone -- Asia/Tokyo"]


@pytest.mark.parametrize(
    "words",
    [
        "Failed to set time zone: Invalid or not installed time zone 'Mars/Base'\n",
        "Failed to set time zone: Invalid time zone 'Mars/Base'\n",
    ],
)
def test_a_zone_that_nobody_knows_is_named(words: str) -> None:
    with pytest.raises(StepFailed, match="no time zone `Mars/Base`"):
        scripted(lambda host: clock.set_zone(host, "Mars/Base"), {"timedatectl": complained(words)})


CONFIG = b"# This file controls SELinux.\nSELINUX=enforcing\nSELINUXTYPE=targeted\n"
ENFORCING = {"cat /sys": said("1"), "cat /etc": said(CONFIG.decode())}


def test_selinux_is_changed_now_and_at_boot() -> None:
    async def work(host: Host) -> selinux.Modes:
        await selinux.set_now(host, "enforcing")
        await selinux.set_now(host, "permissive")
        await selinux.set_at_boot(host, "permissive")
        return await selinux.modes(host)

    found, connector = scripted(work, ENFORCING, {selinux.CONFIG: CONFIG})

    assert found == selinux.Modes("enforcing", "enforcing")
    assert connector.changes == ["setenforce 0", f"write {selinux.CONFIG}"]
    assert connector.files[selinux.CONFIG] == CONFIG.replace(b"enforcing", b"permissive")


def test_selinux_that_is_disabled_needs_a_boot() -> None:
    none = {"cat": complained("cat: /sys/fs/selinux/enforce: No such file or directory")}

    with pytest.raises(StepFailed, match="SELinux is disabled, want enforcing: that takes a boot"):
        scripted(lambda host: selinux.set_now(host, "enforcing"), none)
    with pytest.raises(StepFailed, match="there is no `/etc/selinux/config`"):
        scripted(lambda host: selinux.set_at_boot(host, "enforcing"), none)
    _, connector = scripted(lambda host: selinux.set_at_boot(host, "disabled"), none)
    assert connector.changes == []


def test_systemd_says_how_it_is() -> None:
    answers = {"systemctl is-system-running": said("degraded\n", 1)}

    async def work(host: Host) -> str:
        await services.mask(host, "swap.target")
        await services.unmask(host, "swap.target")
        await services.reload(host, "nginx")
        return await services.system(host)

    found, connector = scripted(work, answers)

    assert found == "degraded"
    assert services.system_of(complained("no systemd")) == "offline"
    assert connector.changes == [
        "systemctl mask -- swap.target",
        "systemctl unmask -- swap.target",
        "systemctl reload-or-restart -- nginx",
    ]
