"""A simulated world for tests: its hosts are asked in few words."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kubexm.common import layout
from kubexm.connector.base import Command, Completed
from kubexm.sim import World, WorldSettings, standins
from kubexm.templates import render
from kubexm.templates.context import Context
from kubexm.templates.contexts.containerd import ContainerdConfig, RegistryLogin
from kubexm.templates.contexts.systemd import ContainerdUnit

PAUSE = "registry.k8s.io/pause:3.10.1"
CONTAINERD = "v2.2.7"


class Site:
    """A world, and what its hosts say and do."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.world = World.create(directory / "world", WorldSettings(**settings))

    def ask(self, *argv: str, host: str = "n1", stdin: bytes = b"") -> Completed:
        """How a host answers a command."""
        command = Command(argv, stdin=stdin)
        return asyncio.run(self.world.connector(host).exec(command))

    def do(self, *argv: str, host: str = "n1") -> str:
        """What a command says that must succeed."""
        done = self.ask(*argv, host=host)
        assert done.ok, (argv, done)
        return done.text

    def put(self, path: str, text: str, mode: int = 0o644, host: str = "n1") -> None:
        """Lay a file, and the directories above it."""
        self.do("mkdir", "-p", path.rpartition("/")[0], host=host)
        asyncio.run(self.world.connector(host).put(path, text.encode(), mode=mode))

    def bring(self, program: str, version: str, arch: str = "amd64", host: str = "n1") -> None:
        """Lay a program where kubexm does."""
        text = standins.text(program, version, arch)
        self.put(f"{layout.BINARIES}/{program}", text, 0o755, host)

    def write(self, template: str, context: Context, path: str, host: str = "n1") -> None:
        """Lay a file that a template makes."""
        self.put(path, render.render(template, context.data()), host=host)

    def bring_containerd(
        self, host: str = "n1", version: str = CONTAINERD, logins: Sequence[str] = ()
    ) -> None:
        """All that containerd needs to run, and to run containers."""
        for program in ("containerd", "containerd-shim-runc-v2", "ctr"):
            self.bring(program, version, host=host)
        self.bring("runc", "v1.4.3", host=host)
        config = ContainerdConfig(
            version=3,
            root="/var/lib/containerd",
            systemd_cgroup=True,
            sandbox_image=PAUSE,
            logins=tuple(RegistryLogin(host=each, username="reader") for each in logins),
            passwords=dict.fromkeys(logins, "secret"),
        )
        self.write("containerd/config", config, layout.CONTAINERD_CONFIG, host)
        unit = f"{layout.UNITS}/containerd.service"
        self.write("systemd/containerd", ContainerdUnit(), unit, host)

    def run_containerd(self, host: str = "n1", logins: Sequence[str] = ()) -> None:
        """The same, and it runs."""
        self.bring_containerd(host, logins=logins)
        self.do("systemctl", "enable", "--now", "containerd", host=host)

    def state(self, unit: str, host: str = "n1") -> str:
        """How a unit is, in the word of systemd."""
        told = self.do("systemctl", "show", "--property=ActiveState", "--", unit, host=host)
        return told.partition("=")[2]

    def close(self) -> None:
        self.world.close()
