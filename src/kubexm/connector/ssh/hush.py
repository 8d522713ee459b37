"""No log line for each packet.

asyncssh makes one up for every packet that comes or goes, and only then asks whether anybody reads
it: a twentieth of what a short command costs. Nobody can read them, for kubexm keeps no log of that
kind. There is no setting for it, so a part of asyncssh is replaced; where it is not as expected,
the lines are made up as ever.
"""

from __future__ import annotations

import asyncssh.packet

_PARTS = ("log_sent_packet", "log_received_packet")


def hush() -> None:
    """Let packets pass without a word."""
    logger = getattr(asyncssh.packet, "SSHPacketLogger", None)
    for name in _PARTS:
        if hasattr(logger, name):
            setattr(logger, name, _nothing)


def _nothing(*_: object, **__: object) -> None:
    pass
