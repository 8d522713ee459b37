"""Settings and modules of the kernel, and swap."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runner.apart import work_apart
from tests.runner.hosts import complained, on_this_machine, said, scripted

from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner import modules, swap, sysctl
from kubexm.runner.host import Host
from kubexm.runner.swap import SwapUnit

KEY = "net.ipv4.ip_forward"


def test_a_setting_is_set_at_once(apart: int) -> None:
    async def work(host: Host) -> None:
        wanted = "0" if await sysctl.value(host, KEY) == "1" else "1"
        ports = "net.ipv4.ip_local_port_range"
        for key, value in {KEY: wanted, ports: "20000  30000"}.items():
            await sysctl.set_now(host, key, value)
        assert await sysctl.value(host, KEY) == wanted
        assert await sysctl.value(host, ports) == "20000 30000"

    work_apart(apart, work)


def test_a_file_of_settings_sets_them_in_order() -> None:
    text = sysctl.drop_in_text({"net.b": "1  2", "net.a": "1"})

    assert text == "net.a = 1\nnet.b = 1 2\n"
    assert sysctl.drop_in("90-test") == "/etc/sysctl.d/90-test.conf"


def test_a_setting_that_the_kernel_has_not_or_does_not_take_is_named(apart: int) -> None:
    async def missing(host: Host) -> None:
        assert await sysctl.value(host, "net.no.such") is None
        await sysctl.set_now(host, "net.no.such", "1")

    with pytest.raises(StepFailed, match=r"has no setting `net\.no\.such`"):
        work_apart(apart, missing)
    with pytest.raises(StepFailed, match="does not take `many`"):
        work_apart(apart, lambda host: sysctl.set_now(host, KEY, "many"))


def test_names_with_slashes_may_have_dots_in_their_parts() -> None:
    assert sysctl.place_of("net.ipv4.ip_forward") == "/proc/sys/net/ipv4/ip_forward"
    assert sysctl.place_of("net/ipv4/conf/eth0.1/forwarding").endswith("/eth0.1/forwarding")


def test_the_names_in_a_file_of_settings_are_known() -> None:
    text = "# net.a = 1\n; net.b = 1\n\nvm.c=1\n -kernel.d = 1 2\nnothing\nvm.c = 2\n"

    assert sysctl.names_in(text) == ("vm.c", "kernel.d")


def test_modules_are_looked_for_by_the_name_that_the_kernel_has() -> None:
    assert on_this_machine(_asked("ip-vs")) == ("test", "-e", "/sys/module/ip_vs")
    assert not on_this_machine(lambda host: modules.loaded(host, "no-such-module"))


def test_a_module_that_leaves_no_directory_when_built_in_is_known_by_what_it_brings() -> None:
    (_, sign, trace) = on_this_machine(_asked("br-netfilter"))

    assert (sign, trace) == ("-e", sysctl.place_of("net.bridge.bridge-nf-call-iptables"))


def _asked(name: str) -> Callable[[Host], Awaitable[tuple[str, ...]]]:
    async def asked(host: Host) -> tuple[str, ...]:
        return modules.loaded_command(host, name).argv

    return asked


def test_modules_are_loaded_and_unloaded() -> None:
    async def work(host: Host) -> None:
        await modules.load(host, "overlay")
        await modules.unload(host, "overlay")

    _, connector = scripted(work)

    assert connector.changes == ["modprobe -- overlay", "modprobe -r -- overlay"]


def test_a_module_that_the_host_has_not_is_named() -> None:
    said_no = "modprobe: FATAL: Module x not found in directory /lib/modules/6.1.0-28-amd64\n"

    with pytest.raises(StepFailed, match="no module `x` for the kernel that it runs") as caught:
        scripted(lambda host: modules.load(host, "x"), {"modprobe": complained(said_no)})

    assert "install the package" in caught.value.hint


def test_a_host_without_a_tool_is_told_so() -> None:
    gone = complained("sh: 1: exec: modprobe: not found\n", 127)

    with pytest.raises(CommandFailed) as caught:
        scripted(lambda host: modules.load(host, "x"), {"modprobe": gone})

    assert caught.value.hint.startswith("the host has no `modprobe`")


SWAPS = """\
Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/sda2                               partition\t998396\t\t0\t\t-2
/swapfile                               file\t\t2097148\t\t512\t\t-3
"""
FSTAB = """\
# /etc/fstab: static file system information.
UUID=1-2 / ext4 errors=remount-ro 0 1
/dev/sda2 none swap sw 0 0
#/old none swap sw 0 0
/swapfile\tswap\tswap\tdefaults\t0\t0"""


def test_swap_in_use_is_read() -> None:
    assert swap.areas_of(said(SWAPS)) == {"/dev/sda2": 998396, "/swapfile": 2097148}
    here = Path("/proc/swaps").read_text().splitlines()[1:]
    assert list(on_this_machine(swap.areas)) == [line.split()[0] for line in here]


def test_swap_goes_from_the_table_and_comes_back() -> None:
    async def work(host: Host) -> bytes:
        await swap.turn_off_at_boot(host)
        await swap.turn_off_at_boot(host)
        off = await host.get(swap.FSTAB)
        await swap.turn_on_at_boot(host)
        return off

    off, connector = scripted(work, files={swap.FSTAB: FSTAB.encode()})

    assert [line for line in off.decode().splitlines() if " off by kubexm: " in line] == [
        "# off by kubexm: /dev/sda2 none swap sw 0 0",
        "# off by kubexm: /swapfile\tswap\tswap\tdefaults\t0\t0",
    ]
    assert connector.files[swap.FSTAB] == FSTAB.encode()
    assert connector.changes == [f"write {swap.FSTAB}"] * 2


@given(st.lists(st.sampled_from([*FSTAB.split("\n"), ""])).map("\n".join))
def test_any_table_comes_back_as_it_was(table: str) -> None:
    assert swap.uncommented(swap.commented(table)) == table


UNITS = """\
Id=dev-disk-by\\x2duuid-1f0c.swap
LoadState=loaded
ActiveState=active
UnitFileState=
FragmentPath=
SourcePath=

