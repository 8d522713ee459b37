"""How the hosts of a job are reached: by SSH, on this machine, or in a simulated world."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubexm.common.paths import Home
from kubexm.config.connection import SshSettings
from kubexm.connector.base import Claim, Connector
from kubexm.connector.hostlock import HostLock
from kubexm.connector.local import LocalConnector
from kubexm.connector.ssh.calls import Calls
from kubexm.connector.ssh.target import SSH_PORT
from kubexm.runtime.build import HostConfig
from kubexm.runtime.secrets import SecretVault
from kubexm.spec.inventory import InventoryHost

if TYPE_CHECKING:
    from kubexm.app.dialing import Dialing
    from kubexm.sim.world import World

STATE = "/var/lib/kubexm"
OWN_STATE = ".local/state/kubexm"
"""Below the home directory of a user that can't become root."""


class Reach:
    """Makes the connectors of one job, and lets go of what they share."""

    def __init__(
        self, home: Home, claim: Claim | None, vault: SecretVault, world: World | None
    ) -> None:
        self._home = home
        self._claim = claim
        self._vault = vault
        self._world = world
        self._calls = Calls()
        self._dialing: Dialing | None = None

    def close(self) -> None:
        """Let go of what the connectors share."""
        self._calls.close()
        if self._dialing is not None:
            self._dialing.close()

    def call(self, hosts: Iterable[InventoryHost]) -> None:
        """Begin to connect to those of whom it is known where they are; `host` comes later."""
        if self._world is not None:
            return
        for host in hosts:
            settings = host.ssh or SshSettings()
            if host.connection == "ssh" and settings.jump is None and settings.config is None:
                self._calls.begin(host.address, settings.port or SSH_PORT)

    def host(self, host: InventoryHost) -> HostConfig:
        """A host of the inventory, with the way to it."""
        connector, state_dir = self._connector(host)
        return HostConfig(
            name=host.name,
            connector=connector,
            described=host.described(),
            vars=host.vars,
            sudo=host.sudo and not _is_root(host),
            state_dir=state_dir,
        )

    def _connector(self, host: InventoryHost) -> tuple[Connector, str]:
        if self._world is not None:
            return self._world.connector(host.name), STATE
        if host.connection == "local":
            place = self._home.state / "hosts" / host.name
            lock = HostLock(place, self._claim) if self._claim is not None else None
            return LocalConnector(lock=lock), str(place)
        settings = host.ssh or SshSettings()
        state_dir = STATE if host.sudo or settings.user == "root" else OWN_STATE
        return self._ssh.connector(host, settings, self._claim, state_dir), state_dir

    @property
    def _ssh(self) -> Dialing:
        if self._dialing is None:
            self._dialing = load_dialing()(self._vault, self._calls)
        return self._dialing


def load_dialing() -> type[Dialing]:
    """What makes connectors, loaded now: it takes long, and not every job has to go anywhere."""
    from kubexm.connector.ssh import loading

    with loading.lightly():
        from kubexm.app.dialing import Dialing

    return Dialing


def _is_root(host: InventoryHost) -> bool:
    return host.connection == "local" and os.geteuid() == 0
