"""Settings in objects that others have written: images, environment, probes, config maps.

All of it goes by names. What is named and not there is a mistake: the file is another one than
whoever wrote the settings had before them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubexm.errors import StepFailed

Document = dict[str, Any]
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_NETWORK = "cni_network_config"
# The file says `"mtu": __CNI_MTU__`: what takes its place is a number, so it has no quotes.
_BARE = re.compile(r"(?<![\"\w])(__[A-Z_]+__)(?![\"\w])")
_QUOTED = re.compile(r'"@(__[A-Z_]+__)"')


class Settings(msgspec.Struct, frozen=True):
    """What is to be otherwise in the objects of a file."""

    images: Mapping[str, str] = {}
    environment: Mapping[str, Mapping[str, str | None]] = {}
    unprobed: Mapping[str, Sequence[str]] = {}
    config: Mapping[str, Mapping[str, str]] = {}
    ipam: Mapping[str, Any] = {}


def changed(documents: Sequence[Document], settings: Settings) -> None:
    """Change these objects; `StepFailed` with all that is named and not there."""
    problems = [
        *_images(documents, settings.images),
        *_per_container(documents, settings.environment, _set_environment),
        *_per_container(documents, settings.unprobed, _leave_out_of_probes),
        *_config(documents, settings.config),
        *_ipam(documents, settings.ipam),
    ]
    if problems:
        raise StepFailed(
            f"the file does not fit its settings: {'; '.join(problems)}",
            hint="see that the catalog has the version that the settings were written for",
        )


def containers(documents: Sequence[Document]) -> Iterator[Document]:
    """All containers of pods, those that only begin them too."""
    for document in documents:
        pod = document.get("spec", {}).get("template", {}).get("spec", {})
        for kind in ("initContainers", "containers"):
            yield from pod.get(kind, ())


def _images(documents: Sequence[Document], images: Mapping[str, str]) -> Iterator[str]:
    if not images:
        return
    found = list(containers(documents))
    named = {container["image"] for container in found}
    yield from (f"no image `{name}`" for name in sorted(images.keys() - named))
    yield from (f"image `{name}` is not accounted for" for name in sorted(named - images.keys()))
    for container in found:
        container["image"] = images.get(container["image"], container["image"])


def _per_container(
    documents: Sequence[Document],
    settings: Mapping[str, Any],
    change: Callable[[Document, Any], None],
) -> Iterator[str]:
    known = {container["name"]: container for container in containers(documents)}
    for name, wanted in settings.items():
        if name in known:
            change(known[name], wanted)
        else:
            yield f"no container `{name}`"


def _set_environment(container: Document, wanted: Mapping[str, str | None]) -> None:
    """Values by name, in the places they have; None takes one away."""
    now = {entry["name"]: entry for entry in container.get("env", ())}
    given = {name: {"name": name, "value": value} for name, value in wanted.items()}
    kept = {**now, **given}
    container["env"] = [entry for name, entry in kept.items() if wanted.get(name, "") is not None]


def _leave_out_of_probes(container: Document, words: Sequence[str]) -> None:
    for probe in (container[name] for name in _PROBES if name in container):
        if "exec" in probe:
            command = probe["exec"]["command"]
            probe["exec"]["command"] = [word for word in command if word not in words]


def _config(
    documents: Sequence[Document], config: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    known = {map_["metadata"]["name"]: map_["data"] for map_ in _config_maps(documents)}
    for name, wanted in config.items():
        if name not in known:
            yield f"no config map `{name}`"
            continue
        yield from (f"no `{key}` in `{name}`" for key in wanted if key not in known[name])
        known[name].update(wanted)


def _ipam(documents: Sequence[Document], ipam: Mapping[str, Any]) -> Iterator[str]:
    """Settings for who gives addresses to pods, in the configuration of the network plugin."""
    if not ipam:
        return
    holders = [data for map_ in _config_maps(documents) if _NETWORK in (data := map_["data"])]
    if not holders:
        yield f"no config map with `{_NETWORK}`"
    for data in holders:
        network = json.loads(_BARE.sub(r'"@\1"', data[_NETWORK]))
        for plugin in (plugin for plugin in network["plugins"] if "ipam" in plugin):
            plugin["ipam"].update(ipam)
        data[_NETWORK] = _QUOTED.sub(r"\1", json.dumps(network, indent=2))


def _config_maps(documents: Sequence[Document]) -> Iterator[Document]:
    return (
        document
        for document in documents
        if document.get("kind") == "ConfigMap" and "data" in document
    )
