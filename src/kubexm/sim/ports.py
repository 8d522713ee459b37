"""Who on a simulated host accepts connections, and where."""

from __future__ import annotations

from collections.abc import Iterator

from kubexm.sim.registered import DAEMONS
from kubexm.sim.shell import Shell
from kubexm.sim.state import EVERY_IPV4, Service, Socket

LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost"))
_ALL = frozenset(("", "*", EVERY_IPV4, "::"))


def listeners(shell: Shell) -> Iterator[tuple[str, Socket]]:
    """Everybody who listens, with what."""
    yield from (("", Socket(int(key.partition(":")[2]))) for key in _opened(shell))
    for name, service in running(shell):
        yield from ((name, socket) for socket in opened_by(shell, service))


def running(shell: Shell) -> tuple[tuple[str, Service], ...]:
    """The units that run, by name."""
    return shell.state.follows("running", lambda: tuple(_running(shell)))


def _running(shell: Shell) -> Iterator[tuple[str, Service]]:
    for key in sorted(shell.state.keys("service:")):
        name = key.removeprefix("service:")
        if (service := shell.service(name)) is not None and service.active:
            yield name, service


def _opened(shell: Shell) -> tuple[str, ...]:
    """Ports that no unit has opened."""
    return shell.state.follows("opened", lambda: tuple(sorted(shell.state.keys("port:"))))


def opened_by(shell: Shell, service: Service) -> Iterator[Socket]:
    """What a unit that runs has open at the moment."""
    yield from (Socket(port) for port in service.ports)
    yield from service.sockets
    if (daemon := DAEMONS.get(service.program)) is not None:
        yield from daemon.sockets(shell)


def answering(shell: Shell, address: str, port: int) -> Socket | None:
    """What accepts a connection to an address of a host, the closest match first."""
    found = [socket for _, socket in listeners(shell) if _accepts(socket, address, port)]
    return max(found, key=lambda socket: socket.address not in _ALL, default=None)


def holder(shell: Shell, wanted: Socket) -> str:
    """Who has a port that somebody wants to open; nothing if it is free."""
    for name, socket in listeners(shell):
        if socket.port == wanted.port and _overlap(socket.address, wanted.address):
            return name or "another program"
    return ""


def addresses_by(shell: Shell) -> dict[str, int]:
    """What daemons have the host answer at beside its own addresses, and how much they want to."""
    found: dict[str, int] = {}
    for _, service in running(shell):
        if service.program in DAEMONS:
            found |= DAEMONS[service.program].addresses(shell)
    return found


def _accepts(socket: Socket, address: str, port: int) -> bool:
    if socket.port != port or (socket.address == EVERY_IPV4 and ":" in address):
        return False
    here = LOOPBACK if address in LOOPBACK | _ALL else (address,)
    return socket.address in _ALL or socket.address in here


def _overlap(one: str, other: str) -> bool:
    return one in _ALL or other in _ALL or one == other