Id=dev-sda2.swap
LoadState=loaded
ActiveState=active
UnitFileState=generated
FragmentPath=/run/systemd/generator/dev-sda2.swap
SourcePath=/etc/fstab

Id=dev-zram0.swap
LoadState=loaded
ActiveState=active
UnitFileState=generated
FragmentPath=/run/systemd/generator/dev-zram0.swap
SourcePath=

Id=dev-zram1.swap
LoadState=masked
ActiveState=inactive
UnitFileState=masked
FragmentPath=/etc/systemd/system/dev-zram1.swap
SourcePath=

Id=swapfile.swap
LoadState=loaded
ActiveState=inactive
UnitFileState=enabled
FragmentPath=/etc/systemd/system/swapfile.swap
SourcePath=

Id=other.swap
LoadState=loaded
ActiveState=active
UnitFileState=disabled
FragmentPath=/etc/systemd/system/other.swap
SourcePath=
"""


def test_units_that_turn_swap_on_are_those_that_the_table_does_not_make() -> None:
    assert swap.units_of(said(UNITS)) == [
        SwapUnit("dev-zram0.swap", is_active=True, is_own=False),
        SwapUnit("swapfile.swap", is_active=False, is_own=True),
    ]
    assert swap.units_of(complained("System has not been booted with systemd")) == []


def test_a_unit_of_swap_is_kept_off_and_let_on_as_it_was() -> None:
    made = SwapUnit("dev-zram0.swap", is_active=True, is_own=False)
    written = SwapUnit("swapfile.swap", is_active=False, is_own=True)

    async def work(host: Host) -> None:
        for unit in (made, written):
            await swap.keep_off(host, unit)
            await swap.let_on(host, unit)

    _, connector = scripted(work, {})

    assert connector.changes == [
        "systemctl mask -- dev-zram0.swap",
        "systemctl unmask -- dev-zram0.swap",
        "systemctl start -- dev-zram0.swap",
        "systemctl disable -- swapfile.swap",
        "systemctl enable -- swapfile.swap",
    ]


def test_swap_that_does_not_fit_into_memory_says_what_to_do() -> None:
    full = complained("swapoff: /swapfile: swapoff failed: Cannot allocate memory\n")

    with pytest.raises(StepFailed, match="does not fit into memory") as caught:
        scripted(swap.turn_off, {"swapoff": full})

    assert "memory" in caught.value.hint


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("tee: /etc/x: Read-only file system", "mounted read-only"),
        ("cp: error writing 'x': No space left on device", "is full"),
        ("sudo: a password is required", "sudo without a password"),
        ("something else", ""),
    ],
)
def test_what_a_failed_command_says_tells_what_to_do(words: str, hint: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        Host.checked(("x",), complained(words))

    assert hint in caught.value.hint
    assert bool(hint) == bool(caught.value.hint)
