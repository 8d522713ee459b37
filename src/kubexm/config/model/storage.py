"""Where pods keep what they write."""

from __future__ import annotations

from typing import Literal

from kubexm.config.fields import AbsolutePath, DnsNameOrAddress, ExportedPath, Version
from kubexm.document.forms import BadValue, Form


class LocalPathSpec(Form):
    """Volumes in a directory of the host that a pod runs on."""

    enabled: bool = False
    """Whether there are."""
    version: Version | None = None
    """The one that goes with this Kubernetes if nothing is said."""
    directory: AbsolutePath = "/opt/local-path-provisioner"
    """Where."""


class NfsSpec(Form):
    """Volumes on a server of yours."""

    server: DnsNameOrAddress
    """Who it is."""
    path: ExportedPath
    """What it exports."""
    version: Version | None = None
    """Of the provisioner; the one that goes with this Kubernetes if nothing is said."""


class StorageSpec(Form):
    """Where pods keep what they write."""

    local_path: LocalPathSpec = LocalPathSpec()
    """Volumes in a directory of the host that a pod runs on."""
    nfs: NfsSpec | None = None
    """Volumes on a server of yours."""
    default_class: Literal["local-path", "nfs"] | None = None
    """The class of claims that name none; the only one that is there if nothing is said."""

    def judged(self) -> StorageSpec:
        there = {"local-path": self.local_path.enabled, "nfs": self.nfs is not None}
        if self.default_class is not None and not there[self.default_class]:
            raise BadValue(
                f"`defaultClass: {self.default_class}`, which is not there",
                "name one that is, or leave it out",
            )
        return self
