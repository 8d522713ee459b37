"""Helm charts, found in the repositories that have them and fetched into a store."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from os.path import normpath
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import msgspec

from kubexm.common.threads import in_thread
from kubexm.document import source
from kubexm.errors import InvalidFile, InvalidInput, Refused, StepFailed
from kubexm.resource import fetch, http, images, keys, kinds, manifests, sources, versions
from kubexm.resource.catalog import ChartRelease
from kubexm.resource.fetch import Artifact, Options, Progress
from kubexm.resource.images import Reference
from kubexm.resource.manifests import Manifest
from kubexm.resource.registries import Giving
from kubexm.resource.registry import Registry
from kubexm.resource.sources import FileSource, WebSource
from kubexm.resource.store import Store

OCI = "oci://"
CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
"""The kind of the layer that is a chart."""
LARGEST_INDEX = 64 << 20
_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_LOGIN = re.compile(r"//[^/]*@")
_ELSEWHERE = "serve it by HTTP, or copy it and write `file:///DIRECTORY`"
_LOOK = "look at the repository, or download the chart and give its path"


class Release(msgspec.Struct, frozen=True):
    """A version of a chart, as the index of a repository lists it."""

    version: str
    urls: tuple[str, ...]
    digest: str = ""


async def fetch_chart(
    chart: ChartRelease,
    store: Store,
    options: Options,
    giving: Giving,
    progress: Progress | None = None,
) -> None:
    """Have a chart in the store, under its key; what is there is not looked for again."""
    if await in_thread(store.find, keys.of_chart(chart)) is not None:
        return
    if chart.repository.startswith(OCI):
        await _pull(chart, store, giving)
        return
    release = chosen(chart, listed(await _index(chart, options), chart.name))
    digest = _SHA256.fullmatch(release.digest)
    artifact = Artifact(
        name=keys.of_chart(chart),
        sources=_places(chart, release),
        sha256=digest[1] if digest else None,
        kind="chart",
    )
    await fetch.fetch([artifact], store, options, progress)


def listed(index: str, name: str) -> list[Release]:
    """The releases of a chart in the text of an index, of which the rest is not read."""
    data = source.parse(_section(index, name), "index.yaml").data
    entries = data.get("entries") if isinstance(data, dict) else None
    found = entries.get(name) if isinstance(entries, dict) else None
    return [*_releases(found)] if isinstance(found, list) else []


def chosen(chart: ChartRelease, releases: Sequence[Release]) -> Release:
    """The release that is asked for; the newest final one if none is."""
    alike = [each for each in releases if versions.bare(each.version) == _bare(chart)]
    if chart.version and alike:
        return alike[0]
    known = sorted((each for each in releases if _is_version(each.version)), key=_age)
    if not chart.version and known:
        return known[-1]
    newest = f"the newest is `{known[-1].version}`; " if known else ""
    message = f"{chart.repository} has no chart `{chart.name}` `{chart.version}`"
    raise StepFailed(message, hint=f"{newest}{_LOOK}")


def address(repository: str) -> str:
    """Where the index of a repository is, which lists all its charts."""
    return f"{repository.rstrip('/')}/index.yaml"


def at_hand(repository: str) -> str | None:
    """The index of a repository that is a directory of this machine; None of any other."""
    path = _path(address(repository))
    return None if path is None else _read(path).decode("utf-8", "replace")


def _places(chart: ChartRelease, release: Release) -> tuple[str, ...]:
    """Where a release can be had, as far as its repository may say so.

    Whoever writes the index of a repository must not choose files of this machine beside it.
    """
    found = (_place_of(chart, url) for url in release.urls)
    if places := tuple(place for place in found if place):
        return places
    told = ", ".join(f"`{_LOGIN.sub('//…@', url)[:200]}`" for url in release.urls) or "no address"
    message = f"{chart.repository} names {told} for the chart `{chart.name}`, want one below it"
    raise StepFailed(f"{message} or of a web server", hint=_LOOK)


def _place_of(chart: ChartRelease, url: str) -> str:
    """An address as the index of a repository means it; empty if it can't be one."""
    base = f"{chart.repository.rstrip('/')}/"
    try:
        place = sources.parse(urljoin(base, url))
    except (ValueError, InvalidInput):
        return ""
    match place:
        case WebSource():
            return place.url
        case FileSource() if root := _path(base):
            path = normpath(place.path)  # in which `..` may have been written as `%2e%2e`
            return path if Path(path).is_relative_to(normpath(root)) else ""
    return ""


