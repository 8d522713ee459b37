"""A host that answers late: a small proxy that holds bytes back, in between without being seen.

What the control side says to the host is led to the proxy by the lab's kernel tables, so nobody
has to use another address. `python -m lab.delaying SITE HOST MILLISECONDS` is the proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import struct
import sys
from asyncio import StreamReader, StreamWriter
from pathlib import Path

from lab import daemon, network, waiting
from lab.commands import run
from lab.errors import CommandFailed
from lab.roster import Host
from lab.site import Site

_ORIGINAL_DESTINATION = 80
_CHUNK = 65536


def begin(site: Site, host: Host, milliseconds: int) -> None:
    """Hold back what is said on new connections to a host, in each direction."""
    daemon.launch("lab.delaying", site.path, host.name, str(milliseconds))
    with network.entered(site.netns):
        waiting.until(lambda: _listens(_port(host)), f"the proxy of `{host.name}`", 10)
    run(*_iptables(site), "--append", *_rule(host))


def end(site: Site, host: Host) -> None:
    """Hold back no more. Connections through the proxy go on, without delay."""
    with contextlib.suppress(CommandFailed):
        run(*_iptables(site), "--delete", *_rule(host))
    proxy = daemon.recorded(_record(site, host))
    if proxy is not None:
        proxy.send(signal.SIGTERM)


class Proxy:
    """Takes connections to one host, and passes on what is said there later."""

    def __init__(self, port: int, delay: float) -> None:
        self._port = port
        self._delay = delay
        self._ending = asyncio.Event()
        self._lines: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Return when nobody wants the delay any more and the last connection has ended."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._ending.set)
        # The next proxy of the same host may begin while this one still serves old connections.
        server = await asyncio.start_server(self._take, "0.0.0.0", self._port, reuse_port=True)  # noqa: S104 - in a namespace of its own
        await self._ending.wait()
        server.close()
        self._delay = 0
        while self._lines:
            await asyncio.wait(self._lines)

    async def _take(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        try:
            with contextlib.suppress(OSError):
                await self._join(reader, writer)
        finally:
            writer.close()
            self._lines.discard(task)

    async def _join(self, reader: StreamReader, writer: StreamWriter) -> None:
        address = _wanted(writer.get_extra_info("socket"))
        there_reader, there_writer = await asyncio.open_connection(
            *address, local_addr=(network.PROXY, 0)
        )
        try:
            await asyncio.gather(
                self._pass_on(reader, there_writer), self._pass_on(there_reader, writer)
            )
        finally:
            there_writer.close()

    async def _pass_on(self, reader: StreamReader, writer: StreamWriter) -> None:
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        listening = asyncio.create_task(self._listen(reader, chunks))
        try:
            while True:
                due, chunk = await chunks.get()
                await asyncio.sleep(due - asyncio.get_running_loop().time())
                if not chunk:
                    return writer.write_eof()
                writer.write(chunk)
                await writer.drain()
        finally:
            listening.cancel()

    async def _listen(
        self, reader: StreamReader, chunks: asyncio.Queue[tuple[float, bytes]]
    ) -> None:
        """Take down what comes, each with the time at which it may go on; at last, nothing."""
        chunk = b"."
        while chunk:
            try:
                chunk = await reader.read(_CHUNK)
            except OSError:
                chunk = b""
            chunks.put_nowait((asyncio.get_running_loop().time() + self._delay, chunk))


def _wanted(line: socket.socket) -> tuple[str, int]:
    """Whom a connection was meant for before the kernel led it here."""
    raw = line.getsockopt(socket.SOL_IP, _ORIGINAL_DESTINATION, 16)
    port, address = struct.unpack("!2xH4s8x", raw)
    return socket.inet_ntoa(address), port


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _port(host: Host) -> int:
    return 20000 + int(host.address.rpartition(".")[2])


def _iptables(site: Site) -> tuple[str, ...]:
    return (*network.inside(site.netns), "iptables", "--wait", "--table", "nat")


def _rule(host: Host) -> tuple[str, ...]:
    who = ("--protocol", "tcp", "--destination", host.address, "!", "--source", network.PROXY)
    return ("OUTPUT", *who, "--jump", "REDIRECT", "--to-ports", str(_port(host)))


def _record(site: Site, host: Host) -> Path:
    return site.home(host.name).path / "proxy.json"


def main(place: str, name: str, milliseconds: str) -> None:
    site = daemon.join(Path(place))
    host = site.host(name)
    daemon.detach(_record(site, host), site.home(name).path / "proxy.log")
    asyncio.run(Proxy(_port(host), int(milliseconds) / 1000).serve())


if __name__ == "__main__":
    main(*sys.argv[1:])
