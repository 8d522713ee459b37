"""Rules of etcd."""

from __future__ import annotations

from collections.abc import Iterator

from kubexm.common.counting import few
from kubexm.config.rules.rule import Declared, rule
from kubexm.document.findings import Finding

_ETCD = ("spec", "etcd")
_NOT_EXTERNAL = ("data_dir", "tuning", "backup", "extra_args", "version")


@rule("etcd-odd", "etcd", "roleGroups", "hosts")
def odd(cluster: Declared) -> Iterator[Finding]:
    """An odd number of members: one more than that survives no more losses."""
    members = cluster.etcd_members
    if members and len(members) % 2 == 0:
        message = f"{len(members)} members of etcd: {few([member.name for member in members])}"
        hint = f"take {len(members) - 1} or {len(members) + 1}: an even number survives no more"
        own = cluster.etcd_kind == "systemd" and cluster.spec.role_groups.etcd
        role = "etcd" if own else "control-plane"
        yield Finding(("spec", "roleGroups", role), message, f"{hint} losses, and fewer splits")


@rule("etcd-external", "etcd", "roleGroups")
def external(cluster: Declared) -> Iterator[Finding]:
    """An etcd that is there already is told of, and nothing else is."""
    etcd = cluster.spec.etcd
    if cluster.etcd_kind == "external" and etcd.external is None:
        message = "`external` is missing for `kind: external`"
        yield Finding(_ETCD, message, "add `external: {endpoints: […], ca: …, certificate: …}`")
    if cluster.etcd_kind != "external" and etcd.external is not None:
        message = f"`external` has no meaning for `kind: {cluster.etcd_kind}`"
        hint = "leave it out, or write `kind: external`"
        yield Finding((*_ETCD, "external"), message, hint, at_key=True)


@rule("etcd-settings", "etcd", "roleGroups")
def settings(cluster: Declared) -> Iterator[Finding]:
    """Settings are those of a member that kubexm sets up."""
    etcd, kind = cluster.spec.etcd, cluster.etcd_kind
    for name in _NOT_EXTERNAL:
        if not etcd.says(name):
            continue
        if kind == "external" or (name == "version" and kind == "stacked"):
            alias = etcd.fields()[name].alias
            message = f"`{alias}` has no meaning for `kind: {kind}`"
            yield Finding((*_ETCD, alias), message, "leave it out", at_key=True)


@rule("etcd-patch", "etcd", "roleGroups", "kubernetes.kubeadm")
def patch(cluster: Declared) -> Iterator[Finding]:
    """kubeadm writes a pod of etcd only where it runs it."""
    if cluster.etcd_kind != "stacked" and "etcd" in cluster.spec.kubernetes.kubeadm.patches:
        message = f"a patch of `etcd` has no effect for `kind: {cluster.etcd_kind}`"
        place = ("spec", "kubernetes", "kubeadm", "patches", "etcd")
        hint = "leave it out, or have kubeadm run etcd: `etcd.kind: stacked`"
        yield Finding(place, message, hint, at_key=True)


RULES = (odd, external, settings, patch)
