"""How long a host has been silent, noted without a timer for each packet.

After a silence asyncssh asks a host whether it is still there. It measures that by a timer which it
sets anew whenever something comes, and a timer costs as much as a twentieth of a short command.
Here the moment is noted, and the timer that is due looks at it. There is no setting for that, so
parts of asyncssh are replaced; where they are not as expected, it goes its usual way.
"""

from __future__ import annotations

from typing import Any

from asyncssh import connection

_PARTS = ("_reset_keepalive_timer", "_keepalive_timer_callback")
_Connection: Any = getattr(connection, "SSHConnection", None)
_reset: Any = getattr(_Connection, _PARTS[0], None)
_due: Any = getattr(_Connection, _PARTS[1], None)


def note_only() -> None:
    """Have silences measured like that."""
    if _reset is not None and _due is not None:
        for name, part in zip(_PARTS, (_heard, _look), strict=True):
            setattr(_Connection, name, part)


def _heard(self: Any) -> None:
    if self._keepalive_timer is None:
        _reset(self)
    else:
        self.kubexm_heard = self._loop.time()


def _look(self: Any) -> None:
    heard: float = getattr(self, "kubexm_heard", 0.0)
    left = heard + self._keepalive_interval - self._loop.time()
    if left > 0:
        self._keepalive_timer = self._loop.call_later(left, self._keepalive_timer_callback)
    else:
        _due(self)
