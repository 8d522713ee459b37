"""Files that are read line by line: whether each line is one that can stand there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubexm.errors import InvalidInput

_SECTIONS = ("Unit", "Install", "Service", "Timer", "Socket", "Mount", "Path", "Slice")
_SECTION = re.compile(r"\[(.*)\]")
_SETTING = re.compile(r"[A-Za-z][A-Za-z0-9]*=.*", re.DOTALL)
_VARIABLE = re.compile(
    r"""[A-Za-z_][A-Za-z0-9_]*= (?: "(?:[^"\\]|\\.)*" | '[^']*' | [^"'`$\\]* )""",
    re.VERBOSE,
)


def check_unit(text: str) -> None:
    """`InvalidInput` unless this is a unit of systemd: sections, and settings in them."""
    section = ""
    for number, line in _logical(text):
        if found := _SECTION.fullmatch(line):
            section = found[1]
            if section not in _SECTIONS:
                raise _wrong(number, line, f"one of the sections {', '.join(_SECTIONS)}")
        elif not _SETTING.fullmatch(line):
            raise _wrong(number, line, "`Name=value`")
        elif not section:
            raise _wrong(number, line, "a section such as `[Service]` first")


def check_environment(text: str) -> None:
    """`InvalidInput` unless every line of it gives a variable."""
    for number, line in _meant(enumerate(text.split("\n"), 1)):
        if not _VARIABLE.fullmatch(line):
            raise _wrong(number, line, '`NAME="value"`')


def check_script(text: str) -> None:
    """`InvalidInput` unless it says what runs it."""
    first = text.split("\n", 1)[0]
    if not first.startswith("#!/"):
        raise _wrong(1, first, "`#!` and the program that runs the script")


def check_braces(text: str) -> None:
    """`InvalidInput` unless every brace that is opened is closed."""
    opened: list[int] = []
    for number, line in _meant(enumerate(text.split("\n"), 1)):
        for letter in re.findall(r"[{}]", line):
            if letter == "{":
                opened.append(number)
            elif not opened:
                raise _wrong(number, line, "no brace that closes nothing")
            else:
                opened.pop()
    if opened:
        raise InvalidInput("a brace that nothing closes", where=f"line {opened[-1]}")


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Lines of a unit, those that end in a backslash joined with the next."""
    waiting: list[str] = []
    first = 0
    for number, line in enumerate(text.split("\n"), 1):
        if not waiting:
            first = number
        if line.endswith("\\"):
            waiting.append(line[:-1])
            continue
        yield from _meant(iter([(first, " ".join([*waiting, line]))]))
        waiting = []


def _meant(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """What is neither empty nor a comment."""
    for number, line in lines:
        stripped = line.strip()
        if stripped and stripped[0] not in "#;":
            yield number, stripped


def _wrong(number: int, line: str, wanted: str) -> InvalidInput:
    return InvalidInput(f"found `{line}`, want {wanted}", where=f"line {number}")
