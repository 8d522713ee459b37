"""A look at the hosts of a pipeline: what each of them tells, and what is wrong with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from kubexm.app import planning, worlds
from kubexm.app.execution import Front
from kubexm.app.params import HostsParams, PlanParams, RunParams
from kubexm.app.planning import Planned
from kubexm.app.reaching import Reach
from kubexm.app.readiness import Readiness
from kubexm.common.paths import Home
from kubexm.common.roles import CONTROL_NODE
from kubexm.errors import KubexmError
from kubexm.plan.select import named_hosts
from kubexm.runtime.build import OPEN_SECONDS, Runtime, RuntimeConfig
from kubexm.spec.inventory import InventoryHost

Kind = Literal["unreachable", "sudo", "clock", "disk"]
CLOCK_SECONDS = 1.0
FREE_MIB = 1024


class Trouble(msgspec.Struct, frozen=True):
    """Something that is wrong with a host."""

    kind: Kind
    what: str
    """The same on all hosts that have it."""
    hint: str = ""
    figure: str = ""
    """What differs from host to host."""

    @property
    def message(self) -> str:
        return f"{self.what}: {self.figure}" if self.figure else self.what


class CheckedHost(msgspec.Struct, frozen=True):
    """A host, what it told, and what is wrong with it."""

    name: str
    address: str
    reached: bool
    troubles: tuple[Trouble, ...]
    facts: Mapping[str, Any]


async def check(params: HostsParams, front: Front, home: Home) -> list[CheckedHost]:
    """Connect to all hosts at once and look; nothing is changed, and nothing is kept."""
    plan = PlanParams(params.pipeline)
    planned = planning.plan(plan)
    chosen = _chosen(planned, params.hosts)
    run = RunParams(plan, check=True, simulate=params.simulate)
    with worlds.world_of(run, planned, home) as world:
        front.warn(planned.warnings)
        reached = chosen if world is None else []
        ready = Readiness(
            planned.graph, front.confirm, places=planned.places, hosts=reached, vault=front.vault
        )
        ready.require({})  # no step runs: only connections need something
        return await looked_at(chosen, world, front, home)


def _chosen(planned: Planned, patterns: Sequence[str]) -> list[InventoryHost]:
    """The hosts of the file that are wanted; the control node too, if a step runs there."""
    used = {host for node in planned.graph for host in node.hosts}
    known = {
        host.name: host
        for host in planned.hosts
        if host.name != CONTROL_NODE or CONTROL_NODE in used
    }
    if not patterns:
        return [*known.values()]
    return [known[name] for name in named_hosts(patterns, [*known], planned.graph.name)]


async def looked_at(
    hosts: Sequence[InventoryHost], world: Path | None, front: Front, home: Home
) -> list[CheckedHost]:
    async with opened(hosts, world, front, home) as (runtime, refused):
        return [_checked(runtime, host, refused) for host in hosts]


@asynccontextmanager
async def opened(
    hosts: Sequence[InventoryHost], world: Path | None, front: Front, home: Home
) -> AsyncIterator[tuple[Runtime, Mapping[str, Trouble]]]:
    """Hosts that are connected to for a look, and what keeps us from being root on some."""
    with ExitStack() as stack:
        simulated = None
        if world is not None:
            from kubexm.sim.world import World

            simulated = stack.enter_context(closing(World.open(world)))
        reach = stack.enter_context(closing(Reach(home, None, front.vault, simulated)))
        reach.call(hosts)
        ways = [reach.host(host) for host in hosts]
        # First as who logs in: a sudo that does not work makes no host unreachable.
        plain = [replace(way, sudo=False) for way in ways]
        async with Runtime.build(RuntimeConfig(hosts=plain, secrets=front.vault)) as runtime:
            yield runtime, await _without_root(runtime, (way.name for way in ways if way.sudo))


async def _without_root(runtime: Runtime, names: Iterable[str]) -> dict[str, Trouble]:
    """What keeps us from being root, by host."""
    async with asyncio.TaskGroup() as group:
        tasks = {
            name: group.create_task(_without_sudo(runtime, name))
            for name in names
            if name not in runtime.unreachable
        }
    answers = {name: task.result() for name, task in tasks.items()}
    return {name: trouble for name, trouble in answers.items() if trouble is not None}


async def _without_sudo(runtime: Runtime, name: str) -> Trouble | None:
    """What is wrong with sudo on a host; where nothing is, it tells what only root sees."""
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            done = await runtime.host(name).ask("true", sudo=True)
            if done.ok:
                await runtime.learn_as_root(name)
                return None
    except TimeoutError:
        return _not_root(f"no answer within {OPEN_SECONDS:g} s")
    except KubexmError as error:
        return _not_root(runtime.redact(error.message), error.hint)
    except OSError as error:
        return _not_root(str(error))
    said = runtime.redact(done.error_text).strip().splitlines()
    return _not_root(said[-1] if said else f"exit code {done.exit}")


def _not_root(reason: str, hint: str = "") -> Trouble:
    hint = hint or "let the user use sudo there, or leave `sudo` out if root is not needed"
    return Trouble("sudo", f"commands can't run as root: {reason}", hint)


def _checked(runtime: Runtime, host: InventoryHost, refused: Mapping[str, Trouble]) -> CheckedHost:
    if (reason := runtime.reasons.get(host.name)) is not None:
        hint = reason.hint or "see that it is up, and that its `address` and `ssh.port` are right"
        trouble = Trouble("unreachable", runtime.redact(reason.message), hint)
        return CheckedHost(host.name, host.address, False, (trouble,), {})
    facts = runtime.host(host.name).facts
    sudo = [refused[host.name]] if host.name in refused else []
    return CheckedHost(host.name, host.address, True, (*sudo, *troubles(facts)), facts)


def troubles(facts: Mapping[str, Any]) -> Iterator[Trouble]:
    """What is wrong by what a host tells of itself."""
    clock = facts.get("clock", {"offset_s": 0.0, "within_s": 0.0})
    offset = clock["offset_s"]
    if abs(offset) - clock["within_s"] > CLOCK_SECONDS:
        yield Trouble(
            "clock",
            f"the clock is more than {CLOCK_SECONDS:g} s away from that of this machine",
            "have both keep the time by NTP, such as with chrony or systemd-timesyncd",
            f"{abs(offset):,.1f} s {'ahead' if offset > 0 else 'behind'}",
        )
    free = next((fs["free_mib"] for fs in facts.get("filesystems", ()) if fs["path"] == "/"), None)
    if free is not None and free < FREE_MIB:
        hint = "remove what is not needed there, such as old logs and packages, or make it larger"
        yield Trouble("disk", "less than 1 GiB is free on `/`", hint, f"{free} MiB")
