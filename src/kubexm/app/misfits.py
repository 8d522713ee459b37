"""Parameters that no step takes: what of a cluster file turns out so only while it is planned.

The fields of the file refuse what they know to be wrong; this is for what they let through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from types import FrameType

from kubexm.document import problems
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath, Document, texts
from kubexm.errors import InvalidCluster, Problem
from kubexm.step.contract import Step
from kubexm.step.parameters import BadParameter

_TASKS = "kubexm.task."
_MODULES = "kubexm.module."
_QUOTED = re.compile(r"`([^`]+)`")
_HINT = "correct what the file says for it; `kubexm config explain KEY` tells what it may say"


@contextmanager
def told(document: Document) -> Iterator[None]:
    """Have a parameter that a step refuses told as a mistake of this file."""
    try:
        yield
    except ValueError as error:
        frames = [frame for frame, _ in walk_tb(error.__traceback__)]
        step = _step(frames)
        if step is None and not isinstance(error, BadParameter):
            raise  # nobody refused a parameter: that is a defect
        said = "is not a valid cluster"
        found = [_problem(document, error, _part(frames), step)]
        raise problems.refusal(InvalidCluster, document, said, found, is_all=False) from error


def _problem(document: Document, error: ValueError, part: str, step: Step | None) -> Problem:
    kind = f" by a step `{step.kind}`" if step is not None else ""
    message = f"`{part}` can't be planned{kind}: {error}"
    hint = error.hint if isinstance(error, BadParameter) else _HINT
    places = [*_places(document, str(error))]
    if len(places) != 1:
        return Problem(message, document.file, hint)
    (placed,) = problems.placed([Finding(places[0], message, hint)], document, _HINT)
    return placed


def _step(frames: list[FrameType]) -> Step | None:
    """The step that refused to be made."""
    for frame in reversed(frames):
        made = frame.f_locals.get("self")
        if isinstance(made, Step) and frame.f_code.co_name == "__post_init__":
            return made
    return None


def _part(frames: list[FrameType]) -> str:
    """The part of the plan that was made: its module, and the task in it, by their names."""
    names = [str(frame.f_globals.get("__name__", "")) for frame in frames]
    inner = [name for name in names if name.startswith(_TASKS)]
    outer = [name for name in names if name.startswith(_MODULES)]
    found = [name.rpartition(".")[2] for name in (*outer[:1], *inner[-1:])]
    return "/".join(dict.fromkeys(found)).replace("_", "-") or "plan"


def _places(document: Document, message: str) -> Iterator[DataPath]:
    """Where the file has what a message quotes."""
    quoted = {*_QUOTED.findall(message)}
    spec = document.data.get("spec", {})
    yield from (path for path, text in texts(spec, ("spec",)) if text in quoted)
