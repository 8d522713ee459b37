"""Overrides of a cluster file, held against what kubexm itself writes at the same place.

A program that wants a mapping there takes no number: it would say so on a host, in its own words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from kubexm.config.rules.programs import reads_v1beta4
from kubexm.config.rules.rule import Declared, Rule
from kubexm.document import scalars
from kubexm.document.findings import Finding, shown
from kubexm.document.forms import camel
from kubexm.document.source import DataPath
from kubexm.templates import formats, registry, render

_SECTIONS = ("clientConnection", "conntrack", "detectLocal", "iptables", "ipvs", "nftables")
_OF_PROXY: Mapping[str, Any] = {name: {} for name in _SECTIONS}


class _Laid(msgspec.Struct, frozen=True):
    """Overrides, and the template that they are laid over."""

    field: str
    template: str
    kind: str = ""
    """That of the document, if the template has several."""
    also: Mapping[str, Any] = {}
    """What the program reads there, and kubexm does not write."""
    is_typed: bool = True
    """Whether the program tells one kind of scalar from another; charts seldom do."""

    @property
    def place(self) -> DataPath:
        return ("spec", *map(camel, self.field.split(".")))


_LAID = (
    _Laid("kubernetes.kubelet.config", "kubernetes/kubelet"),
    _Laid("kubernetes.kube_proxy.config", "kubeadm/init", "KubeProxyConfiguration", also=_OF_PROXY),
    _Laid("kubernetes.kubeadm.cluster_configuration", "kubeadm/init", "ClusterConfiguration"),
    _Laid("kubernetes.kubeadm.init_configuration", "kubeadm/init", "InitConfiguration"),
    _Laid("kubernetes.kubeadm.join_configuration", "kubeadm/join", "JoinConfiguration"),
    _Laid("container_runtime.config", "containerd/config"),
    _Laid("network.cilium.values", "cilium/values", is_typed=False),
)
_VERSION: DataPath = ("spec", "kubernetes", "version")


def rules() -> tuple[Rule, ...]:
    """What is laid over a file has the shape of what is there."""
    return tuple(
        Rule(f"shape-of-{laid.field}", (laid.place, _VERSION), _judge(laid)) for laid in _LAID
    )


def _judge(laid: _Laid) -> Callable[[Declared], Iterator[Finding]]:
    def judge(cluster: Declared) -> Iterator[Finding]:
        if over := attrgetter(laid.field)(cluster.spec):
            known = [*_written(_versioned(laid, cluster), laid.kind), laid.also]
            kind = _kind if laid.is_typed else _loose
            yield from _unlike(over, known, laid.place, kind)
            if registry.template(laid.template).format == "toml":
                yield from _no_value(over, laid.place)

    return judge


def _versioned(laid: _Laid, cluster: Declared) -> str:
    is_new = reads_v1beta4(cluster.spec.kubernetes.version)
    is_old = laid.template.startswith("kubeadm/") and not is_new
    return f"{laid.template}-v1beta3" if is_old else laid.template


def _written(name: str, kind: str) -> Iterator[Any]:
    """What kubexm writes into a file, in every way that it does."""
    template = registry.template(name)
    for sample in template.samples:
        found = formats.parsed(render.render(name, sample.data()), template.format)
        yield from (one for one in found if one["kind"] == kind) if kind else (found,)


def _unlike(
    over: Any, known: Sequence[Any], place: DataPath, kind: Callable[[Any], str]
) -> Iterator[Finding]:
    """Where something differs in shape from what is known there, if anything is."""
    wanted = dict.fromkeys(map(kind, known))
    # `null` takes out whatever is there.
    if over is not None and wanted and kind(over) not in wanted:
        message = f"found {shown(over)}, want {' or '.join(wanted)}"
        yield Finding(place, message, "write what the program itself takes here")
    elif isinstance(over, Mapping):
        for key, part in over.items():
            yield from _no_name(key, (*place, key))
            below = [one[key] for one in known if isinstance(one, Mapping) and key in one]
            yield from _unlike(part, below, (*place, key), kind)
    elif isinstance(over, list):
        entries = [entry for one in known if isinstance(one, list) for entry in one]
        for number, part in enumerate(over):
            yield from _unlike(part, entries, (*place, number), kind)


def _no_value(over: Any, place: DataPath, *, in_list: bool = False) -> Iterator[Finding]:
    """A `null` where it takes nothing out, and the format of the file has none."""
    if isinstance(over, Mapping):
        for key, part in over.items():
            yield from _no_value(part, (*place, key), in_list=in_list)
    elif isinstance(over, list):
        for number, part in enumerate(over):
            yield from _no_value(part, (*place, number), in_list=True)
    elif over is None and in_list:
        message = "found nothing in a list, want an entry that TOML can hold"
        yield Finding(place, message, "write a value, or leave it out")


def _no_name(key: str, place: DataPath) -> Iterator[Finding]:
    """A key that is a number, as no setting is called."""
    try:
        is_text = isinstance(scalars.resolve(key), str)
    except scalars.Ambiguous:
        is_text = False
    if not is_text:
        message = f"found `{key}` as a key, want the name of a setting"
        yield Finding(place, message, "write its name, which is text", at_key=True)


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return "`true` or `false`"
    return "a text" if isinstance(value, str) else "a number"


def _loose(value: Any) -> str:
    found = _kind(value)
    return found if found in ("a mapping", "a list") else "a single value"
