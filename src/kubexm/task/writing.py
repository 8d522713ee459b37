"""Steps that tasks of all components make: files by templates, and data that differs by host."""

from __future__ import annotations

from collections.abc import Sequence
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


def of_host(name: str) -> Any:
    """Stands for a variable that every host has its own value of; see `task.hosts`."""
    return f"${{vars.{name}}}"


def of_run(name: str) -> Any:
    """Stands for a value that is known only when the run has come there."""
    return f"${{values.{name}}}"


def of_facts(name: str) -> Any:
    """Stands for what a host tells of itself."""
    return f"${{facts.{name}}}"


def referring(step: Step) -> StepSpec:
    """The step as data in which `${…}` stands for something that each host resolves."""
    spec = step.spec()
    found = (one for _, one in references.scan(spec.params) if isinstance(one, Reference))
    values = (one.path[0] for one in found if one.root == "values")
    return replace(spec, references=True, needs=tuple(dict.fromkeys((*spec.needs, *values))))


def unresolved(kind: type[Step], *, needs: tuple[str, ...] = (), **fields: Any) -> StepSpec:
    """The same for a step that can't be made before its references are resolved."""
    return StepSpec(kind.kind, msgspec.to_builtins(fields), needs, references=True)


def template(ctx: ClusterContext, name: str, context: Context, **overrides: Any) -> dict[str, Any]:
    """The fields of a step that fills in a template, or what the operator has in its place."""
    overlaid = ctx.overlays.text(name)
    fields = {"template": name} if overlaid is None else {"text": overlaid}
    return {
        **fields,
        "data": context.data(),
        "overrides": overrides,
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
    overrides: dict[str, Any] | None = None,
    mode: str = "0644",
) -> StepSpec:
    """A file on a host by one of our templates."""
    fields = template(ctx, name, context, **(overrides or {}))
    return referring(Rendered(path=path, mode=mode, **fields))


def as_data(
    ctx: ClusterContext, name: str, context: Context, overrides: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What a template of YAML comes to, as data, where it is known when planning."""
    source = ctx.overlays.text(name) or render.source(name)
    text = render.merged(source, context.data(), overrides or {}, "yaml", what=f"template `{name}`")
    found: dict[str, Any] = formats.parsed(text, "yaml")
    return found
