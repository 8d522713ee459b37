"""A simulated host that remembers what programs of a cluster were told on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.step.places import Place, SimPlace
from tests.virtual import VirtualLoop

from kubexm.connector.base import Command, Completed, Connector
from kubexm.runner.host import Host
from kubexm.sim import Script, World, WorldSettings

PROGRAMS = ("kubeadm", "kubectl", "helm")


class Listening:
    """A connector that notes commands, with what they read from their standard input."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self.commands: list[Command] = []
        self.watched = ""
        self.seen: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connector, name)

    async def exec(self, command: Command, sink: Any = None) -> Completed:
        self.commands.append(command)
        if self.watched and _is_of_a_cluster(command):
            await self._look()
        return await self._connector.exec(command, sink)

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        self.commands += commands
        return await self._connector.batch(commands)

    async def _look(self) -> None:
        if (found := await self._connector.stat(self.watched)) is not None:
            content = await self._connector.get(self.watched)
            self.seen.append((content.decode(), found.mode))


class Cluster(SimPlace):
    """A simulated host whose programs of a cluster answer as they are told to."""

    def __init__(self, directory: Path, *scripts: Script) -> None:
        self.world = World.create(directory / "world", WorldSettings(scripts=scripts))
        self._listening = Listening(self.world.connector("there"))
        host = Host("there", self._listening)
        runner = asyncio.Runner(loop_factory=partial(VirtualLoop, threads=True))
        Place.__init__(self, host, "/srv/root", runner)
        directories = ("/etc/kubernetes/pki", "/etc/kubernetes/kubexm", "/etc/systemd/system")
        self.ask("mkdir", "-p", self.root, *directories)

    @property
    def told(self) -> list[str]:
        """What these programs were told, without what is the same every time."""
        return [_plain(command.argv) for command in self._of_a_cluster()]

    @property
    def heard(self) -> list[str]:
        """What they read from their standard input, if anything."""
        found = (command.stdin.decode() for command in self._of_a_cluster())
        return [text for text in found if text]

    def forget(self) -> None:
        """Begin anew to listen."""
        self._listening.commands.clear()

    def watch(self, path: str) -> list[tuple[str, int]]:
        """Content and mode of a file each time that one of these programs is run."""
        self._listening.watched = path
        return self._listening.seen

    def _of_a_cluster(self) -> list[Command]:
        return [*filter(_is_of_a_cluster, self._listening.commands)]


def _is_of_a_cluster(command: Command) -> bool:
    return command.argv[0].rpartition("/")[2] in PROGRAMS


def answering(*argv: str, **settings: Any) -> Script:
    """How a program of a cluster answers; `**` stands for any rest."""
    return Script((f"/usr/local/bin/{argv[0]}", *argv[1:]), **settings)


def kubectl(*words: str, **settings: Any) -> Script:
    """How kubectl answers."""
    return answering("kubectl", "--kubeconfig", "*", *words, **settings)


def shown(data: Any) -> str:
    """Objects as programs show them."""
    return json.dumps(data)


def _plain(argv: Sequence[str]) -> str:
    words = [argv[0].rpartition("/")[2], *argv[1:]]
    text = " ".join(words)
    return text.replace(" --kubeconfig /etc/kubernetes/admin.conf", "")
