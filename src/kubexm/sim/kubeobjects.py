"""What an API server does with objects: it finds their kinds, refuses what is wrong, and merges."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kubexm.sim import kubeapply, kubenodes
from kubexm.sim.apiserver import Api
from kubexm.sim.kubedocs import Object, entries, part, section
from kubexm.sim.kubekinds import CRD, NAMESPACE, NODE
from kubexm.sim.kubestore import Ref
from kubexm.sim.kubeworkloads import WORKLOADS

_OF_KUBERNETES = ("default", "kube-system", "kube-public", "kube-node-lease")


class Rejected(Exception):
    """What an API server answers instead of doing it, as kubectl shows it."""


class Applied(msgspec.Struct, frozen=True):
    """An object before and after it was applied."""

    ref: Ref
    live: Object | None
    new: Object


def ref_of(api: Api, document: Object, namespace: str = "") -> Ref:
    """Which object a document is about."""
    version, kind = str(document.get("apiVersion")), str(document.get("kind"))
    name = part(document, "metadata", "name")
    if not name:
        raise Rejected(f"error: {kind}: resource name may not be empty")
    found = api.cluster.kind_of(version, kind)
    if found is None:
        raise Rejected(
            f'error: resource mapping not found for name: "{name}" from "STDIN": no matches for'
            f' kind "{kind}" in version "{version}"\nensure CRDs are installed first'
        )
    within = part(document, "metadata", "namespace") or namespace or "default"
    return Ref(found, within if found.namespaced else "", name)


def apply(api: Api, ref: Ref, document: Object, *, dry: bool = False) -> Applied:
    """Have an object be as a document says; with `dry`, only find out how it would be."""
    require_namespace(api, ref)
    live, before = api.cluster.get(ref), api.cluster.applied(ref)
    if ref.kind.namespaced:
        placed = {**section(document, "metadata"), "namespace": ref.namespace}
        document = {**document, "metadata": placed}
    new = kubeapply.merged(live, document, before)
    for why in _faults(ref, live, new):
        shown = f'{ref.kind.kind}{f".{ref.kind.group}" if ref.kind.group else ""} "{ref.name}"'
        raise Rejected(f"The {shown} is invalid: {why}")
    if not dry:
        new = api.cluster.put(ref, new)
        api.cluster.set_applied(ref, document)
    return Applied(ref, live, new)


def delete(api: Api, ref: Ref) -> None:
    """Remove an object, and what can't be without it."""
    if ref.kind == NODE:
        kubenodes.forget(api.cluster, ref.name)
        return
    if ref.kind == NAMESPACE:
        if ref.name in _OF_KUBERNETES:
            raise Rejected(f'Error from server (Forbidden): namespaces "{ref.name}" is forbidden')
        for inner in api.cluster.in_namespace(ref.name):
            api.cluster.delete(inner)
    if ref.kind == CRD:
        for kind in (one for one in api.cluster.custom_kinds() if one.name == ref.name):
            for inner in api.cluster.refs(kind):
                api.cluster.delete(inner)
    api.cluster.delete(ref)


def require_namespace(api: Api, ref: Ref) -> None:
    """Raise if the namespace of an object is not there."""
    if ref.kind.namespaced and api.cluster.get(Ref(NAMESPACE, "", ref.namespace)) is None:
        raise Rejected(f'Error from server (NotFound): namespaces "{ref.namespace}" not found')


def not_found(ref: Ref) -> Rejected:
    """The answer for an object that is not there."""
    return Rejected(f'Error from server (NotFound): {ref.kind.name} "{ref.name}" not found')


def _faults(ref: Ref, live: Object | None, new: Object) -> Iterator[str]:
    if ref.kind not in WORKLOADS:
        return
    selector = section(new, "spec", "selector", "matchLabels")
    labels = section(new, "spec", "template", "metadata", "labels")
    if not selector or any(labels.get(key) != value for key, value in selector.items()):
        yield "spec.template.metadata.labels: `selector` does not match template `labels`"
    if live is not None and selector != section(live, "spec", "selector", "matchLabels"):
        yield "spec.selector: field is immutable"
    pod = section(new, "spec", "template", "spec")
    volumes = {part(one, "name") for one in entries(pod, "volumes")}
    if not entries(pod, "containers"):
        yield "spec.template.spec.containers: Required value"
    for place in ("initContainers", "containers"):
        for one in entries(pod, place):
            yield from _container_faults(f"spec.template.spec.{place}", one, volumes)


def _container_faults(place: str, container: Object, volumes: set[str]) -> Iterator[str]:
    for field in ("name", "image"):
        if not container.get(field):
            yield f"{place}.{field}: Required value"
    for mount in entries(container, "volumeMounts"):
        if mount.get("name") not in volumes:
            yield f'{place}.volumeMounts.name: Not found: "{mount.get("name")}"'
