"""What a stream of a command brought: its beginning, its end, its lines for whoever listens."""

from __future__ import annotations

from kubexm.connector.base import LineSink

_LONGEST_LINE = 1 << 16


class Output:
    """What a stream brought: its beginning, its end, and its lines for whoever listens."""

    def __init__(self, name: str, limit: int | None, sink: LineSink | None) -> None:
        self._name = name
        self._limit = limit
        self._sink = sink
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0
        self._line = b""

    def feed(self, data: bytes) -> None:
        """Take what came."""
        if self._sink is not None:
            self._report(data)
        if self._limit is None:
            self._head += data
            return
        room = max(0, self._limit - len(self._head))
        self._head += data[:room]
        self._tail += data[room:]
        # Cut rarely: each cut copies the tail.
        if len(self._tail) > 2 * self._limit:
            self._cut(self._limit)

    def finish(self) -> bytes:
        """Everything, or the beginning and the end with a mark between."""
        if self._sink is not None and self._line:
            self._say(self._line)
            self._line = b""
        if self._limit is not None and len(self._tail) > self._limit:
            self._cut(self._limit)
        if not self._left_out:
            return bytes(self._head + self._tail)
        mark = f"\n[... {self._left_out} bytes left out ...]\n".encode()
        return bytes(self._head + mark + self._tail)

    def _cut(self, limit: int) -> None:
        self._left_out += len(self._tail) - limit
        del self._tail[:-limit]

    def _report(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._say(line)
        if len(self._line) > _LONGEST_LINE:
            self._say(self._line)
            self._line = b""

    def _say(self, line: bytes) -> None:
        if self._sink is not None:
            self._sink(self._name, line.decode(errors="replace").removesuffix("\r"))
