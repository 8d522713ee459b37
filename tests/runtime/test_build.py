"""A runtime has all hosts open at once, names who does not answer, and leaves nothing open."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests import virtual

from kubexm.runtime.build import HostConfig, Runtime, RuntimeConfig
from kubexm.sim import World, WorldSettings
from kubexm.sim.connector import SimConnector
from kubexm.sim.settings import Fault, Fixed

HOSTS = [f"h{number}" for number in range(60)]


class Door(SimConnector):
    """A connection that knows whether somebody has to close it."""

    is_open = False
    lets_in = True

    async def open(self) -> None:
        self.is_open = True
        if not self.lets_in:
            await asyncio.Event().wait()
        await super().open()

    async def close(self) -> None:
        self.is_open = False


class Site:
    """A world in which a round trip takes five seconds, and the doors to its hosts."""

    def __init__(self, path: Path) -> None:
        faults = Fault("hang", hosts="slow", at=1, seconds=35), Fault("hang", hosts="mute", at=1)
        self.world = World.create(path, WorldSettings(latency=Fixed(5.0), faults=faults))
        self.doors: dict[str, Door] = {}

    def config(self, *names: str) -> RuntimeConfig:
        self.doors = {name: Door(self.world.host(name), self.world.path) for name in names}
        return RuntimeConfig([HostConfig(name, door) for name, door in self.doors.items()])

    @property
    def left_open(self) -> list[str]:
        return [name for name, door in self.doors.items() if door.is_open]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "world")
    yield made
    made.world.close()


def test_many_hosts_are_opened_in_the_time_of_one(site: Site) -> None:
    async def opened(*names: str) -> float:
        async with Runtime.build(site.config(*names)) as runtime:
            assert list(runtime.facts()) == list(names)
            return asyncio.get_running_loop().time()

    assert virtual.run(opened(*HOSTS)) == virtual.run(opened("h1")) == 10.0


def test_a_host_that_never_lets_us_in_is_unreachable_after_15_seconds(site: Site) -> None:
    async def opened() -> tuple[float, dict[str, str]]:
        config = site.config("silent", "h1")
        site.doors["silent"].lets_in = False
        async with Runtime.build(config) as runtime:
            return asyncio.get_running_loop().time(), runtime.unreachable

    assert virtual.run(opened()) == (15.0, {"silent": "did not answer within 15 s"})


def test_a_host_that_lets_us_in_has_longer_to_tell_of_itself(site: Site) -> None:
    async def opened() -> tuple[float, dict[str, str]]:
        async with Runtime.build(site.config("slow", "mute")) as runtime:
            return asyncio.get_running_loop().time(), runtime.unreachable

    assert virtual.run(opened()) == (50.0, {"mute": "did not answer within 50 s"})


def test_all_hosts_are_closed_when_the_run_is_over(site: Site) -> None:
    async def run() -> list[str]:
        async with Runtime.build(site.config(*HOSTS)):
            return site.left_open

    assert virtual.run(run()) == HOSTS
    assert site.left_open == []


def test_all_hosts_are_closed_when_the_run_breaks_off(site: Site) -> None:
    async def run() -> None:
        async with Runtime.build(site.config(*HOSTS)):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        virtual.run(run())
    assert site.left_open == []


def test_all_hosts_are_closed_when_opening_is_cancelled(site: Site) -> None:
    async def run() -> list[str]:
        opening = asyncio.create_task(_enter(Runtime.build(site.config(*HOSTS))))
        await asyncio.sleep(7.0)
        halfway = site.left_open
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        return halfway

    assert virtual.run(run()) == HOSTS
    assert site.left_open == []


async def _enter(runtime: AbstractAsyncContextManager[Runtime]) -> None:
    async with runtime:
        raise AssertionError("it was open too early")
