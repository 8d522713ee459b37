"""What earlier plans of a cluster have laid on hosts, and the newest would not take back."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from kubexm.app import foreknown
from kubexm.app.former import as_it_came_out, resources_of
from kubexm.common.counting import few
from kubexm.errors import InvalidInput
from kubexm.pipeline.delete import GONE, Former, is_undone, spec_of
from kubexm.plan.fragment import ExecutionFragment, replace
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode
from kubexm.plan.records import FORMER, Layer
from kubexm.spec.inventory import InventoryHost
from kubexm.store import Store

MOST_RUNS = 10_000


class Leftovers(msgspec.Struct, frozen=True):
    """What is left of former plans, the latest of them first, and the hosts that it is on."""

    former: tuple[Former, ...]
    hosts: tuple[InventoryHost, ...]
    """Those that the newest plan does not have."""


class Newest(msgspec.Struct, frozen=True):
    """What a cluster is made of by its newest plan, on hosts that are still there."""

    name: str
    create: ExecutionFragment
    hosts: tuple[InventoryHost, ...]


def found(store: Store, newest: Newest, gone: Collection[str]) -> Leftovers:
    """By the ledger all that the newest plan does not undo, but on hosts that are gone."""
    search = _Search(store, newest, gone)
    runs = search.makers()
    former = [
        left
        for run in store.runs(newest.name, limit=MOST_RUNS)
        if run.id in runs
        for left in search.of_run(store, run.id)
    ]
    search.refuse_unknown_hosts()
    return Leftovers(tuple(former), tuple(search.hosts()))


class _Search:
    """Goes through the plans of a cluster, from the newest to the first."""

    def __init__(self, store: Store, newest: Newest, gone: Collection[str]) -> None:
        self._newest = {node.id: node for node in newest.create.nodes}
        self._hosts = {host.name: host for host in newest.hosts}
        self._own = frozenset(self._hosts)
        self._makers = store.makers(newest.name)
        self._open = {
            host: {resource for resource in noted if resource.partition(":")[0] not in GONE}
            for host, noted in self._makers.items()
            if host not in gone
        }
        self._numbers = itertools.count(1)
        self._close(newest.create.nodes)

    def makers(self) -> set[str]:
        """The runs that have changed what nothing takes back yet."""
        return {
            self._makers[host][resource] for host, noted in self._open.items() for resource in noted
        }

    def hosts(self) -> Iterator[InventoryHost]:
        """The hosts that the newest plan does not have."""
        return (host for name, host in self._hosts.items() if name not in self._own)

    def of_run(self, store: Store, run: str) -> Iterator[Former]:
        """What is left of the plan of a run, and of those that it had before it was corrected."""
        plan = foreknown.plan_of(store.documents(run))
        for host in plan.hosts:
            if self._open.get(host.name):
                self._hosts.setdefault(host.name, host)
        yield from self._of_plan(
            as_fragment(plan.graph),
            {host.name: host for host in plan.hosts},
        )
        if any(self._open.values()) and (layers := store.state(run).former):
            yield from self._of_plan(_in_order(layers), self._hosts)

    def refuse_unknown_hosts(self) -> None:
        """Nobody can undo anything where there is no telling how to get there."""
        hosts = sorted(host for host, noted in self._open.items() if noted)
        if unknown := [host for host in hosts if host not in self._hosts]:
            raise InvalidInput(
                f"kubexm has changed {few(unknown)} for the cluster, and no plan of it that is"
                " known says how they are reached",
                hint="delete it by a file that has these hosts: kubexm delete cluster -f FILE; or"
                f" go without them if they are gone: --without {unknown[0]}",
            )

    def _of_plan(
        self, create: ExecutionFragment, known: dict[str, InventoryHost]
    ) -> Iterator[Former]:
        nodes = [node for node in create.nodes if is_undone(node)]
        places = {
            node.id: [known[name] for name in node.hosts if self._is_left(node, known.get(name))]
            for node in nodes
        }
        left = {node.id: self._settled(node, places[node.id]) for node in nodes if places[node.id]}
        if left:
            self._close(itertools.chain(*left.values()))
            yield Former(create, left)

    def _settled(
        self, node: ExecutionNode, hosts: Sequence[InventoryHost]
    ) -> tuple[ExecutionNode, ...]:
        origin = replace(node, id=_origin(node))
        return tuple(as_it_came_out(origin, hosts, self._numbers))

    def _is_left(self, node: ExecutionNode, host: InventoryHost | None) -> bool:
        """Whether a node has changed something on a host that no later plan takes back."""
        if host is None or not self._open.get(host.name):
            return False
        resources = _resources(node, host)
        if resources is None:  # only the run itself will know
            return not self._is_planned(node, host)
        return not self._open[host.name].isdisjoint(resources)

    def _is_planned(self, node: ExecutionNode, host: InventoryHost) -> bool:
        """Whether the newest plan does the same."""
        today, own = self._newest.get(_origin(node)), self._hosts[host.name]
        if today is None or host.name not in today.hosts or host.name not in self._own:
            return False
        return _parameters(today, own) == _parameters(node, host)

    def _close(self, nodes: Iterable[ExecutionNode]) -> None:
        """These nodes are taken back, and what they change with them."""
        for node in nodes:
            if not is_undone(node):
                continue
            for name in node.hosts:
                if self._open.get(name):
                    self._open[name].difference_update(_resources(node, self._hosts[name]) or ())


def as_fragment(graph: ExecutionGraph) -> ExecutionFragment:
    """What a graph consists of."""
    return ExecutionFragment(tuple(graph.nodes.values()), tuple(graph.joins.values()))


def _origin(node: ExecutionNode) -> str:
    return node.id.partition(FORMER)[0]


def _resources(node: ExecutionNode, host: InventoryHost) -> tuple[str, ...] | None:
    return resources_of(replace(node, step=spec_of(node)), host)


def _parameters(node: ExecutionNode, host: InventoryHost) -> object:
    return node.step.kind, foreknown.parameters_in_part(replace(node, step=spec_of(node)), host)


def _in_order(layers: Iterable[Layer]) -> ExecutionFragment:
    """What a run has changed by plans that it does not go by any more, one after the other."""
    nodes: list[ExecutionNode] = []
    before: tuple[str, ...] = ()
    for layer in layers:
        nodes += [replace(node, after=(), after_same_host=before) for node in layer]
        before = tuple(node.id for node in layer)
    return ExecutionFragment(tuple(nodes))
