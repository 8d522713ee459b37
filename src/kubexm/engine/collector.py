"""The garbage collector during a run: it has little to find and much to look at."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARELY = (50_000, 50, 100)


@contextmanager
def calm() -> Iterator[None]:
    """Collect rarely while units by the hundred thousand stay alive until the end."""
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
