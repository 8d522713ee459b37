"""How a run is to be carried out, and how it is told to stop."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kubexm.plan.policy import OnFailure


class Options(msgspec.Struct, frozen=True):
    """What the user may say about one execution; the graph says the rest."""

    parallelism: int = 512
    per_host: int = 4
    grace: float = 10.0
    """Seconds that running units get to end by themselves after a cancel."""
    dry_run: bool = False
    on_failure: OnFailure | None = None
    """Overrides what the graph says."""
    probe_ahead: int = 32
    """At most so many prechecks of one host are made in one round trip ahead of their turn."""
    reconnect_within: float = 30.0
    output_limit: int = 65536
    """Characters of a unit's output that are kept; its head and its tail."""


class Control:
    """The one way to stop a run from outside; safe to call more than once, from the loop."""

    def __init__(self) -> None:
        self.cancelled: str | None = None
        self._listeners: list[Callable[[str], None]] = []

    def cancel(self, reason: str) -> None:
        """Start nothing new and let what runs end within its grace."""
        if self.cancelled is None:
            self.cancelled = reason
            for listener in list(self._listeners):
                listener(reason)

    def on_cancel(self, listener: Callable[[str], None]) -> None:
        """Call `listener` when the run is cancelled, at once if it already is."""
        self._listeners.append(listener)
        if self.cancelled is not None:
            listener(self.cancelled)
