"""Steps that tasks of all components make: files by templates, and data that differs by host."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from kubexm.plan import ExecutionFragment, node, parallel
from kubexm.plan.fragment import prefixed
from kubexm.plan.node import StepSpec
from kubexm.spec import references
from kubexm.spec.references import Reference
from kubexm.step.contract import Step
from kubexm.step.data import DataDirectory
from kubexm.step.files import Directory, Rendered
from kubexm.task.context import ClusterContext
from kubexm.templates import formats, registry, render
from kubexm.templates.context import Context

_OURS = f"\0{os.urandom(8).hex()}"
"""Stands before a reference of ours until a step is data: nobody else can write it."""


def of_host(name: str) -> Any:
    """Stands for a variable that every host has its own value of; see `task.hosts`."""
    return f"{_OURS}{{vars.{name}}}"


def of_run(name: str) -> Any:
    """Stands for a value that is known only when the run has come there."""
    return f"{_OURS}{{values.{name}}}"


def of_facts(name: str) -> Any:
    """Stands for what a host tells of itself."""
    return f"{_OURS}{{facts.{name}}}"


def referring(step: Step) -> StepSpec:
    """The step as data in which references of ours stand for something that each host resolves;
    a `${…}` of the operator's stays as it is written."""
    spec = step.spec()
    params = _with_references(spec.params)
    found = (one for _, one in references.scan(params) if isinstance(one, Reference))
    values = (one.path[0] for one in found if one.root == "values")
    needs = tuple(dict.fromkeys((*spec.needs, *values)))
    return replace(spec, params=params, references=True, needs=needs)


def unresolved(kind: type[Step], *, needs: tuple[str, ...] = (), **fields: Any) -> StepSpec:
    """The same for a step that can't be made before its references are resolved."""
    params = _with_references(msgspec.to_builtins(fields))
    return StepSpec(kind.kind, params, needs, references=True)


def _with_references(data: Any) -> Any:
    """Data in which references are those of ours, and nothing else is taken for one."""
    if isinstance(data, str):
        return references.escaped(data).replace(_OURS, "$")
    if isinstance(data, dict):
        return {key: _with_references(value) for key, value in data.items()}
    return [_with_references(value) for value in data] if isinstance(data, list | tuple) else data


def template(
    ctx: ClusterContext, name: str, context: Context, overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The fields of a step that fills in a template, or what the operator has in its place."""
    overlaid = ctx.overlays.text(name)
    fields = {"template": name} if overlaid is None else {"text": overlaid}
    return {
        **fields,
        "data": context.data(),
        "overrides": dict(overrides or {}),
        "format": registry.template(name).format,
    }


def directories(hosts: Sequence[str], *paths: str) -> ExecutionFragment | None:
    """Directories that others write into; each goes with what is in it, if it was not there."""
    return prefixed(
        "directories",
        parallel(
            *(node(path.strip("/").replace("/", "-"), Directory(path), on=hosts) for path in paths)
        ),
    )


def data_directories(hosts: Sequence[str], *paths: str) -> ExecutionFragment | None:
    """Directories that programs of the cluster fill themselves; all in them goes with them."""
    return prefixed(
        "data", parallel(*(node(_title(path), DataDirectory(path), on=hosts) for path in paths))
    )


def _title(path: str) -> str:
    return path.strip("/").replace("/", "-")


def parent(path: str) -> str:
    """The directory that a file lies in."""
    return path.rpartition("/")[0]


def rendered(
    ctx: ClusterContext,
    name: str,
    context: Context,
    path: str,
    *,
    overrides: Mapping[str, Any] | None = None,
    mode: str = "0644",
) -> StepSpec:
    """A file on a host by one of our templates."""
    fields = template(ctx, name, context, overrides)
    return referring(Rendered(path=path, mode=mode, **fields))


def as_data(
    ctx: ClusterContext, name: str, context: Context, overrides: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What a template of YAML comes to, as data, where it is known when planning."""
    source = ctx.overlays.text(name) or render.source(name)
    text = render.merged(source, context.data(), overrides or {}, "yaml", what=f"template `{name}`")
    found: dict[str, Any] = formats.parsed(text, "yaml")
    return found


def as_documents(
    ctx: ClusterContext, name: str, context: Context, overrides: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """The same of a template of several documents, each by its kind."""
    source = ctx.overlays.text(name) or render.source(name)
    what = f"template `{name}`"
    text = render.merged(source, context.data(), overrides, "manifests", what=what)
    return {str(one.get("kind")): one for one in formats.parsed(text, "manifests")}
