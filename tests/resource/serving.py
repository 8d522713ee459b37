"""A small web server of the tests, on loopback: it notes what it is asked and answers as told."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec


class Request(msgspec.Struct):
    """What somebody asked for."""

    method: str
    target: str
    headers: dict[str, str]
    """By their names in lower case."""


class Reply(msgspec.Struct):
    """What is answered."""

    status: int = 200
    """Zero: nothing is answered, the connection is cut."""
    body: bytes = b""
    headers: Mapping[str, str] = {}
    sent: int | None = None
    """So many bytes of the body are sent before the connection is cut; None: all of them."""
    held: bool = False
    """Then it is not cut but kept open, and nothing more is said."""
    counted: bool = True
    """Whether the length is told."""
    gate: asyncio.Event | None = None
    """The answer waits for this."""


Answer = Callable[[Request], Reply]


class Server:
    """Where it is, and what it was asked."""

    def __init__(self, port: int, scheme: str) -> None:
        self.port = port
        self.url = f"{scheme}://127.0.0.1:{port}"
        self.requests: list[Request] = []
        self.busy = self.most = 0
        """Requests that are being answered, now and at most."""
        self.silent = asyncio.Event()
        """Set when an answer has been sent that is held."""

    def asked(self, header: str) -> list[str | None]:
        """The values of a header in all requests."""
        return [request.headers.get(header.lower()) for request in self.requests]


@asynccontextmanager
async def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    connections = set[asyncio.Task[Any]]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await _one_request(reader, writer, answer, server)
        finally:
            writer.close()
            connections.discard(task)

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    server = Server(listener.sockets[0].getsockname()[1], "https" if tls else "http")
    try:
        yield server
    finally:
        listener.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


@asynccontextmanager
async def tunnel(port: int) -> AsyncIterator[Server]:
    """A proxy that leads whoever asks for a tunnel to a port of this machine."""
    async with asyncio.TaskGroup() as group:

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            server.requests.append(await _read_head(reader))
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            group.create_task(_passed_on(reader, far_writer))
            group.create_task(_passed_on(far_reader, writer))

        listener = await asyncio.start_server(connected, "127.0.0.1", 0)
        server = Server(listener.sockets[0].getsockname()[1], "http")
        try:
            yield server
        finally:
            listener.close()


async def _passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


def always(reply: Reply) -> Answer:
    return lambda request: reply


def in_turn(*answers: Answer | Reply) -> Answer:
    """One after the other; the last again and again."""
    left = list(answers)

    def answer(request: Request) -> Reply:
        following = left.pop(0) if len(left) > 1 else left[0]
        return following if isinstance(following, Reply) else following(request)

    return answer


def file(body: bytes, tag: str | None = '"one"', sent: int | None = None) -> Answer:
    """A file as a good server has it: in ranges, for who has the same."""

    def answer(request: Request) -> Reply:
        headers = {} if tag is None else {"ETag": tag}
        span = re.fullmatch(r"bytes=(\d+)-", request.headers.get("range", ""))
        if span is None or request.headers.get("if-range") != tag:
            return Reply(body=body, headers=headers, sent=sent)
        start = int(span[1])
        if start >= len(body):
            return Reply(416, headers={"Content-Range": f"bytes */{len(body)}"})
        headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        return Reply(206, body[start:], headers, sent=sent)

    return answer


async def _one_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer, server: Server
) -> None:
    request = await _read_head(reader)
    server.requests.append(request)
    server.busy += 1
    server.most = max(server.most, server.busy)
    reply = answer(request)
    if reply.gate is not None:
        await reply.gate.wait()
    server.busy -= 1
    if not reply.status:
        return
    headers = dict(reply.headers) | {"Connection": "close"}
    if reply.counted:
        headers["Content-Length"] = str(len(reply.body))
    lines = [f"HTTP/1.1 {reply.status} Said", *(f"{name}: {headers[name]}" for name in headers)]
    writer.write("\r\n".join((*lines, "", "")).encode("latin-1"))
    writer.write(reply.body[: reply.sent])
    await writer.drain()
    if reply.held:
        server.silent.set()
        await reader.read()


async def _read_head(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    pairs = (line.partition(":") for line in head[1:] if line)
    return Request(method, target, {name.lower(): value.strip() for name, _, value in pairs})
