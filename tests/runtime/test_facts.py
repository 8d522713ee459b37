"""Facts are gathered once per host and run, and anew when a host was rebooted meanwhile."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.virtual import run as run_virtually

from kubexm import logger
from kubexm.cache import Cache
from kubexm.connector.base import Command, Completed, LineSink
from kubexm.engine import MemoryJournal, Options, execute
from kubexm.errors import ConnectionLost, StepFailed
from kubexm.plan import ExecutionNode, StepSpec, build
from kubexm.runtime.build import HostConfig, Runtime, RuntimeConfig
from kubexm.sim import Fault, World, WorldSettings
from kubexm.spec.loader import Loader

SCRIPT = "sh"
"""What facts are read with."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World.create(tmp_path / "world")
    yield world
    world.close()


def config(world: World, **parts: Any) -> RuntimeConfig:
    return RuntimeConfig([HostConfig("n1", world.connector("n1"))], **parts)


async def reboot(world: World, kernel: str) -> None:
    """Into another kernel."""
    await world.connector("n1").put("/proc/sys/kernel/osrelease", kernel.encode())
    world.host("n1").reboot()


def gathered(world: World) -> int:
    return world.host("n1").executed[SCRIPT]


async def test_a_reconnect_to_a_host_that_did_not_reboot_asks_for_no_facts(world: World) -> None:
    async with Runtime.build(config(world)) as runtime:
        before = runtime.view("n1", {}).facts

        await asyncio.gather(*(runtime.reconnect("n1") for _ in range(3)))

        assert runtime.view("n1", {}).facts is before
        assert gathered(world) == 1


async def test_a_host_that_need_not_tell_its_facts_tells_only_its_boot(world: World) -> None:
    async with Runtime.build(config(world, asked=())) as runtime:
        assert gathered(world) == 0
        assert runtime.view("n1", {}).facts.keys() == {"boot_id"}
        assert runtime.reached() == ["n1"]
        assert runtime.facts() == {}
        with pytest.raises(StepFailed, match="facts of the host were not gathered") as refusal:
            _ = runtime.host("n1").facts

    assert "reads_facts = True" in refusal.value.hint


async def test_facts_are_gathered_anew_once_when_the_boot_id_is_another(world: World) -> None:
    async with Runtime.build(config(world)) as runtime:
        before = runtime.view("n1", {}).facts
        await reboot(world, "9.9.9")

        await asyncio.gather(*(runtime.reconnect("n1") for _ in range(3)))

        after = runtime.view("n1", {}).facts
        assert after["kernel"] == "9.9.9"
        assert after["boot_id"] != before["boot_id"]
        assert runtime.host("n1").facts is after
        assert gathered(world) == 2


class RebootedBy:
    """A connection on which the first command of a kind reboots the host, and is lost by it."""

    def __init__(self, program: str, world: World) -> None:
        self._program = program
        self._world = world
        self._inner = world.connector("n1")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def exec(self, command: Command, sink: LineSink | None = None) -> Completed:
        if command.argv[0] == self._program:
            self._program = ""
            await reboot(self._world, "9.9.9")
            raise ConnectionLost("the connection was lost")
        return await self._inner.exec(command, sink)


async def test_conditions_after_a_reboot_are_decided_by_the_facts_after_it(world: World) -> None:
    graph = build(
        "g",
        [
            command("kernel", "/installed"),
            command("old", "/old", after="kernel", when="facts.kernel != '9.9.9'"),
            command("new", "/new", after="kernel", when="facts.kernel == '9.9.9'"),
        ],
        hosts=("n1",),
    )
    hosts = [HostConfig("n1", RebootedBy("touch", world))]

    async with Runtime.build(RuntimeConfig(hosts)) as runtime:
        result = await execute(graph, runtime, Options(), load=Loader(), journal=MemoryJournal())

    assert result.status == "Success"
    assert world.snapshot()["n1"].keys() >= {"/installed", "/new"}
    assert "/old" not in world.snapshot()["n1"]


def command(id: str, path: str, after: str = "", when: str | None = None) -> ExecutionNode:
    """Makes a file on n1."""
    step = StepSpec("command", {"argv": ["touch", path]})
    lane = (after,) if after else ()
    return ExecutionNode(id, id, step, ("n1",), after_same_host=lane, when=when)


AT = 4
"""The command with which facts are gathered anew: one before, the new kernel, the boot id."""


def anew(path: Path, fault: str, within: float) -> Any:
    """The kernel that is known after a reconnect during which something goes wrong."""
    world = World.create(path, WorldSettings(faults=(Fault(fault, at=AT),)))  # type: ignore[arg-type]

    async def scenario() -> Any:
        async with Runtime.build(config(world)) as runtime:
            await reboot(world, "9.9.9")
            async with asyncio.timeout(within):
                await runtime.reconnect("n1")
            return runtime.view("n1", {}).facts["kernel"]

    try:
        return run_virtually(scenario())
    finally:
        world.close()


def test_a_connection_lost_while_they_are_gathered_anew_is_opened_again(tmp_path: Path) -> None:
    assert anew(tmp_path / "world", "connection-lost", within=30) == "9.9.9"


def test_gathering_them_anew_takes_no_longer_than_the_caller_has(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        anew(tmp_path / "world", "hang", within=30)


async def test_the_cache_and_the_log_of_a_runtime_can_be_replaced(world: World) -> None:
    cache, written = Cache(), io.StringIO()
    logger.configure("json", "info", stream=written)

    async with Runtime.build(config(world, cache=cache, log=logger.get(site="here"))) as runtime:
        await reboot(world, "9.9.9")
        await runtime.reconnect("n1")
        known = runtime.view("n1", {}).facts

    kept = await cache.once("run/@host/n1", "facts", never)
    assert kept is known
    assert [json.loads(line)["site"] for line in written.getvalue().splitlines()] == ["here"]


async def never() -> object:
    raise AssertionError("this is known")
