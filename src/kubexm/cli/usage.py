"""Command lines that can't be understood: what is wrong with them, and what to write."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError
from cyclopts.argument import Argument

from kubexm.cli import messages


def report_usage(error: CycloptsError, arguments: Sequence[str]) -> int:
    """Say that a command line can't be understood; the exit code."""
    message, hint = _misunderstood(error, arguments)
    data = {"code": "usage", "message": message, "hint": hint}
    return messages.report(f"error: usage\n  {message}\n\nhint: {hint}", data, 2, arguments)


def _misunderstood(error: CycloptsError, arguments: Sequence[str]) -> tuple[str, str]:
    """What to say of a wrong command line, and what to do."""
    command = " ".join(("kubexm", *(error.command_chain or ())))
    files = [word for word in arguments if word.endswith((".yaml", ".yml", ".json"))]
    if files and not {"-f", "--file"}.intersection(arguments):
        return f"`{files[0]}` is given without `-f`", f"{command} -f {files[0]}"
    if ("-f", "-") in pairwise(arguments) or ("--file", "-") in pairwise(arguments):
        message = f"{_file_of(error.command_chain)} can't be read from standard input"
        return message, "write it to a file, and give `-f FILE`"
    hint = f"`{command} --help` shows what there is"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"`{error.unused_tokens[0]}` is one word too many", hint
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return _missing(error, command, error.argument)
    return str(error), hint


def _file_of(chain: Sequence[str] | None) -> str:
    """What kind of file a command is about."""
    match (*(chain or ()), ""):
        case ("plan" | "graph" | "hosts", *_):
            return "a pipeline or cluster file"
        case ("run" | "task" | "", *_):
            return "a pipeline file"
    return "a cluster file"


def _missing(error: MissingArgumentError, command: str, argument: Argument) -> tuple[str, str]:
    """What to say of something that was left out: a required one, or the value of an option."""
    if error.keyword is not None:
        return f"`{error.keyword}` needs a value", f"`{command} --help` shows which"
    if "--file" in argument.names:
        return f"`{command}` needs {_file_of(error.command_chain)}", f"{command} -f FILE"
    if argument.name == "TASK":
        return f"`{command}` needs the id of a run", "`kubexm task list` shows the ids"
    return f"`{command}` needs {argument.name}", f"`{command} --help` shows what it can be"
