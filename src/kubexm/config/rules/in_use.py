"""Rules of overrides that would undo what the file asks for at another place of it.

Only where it does ask: who lets the API server encrypt by a file of their own may name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubexm.config.model.kubernetes import KubernetesSpec
from kubexm.config.rules.overrides import (
    Instead,
    Names,
    flag_value,
    has_key,
    is_like,
    is_off,
    refused,
    taken_away,
    takes_away,
    written,
)
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.fields import as_ip
from kubexm.document.findings import Finding


class _Use(msgspec.Struct, frozen=True):
    """What stands in the way of overrides while something is in use."""

    is_on: Callable[[KubernetesSpec], bool]
    flags: Mapping[str, Instead]
    volumes: Sequence[str] = ()
    """Directories and files of hosts that kubexm gives to the API server for it."""
    components: Sequence[str] = ("apiServer",)


_ENCRYPTION = has_key("kubernetes.apiServer.encryption")
_USES = (
    _Use(
        lambda spec: spec.api_server.encryption.enabled,
        {"encryption-provider-config": _ENCRYPTION},
        ("encryption",),
    ),
    _Use(
        lambda spec: spec.api_server.audit.enabled,
        {
            "audit-policy-file": has_key("kubernetes.apiServer.audit.policy"),
            "audit-log-maxage": has_key("kubernetes.apiServer.audit.maxAgeDays"),
            "audit-log-maxbackup": has_key("kubernetes.apiServer.audit.maxBackups"),
            "audit-log-maxsize": has_key("kubernetes.apiServer.audit.maxSizeMib"),
        },
        ("audit-policy", "audit-logs"),
    ),
    _Use(
        lambda spec: bool(spec.feature_gates),
        {"feature-gates": has_key("kubernetes.featureGates")},
        components=("apiServer", "controllerManager", "scheduler"),
    ),
)
_READ = (
    "kubernetes.apiServer",
    "kubernetes.controllerManager",
    "kubernetes.scheduler",
    "kubernetes.kubeadm.clusterConfiguration",
)
_CLUSTER = ("kubernetes", "kubeadm", "clusterConfiguration")
_VOLUMES = "extraVolumes"
_VOLUME = Instead("kubexm gives the API server a file or a directory by this name", "rename it")


@rule("overrides-in-use", *_READ, "kubernetes.featureGates")
def overrides_in_use(cluster: Declared) -> Iterator[Finding]:
    """What the file asks for is not undone by an override."""
    rows = [*_rows(cluster.spec.kubernetes)]
    for place, names, part in written(cluster.spec):
        if instead := next((why for pattern, why in rows if is_like(names, pattern)), None):
            yield refused(place, names, instead)
        elif names[-1] == _VOLUMES and takes_away(names, part, [row[0] for row in rows]):
            # All else that has such parts is not taken away in any case.
            yield taken_away(place, names)


def _rows(spec: KubernetesSpec) -> Iterator[tuple[Names, Instead]]:
    for use in _USES:
        if not use.is_on(spec):
            continue
        for component in use.components:
            for flag, instead in use.flags.items():
                yield ("kubernetes", component, "extraArgs", flag), instead
                yield (*_CLUSTER, component, "extraArgs", flag), instead
        for volume in use.volumes:
            yield (*_CLUSTER, "apiServer", _VOLUMES, volume), _VOLUME


class _Fault(msgspec.Struct, frozen=True):
    """A flag with a value that nothing of a cluster of ours works with."""

    component: str
    flag: str
    is_wrong: Callable[[Any], bool]
    why: str


def _is_loopback(part: Any) -> bool:
    text = flag_value(part)
    found = as_ip(text)
    return found.is_loopback if found is not None else text == "localhost"


_FAULTS = (
    _Fault(
        "apiServer",
        "allow-privileged",
        is_off,
        "kube-proxy and the pods of the network are privileged",
    ),
    _Fault(
        "apiServer", "enable-bootstrap-token-auth", is_off, "hosts join the cluster with a token"
    ),
    _Fault(
        "apiServer", "bind-address", _is_loopback, "other hosts ask the API server at its address"
    ),
)
_NODE_CIDRS = _Fault(
    "controllerManager",
    "allocate-node-cidrs",
    is_off,
    "the plugin of the network takes the addresses of pods that it hands out",
)
_BY_NODE = ("flannel", "routed")
"""Plugins whose pods have the addresses that Kubernetes gives to their host."""


@rule("flags-that-cut-off", *_READ, "network.plugin")
def flags_that_cut_off(cluster: Declared) -> Iterator[Finding]:
    """No flag takes from the cluster what it can't be without."""
    needs_nodes = cluster.spec.network.plugin in _BY_NODE
    faults = (*_FAULTS, _NODE_CIDRS) if needs_nodes else _FAULTS
    for place, names, part in written(cluster.spec):
        for fault in faults:
            flags = ("kubernetes", fault.component, "extraArgs", fault.flag)
            listed = (*_CLUSTER, fault.component, "extraArgs", fault.flag)
            is_it = is_like(names, flags) or is_like(names, listed)
            if is_it and fault.is_wrong(part):
                message = f"found `{flag_value(part)}`, and {fault.why}"
                yield Finding(place, message, "leave it out")


RULES = (overrides_in_use, flags_that_cut_off)
