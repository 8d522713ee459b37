"""A world: simulated hosts that lie in a directory, and go on where they were left."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from kubexm.connector.base import Claim
from kubexm.connector.holder import HolderFile
from kubexm.errors import InvalidInput, UnsupportedFormat
from kubexm.sim import private
from kubexm.sim.connector import SimConnector
from kubexm.sim.delivered import Delivered, shared_cells
from kubexm.sim.filesystem import Blobs
from kubexm.sim.host import SimHost
from kubexm.sim.network import Network
from kubexm.sim.settings import Machine, WorldSettings
from kubexm.sim.shell import Shell
from kubexm.sim.state import HostState, Journals

_FORMAT = "kubexm-world/1"
_NETWORK = "@network"
_HELD = "held:"
"""Begins the name of a cell that tells at which path a host holds state that hosts share."""
_ANEW = "remove the directory to begin anew, or make another world with `--world NEW`"


class _Document(msgspec.Struct, frozen=True):
    format: str
    settings: msgspec.Raw


class World:
    """The hosts of one directory, each read when it is first asked for."""

    def __init__(self, path: Path, settings: WorldSettings) -> None:
        self.path = path
        self.settings = settings
        self._journals = Journals(path / "hosts")
        self._blobs = Blobs(path / "blobs")
        self._hosts: dict[str, SimHost] = {}
        self._apart: dict[str, HostState] = {}
        self._touched: dict[str, HostState] = {}
        self._holder: HolderFile | None = None
        self.network = Network(
            settings, self._neighbour, self._host_names, lambda: self.shared(_NETWORK)
        )
        kinds = ("", *settings.machines)
        self._shared = {kind: shared_cells(self._machine(kind)) for kind in kinds}

    @classmethod
    def create(cls, path: Path, settings: WorldSettings | None = None) -> World:
        """Make a world in a directory that holds none."""
        document = path / "world.json"
        if document.exists():
            raise InvalidInput(
                f"there is a simulated world in `{path}` already",
                hint="open it, or remove the directory to begin anew",
            )
        settings = settings or WorldSettings()
        for place in (path, path / "hosts", path / "blobs"):
            private.made(place)
        data = msgspec.json.encode({"format": _FORMAT, "settings": settings})
        with private.written(document) as file:
            file.write(msgspec.json.format(data, indent=2) + b"\n")
        return cls(path, settings)

    @classmethod
    def open(cls, path: Path) -> World:
        """The world of a directory, as it was left."""
        document = path / "world.json"
        try:
            settings = _settings(document.read_bytes(), str(document))
        except (FileNotFoundError, NotADirectoryError):
            hint = "give the directory of one with `--world`, or leave it out to make one"
            raise InvalidInput(f"there is no simulated world in `{path}`", hint=hint) from None
        private.closed(path)
        return cls(path, settings)

    def host(self, name: str) -> SimHost:
        """A host of the world; every name has one."""
        if (found := self._hosts.get(name)) is None:
            found = self._hosts[name] = self._load(name)
        return found

    def shared(self, name: str) -> HostState:
        """State of the world that belongs to no host; its name begins with `@`."""
        if (found := self._apart.get(name)) is None:
            found = self._apart[name] = HostState(name, {}, self._journals)
        self._touched[name] = found
        return found

    def shell_of(self, host: str) -> Shell | None:
        """A host for a command of another one; None if there is none, or it is down."""
        found = self._neighbour(host)
        if found is None or not found.is_up:
            return None
        self._touched[host] = found.state
        return found.shell()

    def commit(self) -> None:
        """Write down what a command has changed beside its own host."""
        while self._touched:
            self._touched.popitem()[1].commit()

    def connector(self, host: str) -> SimConnector:
        """A new connection to a host."""
        return SimConnector(self.host(host), self.path / "control")

    def claim(self, claim: Claim) -> None:
        """Act for a run; as soon as one of that name has a greater token, no host obeys any more.

        A process that was frozen would else carry out what it had begun, on hosts that another
        one has gone on with.
        """
        self._holder = HolderFile(self.path / "locks", claim)
        self._holder.lay()

    def snapshot(self) -> dict[str, dict[str, object]]:
        """All that is not as it was delivered, by host: equal worlds have equal snapshots."""
        found = {name: self._difference(name) for name in self._journals.names()}
        return {name: difference for name, difference in found.items() if difference}

    def mutations(self) -> dict[str, dict[str, int]]:
        """How often each resource of each host was changed, over the world's whole life."""
        return {name: self._state(name).mutations() for name in self._journals.names()}

    def close(self) -> None:
        """Close its files; all is on disk already."""
        self._journals.close()

    def permit(self) -> None:
        """Raise if another run acts in this world by now."""
        if self._holder is not None:
            self._holder.require()

    def _load(self, name: str) -> SimHost:
        kind = next((glob for glob in self.settings.machines if fnmatchcase(name, glob)), "")
        base = Delivered(self.settings.seed, name, self._shared[kind])
        state = HostState(name, base, self._journals)
        self.network.joined(name)
        return SimHost(state, self._blobs, self.settings, self._machine(kind), self)

    def _machine(self, kind: str) -> Machine:
        return self.settings.machines.get(kind, self.settings.machine)

    def _neighbour(self, name: str) -> SimHost | None:
        known = (
            name in self._hosts
            or name in self.settings.addresses
            or (_may_be_a_host(name) and self._journals.path(name).exists())
        )
        return self.host(name) if known else None

    def _host_names(self) -> list[str]:
        return [name for name in self._journals.names() if _may_be_a_host(name)]

    def _state(self, name: str) -> HostState:
        return self.host(name).state if _may_be_a_host(name) else self.shared(name)

    def _difference(self, name: str) -> dict[str, object]:
        if _may_be_a_host(name):
            return self.host(name).difference()
        return {**self.shared(name).difference()} if self._is_held(name) else {}

    def _is_held(self, name: str) -> bool:
        """Whether state beside the hosts still counts: where hosts hold it, one of them does."""
        state = self.shared(name)
        holders = {key.removeprefix(_HELD): state.get(key) for key in state.keys(_HELD)}
        places = ((self.host(host), str(path)) for host, path in holders.items())
        return not holders or any(host.has(path) for host, path in places)


def _may_be_a_host(name: str) -> bool:
    return not name.startswith("@")


def _settings(data: bytes, where: str) -> WorldSettings:
    try:
        document = msgspec.json.decode(data, type=_Document)
        if document.format != _FORMAT:
            message = f"`{document.format}`, want `{_FORMAT}`"
            raise UnsupportedFormat(message, where=where, hint=_ANEW)
        return msgspec.json.decode(document.settings, type=WorldSettings)
    except msgspec.DecodeError as error:
        message = f"not a simulated world: {error}"
        raise UnsupportedFormat(message, where=where, hint=_ANEW) from error
