"""What is told while things are made: one line when a part begins, on its way, and when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

Told = Callable[[str], None]
_SECONDS = 15.0
"""Between two lines of one part."""


class Progress:
    """How far all parts together are; several threads may tell at once."""

    def __init__(self, told: Told, total: int) -> None:
        self._told, self._total = told, total
        self._done = 0
        self._begun = time.monotonic()
        self._lock = Lock()

    def begin(self, title: str) -> Step:
        """A part is begun."""
        self.tell(f"{title}: begins")
        return Step(self, title)

    def end(self, title: str, seconds: float) -> None:
        with self._lock:
            self._done += 1
            done = self._done
        left = self._total - done
        self.tell(
            f"{title}: done in {seconds:.0f} s; {done} of {self._total} parts, {left} left,"
            f" {time.monotonic() - self._begun:.0f} s so far"
        )

    def tell(self, line: str) -> None:
        with self._lock:
            self._told(line)


class Step:
    """One part on its way."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress, self._title = progress, title
        self._begun = self._last = time.monotonic()

    def reached(self, number: int, what: str, most: int = 0) -> None:
        """So many, of at most so many if that is known; told now and then."""
        now = time.monotonic()
        if now - self._last < _SECONDS:
            return
        self._last = now
        of = f" of at most {most}" if most else ""
        self._progress.tell(f"{self._title}: {number}{of} {what}, {now - self._begun:.0f} s")

    def end(self) -> None:
        self._progress.end(self._title, time.monotonic() - self._begun)
