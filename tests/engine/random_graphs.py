"""Random runs: a graph of any shape, what each unit of it will do, and the limits it runs under.

Everything is read off one string of bytes: drawing is quick, zeros are the simplest run, and so
a failing example shrinks to one. Steps come in kinds: `plain`, `probed` (fusible precheck),
`reader`, `minter`, `expander`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, get_args

import msgspec
from hypothesis import strategies as st
from tests.strategies import reaches
from tests.unit_order import follows, follows_on_host

from kubexm.common.roles import CONTROL_NODE
from kubexm.plan import (
    Allowance,
    ExecutionFragment,
    ExecutionGraph,
    ExecutionNode,
    HookFragment,
    HostGroup,
    Join,
    Key,
    Pool,
    ResourceConstraints,
    RetryPolicy,
    StepSpec,
    Tolerance,
    build,
    chain,
    node,
    one_of,
    parallel,
    per_host,
    prefixed,
    rolling,
    scope,
)
from kubexm.plan.node import NO_LIMITS
from kubexm.plan.policy import ALL_HOSTS, NO_HOST, FailureClass, OnFailure
from kubexm.plan.records import Unit

T = TypeVar("T")
Role = Literal["plain", "probed", "reader", "minter", "expander"]
Fault = Literal[
    "failed",  # the step says so
    "bug",  # any other exception
    "refused",
    "look",  # the precheck raises
    "hangs",  # runs into its timeout
    "lost",  # the connection breaks and comes back
    "gone",  # the connection breaks for good
    "unreachable",
    "dark",  # unreachable already at the precheck
]
FAULTS: tuple[Fault, ...] = get_args(Fault)
MOMENTS: tuple[Literal["pre", "post", "on-failure", "always"], ...] = (
    "pre",
    "post",
    "on-failure",
    "always",
)
POOLS = {"download": Pool(2), "packages": Pool(1, "host")}


@dataclass(frozen=True)
class Script:
    """What a unit does; its first attempts have these faults, what follows goes well."""

    made: bool = False
    wanted: bool = True
    look: float = 0.0
    work: float = 0.0
    polls: int = 0
    faults: tuple[Fault, ...] = ()
    undo_fails: bool = False


@dataclass(frozen=True, repr=False)
class Scenario:
    """A run before it is run."""

    graph: ExecutionGraph
    scripts: Mapping[Unit, Script]
    """By node and host; a `one_of` node has one per candidate."""
    roles: Mapping[str, Role]
    fragments: Mapping[Unit, ExecutionFragment] = field(default_factory=dict)
    unreachable: frozenset[str] = frozenset()
    lag: float | None = None
    """Seconds that a commit of the journal takes; None if it is at once."""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def policy(self) -> OnFailure:
        return self.graph.on_failure

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"\n{self!r}")

    def __repr__(self) -> str:
        """Short enough to be read when a property fails; only what is not as usual."""
        lines = [f"{self.policy}, lag {self.lag}, {dict(self.options)}"]
        lines += [f"unreachable {sorted(self.unreachable)}"] if self.unreachable else []
        lines += [f"{group}" for group in self.graph.groups]
        lines += [f"{self.role(node.id)} {_brief(node)}" for node in self.every_node()]
        lines += [_brief(join) for join in self.graph.joins.values()]
        for (id, host), fragment in self.fragments.items():
            lines.append(f"{id} on {host} adds {[_brief(n) for n in fragment.nodes]}")
            lines.append(f"    {[_brief(join) for join in fragment.joins]}")
        lines += [f"{unit}: {_brief(script)}" for unit, script in self.scripts.items()]
        return "\n".join(lines)

    def script(self, node: str, host: str) -> Script:
        return self.scripts.get((node, host), Script())

    def role(self, node: str) -> Role:
        return self.roles.get(node, "plain")

    def every_node(self) -> Iterator[ExecutionNode]:
        """Those of the graph, of what it may expand to, and of its compensations."""
        yield from self.graph
        for fragment in self.fragments.values():
            yield from fragment.nodes
        for item in self.graph.compensations:
            yield from item.nodes

    def without(self, *faults: Fault) -> Scenario:
        """The same where these things don't happen."""
        scripts = {
            unit: replace(script, faults=tuple(f for f in script.faults if f not in faults))
            for unit, script in self.scripts.items()
        }
        return replace(self, scripts=scripts)

    def with_nodes(self, **settings: Any) -> Scenario:
        """The same with these settings on every node."""
        nodes = {item.id: msgspec.structs.replace(item, **settings) for item in self.graph}
        fragments = {
            unit: msgspec.structs.replace(
                fragment,
                nodes=tuple(msgspec.structs.replace(n, **settings) for n in fragment.nodes),
            )
            for unit, fragment in self.fragments.items()
        }
        graph = msgspec.structs.replace(self.graph, nodes=nodes)
        return replace(self, graph=graph, fragments=fragments)

    def unlimited(self) -> Scenario:
        """The same where nothing but the graph itself holds anything up."""
        free = self.with_nodes(limits=NO_LIMITS, tolerance=None)
        return replace(free, unreachable=frozenset(), lag=None)

    def rewritten(self, **changes: Any) -> Scenario:
        """The same with these changes to every script."""
        scripts = {unit: replace(script, **changes) for unit, script in self.scripts.items()}
        return replace(self, scripts=scripts)

    def untimed(self) -> Scenario:
        """The same where nothing runs into a timeout."""
        return self.with_nodes(timeout=None).without("hangs")

    def healthy(self) -> Scenario:
        """The same where nothing goes wrong."""
        return replace(self.untimed().rewritten(faults=()), unreachable=frozenset())


