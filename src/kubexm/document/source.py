"""From the text of a file to plain data that remembers where each part was written.

YAML 1.2, strictly: one document, no tags, no duplicate or merge keys, bounded in size, depth
and aliases. JSON is read the same way. Whatever the bytes are, the only error is
`InvalidFile`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kubexm.common.marks import SourceMark
from kubexm.document import scalars
from kubexm.errors import InvalidFile, Problem

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 48
MAX_NODES = 1_000_000
CORRECT = "correct the places named above; nothing was changed"
_NO_FILE = "<data>"
_NO_TAG = (None, "!")
_MERGE = "<<"
DataPath = tuple[str | int, ...]

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
_UNPRINTABLE_ASCII = r"[^\t\n\r\x20-\x7e]"
"""The same for most files; the whole of it takes long to compile."""
# JSON writes characters beyond the basic plane as two escapes, which YAML does not know.
_ESCAPE = r"(?i)\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|\\."
_HINTS = {
    "mapping values are not allowed": "quote a text that holds a colon and a blank",
    "cannot start any token": "indent with blanks, not tabs; quote a text that starts with @ or `",
    "did not find expected key": "check the indentation: keys of one mapping start in one column",
    "could not find expected ':'": "a key needs a colon and a blank after it",
    "did not find expected '-'": "check the indentation: entries of one list start in one column",
    "unexpected end of stream": "close the quote or bracket",
    "found incompatible YAML document": "leave the %YAML line out",
    "did not find expected ','": "close the bracket, or quote a text with a comma or bracket in it",
    "unknown escape character": "in double quotes a backslash is written twice",
}
_LOOK_AROUND = "check quotes, brackets and indentation around this place"


class Spot(msgspec.Struct):
    """Where a value is written, and its parts; lines and columns count from one."""

    line: int
    column: int
    keys: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    parts: dict[str | int, Spot] = msgspec.field(default_factory=dict)
    block: bool = False
    """Whether it is a text whose lines stand below, after `|` or `>`."""


class Note(msgspec.Struct, frozen=True):
    """Something wrong with the form of a file at a place."""

    mark: SourceMark
    message: str
    hint: str

    @property
    def problem(self) -> Problem:
        return Problem(self.message, str(self.mark), self.hint)


class Words(msgspec.Struct, frozen=True):
    """What words of a file mean, where another program than this one is to read it."""

    plain: Callable[[str], scalars.Scalar]
    """The value of a word without quotes."""
    key: Callable[[str], str]
    """The same of one that is a key."""
    tagged: Callable[[str, str], scalars.Scalar]
    """The value of a word with a tag in front of it."""
    collections: Mapping[str, type]
    """What a tag in front of a mapping or a list may be."""


class Document(msgspec.Struct, frozen=True):
    """The data of a file and the places of all its parts."""

    file: str
    data: Any
    spot: Spot
    directory: Path | None = None
    """What relative paths in the file start from; None if it did not come from a disk."""
    lines: Sequence[str] = ()
    notes: tuple[Note, ...] = ()
    """What is wrong with its form, and can be passed over to see what else is."""

    def at(self, path: Sequence[str | int]) -> SourceMark:
        """Where the value at this path is written, or the nearest thing around it."""
        spot = self._spot(path)
        return SourceMark(self.file, spot.line, spot.column)

    def _spot(self, path: Sequence[str | int]) -> Spot:
        spot = self.spot
        for step in path:
            if (part := spot.parts.get(step)) is None:
                break
            spot = part
        return spot

    def within(self, path: Sequence[str | int], excerpt: str) -> SourceMark:
        """Where a part of the text at this path is written: its own line in a block of lines."""
        spot = self._spot(path)
        if excerpt and spot.block:
            for number, line in enumerate(self.lines[spot.line :], spot.line + 1):
                if (column := line.find(excerpt)) >= 0:
                    return SourceMark(self.file, number, column + 1)
        return SourceMark(self.file, spot.line, spot.column)

    def key_at(self, path: Sequence[str | int]) -> SourceMark:
        """Where the key that ends this path is written."""
        spot = self.spot
        for step in path[:-1]:
            if (part := spot.parts.get(step)) is None:
                return self.at(path)
            spot = part
        place = spot.keys.get(str(path[-1])) if path else None
        return SourceMark(self.file, *place) if place else self.at(path)


def read(path: Path) -> Document:
    """The document in a file."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidFile(
            f"can't read `{path}`: {reason}", hint="give the path of a file with `-f`"
        ) from error
    return parse(content, str(path), path.absolute().parent)


