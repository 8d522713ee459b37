"""Errors as people read them, and on request as programs do: what, where, and what to do."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Literal

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError
from cyclopts.argument import Argument

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
        return _report(described(single), as_data(single), single.exit_code, arguments)
    defect = "this is a mistake in kubexm itself, please report it"
    told = "".join(traceback.format_exception(error))
    data = {"code": "defect", "message": f"{single!r}: {defect}", "hint": ""}
    return _report(f"{told}\nerror: defect\n  {defect}", data, 1, arguments)


def report_usage(error: CycloptsError, arguments: Sequence[str]) -> int:
    """Say that a command line can't be understood; the exit code."""
    message, hint = _misunderstood(error, arguments)
    data = {"code": "usage", "message": message, "hint": hint}
    return _report(f"error: usage\n  {message}\n\nhint: {hint}", data, 2, arguments)


def _misunderstood(error: CycloptsError, arguments: Sequence[str]) -> tuple[str, str]:
    """What to say of a wrong command line, and what to do."""
    command = " ".join(("kubexm", *(error.command_chain or ())))
    files = [word for word in arguments if word.endswith((".yaml", ".yml", ".json"))]
    if files and not {"-f", "--file"}.intersection(arguments):
        return f"`{files[0]}` is given without `-f`", f"{command} -f {files[0]}"
    if ("-f", "-") in pairwise(arguments) or ("--file", "-") in pairwise(arguments):
        return (
            "a pipeline can't be read from standard input",
            "write it to a file, and give `-f FILE`",
        )
    hint = f"`{command} --help` shows what there is"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"`{error.unused_tokens[0]}` is one word too many", hint
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return _missing(error, command, error.argument)
    return str(error), hint


def _missing(error: MissingArgumentError, command: str, argument: Argument) -> tuple[str, str]:
    """What to say of something that was left out: a required one, or the value of an option."""
    if error.keyword is not None:
        return f"`{error.keyword}` needs a value", f"`{command} --help` shows which"
    if "--file" in argument.names:
        return f"`{command}` needs a pipeline file", f"{command} -f FILE"
    if argument.name == "TASK":
        return f"`{command}` needs the id of a run", "`kubexm task list` shows the ids"
    return f"`{command}` needs {argument.name}", f"`{command} --help` shows what it can be"


def notice(text: str) -> None:
    """Say something beside the output; whether or not anybody can hear it."""
    with suppress(OSError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def _report(text: str, data: dict[str, Any], code: int, arguments: Sequence[str]) -> int:
    notice(text)
    style = _style(arguments)
    if style is not None:
        with suppress(OutputLost):  # which is what may have been reported
            document({"error": {**data, "exitCode": code}}, style)
    return code


def _style(arguments: Sequence[str]) -> Literal["json", "yaml"] | None:
    """The language of documents that was asked for, in a command line that may be wrong."""
    found = _OUTPUT.search("\0".join(("", *arguments, "")))
    return None if found is None else "json" if found[1] == "json" else "yaml"


def warn(warnings: Iterable[Problem]) -> None:
    """Print to standard error what is probably not meant as it is written."""
    for warning in warnings:
        notice(remarked("warning", warning))


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
