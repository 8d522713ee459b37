"""Errors of validation in the words of the file: place, path, found, wanted, remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

from kubexm.common.marks import SourceMark
from kubexm.common.nearest import did_you_mean, nearest
from kubexm.document.findings import Finding, plain_number, shown, written_path
from kubexm.document.forms import Form, Kind, Mistake
from kubexm.document.source import CORRECT, DataPath, Document, Note
from kubexm.errors import InvalidFile, Problem

_WANTED: Mapping[Kind, tuple[str, str]] = {
    "text": ("text", "put it in quotes"),
    "whole number": ("a whole number", "write a number, without quotes"),
    "number": ("a number", "write a number, without quotes"),
    "flag": ("`true` or `false`", "write one of them, without quotes"),
    "mapping": ("a mapping", "write `key: value` pairs"),
    "list": ("a list", "write `[a, b]`, or one `- entry` per line"),
}
_EMPTY = "fill it or leave it out"
_BOUNDS: Mapping[Kind, tuple[str, str]] = {
    "least": ("at least", "more"),
    "most": ("at most", "less"),
}
_Refusal = TypeVar("_Refusal", bound=InvalidFile)


def placed(findings: Iterable[Finding], document: Document, otherwise: str) -> list[Problem]:
    """Findings with their places, each once, in the order of the file.

    `otherwise` is the hint of those that have none.
    """
    marked = {(_mark(finding, document), finding) for finding in findings}
    noted = {note.mark for note in document.notes}
    notes = {
        Note(mark, _with_path(finding.path, finding.message), finding.hint or otherwise)
        for mark, finding in marked
        if mark not in noted
    }
    ordered = sorted(
        {*notes, *document.notes},
        key=lambda note: (note.mark.line, note.mark.column, note.message),
    )
    return [note.problem for note in ordered]


def refusal(
    error: type[_Refusal], document: Document, said: str, found: Sequence[Problem], *, is_all: bool
) -> _Refusal:
    """The error with these problems; it says so if there may be more behind them."""
    hint = CORRECT if is_all else f"{CORRECT}; more may be found when these are mended"
    return error(f"`{document.file}` {said}", problems=found, hint=hint)


def other_kind(document: Document, wanted: str, others: Mapping[str, str]) -> Finding | None:
    """That a file is of another kind than was asked for, of which nothing else need be told.

    `others`: the kinds there are, and what to do with a file of each.
    """
    kind = document.data.get("kind") if isinstance(document.data, Mapping) else None
    if not isinstance(kind, str) or kind not in others:
        return None
    return Finding(("kind",), f"found a file of the kind `{kind}`, want `{wanted}`", others[kind])


def finding_of(mistake: Mistake, form: type[Form]) -> Finding:
    """What does not fit as a finding in the data of this form."""
    if mistake.kind == "said":
        return Finding(mistake.path, str(mistake.wanted), mistake.wanted.hint, mistake.at_key)
    if mistake.kind == "missing":
        return _missing(mistake.path, form)
    if mistake.kind == "unknown key":
        return unknown_key(mistake.path, keys_at(mistake.path[:-1], form))
    return Finding(mistake.path, *_found_and_wanted(mistake), mistake.at_key)


def unknown_key(path: DataPath, known: Sequence[str]) -> Finding:
    """A key that is none of those that are known."""
    key = str(path[-1])
    return Finding(path, f"unknown key `{key}`", did_you_mean(key, known), at_key=True)


def keys_at(path: DataPath, form: type[Form]) -> list[str]:
    """What may be written in the mapping at this path of a file of this form."""
    fields = form_at(path, form).fields().values()
    return [field.alias for field in fields if "\0" not in field.alias]


def form_at(path: DataPath, form: type[Form]) -> type[Form]:
    """The form that describes the mapping at this path of a file of this form."""
    here: Any = form
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


def _mark(finding: Finding, document: Document) -> SourceMark:
    if finding.at_key:
        return document.key_at(finding.path)
    return document.within(finding.path, finding.excerpt)


def _with_path(path: DataPath, message: str) -> str:
    return f"{written_path(path)}: {message}" if path else message


def _missing(path: DataPath, form: type[Form]) -> Finding:
    fields = form_at(path[:-1], form).fields().values()
    field = next(field for field in fields if field.alias == path[-1])
    words = get_args(field.annotation)
    value = words[0] if get_origin(field.annotation) is Literal else "…"
    return Finding(path[:-1], f"`{path[-1]}` is missing", f"add `{path[-1]}: {value}`")


def _found_and_wanted(mistake: Mistake) -> tuple[str, str]:
    kind, value = mistake.kind, mistake.value
    if kind == "word":
        return _not_one_of(value, mistake.wanted)
    if kind in _BOUNDS:
        words, beyond = _BOUNDS[kind]
        bound = plain_number(mistake.wanted)
        return f"found {shown(value)}, want {words} {bound}", f"write {bound} or {beyond}"
    if kind in ("empty list", "empty text"):
        return f"found an {kind}", _EMPTY
    wanted, hint = _WANTED[kind]
    if kind == "text" and value is None:
        hint = _EMPTY
    elif kind == "text" and isinstance(value, list | tuple | dict):
        hint = "write one text, and no list or mapping"
    return f"found {shown(value)}, want {wanted}", hint


def _not_one_of(value: Any, words: Sequence[str]) -> tuple[str, str]:
    wanted = " or ".join(f"`{word}`" for word in words)
    match = nearest(value, words) if isinstance(value, str) else None
    hint = f"did you mean `{match}`?" if match else f"write {wanted}"
    return f"found {shown(value)}, want {wanted}", hint
