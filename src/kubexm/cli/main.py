"""The entry point: signals and errors become messages and exit codes.

It loads almost nothing, so that a signal finds somebody to answer from the first moment on.
"""

from __future__ import annotations

import gc
import signal
import sys
from typing import TYPE_CHECKING

from kubexm.cli import streams
from kubexm.cli.leaving import leave

if TYPE_CHECKING:
    from kubexm.cli.quick import Plain

KILLED = 130
# Modules are many objects and no garbage: to look for some as often as Python does by itself takes
# a fifth of the time until the first connection.
OBJECTS_BETWEEN_COLLECTIONS = 200_000


def main() -> None:
    """Run the command line of this process."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    streams.prepare()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    code = guarded(sys.argv[1:])
    gc.freeze()  # all that is left goes with the process: nobody has to look through it once more
    sys.exit(code)


def guarded(arguments: list[str]) -> int:
    """Run a command line; every error becomes a message, the answer is the exit code."""
    try:
        code = _run(arguments)
    except KeyboardInterrupt:
        return KILLED
    except Exception as error:  # noqa: BLE001 the last place where an error can become a message
        return _reported(error, arguments)
    return code if isinstance(code, int) else 0


def _run(arguments: list[str]) -> object:
    from kubexm.cli import quick

    if (plain := quick.read(arguments)) is not None:
        return _run_plain(plain)
    from kubexm.cli.commands import app

    return app.meta(arguments, exit_on_error=False, print_error=False)


def _run_plain(plain: Plain) -> int:
    from kubexm.cli import logs

    logged = logs.prepare(None, None)
    if plain.command == ("run",):
        from kubexm.cli import running

        return running.start(**plain.options, logged=logged)
    from kubexm.cli import looking

    return looking.start(**plain.options)


def _reported(error: Exception, arguments: list[str]) -> int:
    from cyclopts import CycloptsError

    from kubexm.cli import messages, usage

    if isinstance(error, CycloptsError):
        return usage.report_usage(error, arguments)
    return messages.report_error(error, arguments)
