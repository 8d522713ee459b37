"""Where a simulated containerd gets images: as hosts.toml says, of the world or outside."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec

from kubexm.sim import standins
from kubexm.sim.shell import Shell

STARTED = "registry:started"
_DOCKER = "docker.io"
_DOCKER_SERVER = "registry-1.docker.io"
_PULLS = frozenset(("pull", "resolve"))


class Serving(msgspec.Struct, frozen=True, omit_defaults=True):
    """A registry that a host of the world runs."""

    port: int
    data: str
    """Where it keeps images, on the host."""
    tls: bool = False


class Source(msgspec.Struct, frozen=True):
    """A server that may have an image."""

    url: str
    ca: tuple[str, ...] = ()
    any_certificate: bool = False
    whole_path: bool = False
    """Whether the path of the URL is that of the API, and nothing is added to it."""


def obstacle(shell: Shell, image: str, hosts_dir: str, strangers_to: Collection[str] = ()) -> str:
    """Why a host can't get an image; nothing if it can.

    `strangers_to`: the servers that want a login which whoever asks does not have.
    """
    registry, repository, tag = parts(image)
    why = ""
    for source in _sources(shell, registry, hosts_dir):
        why = _refused(shell, source, repository, tag)
        if not why and urlsplit(source.url).netloc in strangers_to:
            why = "failed to authorize: failed to fetch anonymous token: 401 Unauthorized"
        if not why:
            return ""
    return f'failed to resolve reference "{image}": {why}'


def parts(image: str) -> tuple[str, str, str]:
    """The registry of an image, its name there, and its tag or digest."""
    first, slash, rest = image.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        first, rest = _DOCKER, image if slash else f"library/{image}"
    name, at, digest = rest.partition("@")
    if at:
        return first, name.partition(":")[0], digest
    name, _, tag = rest.partition(":")
    return first, name, tag or "latest"


def serving(shell: Shell, port: int) -> Serving | None:
    """The registry that a host runs at a port."""
    found = shell.state.get(STARTED)
    if not isinstance(found, str):
        return None
    known = msgspec.json.decode(found, type=Serving)
    return known if known.port == port else None


def tag_path(registry: Serving, repository: str, tag: str) -> str:
    """Where a registry keeps which architectures it has of an image."""
    return f"{registry.data}/docker/registry/v2/repositories/{repository}/_manifests/tags/{tag}"


def _sources(shell: Shell, registry: str, hosts_dir: str) -> Iterator[Source]:
    """The servers that are asked for the images of a registry, in turn."""
    config = _hosts_file(shell, registry, hosts_dir)
    for url, given in config.get("host", {}).items():
        if set(given.get("capabilities", _PULLS)) >= _PULLS:
            yield _source(url, given)
    default = _DOCKER_SERVER if registry == _DOCKER else registry
    yield _source(config.get("server") or f"https://{default}", config)


def _source(url: str, given: dict[str, Any]) -> Source:
    ca = given.get("ca", ())
    return Source(
        url=url if "://" in url else f"https://{url}",
        ca=(ca,) if isinstance(ca, str) else tuple(ca),
        any_certificate=given.get("skip_verify", False),
        whole_path=given.get("override_path", False),
    )


def _hosts_file(shell: Shell, registry: str, hosts_dir: str) -> dict[str, Any]:
    folder = f"{registry.replace(':', '_')}_" if ":" in registry else registry
    for name in dict.fromkeys((folder, registry, "_default")) if hosts_dir else ():
        path = f"{hosts_dir}/{name}/hosts.toml"
        if shell.files.lookup(path) is not None:
            try:
                return tomllib.loads(shell.files.read(path).decode())
            except tomllib.TOMLDecodeError as error:
                return {"server": f"https://failed to decode {path}: {error}"}
    return {}


def _refused(shell: Shell, source: Source, repository: str, tag: str) -> str:
    """Why a server does not give an image."""
    for path in source.ca:
        if shell.files.lookup(shell.files.resolve(path)) is None:
            return f"unable to load CA file {path}: no such file or directory"
    url = urlsplit(source.url)
    host = url.hostname or ""
    port = url.port or (443 if url.scheme == "https" else 80)
    asked = f'failed to do request: Head "{source.url}/{repository}/manifests/{tag}": dial tcp'
    if not shell.around.resolved(host):
        return f"{asked}: lookup {host}: no such host"
    reached = shell.around.reached(host, port)
    if not reached:
        # What is no host of the world has every image.
        accepted = shell.around.listens(host, port)
        return "" if accepted else f"{asked} {host}:{port}: connect: connection refused"
    folder = url.path.removeprefix("/v2").strip("/") if source.whole_path else ""
    name = f"{folder}/{repository}" if folder else repository
    there = shell.around.shell_of(reached[0])
    known = serving(there, port) if there is not None else None
    if there is None or known is None:
        return f"{source.url}: unexpected status: 404 Not Found"
    return _tls_fault(source, known) or _missing(shell, there, known, name, tag)


def _tls_fault(source: Source, registry: Serving) -> str:
    encrypted = source.url.startswith("https:")
    if encrypted and not registry.tls:
        return "http: server gave HTTP response to HTTPS client"
    if registry.tls and not encrypted:
        return "unexpected status: 400 Bad Request: Client sent an HTTP request to an HTTPS server"
    if encrypted and not (source.ca or source.any_certificate):
        return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    return ""


def _missing(shell: Shell, there: Shell, registry: Serving, name: str, tag: str) -> str:
    path = tag_path(registry, name, tag)
    if there.files.lookup(path) is None:
        return f"{name}:{tag}: not found"
    if standins.machine_arch(shell) not in there.files.read(path).decode().split():
        return f"{name}:{tag}: no match for platform in manifest: not found"
    return ""
