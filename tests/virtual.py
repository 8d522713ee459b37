"""An event loop whose clock jumps to the next timer: an hour of waiting takes no time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Never sleeps: when nothing is ready, the clock moves by what would have been slept."""

    def __init__(self, *, threads: bool) -> None:
        super().__init__()
        self.now = 0.0
        self._threads = threads

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            if self._threads:
                return super().select(None)
            raise RuntimeError("every task waits for something that will never happen")
        ready = super().select(0)
        if not ready:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio under virtual time; `threads` are awaited when there is nothing else to wait for."""

    def __init__(self, *, threads: bool = False) -> None:
        self._jumping = _JumpingSelector(threads=threads)
        super().__init__(self._jumping)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._jumping.now


def run(main: Coroutine[Any, Any, T], *, threads: bool = False) -> T:
    """Run a coroutine to its end under virtual time."""
    with asyncio.Runner(loop_factory=partial(VirtualLoop, threads=threads)) as runner:
        return runner.run(main)


class _HurriedSelector(selectors.DefaultSelector):
    """Sleeps for a part of what it is asked to."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(None if timeout is None else timeout / self._speed)


class HurriedLoop(asyncio.SelectorEventLoop):
    """asyncio with a clock that runs faster than ours; who waits for threads is not left behind."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        super().__init__(_HurriedSelector(speed))

    def time(self) -> float:
        return super().time() * self._speed


def hurried(main: Coroutine[Any, Any, T], *, speed: float = 50.0) -> T:
    """Run a coroutine to its end with a clock that runs so many times faster."""
    with asyncio.Runner(loop_factory=partial(HurriedLoop, speed)) as runner:
        return runner.run(main)
