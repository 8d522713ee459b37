"""A simulated registry of images, as a unit runs it in a container."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubexm.sim import registries
from kubexm.sim.daemons import Daemon, Ended, Start
from kubexm.sim.kubedocs import Unreadable, document, part
from kubexm.sim.registries import Serving
from kubexm.sim.shell import Shell
from kubexm.sim.state import Socket


class ImageServer(Daemon):
    """The registry of the distribution project: its configuration says port, data and TLS."""

    def starts(self, start: Start) -> Sequence[Socket]:
        path = [arg for arg in start.args if not arg.startswith("-")][-1]
        try:
            config = document(start.read(path))
        except Unreadable as error:
            raise Ended(f"error parsing {path}: {error}") from error
        address, _, port = str(part(config, "http", "addr") or ":5000").rpartition(":")
        tls = part(config, "http", "tls") or {}
        for name in ("certificate", "key"):
            if tls:
                start.read(str(tls.get(name)))
        data = part(config, "storage", "filesystem", "rootdirectory") or "/var/lib/registry"
        serving = Serving(int(port), start.place(data), bool(tls))
        start.shell.state.set(registries.STARTED, msgspec.json.encode(serving).decode())
        return (Socket(serving.port, address if address != "0.0.0.0" else ""),)  # noqa: S104

    def stops(self, shell: Shell, unit: str) -> None:
        shell.state.set(registries.STARTED, None)


DAEMON = ImageServer()
