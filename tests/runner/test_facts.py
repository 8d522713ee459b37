"""Facts of this machine, of simulated ones, and of systems whose answers are known."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from tests.runner import answers
from tests.runner.hosts import on_this_machine

from kubexm.common.facts import FACTS
from kubexm.connector.base import Completed
from kubexm.connector.local import LocalConnector
from kubexm.runner import facts
from kubexm.runner.host import Host
from kubexm.sim import Machine, Script, ServiceSettings, World, WorldSettings

MACHINE = Machine(
    os_id="ubuntu",
    os_version="24.04",
    cpus=2,
    memory_mib=2048,
    services={"ssh": ServiceSettings(active=True, ports=(22,))},
    packages={"containerd": "1.7"},
)


def read(text: str, around: tuple[float, float] | None = None) -> dict[str, Any]:
    return facts.facts_of((Completed(0, text.encode()),), around)


def test_of_this_machine() -> None:
    found = on_this_machine(facts.gather)

    assert found.keys() <= FACTS.keys()
    assert found["kernel"] == platform.release()
    assert found["arch"] == platform.machine()
    assert found["hostname"] == platform.node()
    assert found["cpus"] == len(os.sched_getaffinity(0))
    assert found["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert isinstance(found["memory_mib"], int)
    assert isinstance(found["swap_mib"], int)
    assert abs(found["clock"]["offset_s"]) <= found["clock"]["within_s"] + 0.001


def test_free_space_of_this_machine_is_what_the_system_says() -> None:
    found = on_this_machine(facts.gather)

    whole = shutil.disk_usage("/")
    (root,) = (one for one in found["filesystems"] if one["path"] == "/")
    assert root["size_mib"] == whole.total >> 20
    assert abs(root["free_mib"] - (whole.free >> 20)) < 1024, "others write meanwhile"


def test_of_a_simulated_host(tmp_path: Path) -> None:
    world = World.create(tmp_path / "world", WorldSettings(machine=MACHINE))

    found = asyncio.run(facts.gather(Host("n1", world.connector("n1"))))
    other = asyncio.run(facts.gather(Host("n2", world.connector("n2"))))

    assert set(found) == set(FACTS)
    for name, parts in FACTS.items():
        assert not parts or set(found[name]) == set(parts)
    assert (found["os"]["id"], found["os"]["family"]) == ("ubuntu", "debian")
    assert found["os"]["version"] == "24.04"
    assert (found["cpus"], found["memory_mib"], found["hostname"]) == (2, 2048, "n1")
    assert found["swap_mib"] == 0
    assert found["ports"] == {"tcp/22": "ssh"}
    assert found["runtimes"] == ["containerd"]
    assert len(found["addresses"]) == 1
    for name in ("boot_id", "machine_id", "product_uuid", "addresses"):
        assert found[name] != other[name]
    world.close()


def test_are_asked_in_one_command_or_two_where_root_needs_sudo(tmp_path: Path) -> None:
    world = World.create(tmp_path / "world", WorldSettings(machine=MACHINE))
    connector = world.connector("n1")

    asyncio.run(facts.gather(Host("n1", connector)))
    asked = facts.commands(Host("n1", connector, sudo=True))

    assert world.host("n1").commands == 1
    assert [command.sudo for command in asked] == [False, True]
    world.close()


def test_a_script_for_any_shell_does_not_answer_for_the_host(tmp_path: Path) -> None:
    script = Script(("sh", "**"), stdout="scripted\n")
    world = World.create(tmp_path / "world", WorldSettings(scripts=(script,)))
    host = Host("n1", world.connector("n1"))

    found = asyncio.run(facts.gather(host))

    assert found["hostname"] == "n1"
    assert asyncio.run(host.ask("sh", "-c", "anything")).text == "scripted"
    world.close()


def test_simulated_hosts_that_are_alike_share_what_they_have_in_common(tmp_path: Path) -> None:
    world = World.create(tmp_path / "world", WorldSettings(machine=MACHINE))

    one, other = (
        asyncio.run(facts.gather(Host(name, world.connector(name)))) for name in ("n1", "n2")
    )

    for name in ("os", "disks", "filesystems", "ports", "runtimes"):
        assert one[name] is other[name], name
    assert one["network"]["nameservers"] is other["network"]["nameservers"]
    assert one["network"]["mac"] != other["network"]["mac"]
    world.close()


def test_of_debian_12() -> None:
    assert read(answers.DEBIAN_12, (1700000000.0, 1700000000.1)) == {
        "os": {
            "id": "debian",
            "family": "debian",
            "version": "12",
            "name": "Debian GNU/Linux 12 (bookworm)",
        },
        "kernel": "6.1.0-28-amd64",
        "arch": "x86_64",
        "cpus": 4,
        "memory_mib": 7948,
        "swap_mib": 974,
        "disks": [
            {
                "name": "nvme0n1",
                "size_mib": 488386,
                "type": "nvme",
                "model": "SAMSUNG MZVL2512HCJQ-00B00",
            },
            {"name": "sda", "size_mib": 1907729, "type": "hdd", "model": "WDC WD20EFRX-68E"},
        ],
        "filesystems": [
            {"path": "/", "type": "ext4", "size_mib": 479118, "free_mib": 445064},
            {"path": "/boot/efi", "type": "vfat", "size_mib": 510, "free_mib": 505},
            {"path": "/srv/my data", "type": "xfs", "size_mib": 1906796, "free_mib": 929257},
        ],
        "hostname": "web1",
        "boot_id": "0a2f6e5c-52a3-4d9c-9b0c-3f1f6a0b3f55",
        "machine_id": "4e7d3c9f0b1a4a55b2c6d7e8f9a0b1c2",
        "product_uuid": "4c4c4544-0042-3510-8052-b4c04f4e3132",
        "addresses": ["192.168.1.20", "172.17.0.1", "2001:db8::20"],
        "network": {"interface": "eno1", "gateway": "192.168.1.1", "mtu": 1500},
        "ports": {"tcp/22": "sshd", "tcp/10248": "", "udp/68": "dhclient"},
        "clock": {"offset_s": 0.2, "within_s": 0.05, "kept": False},
        "init": "systemd",
        "cgroup": 2,
        "selinux": "disabled",
        "package_manager": "apt",
        "runtimes": ["containerd", "docker"],
    }


def test_of_rocky_9() -> None:
    found = read(answers.ROCKY_9)

    assert found["os"]["family"] == "rhel"
    assert found["os"]["like"] == ["rhel", "centos", "fedora"]
    assert (found["cpus"], found["swap_mib"], found["selinux"]) == (34, 0, "enforcing")
    assert found["disks"] == [{"name": "vda", "size_mib": 20480, "type": "hdd"}]
    assert [one["path"] for one in found["filesystems"]] == ["/", "/boot"], "by path"
    assert found["network"] == {"interface": "enp1s0", "gateway": "192.168.122.1", "mtu": 9000}
    assert (found["package_manager"], found["runtimes"]) == ("dnf", ["cri-o"])
    assert found["ports"] == {"tcp/22": ""}
    assert not {"product_uuid", "clock"} & found.keys()


def test_of_leap_15_6_without_ss_and_ip_on_a_machine_of_the_other_byte_order() -> None:
    found = read(answers.LEAP_15_6)

    assert (found["os"]["family"], found["package_manager"]) == ("suse", "zypper")
    assert found["network"] == {"interface": "eth0", "gateway": "192.168.122.1", "mtu": 1492}
    assert found["addresses"] == ["192.168.122.77", "fd00::77"]
    assert found["ports"] == {"tcp/22": "", "udp/68": ""}
    assert found["disks"][0]["name"] == "dasda"


def test_of_ubuntu_24_04_in_a_container_with_a_tunnel() -> None:
    found = read(answers.UBUNTU_24_04)

    assert (found["os"]["id"], found["os"]["family"]) == ("ubuntu", "debian")
    assert found["package_manager"] == "apt", "that of the family, whatever else is there"
    assert found["network"] == {"interface": "tun0", "mtu": 1420}
    assert found["filesystems"] == [
        {"path": "/", "type": "overlay", "size_mib": 7876, "free_mib": 5907}
    ]
    assert found["disks"] == [{"name": "xvda", "size_mib": 8192}]
    assert found["runtimes"] == []
    assert not {"addresses", "ports", "hostname"} & found.keys()


@pytest.mark.parametrize(
    ("lines", "servers"),
    [
        ("nameserver 10.0.0.2|search a.example|nameserver fd00::2|options ndots:5", 2),
        ("# nobody|nameserver", 0),
        ("", 0),
    ],
)
def test_whom_a_host_asks_for_names_is_told_and_that_it_asks_nobody(
    lines: str, servers: int
) -> None:
    text = "".join(f"/etc/resolv.conf:{line}\n" for line in lines.split("|"))

    found = read(f"told:tools\ntold:resolvers\nroute:eth0 00000000\nmac:02:00:00:00:00:01\n{text}")

    assert found["network"]["mac"] == "02:00:00:00:00:01"
    assert found["network"]["nameservers"] == ["10.0.0.2", "fd00::2"][:servers]


def test_an_address_beside_the_default_route_is_told_with_its_interface() -> None:
    more = "2: eth0    inet 192.0.2.7/24 scope global eth0\n"
    more += "3: eth1.7@eth1    inet 10.1.0.7/24 scope global eth1.7\n"
    more += "3: eth1.7@eth1    inet6 fd01::7/64 scope global\n"
    told = f"route:eth0 0100000A\ntold:tools\ntold:resolvers\n@addresses\n{more}"

    assert read(told)["network"]["others"] == {"10.1.0.7": "eth1.7", "fd01::7": "eth1.7"}
    assert read("told:resolvers\n@addresses\n10.1.0.7 fd01::7\n")["network"]["others"] == {}


def test_leave_out_what_a_host_does_not_tell() -> None:
    odd = "/etc/os-release:ID=\n/etc/os-release:NOISE\n/proc/meminfo:MemFree: 1 kB\nclock:noon\n"

    assert facts.facts_of((Completed(1, stderr=b"no"),)) == {}
    assert read("arch:x86_64\n") == {"arch": "x86_64"}
    assert read(odd, (0.0, 1.0)) == {"os": {"id": ""}}
    assert read("@ports\n@\n") == {}


def test_nobody_who_listens_and_no_runtime_is_something_to_tell() -> None:
    assert read("told:tools\n@ports\n@\ntold:ports\n") == {
        "selinux": "disabled",
        "ports": {},
        "runtimes": [],
    }


def test_of_a_plain_simulated_host_on_which_nothing_runs(tmp_path: Path) -> None:
    world = World.create(tmp_path / "world")

    found = asyncio.run(facts.gather(Host("n1", world.connector("n1"))))

    assert (found["ports"], found["runtimes"], found["swap_mib"]) == ({}, [], 0)
    assert FACTS.keys() == found.keys()
    world.close()


def test_what_is_for_root_alone_may_fail_by_itself() -> None:
    refused = Completed(1, stderr=b"sudo: a password is required\n")
    told = Completed(0, answers.ROCKY_9.encode())

    assert facts.facts_of((told, refused)) == facts.facts_of((told,))


def test_the_question_works_without_its_tools(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")

    async def ask(host: Host) -> Completed:
        (command,) = facts.commands(host)
        # The script adds the directories of system tools itself; these are the ones that are left.
        script = command.argv[2].replace(":/usr/sbin:/sbin", "")
        return await host.ask("sh", "-c", script, env={"PATH": str(tmp_path)})

    told = facts.facts_of((on_this_machine(ask),))

    assert told.keys() <= {"network", "cgroup", "init", "selinux", "product_uuid", "runtimes"}


def test_the_clock_is_judged_by_the_time_around_the_question() -> None:
    connector = LocalConnector()

    async def scenario() -> tuple[float, dict[str, Any]]:
        before = time.time()
        found = await facts.gather(Host("here", connector))
        await connector.close()
        return time.time() - before, found

    took, found = asyncio.run(scenario())

    assert 0 < found["clock"]["within_s"] <= took


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_somebody_else_is_told_all_but_what_is_for_root() -> None:
    async def ask(host: Host) -> tuple[Completed, Completed]:
        (command,) = facts.commands(host)
        return await host.ask(*command.argv), await host.ask(*command.argv, user="nobody")

    root, nobody = (facts.facts_of((answer,)) for answer in on_this_machine(ask))

    assert root.keys() - nobody.keys() <= {"product_uuid", "ports"}
    assert not any(nobody.get("ports", {}).values())
