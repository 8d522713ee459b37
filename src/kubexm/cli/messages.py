"""Errors as people read them, and on request as programs do: what, where, and what to do."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal

from kubexm.cli.output import document, lost
from kubexm.errors import InvalidInput, KubexmError, OutputLost, Problem

_OUTPUT = re.compile(r"\0(?:-o|--output)[\0=]?(json|yaml)\0")


def report_error(error: Exception, arguments: Sequence[str] = ()) -> int:
    """Say what went wrong; the exit code it stands for."""
    single = _single(error)
    if isinstance(single, BrokenPipeError) or isinstance(single.__cause__, BrokenPipeError):
        return 1  # who stopped reading knows
    if isinstance(single, OSError) and single.filename is None:
        single = lost(single)  # of a page of help, which is not printed by us
    if isinstance(single, KubexmError):
        return report(described(single), as_data(single), single.exit_code, arguments)
    defect = "this is a mistake in kubexm itself, please report it"
    told = "".join(traceback.format_exception(error))
    data = {"code": "defect", "message": f"{single!r}: {defect}", "hint": ""}
    return report(f"{told}\nerror: defect\n  {defect}", data, 1, arguments)


def report(text: str, data: dict[str, Any], code: int, arguments: Sequence[str]) -> int:
    """Say it to people and, if they are asked for, in a document; the exit code."""
    notice(text)
    style = _style(arguments)
    if style is not None:
        with suppress(OutputLost):  # which is what may have been reported
            document({"error": {**data, "exitCode": code}}, style)
    return code


def notice(text: str) -> None:
    """Say something beside the output; whether or not anybody can hear it."""
    with suppress(OSError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def _style(arguments: Sequence[str]) -> Literal["json", "yaml"] | None:
    """The language of documents that was asked for, in a command line that may be wrong."""
    found = _OUTPUT.search("\0".join(("", *arguments, "")))
    return None if found is None else "json" if found[1] == "json" else "yaml"


def warn(warnings: Iterable[Problem]) -> None:
    """Print to standard error what is probably not meant as it is written."""
    for warning in warnings:
        notice(remarked("warning", warning))


def mention(notices: Iterable[Problem]) -> None:
    """Print to standard error what is taken for granted."""
    for each in notices:
        notice(remarked("note", each))


def remarked(word: str, problem: Problem) -> str:
    """A problem that stops nothing, with what to do about it."""
    hint = f"\n  hint: {problem.hint}" if problem.hint else ""
    return f"{word}: {problem}{hint}"


def _single(error: BaseException) -> BaseException:
    """The only error of a group of one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def described(error: KubexmError) -> str:
    """The whole message of an error, over several lines."""
    lines = [f"error: {error.code}", f"  {error.message}"]
    if error.where:
        lines.append(f"  at {error.where}")
    if isinstance(error, InvalidInput):
        for problem in error.problems:
            lines.append(f"  {problem}")
            if problem.hint:
                lines.append(f"    hint: {problem.hint}")
    if error.hint:
        lines += ["", f"hint: {error.hint}"]
    return "\n".join(lines)


def as_data(error: KubexmError) -> dict[str, Any]:
    """The same for programs."""
    problems = error.problems if isinstance(error, InvalidInput) else ()
    told = {"code": error.code, "message": error.message, "where": error.where, "hint": error.hint}
    return {**told, "problems": [_problem(problem) for problem in problems]}


def _problem(problem: Problem) -> dict[str, str]:
    return {"message": problem.message, "where": problem.where, "hint": problem.hint}
