"""Graphs and results as versioned JSON, and back, bit for bit.

The names in a document are those users see: `stepName` is the kind of a step, `dependencies`
are both kinds of edge. What equals its default is left out, except what readers always look
for. Old documents stay readable: a renamed step kind gets an entry in `RENAMED_KINDS`, any
other change of meaning a new `FORMAT_VERSION`.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar

import msgspec

from kubexm.errors import InvalidGraph, InvalidInput, Problem, UnsupportedFormat
from kubexm.plan.graph import ExecutionGraph, build
from kubexm.plan.node import (
    NO_LIMITS,
    NO_RETRY,
    Compensation,
    ExecutionNode,
    Hook,
    Join,
    Key,
    StepSpec,
)
from kubexm.plan.policy import (
    HostGroup,
    OnFailure,
    Pool,
    ResourceConstraints,
    RetryPolicy,
    Tolerance,
)
from kubexm.plan.result import Cause, GraphExecutionResult, NodeResult, Status

FORMAT_VERSION = 1
GRAPH = "ExecutionGraph"
RESULT = "GraphExecutionResult"
RENAMED_KINDS: Mapping[str, str] = {}
"""Step kinds that had another name once: the old name, and the one of today."""

S = TypeVar("S", bound=msgspec.Struct)
replace = msgspec.structs.replace


class Wire(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """The shape of a JSON object in a document."""


class WireDependency(Wire, frozen=True):
    node: str
    scope: Literal["all", "host"]


class WireNode(Wire, frozen=True):
    id: str
    name: str
    step_name: str
    hosts: tuple[str, ...]
    dependencies: tuple[WireDependency, ...]
    params: dict[str, Any] = {}
    needs: tuple[str, ...] = ()
    provides: tuple[Key, ...] = ()
    references: bool = False
    one_of: bool = False
    retry_policy: RetryPolicy = NO_RETRY
    resource_constraints: ResourceConstraints = NO_LIMITS
    timeout: float | None = None
    tolerance: Tolerance | None = None
    when: str | None = None
    ignore_errors: bool = False
    tags: tuple[str, ...] = ()
    hook: Hook | None = None


class WireJoin(Wire, frozen=True):
    id: str
    dependencies: tuple[WireDependency, ...]


class WireCompensation(Wire, frozen=True):
    scope: str
    nodes: tuple[WireNode, ...]
    joins: tuple[WireJoin, ...] = ()


class WireGraph(Wire, frozen=True):
    format_version: int
    kind: str
    name: str
    hosts: tuple[str, ...]
    nodes: tuple[WireNode, ...]
    joins: tuple[WireJoin, ...] = ()
    groups: tuple[HostGroup, ...] = ()
    pools: dict[str, Pool] = {}
    on_failure: OnFailure = "isolate"
    digests: dict[str, str] = {}
    compensations: tuple[WireCompensation, ...] = ()


class WireResult(Wire, frozen=True):
    format_version: int
    kind: str
    graph_name: str
    start_time: datetime | None
    end_time: datetime | None
    status: Status
    dry_run: bool
    node_results: dict[str, NodeResult]
    degraded: bool = False
    message: str = ""
    quarantined: dict[str, Cause] = {}
    rollback: GraphExecutionResult | None = None


class Header(msgspec.Struct, frozen=True, rename="camel"):
    format_version: int
    kind: str


def encode(graph: ExecutionGraph) -> bytes:
    """The document of a graph; what JSON can't hold is refused, with the node that has it."""
    _check_params(graph)
    return _to_json(_wire_graph(graph))


def decode(document: bytes | str, *, renamed: Mapping[str, str] = RENAMED_KINDS) -> ExecutionGraph:
    """The graph of a document, checked like any other."""
    wire = _from_json(document, GRAPH, WireGraph)
    reader = _Reader(renamed)
    return build(
        wire.name,
        map(reader.node, wire.nodes),
        joins=map(reader.join, wire.joins),
        hosts=wire.hosts,
        groups=wire.groups,
        pools=wire.pools,
        on_failure=wire.on_failure,
        digests=wire.digests,
        compensations=tuple(map(reader.compensation, wire.compensations)),
    )


def digest(graph: ExecutionGraph) -> str:
    """The same for equal graphs, whatever the order in which they were put together."""
    _check_params(graph)
    wire = _wire_graph(graph)
    ordered = replace(
        wire,
        nodes=tuple(sorted(wire.nodes, key=lambda node: node.id)),
        joins=tuple(sorted(wire.joins, key=lambda join: join.id)),
    )
    return hashlib.sha256(_to_json(ordered, order="deterministic")).hexdigest()


