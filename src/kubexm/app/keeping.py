"""What a retry takes over from the command line of the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from kubexm.app import planning
from kubexm.app.params import (
    PipelineParams,
    PlanParams,
)
from kubexm.app.planning import Planned
from kubexm.app.stored import StoredOptions
from kubexm.errors import InvalidInput, InvalidPipeline
from kubexm.spec.overrides import parse_overrides


def without_secrets(texts: Iterable[str]) -> dict[str, Any]:
    """The fields of what was given by `--set`: texts that may be stored, and names of others."""
    secret = {text: bool(planning.literal_secrets([text])) for text in texts}
    return {
        "overrides": tuple(text for text, is_secret in secret.items() if not is_secret),
        "withheld": tuple(_name(text) for text, is_secret in secret.items() if is_secret),
    }


def planned_again(pipeline: PipelineParams, kept: StoredOptions) -> tuple[Planned, StoredOptions]:
    """The corrected file with what was asked for before, unless it is asked for otherwise now."""
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
    return planned, replace(kept, **fields)


def _planned(pipeline: PipelineParams, before: Sequence[str], kept: StoredOptions) -> Planned:
    whole = replace(pipeline, overrides=(*before, *pipeline.overrides))
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
