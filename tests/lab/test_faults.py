"""Every fault is seen from outside, and is gone when it is mended."""

import time

import pytest

from lab import faults, report, waiting
from lab.errors import LabError
from lab.testing import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]

BOOT = "cat /proc/sys/kernel/random/boot_id"
QUICK = ("ConnectTimeout=2", "ServerAliveInterval=1", "ServerAliveCountMax=2")


def answers(lab: Lab, name: str) -> bool:
    return lab.ssh(f"root@{name}", "true", options=QUICK).returncode == 0


def state(lab: Lab, name: str) -> str:
    return report.state(lab.site, lab.host(name))


@pytest.mark.parametrize("name", ["node1", "trixie1"])
def test_a_host_is_shut_down_in_order_and_started_again(lab: Lab, name: str) -> None:
    before = lab.ssh(f"root@{name}", f"{BOOT}; touch /srv/kept").stdout

    faults.stop(lab.site, name)
    off = (state(lab, name), answers(lab, name))
    faults.start(lab.site, name)

    assert off == ("stopped", False)
    assert lab.ssh(f"root@{name}", "ls /srv").stdout == "kept\n"
    assert lab.ssh(f"root@{name}", BOOT).stdout != before
    assert "Reached target" in lab.site.home(name).console.read_text(errors="replace")


def test_a_power_cut_asks_nobody(lab: Lab) -> None:
    lab.ssh(
        "root@node1",
        "systemd-run --unit=last --property=ExecStop='/bin/touch /srv/asked' sleep 99",
    )

    faults.kill(lab.site, "node1")
    off = state(lab, "node1")
    faults.start(lab.site, "node1")

    assert off == "stopped"
    assert lab.ssh("root@node1", "test -e /srv/asked").returncode == 1


@pytest.mark.parametrize("name", ["node2", "trixie1"])
def test_a_reboot_gives_another_boot_id(lab: Lab, name: str) -> None:
    before = lab.ssh(f"root@{name}", BOOT).stdout

    faults.reboot(lab.site, name)

    after = lab.ssh(f"root@{name}", BOOT).stdout
    assert len(after) == len(before) == 37
    assert after != before


def test_a_host_comes_back_when_it_reboots_itself(lab: Lab) -> None:
    before = lab.ssh("root@node2", f"{BOOT}; sysctl -qw net.ipv4.ip_forward=1").stdout

    lab.ssh("root@node2", "systemctl reboot")

    def is_another() -> bool:
        return lab.ssh("root@node2", BOOT, options=QUICK).stdout not in ("", before)

    waiting.until(is_another, "another boot id", 60, step=0.2)
    # What only the kernel held is gone, as after a real one.
    assert lab.ssh("root@node2", "sysctl -n net.ipv4.ip_forward").stdout == "0\n"


def test_a_frozen_host_takes_connections_and_says_nothing(lab: Lab) -> None:
    faults.freeze(lab.site, "node3")
    frozen = (state(lab, "node3"), answers(lab, "node3"))
    faults.thaw(lab.site, "node3")

    assert frozen == ("frozen", False)
    assert answers(lab, "node3")


def test_a_frozen_host_can_not_be_stopped_but_its_power_can_be_cut(lab: Lab) -> None:
    faults.freeze(lab.site, "node3")
    with pytest.raises(LabError, match="is frozen"):
        faults.stop(lab.site, "node3")
    faults.kill(lab.site, "node3")
    with pytest.raises(LabError, match="is off"):
        faults.freeze(lab.site, "node3")

    faults.start(lab.site, "node3")

    assert state(lab, "node3") == "running"


def test_a_cut_host_is_gone_until_it_is_mended_also_over_a_reboot(lab: Lab) -> None:
    faults.cut(lab.site, "node1")
    faults.reboot(lab.site, "node1")
    cut = (state(lab, "node1"), answers(lab, "node1"))
    faults.mend(lab.site, "node1")

    assert cut == ("running, cut", False)
    assert answers(lab, "node1")


def test_a_cut_reaches_other_hosts_too(lab: Lab) -> None:
    scan = f"timeout 3 ssh-keyscan -T 2 {lab.address('node2')} 2>/dev/null"
    before = lab.ssh("root@node1", scan).stdout

    faults.cut(lab.site, "node2")

    assert "ssh-ed25519" in before
    assert lab.ssh("root@node1", scan).stdout == ""


