"""A host as steps see it: its name, its facts, and commands that run on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from kubexm.connector.base import (
    Command,
    Completed,
    Connector,
    FileStat,
    LineSink,
    Progress,
    script,
)
from kubexm.connector.source import Sources
from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner import causes

# What a step needs to describe a command; the channel itself stays out of its reach.
__all__ = ["Command", "Completed", "FileStat", "Host", "LineSink", "Progress"]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Host:
    """One host: what is known of it, and the only way for a step to touch it."""

    __slots__ = ("_connector", "_facts", "_sink", "_sources", "_sudo", "name", "state_dir")

    def __init__(
        self,
        name: str,
        connector: Connector,
        *,
        facts: Mapping[str, Any] | None = _NOTHING,
        sudo: bool = False,
        state_dir: str = "/var/lib/kubexm",
        sources: Sources | None = None,
    ) -> None:
        """`facts` is None where they were not gathered; all hosts of a run share `sources`."""
        self.name = name
        self._facts = facts
        self.state_dir = state_dir
        self._connector = connector
        self._sudo = sudo
        self._sources = Sources() if sources is None else sources
        self._sink: LineSink | None = None

    @property
    def facts(self) -> Mapping[str, Any]:
        """What it told of itself."""
        if self._facts is None:
            raise StepFailed(
                "the facts of the host were not gathered",
                hint="a step that goes by facts has to say so, with `reads_facts = True`",
            )
        return self._facts

    @facts.setter
    def facts(self, told: Mapping[str, Any]) -> None:
        self._facts = told

    def listening(self, sink: LineSink) -> Host:
        """The same host, with every line of output handed to `sink` as it comes."""
        twin = Host(
            self.name,
            self._connector,
            facts=self._facts,
            sudo=self._sudo,
            state_dir=self.state_dir,
            sources=self._sources,
        )
        twin._sink = sink
        return twin

    def command(self, *argv: str, sudo: bool | None = None, **settings: Any) -> Command:
        """A command with this host's habits; `sudo` defaults to what the inventory says."""
        return Command(argv, sudo=self._or_habit(sudo), **settings)

    def script(self, text: str, *words: str, sudo: bool | None = None, **settings: Any) -> Command:
        """A script of ours in the same way; it finds the words as `$1` and so on."""
        return script(text, *words, sudo=self._or_habit(sudo), **settings)

    async def ask(self, *argv: str, changes: bool = False, **settings: Any) -> Completed:
        """Run a command whose exit code is an answer; it only looks unless you say otherwise."""
        return await self._connector.exec(self.command(*argv, changes=changes, **settings))

    async def run(self, *argv: str, **settings: Any) -> Completed:
        """Run a command that changes something and must succeed, else `CommandFailed`."""
        return self.checked(argv, await self.execute(self.command(*argv, **settings)))

    async def execute(self, command: Command) -> Completed:
        """Run a command that changes something, its lines going to whoever listens."""
        return await self._connector.exec(command, self._sink)

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        """Answers to several short commands, which only look, in one round trip."""
        return await self._connector.batch(commands)

    @staticmethod
    def checked(argv: Sequence[str], done: Completed) -> Completed:
        """The same answer if it is a success, else `CommandFailed` with what to do about it."""
        if not done.ok:
            hint = causes.hint_for(argv, done)
            raise CommandFailed(
                argv, done.exit, stdout=done.text, stderr=done.error_text, hint=hint
            )
        return done

    async def put(
        self, path: str, data: bytes, *, sudo: bool | None = None, **settings: Any
    ) -> None:
        """Write a file atomically, with `mode`, `owner` and `group` if given."""
        await self._connector.put(path, data, sudo=self._or_habit(sudo), **settings)

    async def get(self, path: str, *, sudo: bool | None = None) -> bytes:
        """The content of a file; `FileNotFoundError` if there is none."""
        return await self._connector.get(path, sudo=self._or_habit(sudo))

    async def upload(
        self, source: Path, digest: str, path: str, *, sudo: bool | None = None, **settings: Any
    ) -> bool:
        """Write a file of this machine, which has this sha256, as `put` does.

        It may be large; False if it was there already, and nothing was done. `progress` is told
        the bytes so far.
        """
        file = self._sources.of(source, digest)
        return await self._connector.upload(file, path, sudo=self._or_habit(sudo), **settings)

    async def upload_made(
        self,
        key: object,
        make: Callable[[IO[bytes]], None],
        path: str,
        *,
        sudo: bool | None = None,
        **settings: Any,
    ) -> bool:
        """The same with a file that is made for it, once for all hosts with the same key."""
        file = await self._sources.made(key, make)
        return await self._connector.upload(file, path, sudo=self._or_habit(sudo), **settings)

    async def download(
        self, path: str, to: Path, *, sudo: bool | None = None, progress: Progress | None = None
    ) -> bool:
        """Bring a file to this machine; False if it was there already."""
        habit = self._or_habit(sudo)
        return await self._connector.download(path, to, sudo=habit, progress=progress)

    def here(self, path: str) -> Path:
        """Where a file lies that came from the host to this path of the machine we run on."""
        return self._connector.here(Path(path))

    async def stat(self, path: str, *, sudo: bool | None = None) -> FileStat | None:
        """What is at a path, or None; links are not followed."""
        return await self._connector.stat(path, sudo=self._or_habit(sudo))

    def _or_habit(self, sudo: bool | None) -> bool:
        return self._sudo if sudo is None else sudo
