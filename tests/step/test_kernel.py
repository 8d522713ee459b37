"""Steps about the kernel: on simulated hosts, and settings of a machine set apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runner import apart
from tests.step.places import ApartPlace, MemoryLedger, SimPlace

from kubexm.errors import StepFailed
from kubexm.runner import facts, services
from kubexm.runtime.ledger import Book, HostLedger
from kubexm.sim import Machine, Script, ServiceSettings, WorldSettings
from kubexm.step.contract import Step
from kubexm.step.kernel import KernelModule, KernelSettings, NoSwap

FORWARDING = KernelSettings("90-x", {"net.ipv4.ip_forward": 1, "vm.swappiness": "10"})
PORTS = KernelSettings("90-x", {"net.ipv4.ip_local_port_range": "20000 30000"})
CASES: dict[str, tuple[Step, str]] = {
    "settings": (
        FORWARDING,
        (
            "net.ipv4.ip_forward is 0, want 1; vm.swappiness is 60, want 10; "
            "`/etc/sysctl.d/90-x.conf` does not exist"
        ),
    ),
    "setting of two parts": (
        PORTS,
        (
            "net.ipv4.ip_local_port_range is 32768 60999, want 20000 30000; "
            "`/etc/sysctl.d/90-x.conf` does not exist"
        ),
    ),
    "module": (KernelModule("br-netfilter"), "is not loaded; is not loaded at boot"),
    "module until the next boot": (KernelModule("overlay", at_boot=False), "is not loaded"),
    "swap": (NoSwap(), "/swapfile is in use; `/etc/fstab` turns swap on at boot"),
}
SEEN = ("/proc/sys/net/ipv4/ip_forward", "/proc/sys/vm/swappiness", "/proc/swaps", "/proc/meminfo")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SimPlace]:
    made = SimPlace(tmp_path, WorldSettings(machine=Machine(swap_mib=2048)))
    yield made
    made.close()


def shown(place: SimPlace) -> list[bytes]:
    """What the kernel shows, which is no part of what a host keeps."""
    return [place.wait(place.host.get(path)) for path in SEEN]


@pytest.mark.parametrize("name", CASES)
def test_is_needed_then_satisfied_then_undone(name: str, place: SimPlace) -> None:
    step, reason = CASES[name]
    before, seen = place.state(), shown(place)

    verdict = place.verdict(step)

    assert (verdict.sign, verdict.reason) == ("~", reason)
    assert (place.state(), shown(place)) == (before, seen), "a precheck changes nothing"
    place.run(step)
    assert place.verdict(step).satisfied
    done = place.state()
    place.run(step)
    assert place.state() == done
    for _ in range(2):
        place.undo(step)
        assert (place.state(), shown(place)) == (before, seen)


@pytest.mark.parametrize("name", CASES)
def test_what_the_ledger_does_not_know_stays(name: str, place: SimPlace) -> None:
    step, _ = CASES[name]
    place.run(step)
    after, seen = place.state(), shown(place)

    place.undo(step, ledger=MemoryLedger())

    assert (place.state(), shown(place)) == (after, seen)


def test_a_file_of_the_same_name_comes_back(place: SimPlace) -> None:
    path = "/etc/sysctl.d/90-x.conf"
    place.wait(place.host.put(path, b"vm.swappiness = 1\n", mode=0o640))
    before = place.state()

    verdict = place.verdict(FORWARDING)
    place.run(FORWARDING)

    assert verdict.reason.endswith(f"`{path}` differs")
    assert "+net.ipv4.ip_forward = 1\n" in verdict.diff
    place.undo(FORWARDING)
    assert place.state() == before


def test_a_setting_that_is_not_wanted_any_more_goes_back(place: SimPlace) -> None:
    book = Book("site")
    swap, own = shown(place)[1], b"# ours\nnet.core.somaxconn = 4096\n"
    place.wait(place.host.put("/etc/sysctl.d/90-x.conf", own))
    place.run(FORWARDING, ledger=ledger(place, book))
    less = KernelSettings("90-x", {"net.ipv4.ip_forward": 1})
    later = ledger(place, Book("site", known=frozenset(book.found)))

    verdict = place.verdict(less)
    place.run(less, ledger=later)

    wanted = "vm.swappiness is not wanted any more; `/etc/sysctl.d/90-x.conf` differs"
    assert (verdict.sign, verdict.reason) == ("~", wanted)
    assert "-vm.swappiness = 10\n" in verdict.diff
    assert shown(place)[:2] == [b"1\n", swap]
    assert place.verdict(less).satisfied

    place.undo(less, ledger=later)
    assert shown(place)[:2] == [b"1\n", b"10\n"]
    assert place.verdict(FORWARDING).satisfied


def test_a_setting_of_others_in_the_same_file_stays_as_it_is(place: SimPlace) -> None:
    place.ask("sysctl", "-q", "-w", "net.core.somaxconn=8192")
    place.wait(place.host.put("/etc/sysctl.d/90-x.conf", b"net.core.somaxconn = 8192\n"))

    place.run(FORWARDING)

    assert place.ask("cat", "/proc/sys/net/core/somaxconn") == "8192"


def test_a_setting_that_is_gone_with_its_module_does_not_stand_in_the_way(place: SimPlace) -> None:
    module = KernelModule("br_netfilter")
    key = "net.bridge.bridge-nf-call-iptables"
    place.run(module)
    place.run(KernelSettings("90-x", {key: 0, "vm.swappiness": 10}))
    place.undo(module)
    less = KernelSettings("90-x", {"vm.swappiness": 10})

    place.run(less)

    assert place.verdict(less).satisfied


def ledger(place: SimPlace, book: Book) -> HostLedger:
    """A ledger as runs have it: what was there before any of them is known by the host alone."""

    async def keep(entry: object) -> None:
        pass

    return HostLedger(place.host, book, keep, lambda: 0.0)


def test_a_setting_that_comes_with_a_module_is_there_after_it(place: SimPlace) -> None:
    module = KernelModule("br_netfilter")
    setting = KernelSettings("90-x", {"net.bridge.bridge-nf-call-iptables": 0})

    assert place.verdict(setting).reason.startswith("there is no net.bridge.bridge-nf-call-iptab")
    with pytest.raises(StepFailed, match="has no setting"):
        place.run(setting, ledger=MemoryLedger())
    place.run(module)
    place.run(setting)
    assert place.verdict(setting).satisfied
    place.undo(setting)
    place.undo(module)
    assert not place.verdict(module).satisfied


@pytest.mark.parametrize(
    ("key", "delivered", "wanted"),
    [
        ("net.ipv4.tcp_keepalive_time", "7200", 1234),
        ("net.ipv4.tcp_rmem", "4096 131072 6291456", "4096 262144 16777216"),
        ("net.ipv4.ip_local_reserved_ports", "", "30000-32767"),
        ("net.ipv4.conf.all.rp_filter", "0", 1),
        ("net.ipv6.conf.default.disable_ipv6", "0", 1),
        ("kernel.perf_event_paranoid", "3", -1),
        ("kernel.core_pattern", "core", "/var/crash/%e.%p"),
        ("fs.file-max", "9223372036854775807", 1_000_000),
        ("vm.dirty_ratio", "20", 5),
    ],
)
def test_ordinary_settings_can_be_rehearsed(
    place: SimPlace, key: str, delivered: str, wanted: str | int
) -> None:
    step = KernelSettings("90-x", {key: wanted})

    reason = place.verdict(step).reason
    place.run(step)

    assert reason.startswith(f"{key} is {delivered}, want {wanted};")
    assert place.verdict(step).satisfied
    place.undo(step)
    assert place.verdict(step).reason == reason


@pytest.mark.parametrize(
    "key",
    ["net.ipv4.tcp_keepalive_tim", "vm.swapiness", "net.netfilter.nf_conntrack_max", "x.y"],
)
def test_a_setting_that_no_kernel_has_or_whose_module_is_not_loaded_is_refused(
    place: SimPlace, key: str
) -> None:
    with pytest.raises(StepFailed, match=f"has no setting `{key}`"):
        place.run(KernelSettings("90-x", {key: 1}))


def test_a_module_in_use_is_left_and_that_is_told(tmp_path: Path) -> None:
    busy = Script(("modprobe", "-r", "**"), exit=1, stderr="modprobe: FATAL: Module x is in use.\n")
    place = SimPlace(tmp_path, WorldSettings(scripts=(busy,)))
    step = KernelModule("x")
    place.run(step)

    left = place.wait(step.rollback(place.context()))

    assert left == "module `x` is in use: modprobe: FATAL: Module x is in use."
    place.close()


def test_without_swap_the_host_tells_so(place: SimPlace) -> None:
    place.run(NoSwap())

    assert place.wait(facts.gather(place.host))["swap_mib"] == 0
    assert b"# off by kubexm: /swapfile" in place.wait(place.host.get("/etc/fstab"))


def test_units_that_turn_swap_on_by_themselves_are_masked_and_let_on_again(tmp_path: Path) -> None:
    zram = {"dev-zram0.swap": ServiceSettings(active=True, enabled=True)}
    place = SimPlace(tmp_path, WorldSettings(machine=Machine(services=zram)))
    before = place.state()

    assert place.verdict(NoSwap()).reason == "`dev-zram0.swap` turns swap on at boot"
    place.run(NoSwap())
    assert place.verdict(NoSwap()).satisfied
    assert place.wait(services.state(place.host, "dev-zram0.swap")).is_masked
    place.undo(NoSwap())

    assert place.state() == before
    place.close()


def test_lines_that_an_earlier_run_has_turned_off_stay_so(place: SimPlace) -> None:
    table = b"# off by kubexm: /old none swap sw 0 0\n/swapfile none swap sw 0 0\n"
    place.wait(place.host.put("/etc/fstab", table))

    place.run(NoSwap())
    place.undo(NoSwap())

    assert place.wait(place.host.get("/etc/fstab")) == table


def test_a_boot_keeps_what_is_said_for_good(place: SimPlace) -> None:
    lasting = (FORWARDING, KernelModule("br_netfilter"), NoSwap())
    passing = KernelModule("overlay", at_boot=False)
    for step in (*lasting, passing):
        place.run(step)

    place.world.host("there").reboot()

    assert all(place.verdict(step).satisfied for step in lasting)
    assert not place.verdict(passing).satisfied
    for step in lasting:
        place.undo(step)
    place.world.host("there").reboot()
    assert not any(place.verdict(step).satisfied for step in lasting)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"name": "a/b", "settings": {"a": 1}}, "want the name of a file"),
        ({"name": "a", "settings": {}}, "want at least one"),
        ({"name": "a", "settings": {"a": "1\n2"}}, "on one line"),
        ({"name": "a", "settings": {"-a": 1}}, "no name of a setting"),
    ],
)
def test_refuses_what_can_not_be_set(params: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        KernelSettings(**params)  # type: ignore[arg-type]


@pytest.mark.skipif(bool(apart.missing()), reason=apart.missing())
def test_a_real_kernel_is_set_and_set_back(tmp_path: Path) -> None:
    with apart.set_apart(tmp_path / "apart") as pid:
        place = ApartPlace(pid)
        key = "net.ipv4.ip_forward"
        old = place.ask("cat", f"/proc/sys/{key.replace('.', '/')}")
        step = KernelSettings("90-x", {key: 1 - int(old)})
        before = place.state()

        assert not place.verdict(step).satisfied
        place.run(step)
        assert place.verdict(step).satisfied
        assert place.state() != before
        place.undo(step)
        assert place.state() == before
        assert place.ask("cat", f"/proc/sys/{key.replace('.', '/')}") == old
        place.close()
