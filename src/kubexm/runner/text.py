"""Text of files as pure functions: blocks and lines of ours in files of others, and diffs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from itertools import groupby

from kubexm.common.counting import counted
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


def split(text: str) -> Lines:
    """The lines of a text, each without its newline."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def joined(lines: Sequence[str], final_newline: bool = True) -> str:
    """The text of lines; its last one may lack a newline."""
    return "\n".join(lines) + ("\n" if lines and final_newline else "")


def ends_its_last_line(text: str) -> bool:
    """Whether there is a newline at the end of the last line, if there is a line."""
    return not text or text.endswith("\n")


def with_block(text: str, name: str, body: str, comment: str = "#") -> str:
    """The text with the block in its place, or at the end."""
    begin, end = markers(name, comment)
    block = [begin, *split(body), end]
    lines = split(text)
    if (span := _span(lines, name, comment)) is None:
        return joined([*lines, *block])
    lines[slice(*span)] = block
    return joined(lines, ends_its_last_line(text))


def block_lines(text: str, name: str, comment: str = "#") -> Lines:
    """The lines of a block with its marks; none if it is not there."""
    lines = split(text)
    span = _span(lines, name, comment)
    return [] if span is None else lines[slice(*span)]


def replaced_block(text: str, name: str, block: Sequence[str], comment: str = "#") -> str:
    """The text with other lines in place of the block, marks and all."""
    lines = split(text)
    if (span := _span(lines, name, comment)) is None:
        return text
    at_the_end = span[1] == len(lines)
    lines[slice(*span)] = block
    return joined(lines, ends_its_last_line(text) or (at_the_end and not block))


def with_line(text: str, line: str, match: str = "") -> tuple[str, Taken]:
    """The text with the line, and the lines that gave way to it: all that match.

    The line stays where it is, or goes where the first of them was, or to the end.
    """
    lines = split(text)
    places = _places(lines, line, match)
    if not places:
        return joined([*lines, line]), []
    there = [place for place in places if lines[place] == line]
    keep = (there or places)[0]
    taken = [(place, lines[place]) for place in places if place != keep or not there]
    lines[keep] = line
    return _without(lines, set(places) - {keep}, ends_its_last_line(text)), taken


def without_lines(text: str, line: str, match: str = "") -> tuple[str, Taken]:
    """The text without the line and all that match, and the lines taken out."""
    lines = split(text)
    taken = [(place, lines[place]) for place in _places(lines, line, match)]
    return _without(lines, {place for place, _ in taken}, ends_its_last_line(text)), taken


def lines_of(text: str, line: str, match: str = "") -> Taken:
    """The line and all that match, each with its place."""
    lines = split(text)
    return [(place, lines[place]) for place in _places(lines, line, match)]


def with_lines(text: str, line: str, match: str, others: Taken) -> str:
    """The text with other lines, each in its place, for the line and all that match."""
    bare, _ = without_lines(text, line, match)
    lines = split(bare)
    for place, other in sorted(others):
        lines.insert(place, other)
    return joined(lines, ends_its_last_line(text))


def diff(path: str, old: bytes | None, new: bytes | None) -> str:
    """A unified diff; None stands for no file. What is not text is only said to differ."""
    before, after = _lines_to_show(old), _lines_to_show(new)
    if before is None or after is None:
        return f"binary content of {path} differs\n"
    if len(before) + len(after) > _LONGEST_DIFF:
        return f"{path}: {len(before)} lines become {len(after)} lines\n"
    if old is None:
        # Nothing to compare: most diffs are of new files, on many hosts.
        head = f"--- /dev/null\n+++ {path}\n@@ -0,0 +1{_count(after)} @@\n"
        return head + "".join(_shown(f"+{line}") for line in after) if after else ""
    target = "/dev/null" if new is None else path
    return "".join(map(_shown, unified_diff(before, after, path, target)))


def additions(path: str, old: bytes, new: bytes) -> str:
    """The same without a line of what is there, which is not for everyone."""
    before, after = _lines_to_show(old), _lines_to_show(new)
    if before is None or after is None or len(before) + len(after) > _LONGEST_DIFF:
        return diff(path, old, new)
    head, *lines = unified_diff(before, after, path, path, n=0)
    return head + "".join(_shown(line) for line in _covered(lines))


def _covered(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a diff, with a word in place of those that go."""
    for goes, some in groupby(lines, lambda line: line[0] == "-"):
        if goes:
            yield f"-({counted(len(list(some)), 'line')}, not shown: the file is private)\n"
        else:
            yield from some


def _shown(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _count(lines: Sequence[str]) -> str:
    return "" if len(lines) == 1 else f",{len(lines)}"


def _lines_to_show(data: bytes | None) -> list[str] | None:
    if data is None:
        return []
    if b"\0" in data:
        return None
    text = data.decode(errors="replace")
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _span(lines: Sequence[str], name: str, comment: str) -> tuple[int, int] | None:
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


def _without(lines: Sequence[str], gone: set[int], final_newline: bool) -> str:
    kept = [found for place, found in enumerate(lines) if place not in gone]
    # A last line without a newline that goes leaves lines that all had one.
    return joined(kept, final_newline or len(lines) - 1 in gone)


def _places(lines: Sequence[str], line: str, match: str) -> list[int]:
    """The lines that are the wanted one or match."""
    wanted = re.compile(match) if match else None
    return [
        place
        for place, found in enumerate(lines)
        if found == line or (wanted is not None and wanted.search(found))
    ]
