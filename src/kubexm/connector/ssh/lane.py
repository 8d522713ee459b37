"""What runs requests on a host, one at a time, however they get there."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from typing import Protocol

from kubexm.connector.base import Completed, LineSink


class NotObeyed(Exception):
    """The host obeys another holder, or nobody: nothing was done."""


class Lane(Protocol):
    """A shell that stays, or what stands for one; who asks waits for the answer."""

    group: tuple[str, ...]
    """Of all that it runs the process group, when that began, in which boot."""
    is_spent: bool
    """Whether nobody may ask it any more."""
    is_enrolled: bool
    """Whether it is recorded on the host, and may change it."""

    async def ask(
        self, requests: Sequence[str], sink: LineSink | None = None, limit: int | None = None
    ) -> list[Completed]:
        """The answers to these requests; `ConnectionLost` if it is gone before it has answered."""

    async def hand(
        self,
        request: str,
        data: AsyncIterable[bytes],
        sink: LineSink | None = None,
        limit: int | None = None,
    ) -> Completed:
        """The end of a command that reads as many bytes as these; asked by `frames.handed`."""

    def enroll(self, request: str) -> None:
        """Have it recorded on the host, by a request of `frames.enrolled`, before it changes it.

        `StepFailed` comes of the next request if it can't be.
        """

    @property
    def has_input(self) -> bool:
        """Whether what it is told is no part of a command line, which others may see."""

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs any more."""

    async def located(self) -> str | None:
        """The process group of what it runs now; None if it is over."""

    def kill(self) -> None:
        """Have the host kill it, if it lets us."""

    async def gone(self) -> None:
        """Return when it is over."""

    def close(self) -> None:
        """Let it go; a command that still runs is not ended by that."""
