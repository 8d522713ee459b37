"""Hosts put to the checks that their part in a cluster wants, all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace as with_fields

from kubexm.app import hosts
from kubexm.app.execution import Front
from kubexm.app.hosts import Trouble
from kubexm.common.checks import CHECKS, Finding
from kubexm.common.paths import Home
from kubexm.errors import KubexmError
from kubexm.runtime.build import Runtime
from kubexm.spec.inventory import InventoryHost
from kubexm.step.preflight import SECONDS, Fit

AT_ONCE = 256
"""Hosts that are asked at a time; some questions take them seconds."""
REACHED = "reachable"
"""The check that a host lets us in."""


class Looked(msgspec.Struct):
    """What was found on hosts, and what they told."""

    findings: list[Finding] = msgspec.field(default_factory=list)
    facts: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    lost: dict[str, Finding] = msgspec.field(default_factory=dict)
    """Hosts that could not be asked, and why."""

    @property
    def is_begun(self) -> bool:
        """Whether a part of the cluster is there already."""
        return any(each.kind == "held" for each in self.findings)


async def looked_at(
    chosen: Sequence[InventoryHost],
    steps: Mapping[str, Fit],
    world: Path | None,
    front: Front,
    home: Home,
) -> Looked:
    """Connect to hosts and put each to its checks; nothing is changed, and nothing is kept."""
    async with hosts.opened(chosen, world, front, home) as (runtime, refused):
        return await _examined(runtime, steps, refused)


async def _examined(
    runtime: Runtime, steps: Mapping[str, Fit], refused: Mapping[str, Trouble]
) -> Looked:
    """All checks on all hosts that let us in."""
    looked = Looked(facts=runtime.facts())
    for name, reason in runtime.reasons.items():
        looked.lost[name] = _unreached(name, runtime.redact(reason.message), reason.hint)
    for name, trouble in refused.items():
        remedy = trouble.hint or CHECKS["root"].remedy
        looked.lost[name] = Finding("root", (name,), trouble.message, remedy=remedy)
    gate = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as group:
        for name in runtime.reached():
            if name not in looked.lost:
                step = _without(steps[name], name, looked.lost)
                group.create_task(_ask(runtime, name, step, looked, gate))
    return looked


async def _ask(
    runtime: Runtime, name: str, step: Fit, looked: Looked, gate: asyncio.Semaphore
) -> None:
    try:
        async with gate, asyncio.timeout(SECONDS):
            looked.findings += await step.examine(runtime.host(name))
    except TimeoutError:
        looked.lost[name] = _unreached(name, f"no answer within {SECONDS:g} s")
    except KubexmError as error:
        looked.lost[name] = _unreached(name, runtime.redact(error.message), error.hint)


def _unreached(host: str, why: str, hint: str = "") -> Finding:
    what, remedy = "the host could not be asked", hint or CHECKS[REACHED].remedy
    return Finding(REACHED, (host,), what, why, remedy)


def _without(step: Fit, host: str, lost: Mapping[str, Finding]) -> Fit:
    """The same for one host, with nobody asked for who is known to be gone."""
    place = step.hosts[host]
    peers = tuple(peer for peer in place.peers if peer.host not in lost)
    return replace(step, hosts={host: with_fields(place, peers=peers)})