def encode_result(result: GraphExecutionResult) -> bytes:
    """The document of what a run came to."""
    fields = {name: getattr(result, name) for name in result.__struct_fields__}
    return _to_json(WireResult(format_version=FORMAT_VERSION, kind=RESULT, **fields))


def decode_result(document: bytes | str) -> GraphExecutionResult:
    """What a run came to, from its document."""
    wire = _from_json(document, RESULT, WireResult)
    fields = GraphExecutionResult.__struct_fields__
    return GraphExecutionResult(**{name: getattr(wire, name) for name in fields})


def _wire_graph(graph: ExecutionGraph) -> WireGraph:
    wire = WireGraph(
        format_version=FORMAT_VERSION,
        kind=GRAPH,
        name=graph.name,
        hosts=graph.hosts,
        nodes=tuple(map(_wire_node, graph.nodes.values())),
        joins=tuple(map(_wire_join, graph.joins.values())),
        groups=graph.groups,
        pools=graph.pools,
        on_failure=graph.on_failure,
        digests=graph.digests,
        compensations=tuple(map(_wire_compensation, graph.compensations)),
    )
    return _exact(wire)


def _wire_node(node: ExecutionNode) -> WireNode:
    return WireNode(
        id=node.id,
        name=node.name,
        step_name=node.step.kind,
        hosts=node.hosts,
        dependencies=_wire_dependencies(node),
        params=node.step.params,
        needs=node.step.needs,
        provides=tuple(map(_exact, node.step.provides)),
        references=node.step.references,
        one_of=node.one_of,
        retry_policy=_exact(node.retry, NO_RETRY),
        resource_constraints=_exact(node.limits, NO_LIMITS),
        timeout=None if node.timeout is None else float(node.timeout),
        tolerance=None if node.tolerance is None else _exact(node.tolerance),
        when=node.when,
        ignore_errors=node.ignore_errors,
        tags=node.tags,
        hook=None if node.hook is None else _exact(node.hook),
    )


def _wire_join(join: Join) -> WireJoin:
    return WireJoin(join.id, _wire_dependencies(join))


def _wire_compensation(item: Compensation) -> WireCompensation:
    nodes = tuple(map(_wire_node, item.nodes))
    return WireCompensation(item.scope, nodes, tuple(map(_wire_join, item.joins)))


def _wire_dependencies(vertex: ExecutionNode | Join) -> tuple[WireDependency, ...]:
    return (
        *(WireDependency(id, "all") for id in vertex.after),
        *(WireDependency(id, "host") for id in vertex.after_same_host),
    )


# Two things that Python takes for equal would make two documents. `timeout=30` keeps an int where
# a float is meant: the document would read `30` once and `30.0` ever after. And msgspec leaves out
# only what *is* the default, not what equals it.


def _exact(value: S, default: S | None = None) -> S:
    """The same value with floats that are floats and defaults that are the defaults."""
    if default is not None and (value is default or value == default):
        return default
    changes = {}
    for name, usual, is_float in _fields(type(value)):
        given = exact = getattr(value, name)
        if isinstance(given, msgspec.Struct):
            exact = _exact(given, usual)
        elif is_float and given is not None:
            exact = float(given)
        if exact == usual:
            exact = usual
        if exact is not given:
            changes[name] = exact
    return replace(value, **changes) if changes else value


@functools.cache
def _fields(shape: type[msgspec.Struct]) -> tuple[tuple[str, Any, bool], ...]:
    return tuple(
        (field.name, field.default, field.type in (float, float | None))
        for field in msgspec.structs.fields(shape)
    )


