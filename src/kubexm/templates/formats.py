"""The formats of files: read to see that they are whole, and written again after a change.

Only what can be told without the program that reads the file: whether it is YAML, TOML, JSON, or
has the syntax of a unit; not whether a setting is known there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from kubexm.document import foreign, source, writing
from kubexm.document.source import Document
from kubexm.errors import InvalidFile, InvalidInput, Problem
from kubexm.templates import lines
from kubexm.templates.context import STRUCTURED, Format

_DOCUMENT_START = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_FILE = "text"


def parsed(text: str, form: Format) -> Any:
    """The data in a text: a mapping, or a list of them for `manifests`; `InvalidInput` if it is
    none."""
    data = _READERS[form](text)
    for part in data if form == "manifests" else [data]:
        if not isinstance(part, dict):
            raise InvalidInput(f"found {type(part).__name__}, want a mapping at the top")
    return data


def documents(text: str) -> list[Any]:
    """The YAML documents of a text, those that hold nothing left out; lines keep their numbers.

    They are read as kubectl reads them.
    """
    # A line that begins with `---` is the start of a document whatever stands around it.
    starts = [0, *(found.end() for found in _DOCUMENT_START.finditer(text))]
    ends = [*(found.start() for found in _DOCUMENT_START.finditer(text)), len(text)]
    parts = [
        "\n" * text.count("\n", 0, start) + text[start:end]
        for start, end in zip(starts, ends, strict=True)
    ]
    return [_of(foreign.parse, part) for part in parts if says_something(part)]


def written(data: Any, form: Format) -> str:
    """Data as the text of a file."""
    return _WRITERS[form](data)


def check(text: str, form: Format) -> None:
    """`InvalidInput`, with its line, if a text is no file of this format."""
    if form in STRUCTURED:
        parsed(text, form)
    elif form in _CHECKS:
        _CHECKS[form](text)


def says_something(text: str) -> bool:
    """Whether there is more than blanks and comments."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.split("\n"))


def _yaml(text: str) -> Any:
    return _of(source.parse, text)


def _of(parse: Callable[[str, str], Document], text: str) -> Any:
    try:
        found = parse(text, _FILE)
    except InvalidFile as error:
        raise _refused(error.problems[0]) from error
    if found.notes:
        raise _refused(found.notes[0].problem)
    return found.data


def _refused(problem: Problem) -> InvalidInput:
    line = problem.where.split(":")[1]
    return InvalidInput(problem.message, where=f"line {line}", hint=problem.hint)


def _written_manifests(some: list[Any]) -> str:
    return "---\n".join(map(writing.dumped, some))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"not JSON: {error.msg}", where=f"line {error.lineno}") from error


def _written_json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _toml(text: str) -> Any:
    import tomllib  # noqa: PLC0415 few files are

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|(end of document))\)", str(error))
        message, line = (said[1], said[2] or said[3]) if said else (str(error), "")
        where = f"line {line}" if line.isdecimal() else line
        raise InvalidInput(f"not TOML: {message[:1].lower()}{message[1:]}", where=where) from error


def _written_toml(data: Any) -> str:
    import tomli_w  # noqa: PLC0415

    try:
        return tomli_w.dumps(data)
    except TypeError as error:  # a `null`, as nothing else of a file
        said = "found `null` in a list, which TOML does not have"
        raise InvalidInput(said, hint="write a value, or leave it out") from error


_READERS: Mapping[str, Callable[[str], Any]] = {
    "yaml": _yaml,
    "manifests": documents,
    "json": _json,
    "toml": _toml,
}
_WRITERS: Mapping[str, Callable[[Any], str]] = {
    "yaml": writing.dumped,
    "manifests": _written_manifests,
    "json": _written_json,
    "toml": _written_toml,
}
_CHECKS: Mapping[str, Callable[[str], None]] = {
    "unit": lines.check_unit,
    "env": lines.check_environment,
    "script": lines.check_script,
    "nginx": lines.check_braces,
    "keepalived": lines.check_braces,
}
