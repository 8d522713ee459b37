"""Rules of settings without an effect: what means nothing beside another setting is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter

import msgspec

from kubexm.common.roles import REGISTRY
from kubexm.config.rules.rule import Declared, Rule
from kubexm.document.findings import Finding
from kubexm.document.forms import camel
from kubexm.document.source import DataPath


class _Row(msgspec.Struct, frozen=True):
    """Fields of a form that mean nothing in some clusters, and why."""

    form: str
    fields: tuple[str, ...]
    is_idle: Callable[[Declared], bool]
    why: str
    instead: str
    """What to write, so that they mean something."""


def _families(cluster: Declared) -> set[int]:
    return {network.version for network in cluster.pods}


def _is_calico_of_ipv6(cluster: Declared) -> bool:
    # Of another plugin, all of `calico` is refused elsewhere.
    return cluster.spec.network.plugin == "calico" and 4 not in _families(cluster)


def _is_off(form: str) -> Callable[[Declared], bool]:
    """Whether what a form is about is not there at all."""
    enabled = attrgetter(f"spec.{form}.enabled")
    return lambda cluster: not enabled(cluster)


def _switched(form: str, *fields: str) -> _Row:
    return _Row(form, fields, _is_off(form), "without `enabled: true`", "write `enabled: true`")


_CALICO = "for `plugin: calico`, which hands out blocks"
_OTHER_PLUGIN = "write `calico.blockSize`, or take another plugin"
_ROWS = (
    _Row(
        "kubernetes.kube_proxy",
        ("config",),
        lambda cluster: cluster.spec.kubernetes.kube_proxy.mode == "none",
        "for `mode: none`",
        "write another `mode`",
    ),
    _switched(
        "kubernetes.api_server.audit", "policy", "max_age_days", "max_backups", "max_size_mib"
    ),
    _switched("kubernetes.api_server.encryption", "provider", "resources"),
    _switched("dns.node_local", "address"),
    _switched("storage.local_path", "version", "directory"),
    _switched("system.ntp", "servers"),
    _Row(
        "etcd.backup",
        ("keep", "directory"),
        # Of an external one, all of `backup` is refused elsewhere.
        lambda cluster: not cluster.spec.etcd.backup.every and cluster.etcd_kind != "external",
        "without `every`",
        "write how often, such as `every: 6h`",
    ),
    _Row(
        "system.proxy",
        ("no_proxy",),
        lambda cluster: not (cluster.spec.system.proxy.http or cluster.spec.system.proxy.https),
        "without `http` and `https`",
        "write where the proxy is",
    ),
    _Row(
        "registry",
        ("port",),
        lambda cluster: not (cluster.spec.registry.host or cluster.having(REGISTRY)),
        "without `host`, and without a host of the role `registry`",
        "write `host: …`, or `roleGroups: {registry: [HOST]}`",
    ),
    _Row(
        "registry",
        ("data_dir",),
        lambda cluster: not cluster.having(REGISTRY),
        "without a host of the role `registry`, on which kubexm would set one up",
        "write `roleGroups: {registry: [HOST]}`",
    ),
    _Row(
        "network",
        ("node_mask", "node_mask_ipv6"),
        lambda cluster: cluster.spec.network.plugin == "calico",
        _CALICO,
        _OTHER_PLUGIN,
    ),
    _Row(
        "network",
        ("node_mask",),
        lambda cluster: 4 not in _families(cluster),
        "where pods have no IPv4",
        "write `nodeMaskIpv6`, or a network of IPv4 under `podCIDR`",
    ),
    _Row(
        "network",
        ("node_mask_ipv6",),
        lambda cluster: 6 not in _families(cluster),
        "where pods have no IPv6",
        "write `nodeMask`, or a network of IPv6 under `podCIDR`",
    ),
    _Row(
        "network",
        ("mtu",),
        lambda cluster: cluster.spec.network.plugin == "none",
        "for `plugin: none`, which is whatever you install yourself",
        "take another plugin",
    ),
    _Row(
        "network.calico",
        ("encapsulation",),
        lambda cluster: (
            _is_calico_of_ipv6(cluster) and cluster.spec.network.calico.encapsulation == "ipip"
        ),
        "as `ipip` where pods have no IPv4",
        "write `vxlan`, or a network of IPv4 under `podCIDR`",
    ),
    _Row(
        "network.calico",
        ("block_size",),
        _is_calico_of_ipv6,
        "where pods have no IPv4: blocks of IPv6 have one size",
        "write a network of IPv4 under `podCIDR`",
    ),
)
"""What means nothing, where, and what it would need."""


_ALSO_READ = {
    "etcd.backup": ("etcd", "roleGroups"),
    "registry": ("roleGroups",),
    "network.calico": ("network",),
}
"""What else is gone by, beside the form itself."""


def _of_form(form: str) -> Rule:
    """That what is written in a form changes what is done."""
    rows = [row for row in _ROWS if row.form == form]

    def judge(cluster: Declared) -> Iterator[Finding]:
        found: dict[DataPath, Finding] = {}
        for row in rows:
            for finding in _idle(cluster, row) if row.is_idle(cluster) else ():
                found.setdefault(finding.path, finding)
        yield from found.values()

    name = form.rpartition(".")[2].replace("_", "-")
    reads = (_place(form), *(("spec", key) for key in _ALSO_READ.get(form, ())))
    return Rule(f"effect-of-{name}", reads, judge)


def _idle(cluster: Declared, row: _Row) -> Iterator[Finding]:
    form = attrgetter(row.form)(cluster.spec)
    for name in row.fields:
        if form.says(name):
            message = f"`{camel(name)}` has no meaning {row.why}"
            hint = f"leave it out, or {row.instead}"
            yield Finding((*_place(row.form), camel(name)), message, hint, at_key=True)


def _place(form: str) -> DataPath:
    return ("spec", *map(camel, form.split(".")))


RULES = tuple(_of_form(form) for form in dict.fromkeys(row.form for row in _ROWS))
"""One for each form, so that a mistake in one hides nothing of another."""
