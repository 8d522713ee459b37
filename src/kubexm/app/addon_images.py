"""Images that add-ons run, as far as their objects are at hand; those of charts are not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kubexm.config.cluster import Cluster
from kubexm.config.rules.rule import Declared
from kubexm.document import problems
from kubexm.document.source import DataPath
from kubexm.errors import InvalidCluster, InvalidInput, Problem
from kubexm.resource import bundle, images
from kubexm.resource.needs import NamedImage
from kubexm.task.operator_files import OperatorFiles
from kubexm.templates import formats

_TEMPLATE = ("spec", "template", "spec")
_PODS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): ("spec",),
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("batch", "Job"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE),
}
"""Where a pod stands in an object, by group and kind; what others may hold is theirs to know."""
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_ARCH = "kubernetes.io/arch"
_TERMS = (
    *("affinity", "nodeAffinity"),
    *("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"),
)
_SEE = "see docs/reference/cluster-file.md, which describes every key"
_BRING = "bring those that it runs: kubexm bundle build --images"
_IF_LACKING = "write `imagePullPolicy: IfNotPresent` beside the image"


class _Run(msgspec.Struct, frozen=True):
    """A container of an add-on."""

    addon: str
    image: str
    policy: str
    architectures: tuple[str, ...]


def named(cluster: Cluster, files: OperatorFiles | None = None) -> tuple[NamedImage, ...]:
    """The images that objects of add-ons name, but for those that the site itself serves.

    Without `files`, which tell by themselves what can't be read, that is refused here.
    """
    found = _runs(cluster, files)
    return tuple(
        NamedImage(
            name=one.image,
            reason=f"the add-on `{one.addon}` runs it",
            architectures=one.architectures,
        )
        for one in found
        if not _is_of_site(cluster.declared, one.image)
    )


def brought(cluster: Cluster, path: Path) -> tuple[NamedImage, ...]:
    """The images of a bundle that may be of charts: those that nobody has named.

    That there is no bundle is told by who opens it.
    """
    has_chart = any(addon.chart is not None for addon in cluster.declared.spec.addons)
    if not has_chart or not path.is_file():
        return ()
    manifest = bundle.contents(path)
    return tuple(
        NamedImage(
            name=name,
            reason="it was brought into the bundle",
            architectures=tuple(manifest.images[name].architectures),
        )
        for name in manifest.brought
        if name in manifest.images
    )


def notes(cluster: Cluster, files: OperatorFiles | None = None) -> Iterator[Problem]:
    """What can't be told of images of add-ons, and what helps no pod though a host has it."""
    for addon in cluster.declared.spec.addons:
        if addon.chart is not None:
            message = f"the images of the chart `{addon.chart.name}` are not known"
            yield Problem(message, f"the add-on `{addon.name}`", _BRING)
    for one in dict.fromkeys(_runs(cluster, files)):
        if _is_always_pulled(one) and not _is_of_site(cluster.declared, one.image):
            message = f"`{one.image}` is pulled whenever a pod starts, so a registry has to have it"
            yield Problem(message, f"the add-on `{one.addon}`", _IF_LACKING)


def objects(documents: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """The objects of documents, each of which may be a list of some."""
    for one in documents:
        items = one.get("items") if str(one.get("kind", "")).endswith("List") else None
        if isinstance(items, list):
            yield from objects(item for item in items if isinstance(item, Mapping))
        else:
            yield one


def _runs(cluster: Cluster, files: OperatorFiles | None) -> list[_Run]:
    own = files or OperatorFiles(cluster.document.directory)
    found = [
        _Run(addon, str(container["image"]), str(container.get("imagePullPolicy", "")), machines)
        for addon, text, place in _texts(cluster.declared, own)
        for pod in _pods(text, place, own)
        for machines in (_architectures(pod),)
        for container in _containers(pod)
    ]
    if files is None and own.findings:
        placed = problems.placed(own.findings, cluster.document, _SEE)
        said = "is not a valid cluster"
        raise problems.refusal(InvalidCluster, cluster.document, said, placed, is_all=True)
    return found


def _texts(cluster: Declared, files: OperatorFiles) -> Iterator[tuple[str, str, DataPath]]:
    """The manifests of add-ons, each with the name of the add-on and its place in the file."""
    for number, addon in enumerate(cluster.spec.addons):
        place = ("spec", "addons", number)
        if addon.inline is not None:
            yield addon.name, addon.inline, (*place, "inline")
        for at, path in enumerate(addon.manifests or ()):
            here = (*place, "manifests", at)
            yield addon.name, files.text(path, here), here


def _pods(text: str, place: DataPath, files: OperatorFiles) -> Iterator[Mapping[str, Any]]:
    """What pods are like that objects are, or make."""
    try:
        documents = formats.parsed(text, "manifests")
    except InvalidInput as error:
        files.note(place, f"found no objects of a cluster: {error.message}", error.hint)
        return
    for one in objects(documents):
        group, slash, _ = str(one.get("apiVersion", "")).partition("/")
        where = _PODS.get((group if slash else "", str(one.get("kind", ""))))
        if where is not None:
            yield _mapping(one, *where)


def _containers(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Those that say what they run; others are filled in by somebody in the cluster."""
    for kind in _CONTAINERS:
        for one in _mappings(pod.get(kind)):
            if isinstance(image := one.get("image"), str) and image.strip():
                yield one


def _architectures(pod: Mapping[str, Any]) -> tuple[str, ...]:
    """The architectures that a pod is for; nothing if it does not say so."""
    selected = _mapping(pod, "nodeSelector").get(_ARCH)
    if isinstance(selected, str):
        return (selected,)
    terms = _mapping(pod, *_TERMS[:-1]).get(_TERMS[-1])
    found = [_of_term(term) for term in _mappings(terms)]
    # Each of the terms is enough, so one that leaves it open leaves it open.
    return tuple(sorted({arch for of in found for arch in of})) if all(found) else ()


def _of_term(term: Mapping[str, Any]) -> tuple[str, ...]:
    for one in _mappings(term.get("matchExpressions")):
        if (one.get("key"), one.get("operator")) == (_ARCH, "In"):
            values = one.get("values")
            return tuple(map(str, values)) if isinstance(values, list) else ()
    return ()


def _is_of_site(cluster: Declared, image: str) -> bool:
    """Whether a registry serves it that is there with the hosts: the site's, or one of theirs."""
    try:
        registry = images.parse(image).registry
    except InvalidInput:
        return False  # which is told where it is asked for
    host = registry.rpartition(":")[0] if ":" in registry else registry
    own = {one for member in cluster.members for one in (member.name, *member.internal)}
    own |= {"localhost", "127.0.0.1", cluster.spec.registry.host or ""}
    return host.strip("[]") in own


def _is_always_pulled(run: _Run) -> bool:
    if run.policy:
        return run.policy == "Always"
    try:
        name = images.parse(run.image)
    except InvalidInput:
        return False
    return name.tag == "latest" and not name.digest


def _mapping(data: Any, *keys: str) -> Mapping[str, Any]:
    """What stands below some keys, as far as that is a mapping at all."""
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def _mappings(data: Any) -> list[Mapping[str, Any]]:
    return [one for one in data if isinstance(one, Mapping)] if isinstance(data, list) else []