def test_all_packets_can_be_lost_while_the_link_is_up(lab: Lab) -> None:
    faults.loss(lab.site, "node1", 100)
    lost = answers(lab, "node1")
    link = lab.run("ip", "-brief", "link", "show", "node1").stdout
    faults.loss(lab.site, "node1", 0)

    assert not lost
    assert "LOWER_UP" in link
    assert answers(lab, "node1")


def lost(lab: Lab, name: str) -> int:
    """How many packets of a host were dropped so far."""
    rules = lab.run(
        *("nsenter", f"--net={lab.site.home(name).netns}"),
        *("iptables", "--table", "raw", "--list", "OUTPUT", "--verbose", "--numeric"),
    ).stdout
    return next(int(line.split()[0]) for line in rules.splitlines() if "DROP" in line)


def test_some_packets_are_lost_by_chance(lab: Lab) -> None:
    faults.loss(lab.site, "node1", 10)

    # Of the few packets of one go none may be lost, by chance.
    for _ in range(20):
        done = lab.ssh("root@node1", "head -c 1000000 /dev/zero", options=("ConnectTimeout=12",))
        assert len(done.stdout) == 1000000
        if lost(lab, "node1"):
            break

    assert lost(lab, "node1") > 0
    assert state(lab, "node1") == "running, loses 10 %"


def test_a_late_host_takes_its_time_and_needs_no_other_address(lab: Lab) -> None:
    faults.delay(lab.site, "node2", 300)
    begun = time.monotonic()
    late = lab.ssh("root@node2", "hostname").stdout
    took = time.monotonic() - begun
    faults.delay(lab.site, "node2", 0)
    begun = time.monotonic()
    prompt = lab.ssh("root@node2", "hostname").stdout

    assert late == prompt == "node2\n"
    # Banner, key exchange, login and the command: at least five ways there and back.
    assert took > 3.0
    assert time.monotonic() - begun < took


def test_a_hidden_host_can_not_be_delayed(lab: Lab) -> None:
    with pytest.raises(LabError, match="reached through `bastion`"):
        faults.delay(lab.site, "hidden", 10)


@pytest.mark.parametrize("place", ["/etc", "/var/lib", "/var/lib/etcd", "/root"])
def test_a_full_disk_is_full_everywhere_and_costs_the_machine_nothing(lab: Lab, place: str) -> None:
    write = f"head -c 65536 /dev/zero > {place}/probe; rc=$?; rm -f {place}/probe; exit $rc"
    image = lab.site.home("node1").image

    faults.fill(lab.site, "node1")
    full = lab.ssh("root@node1", write)
    faults.unfill(lab.site, "node1")

    assert "No space left on device" in full.stderr
    assert lab.ssh("root@node1", write).returncode == 0
    assert image.stat().st_blocks * 512 < 512 * 1024**2


def test_a_small_directory_can_be_filled_by_itself(lab: Lab) -> None:
    full = lab.ssh(
        "admin@node1", "head -c 2M /dev/zero > /var/lib/small/much; rm /var/lib/small/much"
    )
    elsewhere = lab.ssh("admin@node1", "head -c 2M /dev/zero > much && rm much")

    assert "No space left on device" in full.stderr
    assert elsewhere.returncode == 0


@pytest.mark.parametrize("name", ["node1", "trixie1"])
@pytest.mark.parametrize("seconds", [86400, -7200])
def test_a_skewed_clock_is_seen_by_logins_and_sudo(lab: Lab, name: str, seconds: int) -> None:
    faults.skew(lab.site, name, seconds)
    now = int(time.time())
    seen = lab.ssh(f"admin@{name}", "date +%s; sudo -n date +%s").stdout.split()
    faults.skew(lab.site, name, 0)
    true = lab.ssh(f"admin@{name}", "date +%s; sudo -n date +%s").stdout.split()

    assert [abs(int(one) - now - seconds) < 30 for one in seen] == [True, True]
    assert [abs(int(one) - now) < 30 for one in true] == [True, True]


def test_healing_ends_every_fault_at_once(lab: Lab) -> None:
    site = lab.site
    faults.fill(site, "node3")
    faults.skew(site, "node3", 60)
    faults.loss(site, "node3", 50)
    faults.freeze(site, "node3")
    faults.cut(site, "node3")

    broken = state(lab, "node3")
    faults.heal(site, "node3")

    assert broken == "frozen, cut, loses 50 %, full, clock +60 s"
    assert state(lab, "node3") == "running"
    assert answers(lab, "node3")
