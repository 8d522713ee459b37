"""What is told of a failure: its cause and the remedy as far as they are known, then evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from kubexm.runner import symptoms
from kubexm.runner.symptoms import Symptom

_MOST_LINES = 8
_FEW_LINES = 3
_WIDEST = 600
_STAMP = re.compile(r"^[IWEF]\d{4} [\d:.]+ +\d+ ")
"""How lines of Kubernetes begin: level, date, time and process."""
_QUIET = re.compile(
    r"^[ID]\d{4} |\blevel\W{1,3}(info|debug|trace)"
    r"|failed to load cni during init|failed check for fsverity|modprobe: FATAL: Module overlay "
)
"""Lines that say of themselves that nothing is wrong, and what containerd always says at first."""
_COMPLAINT = re.compile(
    r"^[EF]\d{4} |\blevel\W{1,3}(error|fatal|panic)|^panic:"
    r"|(?i:error|fail|refused|denied|fatal|alert|emerg)"
)
_NUMBER = re.compile(r"\b[0-9a-f]{8,}\b|\d+")


class Section(msgspec.Struct, frozen=True):
    """Lines of one origin."""

    title: str
    lines: Sequence[str]


def report(sections: Iterable[Section]) -> str:
    """Cause and remedy, then each section that has anything to say."""
    found = [section for section in sections if section.lines]
    lines = symptoms.told(line for section in found for line in section.lines)
    for section in found:
        lines += [f"{section.title}:", *(f"  {_narrowed(line)}" for line in section.lines)]
    return "\n".join(lines)


def complaints(lines: Iterable[str], *, or_last: bool = True) -> list[str]:
    """What a program complained of last, each once; or a few of its last lines, if it did not.

    The last sign of each known cause is among them, however long ago that was.
    """
    last = _last_of_each(line for line in lines if not _QUIET.search(line))
    known = {line: found for line in last if (found := symptoms.of_line(line))}
    # Programs hand an error on to each other, and each says it in words of its own.
    signs = {_sign(*found): line for line, found in known.items()}
    others = [line for line in last if line not in known]
    bad = [line for line in others if _COMPLAINT.search(line)]
    few = others[-_FEW_LINES:] if or_last and not known else []
    kept = {*(bad[-_MOST_LINES:] or few), *signs.values()}
    return [_STAMP.sub("", line) for line in last if line in kept]


def _sign(symptom: Symptom, what: str) -> tuple[str, str]:
    return symptom.cause, "" if symptom.follows else what


def _last_of_each(lines: Iterable[str]) -> list[str]:
    """Lines that differ by more than numbers, each where it was said last."""
    found: dict[str, str] = {}
    for line in filter(None, map(symptoms.plain, lines)):
        shape = _NUMBER.sub("#", line)
        found.pop(shape, None)
        found[shape] = line
    return [*found.values()]


def _narrowed(line: str) -> str:
    """A line of bearable length: what an error is about is at its beginning and its end."""
    if len(line) <= _WIDEST:
        return line
    half = _WIDEST // 2
    return f"{line[:half]} … {line[-half:]}"
