"""Connections that are under way before what speaks SSH over them is loaded.

To load it takes about as long as a host takes to answer, so hosts are called first.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

AT_ONCE = 64
"""Logins under way, over all hosts."""
Endpoint = tuple[str, int]


class Calls:
    """Connections by whom they go to; each is handed out once."""

    def __init__(self) -> None:
        self._begun: dict[Endpoint, socket.socket] = {}

    def begin(self, address: str, port: int) -> None:
        """Call a host; not one that has a name for an address, which takes time to look up."""
        if (address, port) not in self._begun and len(self._begun) < AT_ONCE:
            called = _called(address, port)
            if called is not None:
                self._begun[address, port] = called

    async def answered(self, address: str, port: int) -> socket.socket | None:
        """The connection to a host; None if it has a name for an address."""
        called = self._begun.pop((address, port), None) or _called(address, port)
        if called is not None:
            try:
                await asyncio.get_running_loop().sock_connect(called, (address, port))
            except BaseException:
                called.close()
                raise
        return called

    def close(self) -> None:
        """Hang up on all that nobody asked for."""
        while self._begun:
            self._begun.popitem()[1].close()


def _called(address: str, port: int) -> socket.socket | None:
    if (family := _family(address)) is None:
        return None
    with suppress(OSError):  # whoever calls it again is told what is wrong
        called = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        called.connect_ex((address, port))
        return called
    return None


def _family(address: str) -> socket.AddressFamily | None:
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            socket.inet_pton(family, address)
            return family
    return None
