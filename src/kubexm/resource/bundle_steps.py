"""Long work on files, done in steps beside the loop, so that it can be watched and stopped."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TypeVar

from kubexm.common.threads import in_thread
from kubexm.resource.fetch import Advance, Progress

T = TypeVar("T")


async def driven(
    steps: Generator[int | T, None, None], name: str, total: int, progress: Progress | None
) -> list[T]:
    """Go through all steps; numbers are told as how far it is, whatever else came is the answer.

    Between two steps it can be cancelled, and what it has open is closed.
    """
    others: list[T] = []
    with closing(steps):
        while (step := await in_thread(_next, steps)) is not None:
            if not isinstance(step, int):
                others.append(step)
            elif progress is not None:
                progress(Advance(name, step, total))
    return others


def _next(steps: Iterator[T]) -> T | None:
    return next(steps, None)
