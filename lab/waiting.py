"""Waiting for what another process brings about, in small steps and with an end."""

from __future__ import annotations

import time
from collections.abc import Callable

from lab.errors import LabError


def until(true: Callable[[], bool], what: str, seconds: float, step: float = 0.02) -> None:
    """Return as soon as it is true; `LabError` when the time is over."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise LabError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(step)