class _Reader:
    """Makes nodes of what was read; equal tuples become one object, as many nodes share them."""

    def __init__(self, renamed: Mapping[str, str]) -> None:
        self._renamed = renamed
        self._tuples: dict[tuple[str, ...], tuple[str, ...]] = {}

    def node(self, wire: WireNode) -> ExecutionNode:
        kind = self._renamed.get(wire.step_name, wire.step_name)
        return ExecutionNode(
            id=wire.id,
            name=wire.name,
            step=StepSpec(
                kind, wire.params, self._shared(wire.needs), wire.provides, wire.references
            ),
            hosts=self._shared(wire.hosts),
            one_of=wire.one_of,
            after=self._edges(wire.dependencies, "all"),
            after_same_host=self._edges(wire.dependencies, "host"),
            retry=wire.retry_policy,
            limits=wire.resource_constraints,
            timeout=wire.timeout,
            tolerance=wire.tolerance,
            when=wire.when,
            ignore_errors=wire.ignore_errors,
            tags=self._shared(wire.tags),
            hook=wire.hook,
        )

    def join(self, wire: WireJoin) -> Join:
        edges = wire.dependencies
        return Join(wire.id, self._edges(edges, "all"), self._edges(edges, "host"))

    def compensation(self, wire: WireCompensation) -> Compensation:
        nodes = tuple(map(self.node, wire.nodes))
        return Compensation(wire.scope, nodes, tuple(map(self.join, wire.joins)))

    def _edges(self, dependencies: tuple[WireDependency, ...], scope: str) -> tuple[str, ...]:
        return self._shared(tuple(edge.node for edge in dependencies if edge.scope == scope))

    def _shared(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return self._tuples.setdefault(names, names) if names else ()


_JSON_ONLY = "use text, finite numbers, booleans, null, lists, and maps with text keys"


def _check_params(graph: ExecutionGraph) -> None:
    groups = (graph.nodes.values(), *(item.nodes for item in graph.compensations))
    problems = [
        Problem(f"parameter {found} can't be stored in a graph", node.id, _JSON_ONLY)
        for nodes in groups
        for node in nodes
        for found in _unstorable(node.step.params)
    ]
    if problems:
        raise InvalidGraph(f"graph `{graph.name}` can't be stored", problems=problems)


def _unstorable(params: dict[str, Any]) -> list[str]:
    try:
        return list(_not_json(params, ""))
    except RecursionError:
        return [f"`{', '.join(map(str, params))}` is nested too deep and"]


def _not_json(value: Any, place: str) -> Iterable[str]:
    """Every value below that JSON would lose or change, with its place."""
    kind = type(value)
    if kind is dict:
        for key, inner in value.items():
            if type(key) is not str:
                yield f"`{place}` with the key {key!r}"
            yield from _not_json(inner, f"{place}.{key}" if place else str(key))
    elif kind is list:
        for number, inner in enumerate(value):
            yield from _not_json(inner, f"{place}[{number}]")
    elif kind is float:
        if not math.isfinite(value):
            yield f"`{place}` = {value}"
    elif value is not None and kind not in (str, int, bool):
        yield f"`{place}` of type {kind.__name__}"


def _to_json(wire: Wire, order: Literal["deterministic"] | None = None) -> bytes:
    try:
        return msgspec.json.encode(wire, order=order)
    except UnicodeEncodeError as error:
        text = str(error.object)
        raise InvalidGraph(
            f"{text[:40]!r} is not Unicode text and can't be stored",
            hint="decode the output of programs with `errors='replace'`",
        ) from error


def _from_json(document: bytes | str, kind: str, shape: type[S]) -> S:
    _check_header(_parsed(document, Header), kind)
    return _parsed(document, shape)


def _check_header(header: Header, kind: str) -> None:
    if header.kind != kind:
        raise UnsupportedFormat(
            f"the document holds `{header.kind}`, want `{kind}`", where="$.kind", hint=_WRITE_AGAIN
        )
    if header.format_version > FORMAT_VERSION:
        raise UnsupportedFormat(
            f"the document has format {header.format_version}, "
            f"this kubexm reads up to {FORMAT_VERSION}",
            where="$.formatVersion",
            hint="use the version of kubexm that wrote it, or a newer one",
        )
    if header.format_version < 1:
        raise UnsupportedFormat(
            f"format {header.format_version} does not exist, want 1 to {FORMAT_VERSION}",
            where="$.formatVersion",
            hint=_WRITE_AGAIN,
        )


_WRITE_AGAIN = "the document is damaged or not one of kubexm's: write it again from its source"
_PLACED = r"(?s)(?P<message>.*) - at `(?P<path>.*)`$"


def _parsed(document: bytes | str, shape: type[S]) -> S:
    try:
        return msgspec.json.decode(document, type=shape)
    except msgspec.ValidationError as error:
        raise _misshapen(str(error)) from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UnsupportedFormat(f"this is no JSON: {error}", hint=_WRITE_AGAIN) from error
    except RecursionError as error:
        raise UnsupportedFormat("the document is nested too deep", hint=_WRITE_AGAIN) from error


def _misshapen(text: str) -> InvalidInput:
    placed = re.match(_PLACED, text)
    message, path = (placed["message"], placed["path"]) if placed else (text, "$")
    return UnsupportedFormat(message[:1].lower() + message[1:], where=path, hint=_WRITE_AGAIN)
