"""Registries of container images: pulled from into a store, and pushed to out of it."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec

from kubexm.common.threads import in_thread
from kubexm.errors import (
    InvalidFile,
    InvalidInput,
    KubexmError,
    Refused,
    StepFailed,
    TransferInterrupted,
)
from kubexm.resource import images, manifests
from kubexm.resource.arriving import Origin, Part
from kubexm.resource.fetch import Advance, Progress
from kubexm.resource.http import Settings, login_for, reason, shown
from kubexm.resource.images import Image, Reference
from kubexm.resource.manifests import Descriptor, Index
from kubexm.resource.store import Store

TOGETHER = 4
"""Blobs of one image that are on their way at the same time."""
_PIECE = 1 << 20
_LONGEST_ANSWER = 64 << 10
"""Bytes of a token or of a complaint; nobody needs more."""
_MOST_BREAKS = 1000
"""So often a blob is taken up again, as long as each time brings some of it."""
_LONGEST_PAUSE = 10
_LOOK = 0.1
"""Seconds between two looks at what another fetches."""
_MOST_LOOKS = 864_000
_BINARY = {"Content-Type": "application/octet-stream"}
_DOCUMENTS = ", ".join((*manifests.INDEXES, *manifests.MANIFESTS))
_PARAMETER = re.compile(r'([A-Za-z_]+)=(?:"([^"]*)"|([^\s,"]+))')
_Body = bytes | Callable[[], AsyncIterator[bytes]] | None
Told = Callable[[int], None]
"""Is told how many bytes of a blob are where they have to be."""


class Endpoint(msgspec.Struct, frozen=True):
    """Where a registry, or a mirror of one, is spoken to."""

    url: str
    """Such as `https://registry.example.org:5000`; logins are those of the settings."""
    project: str = ""
    """What a mirror has in front of the repositories, such as `hub` in `hub/library/nginx`."""


class _Token(msgspec.Struct, frozen=True):
    token: str = ""
    access_token: str = ""


class _Complaint(msgspec.Struct, frozen=True):
    code: str = ""
    message: str = ""


class _Complaints(msgspec.Struct, frozen=True):
    errors: tuple[_Complaint, ...] = ()


def endpoint(registry: str, *, encrypted: bool = True) -> Endpoint:
    """Where the registry of a reference is spoken to."""
    host = "registry-1.docker.io" if registry == images.DOCKER_HUB else registry
    return Endpoint(f"{'https' if encrypted else 'http'}://{host}")


class Registry:
    """One registry, over a client that was made with the same settings."""

    def __init__(self, client: httpx.AsyncClient, settings: Settings, place: Endpoint) -> None:
        self._client = client
        self._settings = settings
        self._place = place
        self._root = _address(place)
        self._tokens: dict[tuple[str, ...], str] = {}
        self._asking = asyncio.Lock()
        self._holders: dict[str, str] = {}
        """A repository that has a blob, by the digest of the blob."""

    def __str__(self) -> str:
        return self._root.netloc.decode()

    async def ping(self) -> None:
        """Raise unless there is a registry that lets us in."""
        async with self._answer("GET", "", ()) as response:
            await self._require(response, "/v2/", 200)

    async def document(self, repository: str, wanted: str) -> tuple[Descriptor, bytes]:
        """A manifest or an index by its tag or digest."""
        path, what = self._manifest(repository, wanted), _called(repository, wanted)
        scopes = self._may_pull(repository)
        async with self._answer("GET", path, scopes, {"Accept": _DOCUMENTS}) as response:
            await self._require(response, what, 200)
            data = await _limited(response, manifests.LARGEST_DOCUMENT, what)
        for promised in (wanted, response.headers.get("Docker-Content-Digest", "")):
            if (found := _digest_like(promised, data)) != promised:
                raise _not_as_wanted(f"`{what}` of {self}", found, promised)
        return manifests.described(data, _kind(response, data, what)), data

    async def digest(self, repository: str, wanted: str) -> str | None:
        """The digest of a manifest or an index; None if there is none."""
        path, scopes = self._manifest(repository, wanted), self._may_pull(repository)
        async with self._answer("HEAD", path, scopes, {"Accept": _DOCUMENTS}) as response:
            await self._require(response, _called(repository, wanted), 200, 404)
        digest: str | None = response.headers.get("Docker-Content-Digest")
        return digest if response.status_code == 200 else None

    async def fetch(
        self, repository: str, blob: Descriptor, store: Store, told: Told = lambda size: None
    ) -> None:
        """Bring a blob into the store, going on where an earlier attempt ended."""
        async with _part(blob, store, self._settings.silence) as part:
            if part is not None:
                await self._bring(repository, blob, store, part, told)
        told(blob.size)

    async def _bring(
        self, repository: str, blob: Descriptor, store: Store, part: Part, told: Told
    ) -> None:
        while await in_thread(part.take_up):
            pass
        await in_thread(store.require_room, blob.size - part.size)
        went_on = part.size > 0
        await self._receive_all(repository, blob, part, told)
        if went_on and not _is_whole(part, blob):
            # What was there before may be what is wrong.
            await in_thread(part.begin, _origin(blob))
            await self._receive_all(repository, blob, part, told)
        await self._require_whole(repository, blob, part)
        await in_thread(store.place, part)

    async def has(self, repository: str, digest: str) -> bool:
        """Whether a repository has a blob."""
        path = self._blob(repository, digest)
        async with self._answer("HEAD", path, self._may_pull(repository)) as response:
            await self._require(response, _called(repository, digest), 200, 404)
        if response.status_code == 200:
            self._holders[digest] = repository
        return response.status_code == 200

    async def send(
        self,
        repository: str,
        blob: Descriptor,
        store: Store,
        chunk: int = 0,
        told: Told = lambda size: None,
    ) -> None:
        """Bring a blob of the store into a repository, unless it is there already.

        At once, or in pieces of `chunk` bytes for registries behind a proxy that takes no more.
        """
        if not await self.has(repository, blob.digest):
            await self._take(repository, blob, store, chunk, told)
        told(blob.size)

    async def _take(
        self, repository: str, blob: Descriptor, store: Store, chunk: int, told: Told
    ) -> None:
        for left in reversed(range(self._settings.attempts)):
            try:
                if (place := await self._begin(repository, blob.digest)) is not None:
                    await self._upload(repository, place, blob, store, chunk, told)
                break
            except StepFailed:
                if not left:
                    raise
                await asyncio.sleep(self._settings.first_pause)
        self._holders[blob.digest] = repository

    async def publish(self, repository: str, wanted: str, kind: str, data: bytes) -> None:
        """Put a manifest or an index under its tag or digest."""
        path, scopes = self._manifest(repository, wanted), self._may_push(repository)
        async with self._answer("PUT", path, scopes, {"Content-Type": kind}, data) as response:
            await self._require(response, _called(repository, wanted), 201)

    async def _receive_all(self, repository: str, blob: Descriptor, part: Part, told: Told) -> None:
        """All of a blob, however often it is interrupted, as long as it gets on."""
        furthest, vain = part.size, 0
        for _ in range(_MOST_BREAKS):
            try:
                return await self._receive(repository, blob, part, told)
            except TransferInterrupted:
                vain = 0 if part.size > furthest else vain + 1
                furthest = max(furthest, part.size)
                if vain >= self._settings.attempts:
                    raise
            await asyncio.sleep(min(self._settings.first_pause * 2**vain, _LONGEST_PAUSE))
        raise StepFailed(f"{self} broke off {_MOST_BREAKS} times", hint="look at the network")

    async def _receive(self, repository: str, blob: Descriptor, part: Part, told: Told) -> None:
        """What is missing of a blob, by one request."""
        if part.size >= blob.size:
            return
        path, what = self._blob(repository, blob.digest), _called(repository, blob.digest)
        headers = {"Range": f"bytes={part.size}-"} if part.size else {}
        async with self._answer("GET", path, self._may_pull(repository), headers) as response:
            await self._require(response, what, 200, 206, 416)
            if not _goes_on(response, part.size):
                await in_thread(part.begin, _origin(blob))
            if response.status_code == 416:
                raise TransferInterrupted(f"{self} can't go on with `{what}`")
            await self._pour(response, blob, part, told)
        if part.size < blob.size:
            message = f"{self} ended `{what}` after {part.size:,} of {blob.size:,} bytes"
            raise TransferInterrupted(message, hint="try again: what has arrived is kept")

    async def _pour(
        self, response: httpx.Response, blob: Descriptor, part: Part, told: Told
    ) -> None:
        try:
            async for piece in response.aiter_raw(_PIECE):
                await in_thread(part.write, piece)
                told(min(part.size, blob.size))
                if part.size > blob.size:
                    return  # the digest tells
        except httpx.TransportError as error:
            broken = self._broken(response.url, error)
            raise TransferInterrupted(broken.message, hint=broken.hint) from error

    async def _require_whole(self, repository: str, blob: Descriptor, part: Part) -> None:
        if _is_whole(part, blob):
            return
        found = f"sha256:{part.digest}"
        await in_thread(part.discard)
        raise _not_as_wanted(f"a blob of `{repository}` from {self}", found, blob.digest)

    async def _begin(self, repository: str, digest: str) -> httpx.URL | None:
        """Where to upload a blob; None if the registry took it from another repository."""
        path = f"{self._full(repository)}/blobs/uploads/"
        scopes, holder = self._may_push(repository), self._holders.get(digest)
        if holder is not None and holder != repository:
            path += f"?mount={digest}&from={self._full(holder)}"
            scopes += self._may_pull(holder)
        async with self._answer("POST", path, scopes) as response:
            await self._require(response, f"uploads of `{repository}`", 201, 202)
        return None if response.status_code == 201 else self._next(response)

    async def _upload(
        self,
        repository: str,
        place: httpx.URL,
        blob: Descriptor,
        store: Store,
        chunk: int,
        told: Told,
    ) -> None:
        """Send a blob; what was sent in pieces before leaves nothing for the last request."""
        await in_thread(manifests.require_sound, blob, store)
        file, start = store.path(manifests.sha256_of(blob.digest)), 0
        while chunk > 0 and start < blob.size:
            end = min(start + chunk, blob.size)
            place = await self._sent_on(repository, place, file, (start, end), told)
            start = end
        headers = {**_BINARY, "Content-Length": str(blob.size - start)}
        place = place.copy_merge_params({"digest": blob.digest})
        scopes, body = self._may_push(repository), _stretch(file, start, blob.size, told)
        async with self._answer("PUT", place, scopes, headers, body) as response:
            await self._require(response, _called(repository, blob.digest), 201)

    async def _sent_on(
        self, repository: str, place: httpx.URL, file: Path, stretch: tuple[int, int], told: Told
    ) -> httpx.URL:
        """Send a piece of a blob; where to send the next one."""
        start, end = stretch
        length = {"Content-Range": f"{start}-{end - 1}", "Content-Length": str(end - start)}
        scopes, body = self._may_push(repository), _stretch(file, start, end, told)
        async with self._answer("PATCH", place, scopes, {**_BINARY, **length}, body) as response:
            await self._require(response, f"an upload to {repository}", 202)
        return self._next(response)

    def _next(self, response: httpx.Response) -> httpx.URL:
        """Where an upload goes on; some registries tell it without their own name."""
        try:
            return response.request.url.join(response.headers["Location"])
        except (KeyError, httpx.InvalidURL) as error:
            message = f"{self} does not say where an upload goes on"
            raise Refused(message, hint="look at the log of the registry") from error

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str | httpx.URL,
        scopes: tuple[str, ...],
        headers: Mapping[str, str] | None = None,
        body: _Body = None,
    ) -> AsyncIterator[httpx.Response]:
        """The answer to a request, for which the registry may ask for a token first."""
        url = self._root.join(path)
        try:
            token = self._tokens.get(scopes)
            response = await self._sent(method, url, scopes, headers, body)
            if response.status_code == 401 and (challenge := _bearer(response)) is not None:
                await _end(response)
                await self._log_in(challenge, scopes, token)
                response = await self._sent(method, url, scopes, headers, body)
            try:
                yield response
            finally:
                await _end(response)
        except httpx.HTTPError as error:
            raise self._broken(url, error) from error

    async def _sent(
        self,
        method: str,
        url: httpx.URL,
        scopes: tuple[str, ...],
        headers: Mapping[str, str] | None,
        body: _Body,
    ) -> httpx.Response:
        # Blobs have to arrive as the bytes of which the digest was made.
        own = {"Accept-Encoding": "identity", **(headers or {})}
        # An upload may go to another server, which must not learn the token.
        is_ours = (url.scheme, url.netloc) == (self._root.scheme, self._root.netloc)
        if is_ours and (token := self._tokens.get(scopes)):
            own["Authorization"] = f"Bearer {token}"
        content = body() if callable(body) else body
        request = self._client.build_request(method, url, headers=own, content=content)
        return await self._client.send(request, stream=True)

    async def _log_in(
        self, challenge: Mapping[str, str], scopes: tuple[str, ...], refused: str | None
    ) -> None:
        """Have another token than the one that was refused; of many who want one, one asks."""
        async with self._asking:
            if self._tokens.get(scopes) == refused:
                self._tokens[scopes] = await self._token(challenge, scopes)

    async def _token(self, challenge: Mapping[str, str], scopes: tuple[str, ...]) -> str:
        """A token for these scopes from whom the registry trusts with logins."""
        realm = self._realm(challenge)
        login = login_for(self._settings, self._root)
        headers = {} if login is None else {"Authorization": login.header()}
        query = {"service": challenge.get("service", ""), "scope": scopes}
        url = realm.copy_merge_params({name: value for name, value in query.items() if value})
        request = self._client.build_request("GET", url, headers=headers)
        response = await self._client.send(request, stream=True)
        try:
            await self._require(response, "a token", 200)
            data = await _limited(response, _LONGEST_ANSWER, "a token")
        finally:
            await _end(response)
        found = manifests.decoded(data, _Token, f"the token of {realm.host}")
        return found.token or found.access_token

    def _realm(self, challenge: Mapping[str, str]) -> httpx.URL:
        try:
            realm = httpx.URL(challenge.get("realm", ""))
        except httpx.InvalidURL:
            realm = httpx.URL("")
        # Who may listen on the way must not learn the login of an encrypted registry.
        if realm.scheme not in ("https", self._root.scheme) or not realm.host:
            message = f"{self} sends us for a token to `{shown(realm)}`, want an `https` address"
            raise Refused(message, hint="ask who runs the registry")
        return realm

    async def _require(self, response: httpx.Response, what: str, *statuses: int) -> None:
        """Raise unless the answer is one of these."""
        if (status := response.status_code) in statuses:
            return
        detail = await _complaint(response)
        if status in (401, 403):
            raise self._stranger(what, detail)
        if status == 404:
            message = f"{self} has no `{what}`{detail}"
            raise Refused(
                message, hint="look at the name and the tag, and whether it needs a login"
            )
        message = f"{self} answered {status} to {response.request.method} of `{what}`{detail}"
        if status < 500 and status not in (408, 429):
            raise Refused(message, hint="look at the log of the registry")
        raise StepFailed(message, hint="try again, or look at the log of the registry")

    def _stranger(self, what: str, detail: str) -> Refused:
        login = login_for(self._settings, self._root)
        if login is None:
            message = f"{self} gives `{what}` only to who has a login{detail}"
            return Refused(message, hint=f"give a login for `{self}`")
        who = f" of `{login.user}`" if login.user else ""
        message = f"{self} does not accept the login{who} for `{what}`{detail}"
        return Refused(message, hint="look at the password, and at what this user may do")

    def _broken(self, url: httpx.URL, error: httpx.HTTPError) -> StepFailed:
        message = f"no answer from {shown(url)}: {reason(error, self._settings)}"
        return StepFailed(message, hint="look at the address, the network and the proxy")

    def _may_pull(self, repository: str) -> tuple[str, ...]:
        return (f"repository:{self._full(repository)}:pull",)

    def _may_push(self, repository: str) -> tuple[str, ...]:
        return (f"repository:{self._full(repository)}:pull,push",)

    def _manifest(self, repository: str, wanted: str) -> str:
        return f"{self._full(repository)}/manifests/{wanted}"

    def _blob(self, repository: str, digest: str) -> str:
        return f"{self._full(repository)}/blobs/{digest}"

    def _full(self, repository: str) -> str:
        return f"{self._place.project}/{repository}" if self._place.project else repository


async def pull(
    sources: Sequence[Registry],
    name: Reference,
    store: Store,
    architectures: Sequence[str] = (),
    progress: Progress | None = None,
) -> Image:
    """Bring an image into the store from the first of these that gives it: mirrors come first.

    Of an index only the manifests for the architectures are brought, all if none is named. If that
    leaves something out, the image has a new index, which tells the digest of the old one.
    """
    failures: list[KubexmError] = []
    for source in sources:
        try:
            return await _pulled(source, name, store, architectures, progress)
        except (InvalidFile, Refused, StepFailed) as error:  # a full disk is nobody's fault there
            failures.append(error)
    if len(failures) == 1:
        raise failures[0]
    lines = "".join(f"\n  {failure}" for failure in failures)
    raise StepFailed(f"nobody gives `{name}`:{lines}", hint=failures[-1].hint if failures else "")


async def push(
    registry: Registry,
    image: Image,
    store: Store,
    name: Reference,
    *,
    chunk: int = 0,
    progress: Progress | None = None,
) -> bool:
    """Bring an image of the store into a registry; False if it was there under this name.

    Without a tag it lies there by the digest of its root.
    """
    wanted = name.tag or image.root.digest
    if await registry.digest(name.repository, wanted) == image.root.digest:
        return False
    inside = await asyncio.to_thread(manifests.contents, [image.root], store)
    told = _told(str(name), inside.blobs, progress)
    await _together(
        inside.blobs,
        lambda blob: registry.send(name.repository, blob, store, chunk, told(blob.digest)),
    )
    for document in inside.documents:
        place = wanted if document.digest == image.root.digest else document.digest
        data = await asyncio.to_thread(manifests.read, document, store)
        await registry.publish(name.repository, place, document.media_type, data)
    return True


async def _pulled(
    source: Registry,
    name: Reference,
    store: Store,
    architectures: Sequence[str],
    progress: Progress | None,
) -> Image:
    root, data = await source.document(name.repository, name.wanted)
    if root.media_type in manifests.INDEXES and architectures:
        data = manifests.trimmed(data, architectures, f"`{name}`")
        if manifests.digest_of(data) != root.digest:
            root = manifests.described(data, manifests.OCI_INDEX)
    await _documents(source, name.repository, root, data, store)
    if architectures:
        await _require_machines(source, name, root, store, architectures)
    inside = await asyncio.to_thread(manifests.contents, [root], store)
    told = _told(str(name), inside.blobs, progress)
    await _together(
        inside.blobs, lambda blob: source.fetch(name.repository, blob, store, told(blob.digest))
    )
    return Image(root, name)


async def _documents(
    source: Registry, repository: str, root: Descriptor, data: bytes, store: Store, depth: int = 0
) -> None:
    """Bring a document and all that it names into the store, it itself last."""
    if root.media_type in manifests.INDEXES:
        if depth > manifests.DEEPEST:
            raise Refused(f"index {root.digest} of `{repository}` is too deep in other indexes")
        for child in manifests.decoded(data, Index, f"index of `{repository}`").manifests:
            found, inner = await source.document(repository, child.digest)
            await _documents(source, repository, found, inner, store, depth + 1)
    await in_thread(manifests.kept, data, root.media_type, store)


async def _require_machines(
    source: Registry, name: Reference, root: Descriptor, store: Store, architectures: Sequence[str]
) -> None:
    """Refuse an image that is for other machines, before its layers are fetched."""
    inside = await asyncio.to_thread(manifests.contents, [root], store)
    configs = [each for each in inside.blobs if each.media_type in manifests.CONFIGS]
    await _together(configs, lambda config: source.fetch(name.repository, config, store))
    found = await asyncio.to_thread(manifests.platforms, root, store)
    manifests.require([platform for platform, _ in found], architectures, f"`{name}`")


def _told(
    name: str, blobs: Sequence[Descriptor], progress: Progress | None
) -> Callable[[str], Told]:
    """Whom to tell of each blob, so that somebody hears of the image as a whole."""
    total = sum(blob.size for blob in blobs)
    done = dict.fromkeys((blob.digest for blob in blobs), 0)

    def told(digest: str, size: int) -> None:
        done[digest] = size
        if progress is not None:
            progress(Advance(name, sum(done.values()), total))

    return lambda digest: partial(told, digest)


@asynccontextmanager
async def _part(blob: Descriptor, store: Store, patience: float) -> AsyncIterator[Part | None]:
    """What to fetch a blob into; None if it is there."""
    part = await _opened(manifests.sha256_of(blob.digest), store, patience)
    try:
        yield part
    finally:
        if part is not None:
            part.close()


async def _opened(sha256: str, store: Store, patience: float) -> Part | None:
    """The part of a blob, as soon as nobody else fetches the same."""
    size = still = 0
    for _ in range(_MOST_LOOKS):
        if store.has(sha256):
            return None
        # On the loop: it takes no time, and a cancel must not leave it open.
        if (part := store.part_of(sha256)) is not None:
            if not store.has(sha256):
                return part
            part.discard()  # it got its place between the two looks
            return None
        before, size = size, store.part_size(sha256)
        still = 0 if size != before else still + 1
        if still * _LOOK > patience:
            break
        await asyncio.sleep(_LOOK)
    return store.new_part()  # who has it stands still


async def _together(
    blobs: Iterable[Descriptor], bring: Callable[[Descriptor], Coroutine[Any, Any, None]]
) -> None:
    """Bring all of them, some at a time; the first failure ends the rest."""
    slots = asyncio.Semaphore(TOGETHER)

    async def one(blob: Descriptor) -> None:
        async with slots:
            await bring(blob)

    try:
        async with asyncio.TaskGroup() as group:
            for blob in blobs:
                group.create_task(one(blob))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def _end(response: httpx.Response) -> None:
    """Let go of an answer; only one that was read to its end leaves its connection to others."""
    length = response.headers.get("Content-Length", _LONGEST_ANSWER + 1)
    is_short = response.request.method == "HEAD" or int(length) <= _LONGEST_ANSWER
    if is_short and not response.is_stream_consumed:
        with suppress(httpx.HTTPError):
            await response.aread()
    await response.aclose()


async def _complaint(response: httpx.Response) -> str:
    """What a registry says of its refusal, if it says something."""
    try:
        data = await _limited(response, _LONGEST_ANSWER, "an answer")
        found = msgspec.json.decode(data, type=_Complaints).errors
    except (KubexmError, httpx.HTTPError, msgspec.DecodeError):
        return ""
    texts = [each.message or each.code for each in found[:3]]
    return f": {'; '.join(texts)}" if texts else ""


async def _limited(response: httpx.Response, most: int, what: str) -> bytes:
    """All of an answer that is not large."""
    data = bytearray()
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > most:
            raise Refused(f"{what} from {response.url.host} is larger than {most} bytes")
    return bytes(data)


def _address(place: Endpoint) -> httpx.URL:
    """Below which all of a registry is."""
    try:
        url = httpx.URL(place.url.rstrip("/") + "/v2/")
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        # It may hold a password, so it is not repeated.
        message = "this is no address of a registry, want `https://host:port` without a login"
        raise InvalidInput(message, hint="correct the address; logins belong to the settings")
    return url


def _bearer(response: httpx.Response) -> dict[str, str] | None:
    """Where the registry sends us for a token, if it does."""
    for header in response.headers.get_list("WWW-Authenticate"):
        scheme, _, rest = header.strip().partition(" ")
        if scheme.lower() == "bearer":
            return {name: quoted or bare for name, quoted, bare in _PARAMETER.findall(rest)}
    return None


def _kind(response: httpx.Response, data: bytes, what: str) -> str:
    """The kind of a document: what the registry says, or else what it says itself."""
    told = response.headers.get("Content-Type", "").partition(";")[0].strip()
    known = (*manifests.INDEXES, *manifests.MANIFESTS)
    return told if told in known else manifests.kind_of(data, f"`{what}`")


def _digest_like(promised: str, data: bytes) -> str:
    """The digest of some bytes, by the algorithm of another one; a tag promises nothing."""
    algorithm, colon, _ = promised.partition(":")
    if not colon or algorithm not in ("sha256", "sha384", "sha512"):
        return promised
    return f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}"


def _goes_on(response: httpx.Response, size: int) -> bool:
    """Whether the answer goes on where we are; some servers send all of it again."""
    told = response.headers.get("Content-Range", "")
    return response.status_code == 206 and told.startswith(f"bytes {size}-")


def _origin(blob: Descriptor) -> Origin:
    """A blob is known again by its digest, wherever it comes from."""
    return Origin(f'"{blob.digest}"', blob.size)


def _is_whole(part: Part, blob: Descriptor) -> bool:
    return f"sha256:{part.digest}" == blob.digest


def _stretch(path: Path, start: int, end: int, told: Told) -> Callable[[], AsyncIterator[bytes]]:
    """A part of a file, read as it is sent."""

    async def pieces() -> AsyncIterator[bytes]:
        with await asyncio.to_thread(path.open, "rb") as file:
            file.seek(start)
            for place in range(start, end, _PIECE):
                yield await asyncio.to_thread(file.read, min(_PIECE, end - place))
                told(min(place + _PIECE, end))

    return pieces


def _called(repository: str, wanted: str) -> str:
    return f"{repository}{'@' if ':' in wanted else ':'}{wanted}"


def _not_as_wanted(what: str, found: str, wanted: str) -> StepFailed:
    message = f"{what} is damaged: found {found}, want {wanted}"
    return StepFailed(message, hint="try again, or another mirror")
