"""Hooks that another file than a pipeline has: steps before or after parts of its operation.

They are planned as the hooks of modules of a pipeline are, with the same checks and the places that
they have in their own file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubexm.common.nearest import did_you_mean
from kubexm.common.roles import CONTROL_NODE
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath, Document, Spot
from kubexm.errors import InvalidPipeline, Problem
from kubexm.plan import ExecutionFragment, ExecutionNode, HookFragment
from kubexm.spec import planner
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.pipeline import checked

_NOTHING = {"name": "body", "noop": {"satisfied": True}, "runOnRoles": [CONTROL_NODE]}


class PlannedHooks(msgspec.Struct, frozen=True):
    """Hooks by the part they belong to."""

    of: Mapping[str, Sequence[HookFragment]] = {}
    places: Mapping[str, str] = {}
    """Where the steps that ask for secrets or for a person are written, by `PART/@MOMENT-N/…`."""


def plan_hooks(
    document: Document,
    at: DataPath,
    hosts: Sequence[InventoryHost],
    *,
    allow_literal_secrets: bool = False,
) -> PlannedHooks:
    """The hooks under a key of a document; `InvalidPipeline` with every problem."""
    found = _value(document, at)
    if not found:
        return PlannedHooks()
    stand_in = _pipeline(document, at, found, hosts)
    try:
        pipeline = checked(stand_in, allow_literal_secrets=allow_literal_secrets)
        planned = planner.plan(pipeline)
    except InvalidPipeline as error:
        raise _renamed(error, at, [*found]) from error
    name = planned.graph.name
    return PlannedHooks(
        {part: [*_hooks(planned.graph, f"{name}/{part}/")] for part in found},
        {id.removeprefix(f"{name}/"): place for id, place in planned.places.items()},
    )


def unknown_parts(document: Document, at: DataPath, parts: Sequence[str]) -> Iterator[Finding]:
    """Hooks of parts that there are not."""
    for name in _value(document, at):
        if name not in parts:
            known = ", ".join(f"`{part}`" for part in parts)
            hint = did_you_mean(name, parts) or f"there are {known}"
            yield Finding((*at, name), f"there is no module `{name}`", hint, at_key=True)


def _value(document: Document, at: DataPath) -> dict[str, Any]:
    data = document.data
    for key in at:
        data = data.get(key, {})
    return dict(data)


def _pipeline(
    document: Document, at: DataPath, found: Mapping[str, Any], hosts: Iterable[InventoryHost]
) -> Document:
    """A pipeline with these hooks and nothing else; its parts lie where the hooks are written."""
    inventory = [_host(host) for host in hosts if host.name != CONTROL_NODE]
    roles = sorted({role for host in inventory for role in host["roles"]})
    modules = [
        {"name": name, "hooks": hooks, "tasks": [{"name": "body", "steps": [_NOTHING]}]}
        for name, hooks in found.items()
    ]
    body = {"hosts": inventory, "roles": roles, "modules": modules}
    data = {
        "apiVersion": "kubexm.io/v1alpha1",
        "kind": "Pipeline",
        "metadata": {"name": "hooks"},
        "spec": body,
    }
    return msgspec.structs.replace(document, data=data, spot=_spot(document, at, [*found]))


def _host(host: InventoryHost) -> dict[str, Any]:
    return {
        "name": host.name,
        "address": host.address,
        "connection": host.connection,
        "roles": [*host.roles],
        "labels": dict(host.labels),
    }


def _spot(document: Document, at: DataPath, names: Sequence[str]) -> Spot:
    written = document.spot
    for key in at:
        written = written.parts[key]

    def around(parts: dict[str | int, Spot]) -> Spot:
        return Spot(written.line, written.column, parts=parts)

    listed = around({})
    for number, name in enumerate(names):
        listed.parts[number] = around({"hooks": written.parts[name]})
    return around({"spec": around({"modules": listed})})


def _renamed(error: InvalidPipeline, at: DataPath, names: Sequence[str]) -> InvalidPipeline:
    """The same problems, by the keys that the file has."""
    place = ".".join(map(str, at))

    def said(problem: Problem) -> Problem:
        message = problem.message
        for number, name in enumerate(names):
            message = message.replace(f"spec.modules[{number}].hooks", f"{place}.{name}")
        return msgspec.structs.replace(problem, message=message)

    problems = [said(problem) for problem in error.problems]
    return InvalidPipeline(error.message, problems=problems, hint=error.hint)


def _hooks(graph: Iterable[ExecutionNode], prefix: str) -> Iterator[HookFragment]:
    """The hooks of one part, each without what is around it."""
    found: dict[str, list[ExecutionNode]] = {}
    for node in graph:
        if node.id.startswith(f"{prefix}@") and node.hook is not None:
            scope = node.id.removeprefix(prefix).partition("/")[0]
            found.setdefault(scope, []).append(node)
    for scope, nodes in found.items():
        hook = nodes[0].hook
        assert hook is not None
        fragment = ExecutionFragment(tuple(_alone(node, f"{prefix}{scope}/") for node in nodes))
        yield HookFragment(hook.moment, fragment, hook.barrier)


def _alone(node: ExecutionNode, prefix: str) -> ExecutionNode:
    def own(ids: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(id.removeprefix(prefix) for id in ids if id.startswith(prefix))

    return msgspec.structs.replace(
        node,
        id=node.id.removeprefix(prefix),
        after=own(node.after),
        after_same_host=own(node.after_same_host),
        hook=None,
    )