async def _index(chart: ChartRelease, options: Options) -> str:
    url = address(chart.repository)
    if chart.repository.startswith("s3://"):
        raise InvalidInput(f"found {url}, want a repository and no bucket", hint=_ELSEWHERE)
    index = await in_thread(at_hand, chart.repository)
    return (await _download(url, options)).decode("utf-8", "replace") if index is None else index


def _path(url: str) -> Path | None:
    """Where something lies of a repository that is a directory of this machine."""
    place = sources.parse(url) if url.startswith("file://") else None
    return place.path if isinstance(place, FileSource) else None


def _read(path: Path) -> bytes:
    """The index of a repository that is a directory."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_INDEX + 1)
    except OSError as error:
        hint = "write the index by `helm repo index DIRECTORY`, or give the path of the chart"
        raise StepFailed(f"can't read `{path}`: {error.strerror}", hint=hint) from error
    _require_small(len(data), str(path))
    return data


async def _download(url: str, options: Options) -> bytes:
    data = bytearray()
    try:
        async with http.client(options.web) as client, client.stream("GET", url) as response:
            if response.status_code != httpx.codes.OK:
                raise StepFailed(f"{url} answers {response.status_code}", hint=_LOOK)
            async for piece in response.aiter_bytes():
                data += piece
                _require_small(len(data), url)
    except httpx.HTTPError as error:
        message = f"no answer from {url}: {http.reason(error, options.web)}"
        raise StepFailed(message, hint=_LOOK) from error
    except (httpx.InvalidURL, UnicodeError) as error:
        raise StepFailed(f"{url} is no address of a repository", hint=_LOOK) from error
    return bytes(data)


def _require_small(size: int, url: str) -> None:
    if size > LARGEST_INDEX:
        raise StepFailed(f"{url} has more than {LARGEST_INDEX:,} bytes", hint=_LOOK)


def _section(index: str, name: str) -> str:
    """What the index says of one chart: that of a large repository takes minutes to read."""
    begin = re.search(rf"(?m)^  [\"']?{re.escape(name)}[\"']?:\s*$", index)
    if begin is None:
        return index
    end = re.search(r"(?m)^(?:  )?[^\s-]", index[begin.end() :])
    part = index[begin.start() : begin.end() + end.start()] if end else index[begin.start() :]
    return f"entries:\n{part}"


def _releases(entries: list[Any]) -> Iterator[Release]:
    for entry in entries:
        if isinstance(entry, dict) and isinstance(entry.get("urls"), list):
            urls = tuple(str(url) for url in entry["urls"])
            yield Release(str(entry.get("version", "")), urls, str(entry.get("digest", "")))


def _bare(chart: ChartRelease) -> str:
    return versions.bare(chart.version)


def _is_version(text: str) -> bool:
    try:
        versions.parse(text)
    except versions.BadVersion:
        return False
    return True


def _age(release: Release) -> tuple[bool, versions.Version]:
    """What is no final release stands before all that are."""
    return "-" not in release.version, versions.parse(release.version)


async def _pull(chart: ChartRelease, store: Store, giving: Giving) -> None:
    """Have a chart that lies in a registry."""
    if not chart.version:
        message = f"the chart `{chart.name}` of {chart.repository} has no version"
        raise InvalidInput(message, hint="name one: a registry does not say which is the newest")
    place = f"{chart.repository.removeprefix(OCI).rstrip('/')}/{chart.name}"
    # A tag has no `+`, and helm writes this in its place.
    name = images.parse(f"{place}:{chart.version.replace('+', '_')}")
    failures: list[str] = []
    for registry in giving(name):
        try:
            return await _from_registry(registry, name, keys.of_chart(chart), store)
        except (InvalidFile, Refused, StepFailed) as error:
            failures.append(str(error))
    raise StepFailed(f"nobody gives the chart `{name}`: {'; '.join(failures)}", hint=_LOOK)


async def _from_registry(registry: Registry, name: Reference, key: str, store: Store) -> None:
    _, data = await registry.document(name.repository, name.wanted)
    layers = manifests.decoded(data, Manifest, f"manifest of `{name}`").layers
    content = next((layer for layer in layers if layer.media_type == CONTENT), None)
    if content is None:
        raise Refused(f"`{name}` of {registry} is no chart", hint=_LOOK)
    await registry.fetch(name.repository, content, store)
    if fault := await in_thread(
        kinds.fault, "chart", store.path(manifests.sha256_of(content.digest))
    ):
        raise Refused(f"`{name}` of {registry} is no chart: {fault}", hint=_LOOK)
    await in_thread(store.claim, key, manifests.sha256_of(content.digest))
