"""From a pipeline file to the graph that would run; no host is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubexm.app.params import DeletionParams, OperationParams, PipelineParams, PlanParams
from kubexm.app.remembered import Facts
from kubexm.common.about import About
from kubexm.common.digests import Digests
from kubexm.document import literals
from kubexm.errors import InvalidInput, Problem
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.select import Selection, in_vain, select, uncompensated, unguarded
from kubexm.sim.settings import WorldSettings
from kubexm.spec import planner
from kubexm.spec.files import begin_reading
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.overrides import Override, parse_overrides
from kubexm.spec.pipeline import read_pipeline


class Planned(msgspec.Struct, frozen=True):
    """A graph and what it was made from."""

    graph: ExecutionGraph
    hosts: tuple[InventoryHost, ...]
    world: WorldSettings
    selected: bool = False
    """Whether a part of the pipeline was left out."""
    warnings: tuple[Problem, ...] = ()
    """What is probably not meant as it is written."""
    notices: tuple[Problem, ...] = ()
    """What is worth knowing when one looks at the plan."""
    places: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Where the nodes and connections that ask for something beside the file are written."""
    judge: Callable[[Facts], Sequence[Problem]] | None = None
    """Holds hosts against each other once they have told of themselves."""
    about: About | None = None
    """The cluster that it is about, if it is about one."""


def plan(params: PlanParams, digests: Digests | None = None, facts: Facts | None = None) -> Planned:
    """The graph of a pipeline or of an operation, or of the selected part of it.

    `facts`: what hosts have told just now; else what the store knows counts.
    """
    whole = _whole(params.pipeline, digests or Digests(), facts)
    graph = select(whole.graph, params.selection)
    selected = params.selection != Selection()
    return Planned(
        graph=graph,
        hosts=whole.hosts,
        world=whole.world,
        selected=selected,
        warnings=(*whole.warnings, *_of_selection(whole.graph, params.selection, graph)),
        notices=whole.notices,
        places=whole.places,
        judge=whole.judge,
        about=whole.about,
    )


def _of_selection(
    whole: ExecutionGraph, selection: Selection, graph: ExecutionGraph
) -> Iterator[Problem]:
    if selection != Selection():
        yield from in_vain(whole, selection, graph)
        yield from unguarded(whole, selection, graph)
        yield from uncompensated(whole, graph)


def _whole(
    params: PipelineParams | OperationParams | DeletionParams,
    digests: Digests,
    facts: Facts | None,
) -> planner.PlannedPipeline:
    if isinstance(params, DeletionParams):
        from kubexm.app import deleting

        return deleting.plan(params)
    if isinstance(params, OperationParams):
        # A pipeline of one's own has nothing to do with clusters.
        from kubexm.app import operations

        return operations.plan(params, digests, facts)
    if not params.allow_literal_secrets and (found := literal_secrets(params.overrides)):
        raise InvalidInput(
            "a secret must not be written out on the command line",
            problems=found,
            hint="or accept it with `--allow-literal-secrets`",
        )
    pipeline = read_pipeline(params.file, allow_literal_secrets=params.allow_literal_secrets)
    if begin_reading(pipeline.document, digests) and pipeline.spec.spec.hosts:
        # Meanwhile: it takes long, and will be needed.
        from kubexm.app.reaching import load_dialing

        load_dialing()
    return planner.plan(pipeline, parse_overrides(params.overrides), digests)


def literal_secrets(overrides: Iterable[str]) -> list[Problem]:
    """What of this, as given by `--set`, is a secret written out."""
    return [
        Problem(finding.message, str(override), finding.hint)
        for override in parse_overrides(overrides)
        for finding in literals.findings(_nested(override), ("spec", "vars"))
    ]


def _nested(override: Override) -> Any:
    data = override.value
    for name in reversed(override.path):
        data = {name: data}
    return data
