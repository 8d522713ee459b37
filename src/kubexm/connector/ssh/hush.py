"""No log line for each packet, and no empty packet before it.

asyncssh makes up a line for every packet that comes or goes, and only then asks whether anybody
reads it. And it sends an empty packet ahead of each, whatever the cipher. Where a cipher chains
its blocks, that keeps others from guessing what follows; the ciphers that are used here chain none,
and half of all that is sent would be such packets.

There is no setting for either, so parts of asyncssh are replaced; where they are not as expected,
all goes on as ever.
"""

from __future__ import annotations

from typing import Any

import asyncssh
from asyncssh import connection, packet

_LINES = ("log_sent_packet", "log_received_packet")
_CHAINED = "-cbc"
_Connection: Any = getattr(connection, "SSHConnection", None)
_IGNORE = getattr(connection, "MSG_IGNORE", None)
_send: Any = getattr(_Connection, "send_packet", None)


def hush() -> None:
    """Let packets pass without a word, and alone."""
    logger = getattr(packet, "SSHPacketLogger", None)
    for name in _LINES:
        if hasattr(logger, name):
            setattr(logger, name, _nothing)
    if _send is not None and _IGNORE is not None:
        _Connection.send_packet = _sent


def _nothing(*_: object, **__: object) -> None:
    pass


def _sent(self: asyncssh.SSHClientConnection, number: int, *parts: bytes, **named: Any) -> None:
    if number == _IGNORE and _CHAINED not in self.get_extra_info("send_cipher", _CHAINED):
        return
    _send(self, number, *parts, **named)
