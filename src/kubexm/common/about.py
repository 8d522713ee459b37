"""What is kept of a cluster with every run on it, so that later commands need no file."""

from __future__ import annotations

from typing import Any

import msgspec

from kubexm.common.assets import RegistrySource


class About(msgspec.Struct, frozen=True, rename="camel"):
    """A cluster in short."""

    version: str
    """Of Kubernetes."""
    endpoint: str
    """The kind of the way to its API servers."""
    server: str
    """The URL of the API as hosts of the cluster have it."""
    servers: tuple[str, ...]
    """URLs at which the API is reached from outside of the hosts, the best first."""
    etcd: str
    network: str
    roles: dict[str, tuple[str, ...]]
    """The hosts of each role."""
    kubeconfig: str = ""
    """Where this machine has what lets people into it."""
    addresses: dict[str, tuple[str, ...]] = {}
    """Those that its hosts know each other by."""
    lasting: dict[str, Any] = {}
    """What its file said where that can't change while the cluster lives, by path."""
    registries: dict[str, RegistrySource] = {}
    """How registries are reached that images and charts are taken from, by their names."""
    workloads: tuple[str, ...] = ()
    """What kubexm itself has laid into it that runs pods: `NAMESPACE/KIND/NAME`."""
    labels: dict[str, str] = {}
    """Words about it, as its file has them."""
