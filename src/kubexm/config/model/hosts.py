"""Hosts, how they are reached, and what each of them is for."""

from __future__ import annotations

from typing import Annotated, Literal

from kubexm.common.roles import CONTROL_PLANE, ETCD, LOADBALANCER, REGISTRY, WORKER
from kubexm.config.fields import IpAddresses, LabelKey, LabelValue
from kubexm.config.ssh import SshSpec
from kubexm.document.fields import Address, HostName
from kubexm.document.forms import Filled, Form, called, empty

Arch = Literal["amd64", "arm64"]


class TaintSpec(Form):
    """Keeps pods that don't tolerate it away from a kube node."""

    key: LabelKey
    """Its name."""
    value: LabelValue = ""
    """Its value."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """What becomes of pods that don't tolerate it."""


class HostSpec(Form):
    """A machine, or several that are alike, by a [range](#ranges) in the name."""

    name: HostName
    """What it is called, also as a kube node."""
    address: Address | None = None
    """Where it is reached; its name if nothing is said."""
    internal_addresses: Annotated[tuple[IpAddresses, ...], Filled()] | None = None
    """The IP addresses that the others of the cluster know it by, one of each family, in the order
    of the networks of pods; its `address` if nothing is said, which has to be one then."""
    connection: Literal["ssh", "local"] = "ssh"
    """How it is reached; `local` is the machine kubexm runs on."""
    arch: Arch | None = None
    """Its architecture, for plans and bundles that are made without asking it; `amd64` if nothing
    is said and it was never asked."""
    labels: dict[LabelKey, LabelValue] = empty(dict)
    """Labels of the kube node."""
    taints: tuple[TaintSpec, ...] = ()
    """Taints of the kube node, beside the usual one of a control plane that is no worker."""
    sudo: bool | None = None
    """Whether who logs in becomes root; unless said, as `spec.sudo` says."""
    ssh: SshSpec | None = None
    """How it is reached, where that differs from `spec.ssh`."""


class RoleGroups(Form):
    """The hosts of each role, by their names; a range stands for several.

    A host may have several roles. One that is in no group is a worker.
    """

    control_plane: tuple[HostName, ...] | None = called(CONTROL_PLANE, None)
    """Those that run the API server; the first host if nothing is said."""
    worker: tuple[HostName, ...] | None = called(WORKER, None)
    """Those that run pods; if nothing is said, the hosts in no other group, or the control planes
    if there are none."""
    etcd: tuple[HostName, ...] | None = called(ETCD, None)
    """Those that run etcd, if it is not stacked; the control planes if nothing is said."""
    loadbalancer: tuple[HostName, ...] | None = called(LOADBALANCER, None)
    """Those that run keepalived and haproxy, for that kind of endpoint."""
    registry: tuple[HostName, ...] | None = called(REGISTRY, None)
    """The one that runs a registry."""
