"""What a script of ours has printed: lines of `NAME:TEXT`, and sections that begin with `@NAME`.

A bare `@` ends a section.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Lines = dict[str, list[str]]


def told(texts: Iterable[str]) -> tuple[Lines, Lines]:
    """Lines by their name, and those of each section."""
    named: Lines = {}
    sections: Lines = {}
    for text in texts:
        section = ""
        for line in text.splitlines():
            if line.startswith("@"):
                section = line[1:]
            elif section:
                sections.setdefault(section, []).append(line)
            else:
                name, _, rest = line.partition(":")
                named.setdefault(name, []).append(rest)
    return named, sections


def first(lines: Mapping[str, Sequence[str]], name: str) -> str:
    """The first line of a name; nothing if there is none."""
    return next(iter(lines.get(name, ())), "")
