"""Hosts that are reached by SSH: what the inventory says of them, with the secrets themselves."""

from __future__ import annotations

import os
from pathlib import Path

from kubexm.common.secrets import SecretRef
from kubexm.config.connection import SshSettings
from kubexm.connector.base import Claim
from kubexm.connector.ssh.become import Become
from kubexm.connector.ssh.calls import Calls
from kubexm.connector.ssh.connector import SshConnector
from kubexm.connector.ssh.dial import Dialer
from kubexm.connector.ssh.target import Credentials, HostKeys, Target
from kubexm.runtime.secrets import SecretVault
from kubexm.spec.inventory import InventoryHost


class Dialing:
    """Makes connectors that share keys, known hosts and bastions."""

    def __init__(self, vault: SecretVault, calls: Calls) -> None:
        self._reveal = vault.reveal
        self._holds_secret = vault.is_in
        self._dialer = Dialer(calls)

    def connector(
        self, host: InventoryHost, settings: SshSettings, claim: Claim | None, state_dir: str
    ) -> SshConnector:
        """The way to one host."""
        target = self._target(host.address, settings)
        return SshConnector(
            target,
            self._dialer,
            name=host.name,
            sudo=host.sudo,
            claim=claim,
            state_dir=state_dir,
            holds_secret=self._holds_secret,
        )

    def close(self) -> None:
        """Let go of what the connectors share."""
        self._dialer.close()

    def _target(self, address: str, settings: SshSettings) -> Target:
        jump = settings.jump
        return Target(
            address=address,
            port=settings.port,
            user=settings.user,
            credentials=self._credentials(settings),
            host_keys=HostKeys(tuple(map(Path, settings.known_hosts)), settings.trust),
            jump=self._target(jump.address, jump.ssh) if jump is not None else None,
            become=Become(settings.become.way, self._secret(settings.become.password)),
            config=Path(settings.config) if settings.config is not None else None,
        )

    def _credentials(self, settings: SshSettings) -> Credentials:
        return Credentials(
            keys=tuple(map(Path, settings.keys)),
            passphrase=self._secret(settings.passphrase),
            password=self._secret(settings.password),
            agent=os.environ.get("SSH_AUTH_SOCK") if settings.agent else None,
        )

    def _secret(self, reference: SecretRef | None) -> str | None:
        return self._reveal(reference) if reference is not None else None
