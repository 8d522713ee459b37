"""Text of files as pure functions: blocks and lines of ours in files of others, and diffs.

A text is a list of lines here; one that ends with a newline has an empty last line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import unified_diff

from kubexm.errors import StepFailed

Lines = list[str]
Taken = list[tuple[int, str]]
"""Lines that were taken out, each with the place it had."""

_LONGEST_DIFF = 2000


def decoded(data: bytes) -> str:
    """Text whose bytes can be had back exactly, whatever they are."""
    return data.decode(errors="surrogateescape")


def encoded(text: str) -> bytes:
    """The bytes of a text from `decoded`."""
    return text.encode(errors="surrogateescape")


def markers(name: str, comment: str) -> tuple[str, str]:
    """The lines before and after a block of ours."""
    return f"{comment} BEGIN kubexm: {name}", f"{comment} END kubexm: {name}"


def block_span(lines: Sequence[str], name: str, comment: str) -> tuple[int, int] | None:
    """Where a block begins, and where what follows it begins; None if there is none."""
    begin, end = markers(name, comment)
    if begin not in lines:
        return None
    first = lines.index(begin)
    if end not in lines[first:]:
        raise StepFailed(
            f"block `{name}` begins in line {first + 1} and does not end",
            hint=f"add the line `{end}` after it, or remove the line `{begin}`",
        )
    return first, lines.index(end, first) + 1


def with_block(text: str, name: str, body: str, comment: str = "#") -> str:
    """The text with the block in its place, or at the end."""
    begin, end = markers(name, comment)
    block = [begin, *body.removesuffix("\n").split("\n"), end] if body else [begin, end]
    lines = text.split("\n")
    span = block_span(lines, name, comment)
    if span is None:
        return "\n".join(_appended(lines, block))
    return "\n".join((*lines[: span[0]], *block, *lines[span[1] :]))


def without_block(text: str, name: str, comment: str = "#") -> str:
    """The text without the block."""
    lines = text.split("\n")
    if (span := block_span(lines, name, comment)) is not None:
        del lines[span[0] : span[1]]
    return "\n".join(lines)


def block_lines(text: str, name: str, comment: str = "#") -> Taken:
    """The lines of a block with their places; none if it is not there."""
    lines = text.split("\n")
    span = block_span(lines, name, comment)
    return [] if span is None else [(place, lines[place]) for place in range(*span)]


def with_line(text: str, line: str, match: str = "") -> tuple[str, Taken]:
    """The text with the line, and the lines it stands for: all that match give way to it.

    The line goes where the first of them was, or to the end.
    """
    lines = text.split("\n")
    places = _places(lines, line, match)
    if line in (lines[place] for place in places):
        keep = next(place for place in places if lines[place] == line)
    else:
        keep = places[0] if places else -1
    taken = [(place, lines[place]) for place in places if place != keep or lines[place] != line]
    if keep < 0:
        return "\n".join(_appended(lines, [line])), []
    lines[keep] = line
    gone = set(places) - {keep}
    return "\n".join(text for place, text in enumerate(lines) if place not in gone), taken


def without_lines(text: str, line: str, match: str = "") -> tuple[str, Taken]:
    """The text without the line and all that match, and the lines taken out."""
    lines = text.split("\n")
    taken = [(place, lines[place]) for place in _places(lines, line, match)]
    gone = {place for place, _ in taken}
    return "\n".join(text for place, text in enumerate(lines) if place not in gone), taken


def reinserted(text: str, taken: Taken) -> str:
    """The text with lines back where they were, unless they are there already."""
    lines = text.split("\n")
    for place, line in sorted(taken):
        if lines[place : place + 1] != [line]:
            lines.insert(place, line)
    return "\n".join(lines)


def removed_line(text: str, line: str) -> str:
    """The text without the last line that says exactly this."""
    lines = text.split("\n")
    if line in lines:
        del lines[len(lines) - 1 - lines[::-1].index(line)]
    return "\n".join(lines)


def diff(path: str, old: bytes | None, new: bytes | None) -> str:
    """A unified diff; None stands for no file. What is not text is only said to differ."""
    before, after = _lines_to_show(old), _lines_to_show(new)
    if before is None or after is None:
        return f"binary content of {path} differs\n"
    if len(before) + len(after) > _LONGEST_DIFF:
        return f"{path}: {len(before)} lines become {len(after)} lines\n"
    names = ("/dev/null" if old is None else path, "/dev/null" if new is None else path)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in unified_diff(before, after, *names)
    )


def _lines_to_show(data: bytes | None) -> list[str] | None:
    if data is None:
        return []
    if b"\0" in data:
        return None
    text = data.decode(errors="replace")
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _places(lines: Sequence[str], line: str, match: str) -> list[int]:
    """The lines that are the wanted one or match; the empty rest of the last is none."""
    wanted = re.compile(match) if match else None
    last = len(lines) - 1
    return [
        place
        for place, found in enumerate(lines)
        if not (place == last and not found)
        and (found == line or (wanted is not None and wanted.search(found)))
    ]


def _appended(lines: Lines, more: Lines) -> Lines:
    if lines[-1] == "":
        return [*lines[:-1], *more, ""]
    return [*lines, *more, ""]
