"""What the lab says when it can't do as told."""

from __future__ import annotations


class LabError(Exception):
    """Something the user can read and act on; shown without a traceback."""


class CommandFailed(LabError):
    """A program that the lab runs did not succeed."""

    def __init__(self, argv: tuple[str, ...], code: int, said: str) -> None:
        super().__init__(f"`{' '.join(argv)}` ended with {code}: {said.strip() or 'no message'}")
        self.code = code
