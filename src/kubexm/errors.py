"""Every deliberate exception of kubexm; anything else that is raised is a defect.

KubexmError
├── InvalidInput              exit 2: refused before the first change
│   ├── InvalidGraph
│   ├── InvalidFile
│   │   ├── InvalidCluster
│   │   └── InvalidPipeline
│   ├── UnknownPath
│   ├── UnsupportedFormat
│   └── UnknownTask
├── Refused                   a check or an assertion said no
├── StepFailed                a step could not make its statement true
│   ├── CommandFailed
│   ├── TimedOut
│   └── TransferInterrupted
├── HostError
│   ├── ConnectionLost        worth a reconnect
│   └── HostUnreachable
├── LockHeld                  exit 4: another run works on the same name
├── OutputLost                a run's own outcome decides its exit code
└── StoreError
    ├── StoreUnusable         full disk, read-only, not ours, damaged
    ├── NewerSchema
    └── LeaseLost             another process has taken over this run
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong, where it is, and what to do about it."""

    message: str
    where: str = ""
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class KubexmError(Exception):
    """The root of all deliberate errors; `code` is stable, `hint` is something to do."""

    code = "error"
    exit_code = 1

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class InvalidInput(KubexmError):
    """What the user gave can't be used; nothing was changed. Carries all problems at once."""

    code = "invalid-input"
    exit_code = 2

    def __init__(
        self, message: str, *, problems: Sequence[Problem] = (), where: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        lines = [super().__str__(), *(f"  {problem}" for problem in self.problems)]
        return "\n".join(lines)


class InvalidGraph(InvalidInput):
    """An execution graph contradicts itself."""

    code = "invalid-graph"


class InvalidFile(InvalidInput):
    """A file can't be read: its bytes, or its form."""

    code = "invalid-file"


class InvalidCluster(InvalidFile):
    """A cluster file is not what it should be."""

    code = "invalid-cluster"


class InvalidPipeline(InvalidFile):
    """A pipeline file is not what it should be."""

    code = "invalid-pipeline"


class UnknownPath(InvalidInput):
    """A selection names a path, tag or host that the graph does not have."""

    code = "unknown-path"


class UnsupportedFormat(InvalidInput):
    """A document was written by a newer kubexm, or is not one of ours."""

    code = "unsupported-format"


class UnknownTask(InvalidInput):
    """No run with this id is in the store."""

    code = "unknown-task"


class Refused(KubexmError):
    """A check or an assertion said no; trying again will not help."""

    code = "refused"


class StepFailed(KubexmError):
    """A step could not make its statement true."""

    code = "step-failed"


class CommandFailed(StepFailed):
    """A command on a host ended with an exit code that was not expected."""

    code = "command-failed"

    def __init__(
        self,
        argv: Sequence[str],
        exit_code: int,
        *,
        stdout: str = "",
        stderr: str = "",
        hint: str = "",
    ) -> None:
        self.argv = tuple(argv)
        self.status = exit_code
        self.stdout = stdout
        self.stderr = stderr
        last = next((line for line in reversed(stderr.splitlines()) if line.strip()), "")
        detail = f": {last.strip()}" if last else ""
        super().__init__(f"`{shlex.join(argv)}` exited with {exit_code}{detail}", hint=hint)


class TimedOut(StepFailed):
    """Something did not finish, or did not become true, in the time given."""

    code = "timed-out"


class TransferInterrupted(StepFailed):
    """What was on its way broke off; as much of it as has arrived is kept."""

    code = "transfer-interrupted"


class HostError(KubexmError):
    """Something is wrong between this machine and a host."""

    code = "host-error"


class ConnectionLost(HostError):
    """The connection to a host broke; what ran there may or may not have ended."""

    code = "connection-lost"


class HostUnreachable(HostError):
    """A host can't be reached, or could not be reached again."""

    code = "host-unreachable"


class LockHeld(KubexmError):
    """Another run works on the same name, or another program on the same file of kubectl."""

    code = "lock-held"
    exit_code = 4


class OutputLost(KubexmError):
    """Nobody takes the answer: a full disk, a closed terminal, a reader that is gone."""

    code = "output-lost"


class StoreError(KubexmError):
    """The state of runs can't be read or written."""

    code = "store-error"


class StoreUnusable(StoreError):
    """The database can't be used: full disk, read-only, damaged or not ours."""

    code = "store-unusable"


class NewerSchema(StoreError):
    """The database was written by a newer kubexm."""

    code = "newer-schema"


class LeaseLost(StoreError):
    """Another process has taken over this run; this one may not write any more."""

    code = "lease-lost"
