"""A connection that tells apart what is done on a host with sudo and what without."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kubexm.connector.base import Command, Completed, Connector, FileStat, LineSink
from kubexm.connector.source import Source


class Watched:
    """A connection that notes what it is asked for with sudo, and what without."""

    def __init__(self, inner: Connector) -> None:
        self.asked: list[tuple[str, bool]] = []
        self._inner = inner

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        await self._inner.close()

    async def exec(self, command: Command, sink: LineSink | None = None) -> Completed:
        self._note(command)
        return await self._inner.exec(command, sink)

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        for command in commands:
            self._note(command)
        return await self._inner.batch(commands)

    async def put(self, path: str, data: bytes, *, sudo: bool = False, **settings: Any) -> None:
        self.asked.append((f"put {path}", sudo))
        await self._inner.put(path, data, sudo=sudo, **settings)

    async def get(self, path: str, *, sudo: bool = False) -> bytes:
        self.asked.append((f"get {path}", sudo))
        return await self._inner.get(path, sudo=sudo)

    async def stat(self, path: str, *, sudo: bool = False) -> FileStat | None:
        self.asked.append((f"stat {path}", sudo))
        return await self._inner.stat(path, sudo=sudo)

    async def upload(
        self, source: Source, path: str, *, sudo: bool = False, **settings: Any
    ) -> bool:
        self.asked.append((f"upload {path}", sudo))
        return await self._inner.upload(source, path, sudo=sudo, **settings)

    async def download(self, path: str, to: Path, *, sudo: bool = False, **settings: Any) -> bool:
        self.asked.append((f"download {path}", sudo))
        return await self._inner.download(path, to, sudo=sudo, **settings)

    def here(self, path: Path) -> Path:
        return self._inner.here(path)

    def _note(self, command: Command) -> None:
        self.asked.append((" ".join(command.argv), command.sudo))