def parse(
    text: str | bytes,
    file: str = "<text>",
    directory: Path | None = None,
    words: Words | None = None,
) -> Document:
    """The document in a text; what can be passed over of its form is noted in it.

    `words`: what is read otherwise than in files of ours, merge keys with it.
    """
    if len(text) > MAX_BYTES:
        raise _refused(file, f"longer than {MAX_BYTES // 2**20} MiB", 1, 1, "split the file")
    decoded = _printable(_decoded(text, file), file)
    if file.endswith(".json"):
        decoded = re.sub(_ESCAPE, _one_escape, decoded)
    builder = _Builder(file, words)
    for event in _events(decoded, file):
        builder.take(event)
    data, spot = builder.finished()
    return Document(file, data, spot, directory, decoded.split("\n"), tuple(builder.notes))


def from_data(data: Any) -> Document:
    """A document of data that came as such, held to the same bounds as a text."""
    waiting: list[tuple[Any, int]] = [(data, 0)]
    for number, (value, depth) in enumerate(waiting, 1):
        if depth > MAX_DEPTH or number > MAX_NODES:
            raise _refused(_NO_FILE, "nested too deep, or too many values", 1, 1, "split it")
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            waiting.extend((part, depth + 1) for part in (*value, *value.values()))
        elif isinstance(value, list):
            waiting.extend((part, depth + 1) for part in value)
        elif not _is_plain(value):
            raise _refused(
                _NO_FILE, f"a {type(value).__name__} that no file can hold", 1, 1, "leave it out"
            )
    return Document(_NO_FILE, data, Spot(1, 1))


