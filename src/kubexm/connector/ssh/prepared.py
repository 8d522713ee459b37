"""Logins by settings that were prepared once for many hosts.

asyncssh prepares the settings of each connection anew, in a thread. They differ in little but the
address: to share the rest saves a tenth of what a login costs us, and memory with each connection.
There is no public name for that, so parts of asyncssh are used that it keeps for itself; where
they are not as expected, it goes its usual way.
"""

from __future__ import annotations

import asyncio
import socket
from copy import copy
from typing import Any

import asyncssh

_PARTS = ("host", "port", "protocol_factory", "client_keys")


def is_possible(options: asyncssh.SSHClientConnectionOptions) -> bool:
    """Whether asyncssh has the parts that this needs."""
    return all(hasattr(options, name) for name in _PARTS)


async def connect(
    options: asyncssh.SSHClientConnectionOptions,
    visitor: asyncssh.SSHClient,
    address: tuple[str, int],
    wire: socket.socket,
) -> asyncssh.SSHClientConnection:
    """A login at an address, over a connection to it."""
    loop = asyncio.get_running_loop()
    own: Any = copy(options)
    own.host, own.port = address
    own.protocol_factory = lambda: visitor
    # Each notes the algorithm that it is used with.
    own.client_keys = [copy(pair) for pair in options.client_keys or ()]
    own.waiter = waiter = loop.create_future()
    _, connection = await loop.create_connection(
        lambda: asyncssh.SSHClientConnection(loop, own, wait="auth"), sock=wire
    )
    connection.set_extra_info(host=own.host, port=own.port)
    try:
        await waiter
    except BaseException:
        connection.abort()
        await connection.wait_closed()
        raise
    return connection
