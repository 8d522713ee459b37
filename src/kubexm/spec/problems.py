"""What is wrong with a pipeline file, where steps have keys of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from kubexm.common.nearest import did_you_mean
from kubexm.document import problems
from kubexm.document.findings import Finding
from kubexm.document.forms import Mistake
from kubexm.document.source import DataPath, Document
from kubexm.errors import InvalidPipeline, Problem
from kubexm.spec import parameters
from kubexm.spec.model import KIND_KEY, PARAMS_KEY, PipelineSpec, StepFields, kind_key
from kubexm.step import registry

_SEE = "see docs/reference/pipeline-file.md, which describes every key"
_FIRST_ENTRIES = {
    "modules": "write a module, such as `- {name: NAME, tasks: [{name: NAME, steps: […]}]}`",
    "tasks": "write a task, such as `- {name: NAME, steps: [{name: NAME, command: {…}}]}`",
    "steps": "write a step, such as `- {name: NAME, command: {argv: [COMMAND]}}`",
}
"""What to write into a list that can neither be empty nor left out."""


def placed(findings: Iterable[Finding], document: Document) -> list[Problem]:
    """Findings with their places, each once, in the order of the file."""
    return problems.placed(findings, document, _SEE)


def refusal(
    document: Document, said: str, found: Sequence[Problem], *, is_all: bool
) -> InvalidPipeline:
    """The error with these problems; it says so if there may be more behind them."""
    return problems.refusal(InvalidPipeline, document, said, found, is_all=is_all)


def of_form(mistakes: Sequence[Mistake], data: Any) -> list[Finding]:
    """Everything that does not fit as a finding in this data."""
    misspelt = {
        mistake.path[:-1]
        for mistake in mistakes
        if mistake.kind == "unknown key" and mistake.path[-1] not in registry.kinds()
    }
    return [_finding(mistake, data) for mistake in mistakes if not _follows(mistake, misspelt)]


def _follows(mistake: Mistake, misspelt: set[DataPath]) -> bool:
    """Whether a mistake only repeats what another one says better."""
    *place, key = mistake.path or ("",)
    if mistake.kind != "missing":
        return False
    return key == PARAMS_KEY or (key == KIND_KEY and tuple(place) in misspelt)


def _finding(mistake: Mistake, data: Any) -> Finding:
    path = mistake.path
    if mistake.kind == "missing" and path[-1] == KIND_KEY:
        return Finding(path[:-1], "no kind of step", did_you_mean("", registry.kinds()))
    if mistake.kind == "unknown key" and issubclass(_form_at(path[:-1]), StepFields):
        return _unknown_to_a_step(path, data)
    if path[-1:] == (PARAMS_KEY,):
        mistake = replace(mistake, path=(*path[:-1], _kind_at(path[:-1], data)))
    found = problems.finding_of(mistake, PipelineSpec)
    if mistake.kind == "empty list" and path[-1] in _FIRST_ENTRIES:
        return replace(found, hint=_FIRST_ENTRIES[str(path[-1])])
    return found


def _form_at(path: DataPath) -> type:
    return problems.form_at(path, PipelineSpec)


def _unknown_to_a_step(path: DataPath, data: Any) -> Finding:
    key, kind = str(path[-1]), _kind_at(path[:-1], data)
    if key in registry.kinds():
        return Finding(path, f"both `{kind}` and `{key}`", "make two steps of it", at_key=True)
    if kind and key in parameters.parameters_of(kind):
        hint = f"indent it below `{kind}`: it is a parameter of that"
        return Finding(path, f"unknown key `{key}`", hint, at_key=True)
    known = [*problems.keys_at(path[:-1], PipelineSpec), *registry.kinds()]
    return problems.unknown_key(path, known)


def _kind_at(path: DataPath, data: Any) -> str:
    for part in path:
        data = data[part]
    return kind_key(data) or ""