def texts(value: Any, path: DataPath) -> Iterator[tuple[DataPath, str]]:
    """Every text in some data, with its place."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping | list | tuple):
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        for inner, part in parts:
            yield from texts(part, (*path, inner))


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" not in value
    if isinstance(value, int):
        return abs(value) < 2**63
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _decoded(text: str | bytes, file: str) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = text[: error.start].decode("utf-8", errors="replace")
        raise _refused(
            file, "not UTF-8 text", *_place(before), "save the file in the UTF-8 encoding"
        ) from error


def _printable(text: str, file: str) -> str:
    found = re.search(_UNPRINTABLE_ASCII if text.isascii() else _UNPRINTABLE, text)
    if found is None:
        return text
    raise _refused(
        file,
        f"control character U+{ord(found[0]):04X}",
        *_place(text[: found.start()]),
        "remove it, or write it as an escape in double quotes",
    )


def _place(before: str) -> tuple[int, int]:
    last = before.rfind("\n")
    return before.count("\n") + 1, len(before) - last


def _one_escape(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[0]
    point = 0x10000 + ((int(found[1], 16) - 0xD800) << 10) + (int(found[2], 16) - 0xDC00)
    return f"\\U{point:08X}"


def _events(text: str, file: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, file) from error


def _syntax_error(error: yaml.MarkedYAMLError, file: str) -> InvalidFile:
    said = error.problem or "unreadable"
    mark = error.problem_mark or error.context_mark
    hint = next((hint for sign, hint in _HINTS.items() if sign in said), _LOOK_AROUND)
    context = f"{error.context}: " if error.context else ""
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return _refused(file, f"not YAML: {context}{said}", line, column, hint)


def _refused(file: str, message: str, line: int, column: int, hint: str) -> InvalidFile:
    problem = Problem(message, str(SourceMark(file, line, column)), hint)
    return InvalidFile(f"`{file}` can't be read", problems=[problem], hint=CORRECT)


class _Frame(msgspec.Struct):
    """A list or mapping that is being read."""

    value: list[Any] | dict[str, Any]
    spot: Spot
    anchor: str | None
    first: int
    height: int = 1
    key: str | None = None
    merges: bool = False
    """Whether the key is one that brings those of other mappings."""


class _Part(msgspec.Struct, frozen=True):
    """A finished value: how many values are in it, and how deep it is."""

    value: Any
    spot: Spot
    size: int = 1
    height: int = 0


class _Builder:
    """Takes the events of the parser one by one; holds a stack, so depth costs no recursion."""

    def __init__(self, file: str, words: Words | None) -> None:
        self._file = file
        self._words = words
        self._plain = scalars.resolve if words is None else words.plain
        self._frames: list[_Frame] = []
        self._anchors: dict[str, _Part | None] = {}
        self._documents: list[tuple[Any, Spot]] = []
        self.notes: list[Note] = []
        self._nodes = 0

    def take(self, event: yaml.Event) -> None:
        mark = event.start_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        match event:
            case yaml.ScalarEvent():
                self._scalar(event, line, column)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event, line, column)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()
            case yaml.AliasEvent():
                self._alias(str(event.anchor), line, column)
            case yaml.DocumentStartEvent() if self._documents:
                raise self._fatal("a second document", line, column, "keep one document per file")

    def finished(self) -> tuple[Any, Spot]:
        """The data and its places."""
        if not self._documents:
            hint = "a file starts with `apiVersion: kubexm.io/v1alpha1`"
            raise self._fatal("the file is empty", 1, 1, hint)
        return self._documents[0]

    def _scalar(self, event: yaml.ScalarEvent, line: int, column: int) -> None:
        if self._awaits_key():
            self._untagged(event.tag, line, column)
            self._key(event, line, column)
            return
        value: scalars.Scalar = event.value
        if "\0" in event.value:
            self._note("a text with a zero byte in it", line, column, "no host can take it")
        try:
            value = self._value(event, line, column)
        except scalars.Ambiguous as error:
            self._note(str(error), line, column, error.hint)
        block = event.style in ("|", ">")
        self._put(_Part(value, Spot(line, column, block=block)), event.anchor)

    def _value(self, event: yaml.ScalarEvent, line: int, column: int) -> scalars.Scalar:
        word: str = event.value
        if event.implicit[0]:
            return self._plain(word)
        if self._words is not None and event.tag not in _NO_TAG:
            return self._words.tagged(event.tag, word)
        self._untagged(event.tag, line, column)
        return word

    def _open(self, event: yaml.CollectionStartEvent, line: int, column: int) -> None:
        value: list[Any] | dict[str, Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        if self._words is None or self._words.collections.get(event.tag or "") is not type(value):
            self._untagged(event.tag, line, column)
        if self._awaits_key():
            raise self._fatal("a key that is no text", line, column, "keys are words")
        self._bounded(len(self._frames) + 1, line, column)
        if event.anchor:
            # Until it is closed an alias to it would be a loop.
            self._anchors[event.anchor] = None
        self._frames.append(_Frame(value, Spot(line, column), event.anchor, self._nodes))

    def _close(self) -> None:
        frame = self._frames.pop()
        size = 1 + self._nodes - frame.first
        self._nodes = frame.first
        self._put(_Part(frame.value, frame.spot, size, frame.height), frame.anchor)

    def _alias(self, anchor: str, line: int, column: int) -> None:
        if self._awaits_key():
            raise self._fatal("an alias as a key", line, column, "write the key out")
        if anchor not in self._anchors:
            raise self._fatal(
                f"unknown alias `*{anchor}`", line, column, "define the anchor before"
            )
        if (known := self._anchors[anchor]) is None:
            raise self._fatal(f"`*{anchor}` holds itself", line, column, "write the part out")
        # Aliases of aliases would else grow without bound.
        self._bounded(len(self._frames) + known.height, line, column)
        self._put(known, None)

    def _awaits_key(self) -> bool:
        if not self._frames:
            return False
        frame = self._frames[-1]
        return frame.key is None and isinstance(frame.value, dict)

    def _key(self, event: yaml.ScalarEvent, line: int, column: int) -> None:
        frame, key = self._frames[-1], event.value
        if self._words is not None:
            frame.merges = key == _MERGE and event.implicit[0]
            self._read_as_text(event, line, column)
        elif key == _MERGE:
            self._note("merge keys are not part of YAML 1.2", line, column, "write the keys out")
        if first := frame.spot.keys.get(key):
            hint = f"it is first written in line {first[0]}"
            self._note(f"the key `{key}` is there twice", line, column, hint)
        frame.spot.keys.setdefault(key, (line, column))
        frame.key = key

    def _read_as_text(self, event: yaml.ScalarEvent, line: int, column: int) -> None:
        try:
            if self._words is not None and event.implicit[0]:
                self._words.key(event.value)
        except scalars.Ambiguous as error:
            self._note(str(error), line, column, error.hint)

    def _put(self, part: _Part, anchor: str | None) -> None:
        self._nodes += part.size
        if self._nodes > MAX_NODES:
            place = part.spot.line, part.spot.column
            raise self._fatal(f"more than {MAX_NODES} values", *place, "split the file")
        if anchor:
            self._anchors[anchor] = part
        if not self._frames:
            self._documents.append((part.value, part.spot))
            return
        frame = self._frames[-1]
        frame.height = max(frame.height, part.height + 1)
        if isinstance(frame.value, list):
            frame.spot.parts[len(frame.value)] = part.spot
            frame.value.append(part.value)
        elif frame.merges:
            self._merge(frame, frame.value, part)
        elif frame.key is not None:
            frame.value[frame.key] = part.value
            frame.spot.parts[frame.key] = part.spot
            frame.key = None

    def _merge(self, frame: _Frame, into: dict[str, Any], part: _Part) -> None:
        """Take over the keys of a mapping, or of several, of which the first come first."""
        frame.merges, frame.key = False, None
        found = part.value if isinstance(part.value, list) else [part.value]
        if not all(isinstance(one, dict) for one in found):
            self._note_at(part.spot, "`<<` with what is no mapping", "name a mapping by `*`")
            return
        new = {key: value for one in reversed(found) for key, value in one.items()}
        # Some let the keys written out win, some what comes last.
        if twice := next((key for key in into if key in new), None):
            message = f"`<<` brings `{twice}` again, which stands before it"
            self._note_at(part.spot, message, "write `<<` before the other keys")
        into.update(new)

    def _bounded(self, depth: int, line: int, column: int) -> None:
        if depth > MAX_DEPTH:
            raise self._fatal(f"nested deeper than {MAX_DEPTH} levels", line, column, "flatten it")

    def _untagged(self, tag: str | None, line: int, column: int) -> None:
        if tag not in _NO_TAG:
            self._note(f"the tag `{tag}`", line, column, "leave tags out: values are plain data")

    def _note_at(self, spot: Spot, message: str, hint: str) -> None:
        self._note(message, spot.line, spot.column, hint)

    def _note(self, message: str, line: int, column: int, hint: str) -> None:
        place = SourceMark(self._file, line, column)
        self.notes.append(Note(place, message, hint))

    def _fatal(self, message: str, line: int, column: int, hint: str) -> InvalidFile:
        self._note(message, line, column, hint)
        problems = [note.problem for note in self.notes]
        return InvalidFile(f"`{self._file}` can't be read", problems=problems, hint=CORRECT)
