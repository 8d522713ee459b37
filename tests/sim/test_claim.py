"""Hosts of a world obey the run with the greatest token of its name, and no earlier one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubexm.connector.base import Claim, Command
from kubexm.errors import Refused
from kubexm.sim import Fixed, World, WorldSettings


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[tuple[World, World]]:
    """The same world as two processes see it."""
    latency = Fixed(0.001)
    first = World.create(tmp_path / "world", WorldSettings(latency=latency))
    second = World.open(tmp_path / "world")
    yield first, second
    first.close()
    second.close()


def claim(name: str, token: int) -> Claim:
    return Claim(name, token, f"t{token}", who="somebody")


def touch(world: World, path: str) -> None:
    asyncio.run(world.connector("n1").exec(Command(("touch", path))))


def test_earlier_holder_is_refused_from_the_moment_a_later_one_acts(
    worlds: tuple[World, World],
) -> None:
    earlier, later = worlds
    earlier.claim(claim("site", 1))
    touch(earlier, "/etc/a")
    later.claim(claim("site", 2))
    touch(later, "/etc/b")

    with pytest.raises(
        Refused, match=r"token 1 of task t1 is refused: the host obeys token 2, task t2"
    ):
        touch(earlier, "/etc/c")
    with pytest.raises(Refused):
        asyncio.run(earlier.connector("n1").put("/etc/d", b"late"))
    with pytest.raises(Refused):
        earlier.claim(claim("site", 1))


def test_what_was_under_way_when_another_took_over_comes_to_nothing(
    worlds: tuple[World, World],
) -> None:
    earlier, later = worlds
    earlier.claim(claim("site", 1))

    async def scenario() -> None:
        under_way = asyncio.create_task(earlier.connector("n1").put("/etc/late", b"late"))
        await asyncio.sleep(0)
        later.claim(claim("site", 2))
        await under_way

    with pytest.raises(Refused):
        asyncio.run(scenario())

    with pytest.raises(FileNotFoundError):
        later.host("n1").read("/etc/late")


def test_the_same_holder_and_runs_of_other_names_are_obeyed(worlds: tuple[World, World]) -> None:
    one, other = worlds
    one.claim(claim("site", 1))
    other.claim(claim("another/name", 7))
    one.claim(claim("site", 1))

    touch(one, "/etc/a")
    touch(other, "/etc/b")


def test_who_only_looks_claims_nothing(worlds: tuple[World, World]) -> None:
    one, other = worlds
    one.claim(claim("site", 1))

    assert asyncio.run(other.connector("n1").exec(Command(("test", "-e", "/etc")))).ok
