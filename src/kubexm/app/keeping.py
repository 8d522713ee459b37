"""How a run was to be carried out, kept for its resume and its retry; no secret is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kubexm.app import planning
from kubexm.app.params import OperationParams, PipelineParams, PlanParams
from kubexm.app.planning import Planned
from kubexm.engine import Options
from kubexm.errors import InvalidInput, InvalidPipeline
from kubexm.plan.select import Selection
from kubexm.spec.overrides import parse_overrides


class StoredOptions(msgspec.Struct, frozen=True):
    """What was asked for beside the file."""

    options: Options
    require_all_hosts: bool = False
    selection: Selection = Selection()
    """What was selected of the pipeline, for a corrected file."""
    overrides: tuple[str, ...] = ()
    """What was given by `--set`, for a corrected file."""
    bundled: bool = False
    """Whether nobody outside may be asked."""
    withheld: tuple[str, ...] = ()
    """The names of variables that were given by `--set` and hold a secret."""


def without_secrets(texts: Iterable[str]) -> dict[str, Any]:
    """The fields of what was given by `--set`: texts that may be stored, and names of others."""
    secret = {text: bool(planning.literal_secrets([text])) for text in texts}
    return {
        "overrides": tuple(text for text, is_secret in secret.items() if not is_secret),
        "withheld": tuple(_name(text) for text, is_secret in secret.items() if is_secret),
    }


def planned_again(
    pipeline: PipelineParams | OperationParams, kept: StoredOptions
) -> tuple[Planned, StoredOptions]:
    """The corrected file with what was asked for before, unless it is asked for otherwise now."""
    if isinstance(pipeline, OperationParams):
        return planning.plan(PlanParams(pipeline, kept.selection)), kept
    _refuse_without_secrets(pipeline, kept)
    before = kept.overrides
    try:
        planned = _planned(pipeline, before, kept)
    except InvalidPipeline as error:
        # What was set before and is no variable any more has nothing left to say.
        gone = {problem.where for problem in error.problems}
        before = tuple(text for text in before if str(parse_overrides([text])[0]) not in gone)
        if before == kept.overrides:
            raise
        planned = _planned(pipeline, before, kept)
    fields = without_secrets((*before, *pipeline.overrides))
    return planned, msgspec.structs.replace(kept, **fields)


def _planned(pipeline: PipelineParams, before: Sequence[str], kept: StoredOptions) -> Planned:
    whole = msgspec.structs.replace(pipeline, overrides=(*before, *pipeline.overrides))
    return planning.plan(PlanParams(whole, kept.selection))


def _refuse_without_secrets(pipeline: PipelineParams, kept: StoredOptions) -> None:
    given = {_name(text) for text in pipeline.overrides}
    missing = [name for name in kept.withheld if name not in given]
    if missing:
        raise InvalidInput(
            "what the run was given by `--set` for "
            + ", ".join(f"`{name}`" for name in missing)
            + " looks like a secret and was not stored",
            hint="give it again: " + " ".join(f"--set {name}=VALUE" for name in missing),
        )


def _name(text: str) -> str:
    return text.partition("=")[0]
