"""Small graphs of steps, run by the engine on the hosts of a simulated world."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from kubexm import engine
from kubexm.common.roles import CONTROL_NODE
from kubexm.connector.base import Command
from kubexm.engine.journal import MemoryJournal
from kubexm.plan import ExecutionGraph, ExecutionNode, build
from kubexm.plan.records import AnyRecord
from kubexm.plan.result import GraphExecutionResult
from kubexm.runtime.assets import NOTHING, Assets
from kubexm.runtime.build import HostConfig, Runtime, RuntimeConfig
from kubexm.runtime.secrets import SecretVault
from kubexm.sim import World
from kubexm.spec.loader import Loader
from kubexm.step.contract import Step
from kubexm.step.undoing import undoing


class Walk:
    """A world, what goes to its hosts, and what the last run has written down."""

    def __init__(self, world: World, assets: Assets = NOTHING) -> None:
        self.world = world
        self.assets = assets
        self.records: list[AnyRecord] = []

    def run(self, *nodes: ExecutionNode, **options: Any) -> GraphExecutionResult:
        """Run these nodes on the hosts that they name."""
        hosts = tuple(dict.fromkeys((CONTROL_NODE, *(h for node in nodes for h in node.hosts))))
        graph = build("walk", nodes, hosts=hosts)
        return asyncio.run(self._execute(graph, hosts, engine.Options(**options)))

    async def _execute(
        self, graph: ExecutionGraph, hosts: tuple[str, ...], options: engine.Options
    ) -> GraphExecutionResult:
        journal = MemoryJournal()
        self.records = journal.records
        ways = [HostConfig(name, self.world.connector(name)) for name in hosts]
        config = RuntimeConfig(ways, secrets=SecretVault(), assets=self.assets)
        async with Runtime.build(config) as runtime:
            return await engine.execute(graph, runtime, options, load=Loader(), journal=journal)

    def read(self, host: str, path: str) -> bytes:
        return self.world.host(host).read(path)

    def put(self, host: str, path: str, data: bytes) -> None:
        """Change a host behind the back of kubexm."""
        asyncio.run(self.world.connector(host).put(path, data))

    def ask(self, host: str, *argv: str) -> str:
        return asyncio.run(self.world.connector(host).exec(Command(argv))).text


def node(id: str, step: Step, *hosts: str, **settings: Any) -> ExecutionNode:
    """A step on some hosts, the control node unless any is named."""
    return ExecutionNode(id, id, step.spec(), hosts or (CONTROL_NODE,), **settings)


def undone(made: ExecutionNode, *after: str) -> ExecutionNode:
    """What takes back, in a later run, what a node has changed, after what others have."""
    waits = tuple(f"undo-{id}" for id in after)
    return ExecutionNode(f"undo-{made.id}", made.id, undoing(made.step), made.hosts, after=waits)


def statuses(result: GraphExecutionResult) -> Mapping[str, tuple[str, bool]]:
    """What came of each node, and whether it changed anything."""
    return {id: (found.status, found.changed) for id, found in result.node_results.items()}
