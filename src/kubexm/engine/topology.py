"""The graph as the scheduler sees it: units that count what they wait for, and gates.

A barrier never becomes N × M edges: each node has one gate that opens when all its units are
final, and nodes that wait for the same set of gates share one. Where a node does not exist on a
host, whoever waits for it there waits for what it would have waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from kubexm.engine.work import Work
from kubexm.plan.node import ANY_HOST, ExecutionNode, Join
from kubexm.plan.result import Cause, HostResult
from kubexm.plan.validation import topological_order

PENDING, READY, ACTIVE, FINAL = range(4)
FREELY, BY_GRACE, NEVER = range(3)
"""How a unit may be ended: at once, when its grace is over, or not at all."""


class Gate:
    """Opens when all it waits for has arrived; hands on the first failure it was told of."""

    __slots__ = ("cause", "doubt", "gates", "nodes", "rank", "units", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self.cause: Cause | None = None
        self.doubt = False  # in a dry run: something before would change
        self.gates: list[Gate] = []
        self.nodes: list[NodeState] = []
        self.units: list[Unit] = []
        self.rank = -1.0  # not known yet


class Unit:
    """One node on one host, and how far it has come."""

    __slots__ = (
        "also",
        "attempt",
        "blocks",
        "cause",
        "children",
        "doubt",
        "ended",
        "ends",
        "host",
        "node",
        "ran",
        "rank",
        "released",
        "result",
        "serial",
        "slots",
        "started",
        "state",
        "task",
        "waited",
        "waiting",
        "wake",
        "wanted",
    )

    def __init__(self, node: NodeState, host: str, serial: int) -> None:
        self.node = node
        self.host = host
        self.serial = serial
        self.waiting = 0
        self.rank = 0.0
        self.state = PENDING
        self.cause: Cause | None = None
        self.also: list[Unit] | None = None  # those that reach this one through a hole
        self.children = 0
        self.attempt = 0
        self.started = 0.0
        self.blocks = False  # its cause holds back all that waits at a barrier behind it
        self.doubt = False  # in a dry run: something before it would change
        self.ran = False
        self.waited = False  # its run has found that it has to wait
        self.released = False  # what depends on it has been told
        self.ends = FREELY
        self.ended = False  # by the engine: whatever it raises then is no failure of its own
        self.result: HostResult | None = None
        self.task: asyncio.Task[None] | None = None
        self.wake: asyncio.Future[None] | None = None
        self.slots = 0  # which slots it holds, and which it waits for
        self.wanted = 0

    @property
    def key(self) -> tuple[str, str]:
        """How the journal knows it, whatever host it was bound to."""
        return self.node.id, ANY_HOST if self.node.spec.one_of else self.host

    def __repr__(self) -> str:
        return f"<{self.node.id} on {self.host}>"


class NodeState:
    """A node of the running graph: its units and what follows it."""

    __slots__ = (
        "duration",
        "failures",
        "gate",
        "id",
        "left",
        "parent",
        "same_host",
        "spec",
        "started",
        "tolerated",
        "units",
        "vertex",
        "work",
    )

    spec: ExecutionNode  # a join has none
    work: Work

    def __init__(self, vertex: ExecutionNode | Join, duration: float) -> None:
        self.id = vertex.id
        self.vertex = vertex
        if isinstance(vertex, ExecutionNode):
            self.spec = vertex
        self.duration = duration
        self.units: dict[str, Unit] = {}
        self.same_host: list[NodeState] = []
        self.gate = Gate()
        self.failures: dict[str, int] = {}
        self.tolerated: set[str] = set()
        self.parent: Unit | None = None
        self.started = False
        self.left = 0


Holes = dict[str, tuple[list[Unit], set[str]]]
"""Per host on which a node does not exist: the units and the nodes to wait for instead."""


class Topology:
    """Builds and keeps the states of all nodes; fragments can be added while it runs."""

    def __init__(self, durations: Mapping[str, float]) -> None:
        self.states: dict[str, NodeState] = {}
        self._durations = durations
        self._serial = 0

    def add(
        self,
        nodes: Mapping[str, ExecutionNode],
        joins: Mapping[str, Join],
        *,
        beyond: float = 0.0,
    ) -> list[NodeState]:
        """Wire a whole graph, or a fragment that depends on nothing but itself.

        `beyond` is the longest path that begins where all of this is done.
        """
        order, _ = topological_order(nodes, joins)
        fresh = [self._state(nodes.get(id) or joins[id]) for id in order]
        _Wiring(self.states, order).connect()
        _rank(fresh, beyond)
        return [state for state in fresh if state.units]

    def _state(self, vertex: ExecutionNode | Join) -> NodeState:
        state = NodeState(vertex, self._durations.get(vertex.id, 1.0))
        self.states[vertex.id] = state
        if isinstance(vertex, ExecutionNode):
            hosts = (ANY_HOST,) if vertex.one_of else vertex.hosts
            serial = self._serial
            state.units = {host: Unit(state, host, serial + at) for at, host in enumerate(hosts)}
            self._serial += len(hosts)
            state.left = len(hosts)
        return state


class _Wiring:
    """Turns edges into counts; see the module's first lines for the rules.

    Vertices come in topological order, so a gate that waits for nothing when it is asked for is
    open from the start (a join without edges), and nobody counts it.
    """

    def __init__(self, states: Mapping[str, NodeState], order: list[str]) -> None:
        self._states = states
        self._order = order
        self._shared: dict[frozenset[str], Gate] = {}
        self._holes: dict[str, Holes] = {}
        self._leaky: set[str] = set()  # nodes whose gate waits for more than their own units

    def connect(self) -> None:
        asked = self._asked_hosts()
        for id in self._order:
            self._own_gate(id)
            self._barrier(id)
            self._same_host(id)
            if hosts := asked.get(id):
                self._holes[id] = {host: self._beyond(id, host) for host in hosts}

    def _asked_hosts(self) -> dict[str, set[str]]:
        """For each vertex, hosts it does not exist on but others ask it about."""
        asked: dict[str, set[str]] = {}
        for id in reversed(self._order):
            hosts = self._states[id].units.keys()
            further = asked.get(id)
            for dependency in self._states[id].vertex.after_same_host:
                missing = hosts - self._states[dependency].units.keys()
                if further:
                    missing |= further - self._states[dependency].units.keys()
                if missing:
                    asked.setdefault(dependency, set()).update(missing)
        return asked

    def _own_gate(self, id: str) -> None:
        """Opens when the node is final, and whatever is final in its place where it is not.

        A unit that is final implies that its dependencies are, so waiting for the whole gate of
        a node before is the same as waiting for its units on the missing hosts.
        """
        state = self._states[id]
        vertex, gate = state.vertex, state.gate
        gate.waiting = len(state.units)
        for dependency in dict.fromkeys(vertex.after_same_host):
            before = self._states[dependency]
            covered = state.units and before.units.keys() <= state.units.keys()
            if dependency in self._leaky or not covered:
                self._leaky.add(id)
                self._chain(before.gate, gate)
        if not state.units and vertex.after:
            self._chain(self._gate(vertex.after), gate)

    @staticmethod
    def _chain(first: Gate, then: Gate) -> None:
        if first.waiting:
            first.gates.append(then)
            then.waiting += 1

    def _gate(self, ids: Iterable[str]) -> Gate:
        """The gate that opens when all these nodes are final."""
        wanted = frozenset(ids)
        if len(wanted) == 1:
            return self._states[next(iter(wanted))].gate
        if (gate := self._shared.get(wanted)) is None:
            gate = self._shared[wanted] = Gate()
            for id in wanted:
                self._chain(self._states[id].gate, gate)
        return gate

    def _barrier(self, id: str) -> None:
        state = self._states[id]
        if not state.vertex.after or not state.units:
            return
        gate = self._gate(state.vertex.after)
        if not gate.waiting:
            return
        gate.nodes.append(state)
        for unit in state.units.values():
            unit.waiting += 1

    def _same_host(self, id: str) -> None:
        state = self._states[id]
        if not state.units:
            return
        for dependency in dict.fromkeys(state.vertex.after_same_host):
            before = self._states[dependency]
            if before.units:
                before.same_host.append(state)
            for host, unit in state.units.items():
                if host in before.units:
                    unit.waiting += 1
                else:
                    self._through_hole(unit, *self._holes[dependency][host])

    def _through_hole(self, unit: Unit, units: list[Unit], barriers: set[str]) -> None:
        for other in units:
            if other.also is None:
                other.also = []
            other.also.append(unit)
            unit.waiting += 1
        if barriers and (gate := self._gate(barriers)).waiting:
            gate.units.append(unit)
            unit.waiting += 1

    def _beyond(self, id: str, host: str) -> tuple[list[Unit], set[str]]:
        """What a node that is not on this host would have waited for there."""
        vertex = self._states[id].vertex
        units: dict[int, Unit] = {}
        barriers = set(vertex.after)
        for dependency in vertex.after_same_host:
            unit = self._states[dependency].units.get(host)
            if unit is not None:
                units[unit.serial] = unit
                continue
            further, more = self._holes[dependency][host]
            units.update((other.serial, other) for other in further)
            barriers |= more
        return list(units.values()), barriers


def _rank(states: list[NodeState], beyond: float) -> None:
    """The longest remaining path of every unit, by the learned or assumed durations."""
    for state in reversed(states):
        after = max(_gate_rank(state.gate), beyond)
        for host, unit in state.units.items():
            rank = after
            for follower in state.same_host:
                if (next_unit := follower.units.get(host)) is not None and next_unit.rank > rank:
                    rank = next_unit.rank
            for other in unit.also or ():
                rank = max(rank, other.rank)
            unit.rank = rank + state.duration


def _gate_rank(gate: Gate) -> float:
    rank = max((unit.rank for unit in gate.units), default=0.0)
    for state in gate.nodes:
        rank = max(rank, *(unit.rank for unit in state.units.values()))
    for further in gate.gates:
        rank = max(rank, further.rank if further.rank >= 0 else _gate_rank(further))
    gate.rank = rank
    return rank
