"""A login that takes long gets rivals, and the first that ends counts.

Where packets get lost, a connection may stand still for many seconds: TCP waits twice as long after
each loss in a row. A new one has the chances that the first had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

RUNNERS = 3
"""At most, at the same host: sshd takes ten strangers before it turns some away."""
PATIENCE_SECONDS = 3.0
"""Until the next one starts."""
Prize = TypeVar("Prize")


async def first(
    run: Callable[[], Coroutine[Any, Any, Prize]],
    drop: Callable[[Prize], None],
    has_room: Callable[[], bool],
) -> Prize:
    """What comes of the first run that ends; `drop` what one more may have won by then."""
    runs: set[asyncio.Task[Prize]] = set()
    try:
        winner = await _first(run, runs, has_room)
        runs.discard(winner)
        return winner.result()
    finally:
        for other in runs:
            other.cancel()
            other.add_done_callback(lambda ended: _drop(ended, drop))


async def _first(
    run: Callable[[], Coroutine[Any, Any, Prize]],
    runs: set[asyncio.Task[Prize]],
    has_room: Callable[[], bool],
) -> asyncio.Task[Prize]:
    while True:
        if not runs or (len(runs) < RUNNERS and has_room()):
            runs.add(asyncio.create_task(run()))
        patience = PATIENCE_SECONDS if len(runs) < RUNNERS else None
        ended, _ = await asyncio.wait(runs, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        if ended:
            return ended.pop()


def _drop(ended: asyncio.Task[Prize], drop: Callable[[Prize], None]) -> None:
    if not ended.cancelled() and ended.exception() is None:
        drop(ended.result())