def _brief(thing: Any) -> str:
    known = {"id", "name", "step"}
    names = getattr(thing, "__struct_fields__", None) or thing.__dataclass_fields__
    usual: Any = Script() if isinstance(thing, Script) else ExecutionNode("", "", StepSpec(""), ())
    given = [n for n in names if n not in known and getattr(thing, n) != getattr(usual, n)]
    said = ", ".join(f"{n}={getattr(thing, n)!r}" for n in given)
    if isinstance(thing, ExecutionNode):
        said += f" needs={thing.step.needs} provides={thing.step.provides}"
    return f"{getattr(thing, 'id', '')} {said}"


class Choices:
    """Decisions read off bytes; when they run out, the simplest."""

    def __init__(self, data: bytes) -> None:
        self._bytes = iter(data)

    def below(self, limit: int) -> int:
        return next(self._bytes, 0) % limit

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def once_in(self, times: int) -> bool:
        return self.below(times) == times - 1

    def some(self, choices: Sequence[T], *, at_least: int = 0) -> tuple[T, ...]:
        """A part of these, in their order."""
        mask = next(self._bytes, 0)
        picked = tuple(choice for at, choice in enumerate(choices) if mask >> (at % 8) & 1)
        return picked if len(picked) >= at_least else tuple(choices[:at_least])


@st.composite
def scenarios(draw: st.DrawFn, /, **wanted: Any) -> Scenario:
    """Runs of any kind; `wanted` as in `scenario`."""
    return scenario(draw(st.binary(min_size=500, max_size=500)), **wanted)


