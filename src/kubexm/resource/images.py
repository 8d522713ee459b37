"""Container images: how they are called, and which of them lie in a store."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from kubexm.errors import InvalidInput, Problem, StepFailed
from kubexm.resource import manifests
from kubexm.resource.manifests import Descriptor
from kubexm.resource.store import Store

DOCKER_HUB = "docker.io"
_NAME = "image/"
"""Before the names of images in a store."""
_PART = "image-part/"
"""Before what an image is made of: what has no name in a store is cleared away."""

_LONGEST_NAME = 255
_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_REGISTRY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?")
_WORD = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_WORD}(?:/{_WORD})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")
_IDENTIFIER = re.compile(r"[0-9a-f]{64}")


class Reference(msgspec.Struct, frozen=True):
    """The full name of an image, with nothing left to a default."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def wanted(self) -> str:
        """What a registry is asked for: the digest if there is one."""
        return self.digest or self.tag

    def within(self, registry: str, project: str = "") -> Reference:
        """The same image in another registry, and in a project of it if there is one."""
        repository = f"{project}/{self.repository}" if project else self.repository
        return msgspec.structs.replace(self, registry=registry, repository=repository)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.registry}/{self.repository}{tag}{digest}"


class Image(msgspec.Struct, frozen=True):
    """An image whose bytes lie in a store, and its name if it has one."""

    root: Descriptor
    """Of its index, or of its only manifest."""
    name: Reference | None = None


def parse(text: str) -> Reference:
    """The full name behind what people write: `nginx` is `docker.io/library/nginx:latest`."""
    rest, at, digest = text.partition("@")
    name, colon, tag = _tag_apart(rest)
    registry, repository = _registry_apart(name)
    if not at and not colon:
        tag = "latest"
    problems = [
        *_name_problems(name, registry, repository),
        *_problems("tag", tag, _TAG, required=bool(colon)),
        *_problems("digest", digest, _DIGEST, required=bool(at)),
    ]
    if problems:
        message = f"`{text[:300]}` is no image reference"
        hint = "write it as `registry/repository:tag`, such as `registry.k8s.io/pause:3.10`"
        raise InvalidInput(message, problems=problems, hint=hint)
    return Reference(registry, repository, tag, digest)


def record(image: Image, store: Store) -> None:
    """Keep an image in the store under its name, with all that it is made of."""
    inside = manifests.contents([image.root], store)
    root = manifests.sha256_of(image.root.digest)
    digests = [manifests.sha256_of(each.digest) for each in (*inside.documents, *inside.blobs)]
    lacking = [each for each in digests if not store.claim(f"{_PART}{root}/{each}", each)]
    if lacking:
        message = (
            f"`{image.name or image.root.digest}` is not whole: sha256 {lacking[0]} is missing"
        )
        raise StepFailed(message, where=str(store.root), hint="pull or read the image anew")
    if image.name is not None:
        store.claim(f"{_NAME}{image.name}", root)


def find(name: Reference, store: Store) -> Image | None:
    """The image that is kept under a name, if there is one."""
    digest = store.find(f"{_NAME}{name}")
    return None if digest is None else Image(manifests.described_in(store, digest), name)


def recorded(store: Store) -> tuple[Image, ...]:
    """All images that have a name, in its order."""
    names = (name.removeprefix(_NAME) for name in store.names() if name.startswith(_NAME))
    found = (find(parse(name), store) for name in sorted(names))
    return tuple(image for image in found if image is not None)


def forget(name: Reference, store: Store) -> None:
    """Let go of an image; its bytes stay until the store is pruned."""
    names = store.names()
    root = names.pop(f"{_NAME}{name}", None)
    store.forget(f"{_NAME}{name}")
    if root in {digest for other, digest in names.items() if other.startswith(_NAME)}:
        return
    for part in names:
        if part.startswith(f"{_PART}{root}/"):
            store.forget(part)


def _tag_apart(text: str) -> tuple[str, str, str]:
    name, colon, tag = text.rpartition(":")
    # What stands before the first slash is the port of a registry.
    return (name, colon, tag) if colon and "/" not in tag else (text, "", "")


def _registry_apart(name: str) -> tuple[str, str]:
    first, slash, rest = name.partition("/")
    # Docker takes only these for a registry; `team/app` is of Docker Hub.
    is_registry = "." in first or ":" in first or first == "localhost" or first != first.lower()
    registry, repository = (first, rest) if slash and is_registry else (DOCKER_HUB, name)
    if registry == f"index.{DOCKER_HUB}":
        registry = DOCKER_HUB
    if registry == DOCKER_HUB and "/" not in repository:
        repository = f"library/{repository}"
    return registry, repository


def _name_problems(name: str, registry: str, repository: str) -> Iterator[Problem]:
    if _IDENTIFIER.fullmatch(name):
        yield Problem("found the id of an image, want its name")
    yield from _problems("registry", registry, _REGISTRY)
    if repository != repository.lower():
        yield Problem(f"the repository has capitals: `{repository}`, want `{repository.lower()}`")
    else:
        yield from _problems("repository", repository, _REPOSITORY)


def _problems(
    what: str, text: str, form: re.Pattern[str], *, required: bool = True
) -> Iterator[Problem]:
    if not required and not text:
        return
    # First the length: a long text would keep the pattern busy.
    if len(text) > _LONGEST_NAME:
        yield Problem(f"the {what} has {len(text)} characters, want at most {_LONGEST_NAME}")
    elif not form.fullmatch(text):
        yield Problem(f"found `{text}` as {what}, which can't be one")
