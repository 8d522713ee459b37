"""Facts of this machine and of a simulated one, in one round trip."""

from __future__ import annotations

import asyncio
import os
import platform
from pathlib import Path

from kubexm.common.facts import FACTS
from kubexm.connector.base import Completed
from kubexm.connector.local import LocalConnector
from kubexm.runner import facts
from kubexm.runner.host import Host
from kubexm.sim import Machine, World, WorldSettings


def test_of_this_machine() -> None:
    async def gather() -> dict[str, object]:
        connector = LocalConnector()
        try:
            return await facts.gather(Host("here", connector))
        finally:
            await connector.close()

    found = asyncio.run(gather())

    assert found["kernel"] == platform.release()
    assert found["arch"] == platform.machine()
    assert found["hostname"] == platform.node()
    assert found["cpus"] == len(os.sched_getaffinity(0))
    assert found["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert isinstance(found["memory_mib"], int)


def test_of_a_simulated_host(tmp_path: Path) -> None:
    machine = Machine(os_id="ubuntu", os_version="24.04", cpus=2, memory_mib=2048)
    world = World.create(tmp_path / "world", WorldSettings(machine=machine))

    found = asyncio.run(facts.gather(Host("n1", world.connector("n1"))))
    other = asyncio.run(facts.gather(Host("n2", world.connector("n2"))))

    assert set(found) == set(FACTS)
    assert set(found["os"]) <= set(FACTS["os"])

    assert found["os"]["id"] == "ubuntu"
    assert found["os"]["version"] == "24.04"
    assert (found["cpus"], found["memory_mib"], found["hostname"]) == (2, 2048, "n1")
    assert len(found["addresses"]) == 1
    for name in ("boot_id", "machine_id", "addresses"):
        assert found[name] != other[name]
    world.close()


def test_are_asked_in_one_batch(tmp_path: Path) -> None:
    world = World.create(tmp_path / "world")

    asyncio.run(facts.gather(Host("n1", world.connector("n1"))))

    assert world.host("n1").commands == 4
    world.close()


def test_leave_out_what_a_host_does_not_tell() -> None:
    silent = Completed(1, stderr=b"no")
    odd = Completed(0, b"/etc/os-release:ID=\n/etc/os-release:NOISE\n/proc/meminfo:MemFree: 1 kB\n")

    assert facts.facts_of((silent, Completed(0, b"x86_64\n"), silent, silent)) == {"arch": "x86_64"}
    assert facts.facts_of((odd, silent, Completed(0, b"many"), silent)) == {"os": {"id": ""}}


def test_read_quoted_values_and_families() -> None:
    lines = ('ID="rocky"', 'ID_LIKE="rhel centos fedora"', "VERSION_ID='9.3'", 'PRETTY_NAME="R 9"')
    text = "".join(f"/etc/os-release:{line}\n" for line in lines)
    silent = Completed(1)

    found = facts.facts_of((Completed(0, text.encode()), silent, silent, silent))

    assert found["os"] == {
        "id": "rocky",
        "version": "9.3",
        "name": "R 9",
        "like": ["rhel", "centos", "fedora"],
    }
