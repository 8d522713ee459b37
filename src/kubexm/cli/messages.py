"""Errors as people read them: what, where, found versus wanted, and what to do."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable

from kubexm.errors import InvalidInput, KubexmError, Problem


def report_error(error: Exception) -> int:
    """Print an error to standard error; the exit code it stands for."""
    single = _single(error)
    if isinstance(single, KubexmError):
        print(described(single), file=sys.stderr)
        return single.exit_code
    traceback.print_exception(error)
    print(
        "\nerror: defect\n  this is a mistake in kubexm itself, please report it", file=sys.stderr
    )
    return 1


def warn(warnings: Iterable[Problem]) -> None:
    """Print to standard error what is probably not meant as it is written."""
    for warning in warnings:
        print(remarked("warning", warning), file=sys.stderr)


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
