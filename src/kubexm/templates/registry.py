"""Every template of a file on the hosts of a cluster, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kubexm.common.nearest import did_you_mean
from kubexm.errors import InvalidInput
from kubexm.templates.context import Template
from kubexm.templates.contexts import (
    addons,
    balancer,
    containerd,
    dns,
    etcd,
    kubeadm,
    kubernetes,
    network,
    registry,
    routed,
    storage,
    system,
    systemd,
)

_GROUPS = (
    addons.TEMPLATES,
    balancer.TEMPLATES,
    containerd.TEMPLATES,
    dns.TEMPLATES,
    etcd.TEMPLATES,
    kubeadm.TEMPLATES,
    kubernetes.TEMPLATES,
    network.TEMPLATES,
    registry.TEMPLATES,
    routed.TEMPLATES,
    storage.TEMPLATES,
    system.TEMPLATES,
    systemd.TEMPLATES,
)
TEMPLATES: Mapping[str, Template] = MappingProxyType(
    {template.name: template for group in _GROUPS for template in group}
)


def template(name: str) -> Template:
    """The template of this name; `InvalidInput` with the nearest one if there is none."""
    if name not in TEMPLATES:
        raise InvalidInput(f"unknown template `{name}`", hint=did_you_mean(name, TEMPLATES))
    return TEMPLATES[name]
