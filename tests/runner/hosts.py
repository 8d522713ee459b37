"""Hosts to try the runner on: this machine, and one whose answers are written down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kubexm.connector.base import Command, Completed, FileStat, LineSink
from kubexm.connector.local import LocalConnector
from kubexm.connector.source import Source
from kubexm.runner.host import Host

T = TypeVar("T")
OK = Completed(0)


def on_this_machine(work: Callable[[Host], Awaitable[T]]) -> T:
    async def scenario() -> T:
        connector = LocalConnector()
        try:
            return await work(Host("here", connector))
        finally:
            await connector.close()

    return asyncio.run(scenario())


class Scripted:
    """A connector that answers by the beginning of a command, and remembers what it was asked.

    Answers of one command come one after the other; the last one stays.
    """

    def __init__(
        self,
        answers: Mapping[str, Completed | Sequence[Completed]],
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self.asked: list[str] = []
        self.files = dict(files or {})
        self._answers = {
            text: [found] if isinstance(found, Completed) else list(found)
            for text, found in answers.items()
        }

    @property
    def changes(self) -> list[str]:
        """What it was told to do, without what only looks."""
        return [text.removeprefix("! ") for text in self.asked if text.startswith("! ")]

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def exec(self, command: Command, sink: LineSink | None = None) -> Completed:
        text = " ".join(command.argv)
        self.asked.append(f"! {text}" if command.changes else text)
        return self._answer(text)

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        self.asked += [" ".join(command.argv) for command in commands]
        return [self._answer(" ".join(command.argv)) for command in commands]

    async def put(self, path: str, data: bytes, **_: Any) -> None:
        self.asked.append(f"! write {path}")
        self.files[path] = data

    async def get(self, path: str, *, sudo: bool = False) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    async def stat(self, path: str, *, sudo: bool = False) -> FileStat | None:
        found = self.files.get(path)
        return None if found is None else FileStat("file", 0o644, "root", "root", len(found))

    async def upload(self, source: Source, path: str, **_: Any) -> bool:
        self.asked.append(f"! write {path}")
        return True

    async def download(self, path: str, to: Path, **_: Any) -> bool:
        raise FileNotFoundError(path)

    def here(self, path: Path) -> Path:
        return path

    def _answer(self, text: str) -> Completed:
        for beginning in sorted(self._answers, key=len, reverse=True):
            if text.startswith(beginning):
                found = self._answers[beginning]
                return found.pop(0) if len(found) > 1 else found[0]
        return OK


def scripted(
    work: Callable[[Host], Awaitable[T]],
    answers: Mapping[str, Completed | Sequence[Completed]] | None = None,
    files: Mapping[str, bytes] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> tuple[T, Scripted]:
    """What comes of some work on a host with written-down answers, and what it was asked."""
    connector = Scripted(answers or {}, files)
    host = Host("there", connector, facts=facts or {})

    async def scenario() -> T:
        return await work(host)

    return asyncio.run(scenario()), connector


def said(text: str, code: int = 0) -> Completed:
    return Completed(code, text.encode())


def complained(text: str, code: int = 1) -> Completed:
    return Completed(code, stderr=text.encode())
