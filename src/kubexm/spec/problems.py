"""Errors of validation in the words of the file: place, path, found, wanted, remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from kubexm.common.marks import SourceMark
from kubexm.common.nearest import did_you_mean, nearest
from kubexm.errors import InvalidPipeline, Problem
from kubexm.spec import parameters, shapes
from kubexm.spec.fields import Finding, shown, written_path
from kubexm.spec.forms import Form, Kind, Mistake
from kubexm.spec.model import KIND_KEY, PARAMS_KEY, PipelineSpec, StepFields, kind_key
from kubexm.spec.source import CORRECT, DataPath, Document, Note
from kubexm.step import registry

_WANTED: Mapping[Kind, tuple[str, str]] = {
    "text": ("text", "put it in quotes"),
    "whole number": ("a whole number", "write a number, without quotes"),
    "number": ("a number", "write a number, without quotes"),
    "flag": ("`true` or `false`", "write one of them, without quotes"),
    "mapping": ("a mapping", "write `key: value` pairs"),
    "list": ("a list", "write `[a, b]`, or one `- entry` per line"),
}
_SEE = "see docs/reference/pipeline-file.md, which describes every key"
_BOUNDS: Mapping[Kind, tuple[str, str]] = {
    "least": ("at least", "more"),
    "most": ("at most", "less"),
}
_FIRST_ENTRIES = {
    "modules": "write a module, such as `- {name: NAME, tasks: [{name: NAME, steps: […]}]}`",
    "tasks": "write a task, such as `- {name: NAME, steps: [{name: NAME, command: {…}}]}`",
    "steps": "write a step, such as `- {name: NAME, command: {argv: [COMMAND]}}`",
}
"""What to write into a list that can neither be empty nor left out."""


def placed(findings: Iterable[Finding], document: Document) -> list[Problem]:
    """Findings with their places, each once, in the order of the file."""
    marked = {(_mark(finding, document), finding) for finding in findings}
    noted = {note.mark for note in document.notes}
    notes = {
        Note(mark, _with_path(finding.path, finding.message), finding.hint or _SEE)
        for mark, finding in marked
        if mark not in noted
    }
    ordered = sorted(
        {*notes, *document.notes},
        key=lambda note: (note.mark.line, note.mark.column, note.message),
    )
    return [note.problem for note in ordered]


def refusal(
    document: Document, said: str, found: Sequence[Problem], *, is_all: bool
) -> InvalidPipeline:
    """The error with these problems; it says so if there may be more behind them."""
    hint = CORRECT if is_all else f"{CORRECT}; more may be found when these are mended"
    return InvalidPipeline(f"`{document.file}` {said}", problems=found, hint=hint)


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


def _mark(finding: Finding, document: Document) -> SourceMark:
    if finding.at_key:
        return document.key_at(finding.path)
    return document.within(finding.path, finding.excerpt)


def _with_path(path: DataPath, message: str) -> str:
    return f"{written_path(path)}: {message}" if path else message


def _finding(mistake: Mistake, data: Any) -> Finding:
    path, at_key = mistake.path, mistake.at_key
    if mistake.kind == "said":
        return Finding(path, str(mistake.wanted), mistake.wanted.hint, at_key)
    if mistake.kind == "missing":
        return _missing(path)
    if mistake.kind == "unknown key":
        return _unknown_key(path, data)
    if path[-1:] == (PARAMS_KEY,):
        path = (*path[:-1], _kind_at(path[:-1], data))
    return Finding(path, *_found_and_wanted(mistake), at_key)


def _missing(path: DataPath) -> Finding:
    if path[-1] == KIND_KEY:
        return Finding(path[:-1], "no kind of step", did_you_mean("", registry.kinds()))
    field = next(f for f in _form_at(path[:-1]).fields().values() if f.alias == path[-1])
    words = get_args(field.annotation)
    value = words[0] if get_origin(field.annotation) is Literal else "…"
    return Finding(path[:-1], f"`{path[-1]}` is missing", f"add `{path[-1]}: {value}`")


def _unknown_key(path: DataPath, data: Any) -> Finding:
    key = str(path[-1])
    form = _form_at(path[:-1])
    known = [field.alias for field in form.fields().values() if "\0" not in field.alias]
    if issubclass(form, StepFields):
        if key in registry.kinds():
            first = _kind_at(path[:-1], data)
            return Finding(path, f"both `{first}` and `{key}`", "make two steps of it", at_key=True)
        known.extend(registry.kinds())
        if (kind := _kind_at(path[:-1], data)) and key in parameters.parameters_of(kind):
            hint = f"indent it below `{kind}`: it is a parameter of that"
            return Finding(path, f"unknown key `{key}`", hint, at_key=True)
    return Finding(path, f"unknown key `{key}`", did_you_mean(key, known), at_key=True)


def _found_and_wanted(mistake: Mistake) -> tuple[str, str]:
    kind, value = mistake.kind, mistake.value
    if kind == "word":
        return _not_one_of(value, mistake.wanted)
    if kind in _BOUNDS:
        words, beyond = _BOUNDS[kind]
        bound = shapes.number(mistake.wanted)
        return f"found {shown(value)}, want {words} {bound}", f"write {bound} or {beyond}"
    if kind == "empty list":
        hint = _FIRST_ENTRIES.get(str(mistake.path[-1]), "fill it or leave it out")
        return "found an empty list", hint
    if kind == "empty text":
        return "found an empty text", "fill it or leave it out"
    wanted, hint = _WANTED[kind]
    return f"found {shown(value)}, want {wanted}", hint


def _not_one_of(value: Any, words: Sequence[str]) -> tuple[str, str]:
    wanted = " or ".join(f"`{word}`" for word in words)
    match = nearest(value, words) if isinstance(value, str) else None
    hint = f"did you mean `{match}`?" if match else f"write {wanted}"
    return f"found {shown(value)}, want {wanted}", hint


def _kind_at(path: DataPath, data: Any) -> str:
    for part in path:
        data = data[part]
    return kind_key(data) or ""


def _form_at(path: DataPath) -> type[Form]:
    """The form that describes the mapping at this path."""
    here: Any = PipelineSpec
    for part in path:
        if isinstance(part, str) and isinstance(here, type) and issubclass(here, Form):
            here = next(field.annotation for field in here.fields().values() if field.alias == part)
        else:
            # An index of a list, or a key of a mapping: the last argument is what it holds.
            here = next(arg for arg in reversed(get_args(here)) if arg is not Ellipsis)
        here = _bare(here)
    return here  # type: ignore[no-any-return]  # only forms have keys to be unknown


def _bare(annotation: Any) -> Any:
    """The annotation without `| None` and without what is annotated to it."""
    while True:
        arguments = get_args(annotation)
        if NoneType in arguments:
            annotation = next(argument for argument in arguments if argument is not NoneType)
        elif hasattr(annotation, "__metadata__"):
            annotation = arguments[0]
        else:
            return annotation
