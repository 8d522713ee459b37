"""What a file says wrong beyond the shape of its parts: names, references, conditions, roles.

It reads the data as it was written, whatever else is wrong with it, so that all problems of a
file come at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubexm.common.nearest import did_you_mean
from kubexm.common.roles import ALL
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath
from kubexm.sim.settings import WorldSettings
from kubexm.spec import conditions, hosts, parameters, references, secrets, shapes
from kubexm.spec.expressions import BadExpression, compile_expression
from kubexm.spec.model import kind_key
from kubexm.spec.references import BadReference, Reference

_MOMENTS = ("pre", "post", "onFailure", "always")
_LISTS = ("modules", "tasks", "steps", "compensate")
Written = Mapping[str, Any]


def findings(data: Any) -> Iterator[Finding]:
    """Everything that is wrong in the body of a pipeline file."""
    body = _mapping(_mapping(data).get("spec"))
    for path, step in written_steps(body, ("spec",)):
        yield from (finding.under(*path) for finding in _step(step, body))
    for path, siblings in _sibling_lists(body, ("spec",)):
        yield from (finding.under(*path) for finding in _siblings(siblings))
    yield from (finding.under("spec") for finding in hosts.findings(body))
    yield from (finding.under("spec", "groups") for finding in _groups(body))
    if isinstance(simulate := body.get("simulate"), Mapping):
        shape = shapes.shape(WorldSettings)
        yield from shapes.mismatches(simulate, shape, ("spec", "simulate"))


def misplaced_secrets(data: Any) -> Iterator[Finding]:
    """References to secrets where no step resolves them; the steps can be planned all the same."""
    body = _mapping(_mapping(data).get("spec"))
    for path, step in written_steps(body, ("spec",)):
        if (kind := kind_key(step)) is not None and isinstance(step[kind], Mapping):
            params, _ = conditions.turned(kind, step[kind], None)
            found = secrets.misplaced(kind, params)
            yield from (finding.under(*path, kind) for finding in found)


def written_steps(scope: Written, path: DataPath) -> Iterator[tuple[DataPath, Written]]:
    """Every step and hook inside a scope, with its path."""
    for moment in _MOMENTS:
        yield from _entries(_mapping(scope.get("hooks")), moment, (*path, "hooks"))
    for key in _LISTS:
        for inner, entry in _entries(scope, key, path):
            if key in ("steps", "compensate"):
                yield inner, entry
            yield from written_steps(entry, inner)


def _sibling_lists(scope: Written, path: DataPath) -> Iterator[tuple[DataPath, list[Any]]]:
    for key in _LISTS:
        if isinstance(scope.get(key), list):
            yield (*path, key), scope[key]
        for inner, entry in _entries(scope, key, path):
            yield from _sibling_lists(entry, inner)


def _entries(scope: Written, key: str, path: DataPath) -> Iterator[tuple[DataPath, Written]]:
    listed = scope.get(key)
    for number, entry in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(entry, Mapping):
            yield (*path, key, number), entry


def _mapping(value: Any) -> Written:
    return value if isinstance(value, Mapping) else {}


def _step(step: Written, body: Written) -> Iterator[Finding]:
    if (kind := kind_key(step)) is not None:
        yield from (finding.under(kind) for finding in _parameters(step, kind))
    if None not in (step.get("runOnRoles"), step.get("runOnOneOf")):
        message = "both `runOnRoles` and `runOnOneOf`"
        yield Finding(("runOnOneOf",), message, "keep one of them", at_key=True)
    yield from _condition(step.get("when"), "when", step)
    yield from (finding.under("forEach") for finding in _for_each(step.get("forEach")))
    yield from (finding.under("limits", "pools") for finding in _pools(step, body))


def _parameters(step: Written, kind: str) -> Iterator[Finding]:
    params = {} if step[kind] is None else step[kind]
    if (expression := conditions.asserted(kind, params)) is not None:
        yield from _condition(expression, conditions.THAT, step)
        params = {**params, conditions.THAT: False}
    yield from parameters.findings(kind, params)
    if step.get("forEach") is None:
        yield from _items(params)


def _items(params: Any) -> Iterator[Finding]:
    for path, reference in references.scan(params):
        if isinstance(reference, Reference) and reference.root == "item":
            hint = "give the step a `forEach` list"
            message = f"`{reference.written_out}` outside of `forEach`"
            yield Finding(path, message, hint, excerpt=reference.written_out)


def _condition(text: Any, key: str, step: Written) -> Iterator[Finding]:
    if not isinstance(text, str) or not text:
        return
    try:
        condition = compile_expression(text, has_item=step.get("forEach") is not None)
    except BadExpression as error:
        yield Finding((key,), str(error), error.hint)
        return
    for bad in filter(None, map(references.unknown_fact, condition.references)):
        yield Finding((key,), str(bad), bad.hint)


def _for_each(entries: Any) -> Iterator[Finding]:
    if isinstance(entries, str) and not references.is_whole(entries):
        yield Finding((), "text that is no reference", "write a list, or `${vars.NAME}`")
    for path, reference in references.scan(entries):
        if isinstance(reference, BadReference):
            yield Finding(path, str(reference), reference.hint)
        elif reference.root != "vars":
            message = f"`${{{reference}}}` is not known when planning"
            yield Finding(path, message, "a list to go over may name `vars` only")


def _pools(step: Written, body: Written) -> Iterator[Finding]:
    named = _mapping(step.get("limits")).get("pools")
    known = [str(name) for name in _mapping(body.get("pools"))]
    for number, name in enumerate(named if isinstance(named, list) else ()):
        if isinstance(name, str) and name not in known:
            hint = did_you_mean(name, known) or f"define it: `pools: {{{name}: 4}}`"
            yield Finding((number,), f"unknown pool `{name}`", hint)


def _siblings(entries: list[Any]) -> Iterator[Finding]:
    names = [_mapping(entry).get("name") for entry in entries]
    first: dict[str, int] = {}
    for number, name in enumerate(names):
        if isinstance(name, str) and first.setdefault(name, number) != number:
            hint = f"entry {first[name]} has it already; give one of them another name"
            yield Finding((number, "name"), f"the name `{name}` is there twice", hint)
    for number, entry in enumerate(entries):
        known = {name for name in first if name != names[number]}
        yield from (finding.under(number, "after") for finding in _after(entry, known))


_NOTHING_BESIDE = "leave it out, or name one in the same list; tasks and modules have `after`, too"


def _after(entry: Any, known: set[str]) -> Iterator[Finding]:
    listed = _mapping(entry).get("after")
    for number, other in enumerate(listed if isinstance(listed, list) else ()):
        name = other.get("name") if isinstance(other, Mapping) else other
        if isinstance(name, str) and name not in known:
            hint = did_you_mean(name, known) or _NOTHING_BESIDE
            yield Finding((number,), f"nothing beside it is called `{name}`", hint)


def _groups(body: Written) -> Iterator[Finding]:
    entries = body.get("hosts")
    roles = [_mapping(entry).get("roles") for entry in entries] if isinstance(entries, list) else []
    roles.append(body.get("roles"))
    known = {ALL}
    known |= {
        role for some in roles if isinstance(some, list) for role in some if isinstance(role, str)
    }
    for name, group in _mapping(body.get("groups")).items():
        wanted = _mapping(group).get("roles")
        for number, role in enumerate(wanted if isinstance(wanted, list) else ()):
            if isinstance(role, str) and role not in known:
                hint = did_you_mean(role, known)
                yield Finding((name, "roles", number), f"no host has the role `{role}`", hint)