def scenario(
    data: bytes,
    *,
    max_nodes: int = 7,
    roles: Sequence[Role] = get_args(Role),
    faults: Sequence[Fault] = FAULTS,
    policies: Sequence[OnFailure] = get_args(OnFailure),
    shapes: Sequence[str] = ("dag", "algebra"),
    ttl: float | None = None,
    doomed: bool = False,
) -> Scenario:
    """The run that these bytes stand for; a `doomed` one has a failure that nothing tolerates."""
    choices = Choices(data)
    hosts = tuple(f"h{number}" for number in range(1, choices.below(4) + 2))
    if choices.pick(shapes) == "dag":
        fragment = _Dag(choices, hosts, max_nodes).whole()
    else:
        fragment = _Algebra(choices, hosts).whole()
    graph = build(
        "p",
        fragment.nodes,
        joins=fragment.joins,
        hosts=(*hosts, CONTROL_NODE),
        groups=_groups(choices, hosts),
        pools=POOLS,
        on_failure=choices.pick(policies),
        compensations=fragment.compensations,
    )
    doom = choices.pick(tuple(graph)[len(graph) // 2 :]) if doomed else None
    if doom is not None:
        graph = _with_doom(graph, doom)
    graph, parts = _with_values(choices, graph, roles, ttl)
    more = _fragments(choices, graph, parts)
    plan = Scenario(graph, {}, parts, more)
    scripts = _scripts(choices, plan, faults)
    if doom is not None:
        host = choices.pick(doom.hosts)
        scripts[doom.id, host] = replace(scripts[doom.id, host], made=False, faults=("failed",))
    return replace(
        plan,
        scripts=scripts,
        unreachable=frozenset(choices.some(hosts) if choices.once_in(8) else ()),
        lag=choices.pick((None, 0.0, 1.0)),
        options={
            "parallelism": choices.pick((512, 1, 2, 3)),
            "per_host": choices.pick((4, 1, 2)),
            "grace": choices.pick((10.0, 0.0, 1.0)),
        },
    )


def _with_doom(graph: ExecutionGraph, doom: ExecutionNode) -> ExecutionGraph:
    """The graph where this node has nothing to save it when it fails."""
    bare = msgspec.structs.replace(
        doom, tolerance=None, ignore_errors=False, retry=RetryPolicy(), when=None
    )
    return msgspec.structs.replace(graph, nodes={**graph.nodes, doom.id: bare})


def _groups(choices: Choices, hosts: Sequence[str]) -> tuple[HostGroup, ...]:
    if not choices.once_in(4):
        return ()
    return (HostGroup("workers", tuple(hosts), choices.below(len(hosts) + 1)),)


def _settings(choices: Choices) -> dict[str, Any]:
    """What a node may have besides its step, its hosts and its edges."""
    given: dict[str, Any] = {}
    if choices.once_in(4):
        given["retry"] = RetryPolicy(
            attempts=choices.pick((2, 3)),
            delay=float(choices.below(3)),
            exponential_backoff=bool(choices.below(2)),
            retry_on=choices.some(get_args(FailureClass)),
        )
    if choices.once_in(3):
        given["limits"] = ResourceConstraints(
            choices.below(3), choices.below(3), choices.some(tuple(POOLS))
        )
    if choices.once_in(4):
        given["timeout"] = choices.pick((5.25, 2.25, 0.75))
    if choices.once_in(3):
        given["tolerance"] = _tolerance(choices)
    given["ignore_errors"] = choices.once_in(8)
    given["when"] = "said so" if choices.once_in(8) else None
    return given


def _tolerance(choices: Choices) -> Tolerance:
    allowances = (NO_HOST, ALL_HOSTS, Allowance(count=1), Allowance(percent=50.0))
    return Tolerance(*(choices.pick(allowances) for _ in get_args(FailureClass)))


class _Dag:
    """Any edges that no cycle forbids: holes, joins, `one_of`, both kinds of edge."""

    def __init__(self, choices: Choices, hosts: tuple[str, ...], size: int) -> None:
        self._choices = choices
        self._hosts = hosts
        self._size = size
        self._known: list[str] = []
        self._fixed: list[str] = []

    def whole(self) -> ExecutionFragment:
        nodes: list[ExecutionNode] = []
        joins: list[Join] = []
        for number in range(1 + self._choices.below(self._size)):
            name = f"{self._choices.pick(('p/m', 'p/n', 'p/n/t'))}/n{number}"
            if self._known and self._choices.once_in(5):
                joins.append(Join(name, self._edges(self._known), self._edges(self._fixed)))
                self._fixed.append(name)
            else:
                nodes.append(self._node(name))
            self._known.append(name)
        return ExecutionFragment(tuple(nodes), tuple(joins))

    def _edges(self, known: Sequence[str]) -> tuple[str, ...]:
        return self._choices.some(known) if self._choices.below(2) else tuple(known[-1:])

    def _node(self, name: str) -> ExecutionNode:
        choices = self._choices
        floating = choices.once_in(6)
        kind = choices.below(4)
        after = self._edges(self._known) if kind != 1 else ()
        lane = self._edges(self._fixed) if kind in (1, 2) and not floating else ()
        if not floating:
            self._fixed.append(name)
        return ExecutionNode(
            id=name,
            name=name,
            step=StepSpec("plain"),
            hosts=choices.some(self._hosts, at_least=1),
            one_of=floating,
            after=after,
            after_same_host=lane,
            **_settings(choices),
        )


class _Added:
    """What an expander may return: a few nodes, some of them behind a join."""

    def __init__(self, choices: Choices, hosts: tuple[str, ...]) -> None:
        self._choices = choices
        self._hosts = hosts

    def whole(self) -> ExecutionFragment:
        parts = [self._leaf(f"n{number}") for number in range(1 + self._choices.below(4))]
        half = (len(parts) + 1) // 2
        link = self._choices.pick((chain, parallel))
        return link(parallel(*parts[:half]), parallel(*parts[half:]))

    def _leaf(self, name: str) -> ExecutionFragment | None:
        some = self._choices.some(self._hosts, at_least=1)
        on = one_of(some) if self._choices.once_in(6) else some
        return node(name, StepSpec("plain"), on=on, **_settings(self._choices))


class _Algebra:
    """What chain, per_host, parallel, rolling and scope make of nodes; with hooks."""

    def __init__(self, choices: Choices, hosts: tuple[str, ...]) -> None:
        self._choices = choices
        self._hosts = hosts
        self._numbers = itertools.count(1)

    def whole(self) -> ExecutionFragment:
        whole = prefixed("p", self._fragment(3, self._hosts))
        if whole is None:
            whole = prefixed("p", self._leaf(0, self._hosts, at_least=1))
        assert whole is not None
        return whole

    def _fragment(self, depth: int, hosts: tuple[str, ...]) -> ExecutionFragment | None:
        makers: list[Callable[[int, tuple[str, ...]], ExecutionFragment | None]]
        makers = [self._leaf]
        if depth:
            makers = [self._sequence, self._scope, self._rolling, *makers[depth - 1 :]]
        return self._choices.pick(makers)(depth - 1, hosts)

    def _leaf(
        self, depth: int, hosts: tuple[str, ...], at_least: int = 0
    ) -> ExecutionFragment | None:
        some = self._choices.some(hosts, at_least=at_least)
        on = one_of(some) if self._choices.once_in(6) else some
        settings = _settings(self._choices)
        return node(f"n{next(self._numbers)}", StepSpec("plain"), on=on, **settings)

    def _sequence(self, depth: int, hosts: tuple[str, ...]) -> ExecutionFragment:
        parts = [self._fragment(depth, hosts) for _ in range(2 + self._choices.below(2))]
        return self._choices.pick((chain, per_host, parallel))(*parts)

    def _rolling(self, depth: int, hosts: tuple[str, ...]) -> ExecutionFragment:
        size = 1 + self._choices.below(2)
        return rolling(hosts, size, lambda some: self._fragment(min(depth, 1), tuple(some)))

    def _scope(self, depth: int, hosts: tuple[str, ...]) -> ExecutionFragment | None:
        hooks = [self._hook(hosts) for _ in range(self._choices.below(4))]
        undo = self._compensation(hosts) if self._choices.once_in(4) else None
        return scope(
            f"s{next(self._numbers)}",
            self._fragment(depth, hosts),
            hooks=[hook for hook in hooks if hook is not None],
            compensate=undo,
        )

    def _compensation(self, hosts: tuple[str, ...]) -> ExecutionFragment | None:
        some = self._choices.some(hosts)
        parts = [node(name, StepSpec("plain"), on=some) for name in ("c1", "c2")]
        return self._choices.pick((chain, parallel))(*parts)

    def _hook(self, hosts: tuple[str, ...]) -> HookFragment | None:
        parts = [self._leaf(0, hosts) for _ in range(1 + self._choices.below(2))]
        body = self._choices.pick((chain, per_host))(*parts)
        moment, barrier = self._choices.pick(MOMENTS), bool(self._choices.below(2))
        return HookFragment(moment, body, barrier) if body.nodes else None


def _with_values(
    choices: Choices, graph: ExecutionGraph, roles: Sequence[Role], ttl: float | None
) -> tuple[ExecutionGraph, dict[str, Role]]:
    """Parts for all nodes; readers and minters leave values, and some rightly count on them."""
    parts = {item.id: _role(choices, item, roles) for item in graph}
    keys = {id: _key(choices, graph.nodes[id], ttl) for id, r in parts.items() if _leaves(r)}
    if not keys:
        return graph, parts
    orders = {"run": follows(graph), "host": follows_on_host(graph)}
    nodes = {}
    for item in graph:
        ready = [
            key.name
            for id, key in keys.items()
            if reaches(graph.nodes[id], key, item, orders[key.scope])
        ]
        provides = (keys[item.id],) if item.id in keys else ()
        step = StepSpec(parts[item.id], {}, choices.some(ready), provides)
        nodes[item.id] = msgspec.structs.replace(item, step=step)
    return msgspec.structs.replace(graph, nodes=nodes), parts


def _leaves(role: Role) -> bool:
    return role in ("reader", "minter")


def _role(choices: Choices, item: ExecutionNode, roles: Sequence[Role]) -> Role:
    if not choices.once_in(3):
        return "plain"
    role = choices.pick(roles)
    # What a hook expands to would belong to nobody's scope, and nobody counts on its values.
    return "plain" if item.hook is not None and role in ("expander", "reader", "minter") else role


def _key(choices: Choices, item: ExecutionNode, ttl: float | None) -> Key:
    single = item.one_of or len(item.hosts) == 1
    if single and (item.one_of or choices.below(2) == 0):
        return Key(f"value of {item.id}", "run", ttl=ttl)
    return Key(f"value of {item.id}", "host", ttl=ttl)


def _fragments(
    choices: Choices, graph: ExecutionGraph, parts: dict[str, Role]
) -> dict[Unit, ExecutionFragment]:
    """What each expander will add on each of its hosts; some of it expands again."""
    fragments: dict[Unit, ExecutionFragment] = {}
    for id in [id for id, role in parts.items() if role == "expander"]:
        for host in graph.nodes[id].hosts:
            path = f"{id}/@{host}"
            grown = _Added(choices, (host, CONTROL_NODE)).whole()
            if choices.once_in(4) and grown.nodes:
                parts[f"{path}/{grown.nodes[0].id}"] = "expander"
                inner = f"{path}/{grown.nodes[0].id}"
                for place in grown.nodes[0].hosts:
                    fragments[inner, place] = _Added(choices, (place,)).whole()
            fragments[id, host] = grown
    return fragments


def _scripts(choices: Choices, plan: Scenario, faults: Sequence[Fault]) -> dict[Unit, Script]:
    scripts = {}
    for id, item in _places(plan):
        for host in item.hosts:
            script = _script(choices, plan.role(id), item, faults)
            # What becomes of an undo is told by `undo_fails`; a compensation goes well.
            scripts[id, host] = replace(script, faults=()) if "@compensate" in id else script
    return scripts


def _places(plan: Scenario) -> Iterator[tuple[str, ExecutionNode]]:
    """Every node that may come to be, by the id it will have."""
    for item in plan.graph:
        yield item.id, item
    for compensation in plan.graph.compensations:
        for item in compensation.nodes:
            yield item.id, item
    for (id, host), fragment in plan.fragments.items():
        for item in fragment.nodes:
            yield f"{id}/@{host}/{item.id}", item


def _script(choices: Choices, role: Role, item: ExecutionNode, faults: Sequence[Fault]) -> Script:
    troubles: tuple[Fault, ...] = ()
    if faults and choices.once_in(8):
        troubles = tuple(choices.pick(faults) for _ in range(1 + choices.below(3)))
    return Script(
        made=role in ("plain", "probed") and choices.once_in(5),
        wanted=not choices.once_in(2),
        look=float(choices.pick((0, 1))) if role == "plain" else 0.0,
        work=float(choices.pick((1, 2, 0, 3, 5))),
        polls=1 if choices.once_in(10) else 0,
        faults=tuple(f for f in troubles if f != "hangs" or item.timeout is not None),
        undo_fails=choices.once_in(12),
    )
