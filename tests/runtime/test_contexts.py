"""A step sees its own host and nothing else of the run."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubexm.engine import MemoryJournal, Options, execute
from kubexm.engine.scheduler import Scheduler
from kubexm.plan import ExecutionNode, StepSpec, build, node
from kubexm.runtime.build import HostConfig, Runtime, RuntimeConfig
from kubexm.runtime.contexts import StepContext, UnitView
from kubexm.sim.world import World
from kubexm.step.contract import Outcome, Step
from kubexm.store import Store

SEALED = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, type)


class Curious(Step):
    """Keeps the context it was given."""

    kind = "curious"
    seen: StepContext

    async def run(self, ctx: StepContext) -> Outcome:
        Curious.seen = ctx
        return Outcome()


class LoadedCurious:
    cls = Curious
    static = Curious()
    decisive: frozenset[str] = frozenset()

    def bind(self, view: UnitView) -> Step:
        return self.static

    def wanted(self, view: UnitView) -> bool:
        return True


def load(found: ExecutionNode) -> LoadedCurious:
    return LoadedCurious()


def public(thing: object) -> Iterator[tuple[str, Any]]:
    """What a well-behaved step can reach from a thing: public attributes and items."""
    if isinstance(thing, dict):
        yield from ((f"[{key!r}]", value) for key, value in thing.items())
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from (("[…]", value) for value in thing)
    for name in dir(thing):
        if not name.startswith("_"):
            yield f".{name}", getattr(thing, name)


def reachable(start: object, most: int = 20_000) -> list[tuple[str, object]]:
    """Everything that can be reached without private names and without calling anything."""
    found: dict[int, tuple[str, object]] = {id(start): ("ctx", start)}
    line = [("ctx", start)]
    for path, thing in line:
        if isinstance(thing, (*SEALED, str, bytes, int, float, types.MethodType, type(None))):
            continue
        for name, value in public(thing):
            if id(value) not in found and len(found) < most:
                found[id(value)] = (path + name, value)
                line.append((path + name, value))
    return list(found.values())


async def test_a_step_can_reach_no_other_host_no_store_and_no_engine(tmp_path: Path) -> None:
    world = World.create(tmp_path / "world")
    hosts = [HostConfig(name, world.connector(name)) for name in ("own", "other")]
    fragment = node("look", StepSpec("curious"), on=["own"])
    assert fragment is not None
    graph = build("g", fragment.nodes, hosts=("own", "other"))
    async with Runtime.build(RuntimeConfig(hosts)) as runtime:
        await execute(graph, runtime, Options(), load=load, journal=MemoryJournal())

        found = reachable(Curious.seen)

        others = runtime.host("other")
        forbidden = (Runtime, Scheduler, Store, MemoryJournal, World)
        assert [path for path, thing in found if isinstance(thing, forbidden)] == []
        assert [path for path, thing in found if thing is others] == []
    assert any(path == "ctx.host" for path, _ in found)
