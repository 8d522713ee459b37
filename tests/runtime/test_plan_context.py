"""What pipelines, modules and tasks in code may see: hosts by role, variables, facts, a cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kubexm.errors import InvalidInput
from kubexm.plan import ExecutionFragment, StepSpec, module, node, parallel, pipeline, task
from kubexm.runtime.build import HostConfig, Runtime, RuntimeConfig
from kubexm.runtime.contexts import PlanContext
from kubexm.sim import Machine, World, WorldSettings

ROLES = {
    "control-node": ["control-node"],
    "web1": ["web"],
    "db1": ["db"],
    "both": ["web", "db"],
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings = WorldSettings(machines={"web*": Machine(cpus=8)})
    world = World.create(tmp_path / "world", settings)
    yield world
    world.close()


def config(world: World) -> RuntimeConfig:
    hosts = [
        HostConfig(name, world.connector(name), described={"roles": roles})
        for name, roles in ROLES.items()
    ]
    return RuntimeConfig(hosts)


async def test_it_has_hosts_by_role_variables_and_facts(world: World) -> None:
    async with Runtime.build(config(world)) as runtime:
        ctx = runtime.plan_context({"port": 80})

    assert ctx.on("web") == ("web1", "both")
    assert ctx.on("db", "web", "nobody") == ("db1", "both", "web1")
    assert ctx.on("all") == ("web1", "db1", "both")
    assert ctx.on("control-node") == ("control-node",)
    assert ctx.vars == {"port": 80}
    assert ctx.facts["web1"]["cpus"] == 8


async def test_a_host_that_was_not_reached_is_there_without_facts(world: World) -> None:
    world.host("db1").stop()

    async with Runtime.build(config(world)) as runtime:
        ctx = runtime.plan_context()

    assert ctx.on("db") == ("db1", "both")
    assert ctx.facts["db1"] == {}


async def test_it_is_read_only(world: World) -> None:
    async with Runtime.build(config(world)) as runtime:
        ctx = runtime.plan_context({"port": 80})

    for mapping in (ctx.hosts, ctx.vars, ctx.facts, ctx.facts["web1"]):
        with pytest.raises(TypeError, match="does not support item assignment"):
            mapping["new"] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        ctx.vars = {}  # type: ignore[misc]
    assert not hasattr(ctx, "host")


@pytest.mark.parametrize(
    ("scope", "seen"),
    [
        ("run", [1, 1, 1, 1]),
        ("pipeline", [1, 1, 1, 2]),
        ("module", [1, 1, 2, 3]),
        ("task", [1, 2, 3, 4]),
    ],
)
async def test_a_value_is_computed_once_and_dropped_with_its_scope(
    world: World, scope: str, seen: list[int]
) -> None:
    found, plan = planner(scope)

    async with Runtime.build(config(world)) as runtime:
        ctx = runtime.plan_context()
        plan(ctx, 2, 1)
        plan(ctx, 1)

    assert found == seen


def planner(scope: str) -> tuple[list[int], Callable[..., Any]]:
    """A pipeline whose tasks each ask for a value of this scope, and what they get."""
    numbers, found = count(1), list[int]()

    @task("t")
    def ask(ctx: PlanContext) -> ExecutionFragment | None:
        """Ask twice."""
        first, again = (ctx.cache.once(scope, "key", lambda: next(numbers)) for _ in range(2))
        assert first == again
        found.append(first)
        return node(f"n{len(found)}", StepSpec("noop"), on=ctx.on("all"))

    @module("m")
    def area(ctx: PlanContext, tasks: int) -> ExecutionFragment:
        """So many tasks."""
        return parallel(*(ask(ctx) for _ in range(tasks)))

    @pipeline("p")
    def whole(ctx: PlanContext, *modules: int) -> ExecutionFragment:
        """Modules with so many tasks each."""
        return parallel(*(area(ctx, tasks=tasks) for tasks in modules))

    return found, whole


async def test_a_scope_that_is_not_being_planned_has_no_values(world: World) -> None:
    async with Runtime.build(config(world)) as runtime:
        ctx = runtime.plan_context()

    with pytest.raises(InvalidInput, match="no `task` is being planned here") as refused:
        ctx.cache.once("task", "key", lambda: 1)
    assert "`run`" in refused.value.hint
