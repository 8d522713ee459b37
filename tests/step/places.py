"""Where steps are tried: a directory of this machine, and a simulated host."""

from __future__ import annotations

import asyncio
import grp
import hashlib
import json
import os
import pwd
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tests.runner.apart import HOME, Apart
from tests.virtual import VirtualLoop

from kubexm.common.secrets import SecretRef
from kubexm.connector.local import LocalConnector
from kubexm.runner.host import Host
from kubexm.runner.priors import Prior
from kubexm.runtime.contexts import StepContext
from kubexm.sim import World, WorldSettings
from kubexm.step.contract import NotYet, Outcome, Step, Verdict

T = TypeVar("T")


class MemoryLedger:
    """Prior states as a store would keep them: as JSON, and the first one wins."""

    def __init__(self) -> None:
        self.entries: dict[str, str] = {}

    async def remember(self, resource: str, prior: Mapping[str, Any]) -> None:
        self.entries.setdefault(resource, json.dumps(prior))

    async def capture(self, resource: str, look: Callable[[str], Awaitable[Prior]]) -> None:
        if resource not in self.entries:
            copy = hashlib.sha256(resource.encode()).hexdigest()
            await self.remember(resource, await look(copy))

    def recall(self, resource: str) -> Mapping[str, Any] | None:
        found = self.entries.get(resource)
        return None if found is None else json.loads(found)

    async def recall_first(self, resource: str) -> Mapping[str, Any] | None:
        return self.recall(resource)

    async def knows(self, resource: str) -> bool:
        return resource in self.entries

    async def drop(self, resource: str) -> None:
        self.entries.pop(resource, None)

    async def resources(self) -> frozenset[str]:
        return frozenset(self.entries)


class KnownSecrets:
    """Secrets by reference."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def reveal(self, reference: SecretRef) -> str:
        return self._values[reference.uri]


class Place:
    """A host, a directory on it to play in, and a ledger."""

    def __init__(self, host: Host, root: str, runner: asyncio.Runner) -> None:
        self.host = host
        self.root = root
        self.ledger = MemoryLedger()
        self.secrets: dict[str, str] = {}
        self.said: list[tuple[str, str]] = []
        self._runner = runner

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def context(self, **settings: Any) -> StepContext:
        host = self.host.listening(lambda stream, line: self.said.append((stream, line)))
        known = {"ledger": self.ledger, "secrets": KnownSecrets(self.secrets), **settings}
        return StepContext(**{"host": host, "node": "a/node", **known})

    def verdict(self, step: Step) -> Verdict:
        return self.wait(step.precheck(self.context()))

    def run(self, step: Step, **settings: Any) -> Outcome | NotYet | None:
        return self.wait(step.run(self.context(**settings)))

    def undo(self, step: Step, **settings: Any) -> None:
        self.wait(step.rollback(self.context(**settings)))

    def ask(self, *argv: str) -> str:
        return self.wait(self.host.run(*argv)).text

    def write(self, name: str, data: bytes, mode: int = 0o644) -> str:
        path = f"{self.root}/{name}"
        self.wait(self.host.put(path, data, mode=mode))
        return path

    def read(self, name: str) -> bytes:
        return self.wait(self.host.get(f"{self.root}/{name}"))

    def state(self) -> Mapping[str, object]:
        """Everything the steps may have changed, but for what kubexm keeps for itself."""
        raise NotImplementedError

    def close(self) -> None:
        self._runner.close()


class LocalPlace(Place):
    """A directory of this machine."""

    def __init__(self, directory: Path) -> None:
        self._connector = LocalConnector()
        root = directory / "root"
        root.mkdir()
        host = Host("here", self._connector, state_dir=str(directory / "state"))
        super().__init__(host, str(root), asyncio.Runner())

    def state(self) -> Mapping[str, object]:
        return {str(path): _described(path) for path in sorted(Path(self.root).rglob("*"))}

    def close(self) -> None:
        self.wait(self._connector.close())
        super().close()


class SimPlace(Place):
    """A simulated host, under virtual time."""

    def __init__(self, directory: Path, settings: WorldSettings | None = None) -> None:
        self.world = World.create(directory / "world", settings)
        host = Host("there", self.world.connector("there"))
        loop = partial(VirtualLoop, threads=True)
        super().__init__(host, "/srv/root", asyncio.Runner(loop_factory=loop))
        self.ask("mkdir", self.root)

    def state(self) -> Mapping[str, object]:
        found = self.world.snapshot().get("there", {})
        kept = {key: value for key, value in found.items() if "/var/lib/kubexm" not in key}
        came = (self.world.path / "control").rglob("*")
        return {**kept, **{f"here:{path}": _described(path) for path in came}}

    def close(self) -> None:
        super().close()
        self.world.close()


class ApartPlace(Place):
    """This machine set apart by a process."""

    def __init__(self, pid: int) -> None:
        self._connector = Apart(pid)
        self._beyond = Path(f"/proc/{pid}/root")
        host = Host("apart", self._connector, state_dir=f"{HOME}/.kubexm")
        super().__init__(host, HOME, asyncio.Runner())

    def state(self) -> Mapping[str, object]:
        kept = ("passwd", "group", "shadow", "gshadow", "subuid", "subgid", "hostname")
        found: dict[str, object] = {
            name: sorted((self._beyond / "etc" / name).read_bytes().splitlines()) for name in kept
        }
        for directory in ("etc/sysctl.d", "home"):
            names = {path.name for path in (self._beyond / directory).iterdir()}
            found[directory] = names - {".kubexm"}
        return found

    def close(self) -> None:
        self.wait(self._connector.close())
        super().close()


def _described(path: Path) -> object:
    found = path.lstat()
    who = pwd.getpwuid(found.st_uid).pw_name, grp.getgrgid(found.st_gid).gr_name
    if path.is_symlink():
        return "link", path.readlink(), who
    content = path.read_bytes() if path.is_file() else None
    return oct(found.st_mode), who, content


def is_root() -> bool:
    return os.geteuid() == 0
