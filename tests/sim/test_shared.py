"""What hosts of a world have in common is kept with the command that changed it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.sim.site import Site

from kubexm.connector.base import Command, Completed
from kubexm.sim import World, programs
from kubexm.sim.shell import OK, Shell


@pytest.fixture
def spread(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Its hosts know a program that writes a file on another host, and notes it for all."""

    def run(shell: Shell, args: Sequence[str]) -> Completed:
        other = shell.around.shell_of(args[0])
        if other is None:
            return Completed(1)
        other.files.write("/srv/from", shell.around.name.encode())
        shell.around.shared("@notes").set("last", shell.around.name)
        return OK

    monkeypatch.setattr(programs, "PROGRAMS", {**programs.PROGRAMS, "spread": run})
    for host in ("a", "b"):
        site.do("touch", "/srv/there", host=host)
    return site


def test_what_a_command_changes_elsewhere_is_on_disk_when_it_is_answered(spread: Site) -> None:
    spread.do("spread", "b", host="a")

    again = World.open(spread.world.path)

    assert again.host("b").read("/srv/from") == b"a"
    assert again.snapshot()["@notes"] == {"last": "a"}
    assert again.mutations()["@notes"] == {"last": 1}
    again.close()


def test_a_host_that_is_down_or_unknown_is_not_there_for_others(spread: Site) -> None:
    assert spread.ask("spread", "nobody", host="a").exit == 1
    spread.world.host("b").stop()
    assert spread.ask("spread", "b", host="a").exit == 1
    assert spread.ask("spread", "a", host="a").ok


def test_what_hosts_hold_counts_as_long_as_one_of_them_holds_it(site: Site) -> None:
    for host in ("a", "b"):
        site.do("mkdir", "/var/lib/data", host=host)
    shared = site.world.host("a").shared("@store")
    shared.set("object", "x")
    for host in ("a", "b"):
        shared.set(f"held:{host}", "/var/lib/data")
    site.world.commit()

    assert site.world.snapshot()["@store"]["object"] == "x"
    site.do("rm", "-rf", "/var/lib/data", host="a")
    assert "@store" in site.world.snapshot()
    site.do("rm", "-rf", "/var/lib/data", host="b")
    assert site.world.snapshot() == {}


def test_programs_that_take_long_overlap(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def begins(shell: Shell, _args: Sequence[str]) -> None:
        seen.append(f"{shell.around.name} begins")

    def run(shell: Shell, _args: Sequence[str]) -> Completed:
        seen.append(f"{shell.around.name} ends")
        return OK

    monkeypatch.setattr(programs, "PROGRAMS", {**programs.PROGRAMS, "long": run})
    monkeypatch.setattr(programs, "BEGINS", {"long": begins})

    async def both() -> None:
        hosts = (site.world.connector(name) for name in ("a", "b"))
        await asyncio.gather(*(host.exec(Command(("/usr/bin/long",))) for host in hosts))

    asyncio.run(both())

    assert seen == ["a begins", "b begins", "a ends", "b ends"]
