"""Artifacts fetched into the store: from the first source that has the right one, many at once.

What arrives lies in the store's parts until it is whole, so that whoever is interrupted goes on
where it ended, if the server says that it still has the same.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import IO, NoReturn, ParamSpec, TypeVar

import httpx
import msgspec

from kubexm.common.counting import counted
from kubexm.common.secrets import Discreet
from kubexm.common.threads import in_thread
from kubexm.errors import InvalidInput, KubexmError, Problem, StepFailed
from kubexm.resource import http, kinds, s3, sources
from kubexm.resource.arriving import PIECE, Origin, Part
from kubexm.resource.http import Settings
from kubexm.resource.kinds import Kind
from kubexm.resource.s3 import Access
from kubexm.resource.sources import BucketSource, FileSource, Source, WebSource
from kubexm.resource.store import Store, opened

P = ParamSpec("P")
C = TypeVar("C", bound=Part | IO[bytes] | None)

_MOST_BREAKS = 1000
"""So often a download is taken up again, as long as each time brings some of it."""
_LOOK = 0.1
"""Seconds between two looks at what another process fetches."""
_MOST_LOOKS = 864_000
_ABOUT_RANGES = frozenset({206, 416})
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MEANING = {
    301: "it says that this is elsewhere (301)",
    307: "it says that this is elsewhere (307)",
    401: "it wants a login (401)",
    403: "it does not let us have this (403)",
    404: "it does not have this (404)",
    407: "the proxy wants a login (407)",
    410: "it does not have this any more (410)",
    429: "it is asked too often (429)",
}


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted: a name for it, and the sources that may have it, the best one first."""

    name: str
    sources: tuple[str, ...]
    sha256: str | None = None
    """Without it, what once arrived under this name is taken for right."""
    size: int | None = None
    kind: Kind = ""
    """What it has to be by what is in it."""
    anew: bool = False
    """Whether it is fetched though something is there under its name; the right digest suffices."""


class Fetched(msgspec.Struct, frozen=True):
    """An artifact that is in the store."""

    name: str
    sha256: str
    size: int
    source: str = ""
    """Where it came from just now; empty if it was there already."""


class Advance(msgspec.Struct, frozen=True):
    """How much of an artifact is here; less than before where a source starts over."""

    name: str
    done: int
    total: int | None
    """None if nobody has said it."""


Progress = Callable[[Advance], None]


class Options(Discreet, frozen=True, kw_only=True):
    """How it is fetched."""

    hidden = frozenset()

    web: Settings = Settings()
    buckets: Mapping[str, Access] = {}
    """How a bucket is reached; `*` stands for all that are not named."""
    at_once: int = 4
    largest: int = 16 << 30
    """Bytes that an artifact may have whose size nobody has said."""

    def access(self, bucket: str) -> Access | None:
        """The way to a bucket."""
        return self.buckets.get(bucket) or self.buckets.get("*")


_USUAL = Options()


async def fetch(
    artifacts: Sequence[Artifact],
    store: Store,
    options: Options = _USUAL,
    progress: Progress | None = None,
) -> tuple[Fetched, ...]:
    """Have all of these in the store, under their names; what is there is not fetched again.

    One that can't be had does not stop the others; at the end all that failed are named, each with
    all of its sources. A cancel leaves the parts for the next time.
    """
    wanted = _checked(artifacts, options)
    async with http.client(options.web) as client:
        fetching = _Fetching(client, store, options, progress or (lambda advance: None))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(fetching.outcome(*each)) for each in wanted]
    outcomes = [task.result() for task in tasks]
    _require_all(outcomes)
    return tuple(outcome for outcome in outcomes if isinstance(outcome, Fetched))


class _NotFromThere(Exception):
    """A source that does not bring what is wanted; the text says why."""


class _Interrupted(Exception):
    """A download that ended too early; the text says how."""


class _Missing(msgspec.Struct, frozen=True):
    """An artifact that no source has brought, and why."""

    problems: list[Problem]


_Outcome = Fetched | _Missing | KubexmError


class _Fetching:
    """One call of `fetch`."""

    def __init__(
        self, client: httpx.AsyncClient, store: Store, options: Options, progress: Progress
    ) -> None:
        self._client = client
        self._store = store
        self._options = options
        self._progress = progress
        self._slots = asyncio.Semaphore(max(1, options.at_once))

    async def outcome(self, artifact: Artifact, places: Sequence[Source]) -> _Outcome:
        """What came of it: the failure of one is no reason to stop the others."""
        try:
            async with self._slots, self._part(artifact) as part:
                if part is None:
                    return await in_thread(self._at_hand, artifact)
                return await self._from_any(artifact, places, part)
        except KubexmError as error:  # of the store or of the settings, so the others have it too
            return error

    @asynccontextmanager
    async def _part(self, artifact: Artifact) -> AsyncIterator[Part | None]:
        """What to fetch into; None if all of it is there."""
        part = await self._opened(artifact)
        try:
            yield part
        finally:
            if part is not None:
                part.close()

    async def _opened(self, artifact: Artifact) -> Part | None:
        """The part of an artifact, as soon as no other process has it."""
        size = still = 0
        for _ in range(_MOST_LOOKS):
            if await in_thread(self._is_there, artifact):
                return None
            if artifact.sha256 is None or still * _LOOK > self._options.web.silence:
                break
            if (part := await _held(self._store.part_of, artifact.sha256)) is not None:
                return await self._unless_there(artifact, part)
            before, size = size, self._store.part_size(artifact.sha256)
            still = 0 if size != before else still + 1
            await asyncio.sleep(_LOOK)
        # Nobody could go on with it without a digest; or who has it stands still.
        return await _held(self._store.new_part)

    async def _unless_there(self, artifact: Artifact, part: Part) -> Part | None:
        """It may have become whole between a look at the store and the hold of its part."""
        try:
            if not await in_thread(self._is_there, artifact):
                return part
        except BaseException:
            part.close()
            raise
        part.discard()
        return None

    def _is_there(self, artifact: Artifact) -> bool:
        found = self._store.find(artifact.name)
        if found is not None and artifact.sha256 is None:
            return not artifact.anew and not kinds.fault(artifact.kind, self._store.path(found))
        if found is not None and artifact.sha256 == found:
            return True
        return artifact.sha256 is not None and self._store.claim(artifact.name, artifact.sha256)

    def _at_hand(self, artifact: Artifact) -> Fetched:
        digest = artifact.sha256 or self._store.find(artifact.name)
        assert digest is not None
        with self._store.open(digest) as file:
            return Fetched(artifact.name, digest, os.fstat(file.fileno()).st_size)

    async def _from_any(
        self, artifact: Artifact, places: Sequence[Source], part: Part
    ) -> Fetched | _Missing:
        """Go through the sources until one has brought it."""
        while artifact.sha256 is not None and await in_thread(part.take_up):
            pass
        problems: list[Problem] = []
        for place in places:
            try:
                await self._from_one(artifact, place, part)
                await in_thread(_require_kind, artifact, part)
            except _NotFromThere as error:
                problems.append(Problem(str(error), where=f"`{artifact.name}` from {place}"))
                await self._between_sources(artifact, part)
                continue
            blob = await in_thread(self._store.place, part, name=artifact.name)
            return Fetched(artifact.name, blob.sha256, blob.size, str(place))
        return _Missing(problems)

    async def _between_sources(self, artifact: Artifact, part: Part) -> None:
        # Two servers may use one tag for two things, and without a digest nobody would notice.
        # And what has the digest, but is of another kind, nobody can go on with.
        if artifact.sha256 in (None, part.digest):
            await in_thread(part.begin, Origin())

    async def _from_one(self, artifact: Artifact, place: Source, part: Part) -> None:
        """Fetch all of it, and compare."""
        continued = part.size > 0
        if isinstance(place, FileSource):
            await self._copy(artifact, place, part)
        else:
            await self._download(artifact, place, part)
        if artifact.sha256 in (None, part.digest):
            return
        found = part.digest
        await in_thread(part.begin, Origin())
        if not continued:
            raise _NotFromThere(f"it has another content: sha256 {found}, want {artifact.sha256}")
        # What was there before may be what is wrong: once more, all from here.
        await self._from_one(artifact, place, part)

    async def _copy(self, artifact: Artifact, place: FileSource, part: Part) -> None:
        try:
            with await _held(opened, place.path) as file:
                await in_thread(part.begin, Origin(total=os.fstat(file.fileno()).st_size))
                await self._require_fit(artifact, part)
                while await in_thread(_next_piece, part, file):
                    self._tell(artifact, part)
                    await self._require_within(artifact, part)
        except StepFailed as error:
            raise _NotFromThere(error.message) from error

    async def _download(
        self, artifact: Artifact, place: WebSource | BucketSource, part: Part
    ) -> None:
        """All of it, however often it is interrupted, as long as it gets on."""
        settings, furthest, vain = self._options.web, part.size, 0
        for _ in range(_MOST_BREAKS):
            try:
                return await self._pour(artifact, place, part)
            except _Interrupted as error:
                vain = 0 if part.size > furthest else vain + 1
                if vain >= settings.attempts:
                    raise _NotFromThere(str(error)) from error
            furthest = max(furthest, part.size)
            await asyncio.sleep(http.pause_after(vain, settings))
        raise _NotFromThere(f"it was interrupted {_MOST_BREAKS} times")

    async def _pour(self, artifact: Artifact, place: WebSource | BucketSource, part: Part) -> None:
        """What is missing, by one request."""
        if part.size and part.size == part.origin.total:
            return
        response = await self._asked(place, part)
        try:
            await self._begin(response, part)
            await self._require_fit(artifact, part)
            await self._receive(artifact, response, part)
        finally:
            await response.aclose()
        total = artifact.size if part.origin.total is None else part.origin.total
        if total is not None and part.size < total:
            raise _Interrupted(f"it ended after {part.size:,} of {total:,} bytes")

    async def _asked(self, place: WebSource | BucketSource, part: Part) -> httpx.Response:
        try:
            return await self._client.send(
                self._request(place, _missing_of(part)),
                stream=True,
                follow_redirects=isinstance(place, WebSource),  # a signature is for one host
            )
        except httpx.HTTPError as error:
            raise _NotFromThere(http.reason(error, self._options.web)) from error
        except httpx.InvalidURL as error:
            raise _NotFromThere("its address can't be used") from error

    def _request(
        self, place: WebSource | BucketSource, headers: Mapping[str, str]
    ) -> httpx.Request:
        # A compressed answer could not be resumed, and would have another digest.
        plain = {"Accept-Encoding": "identity"}
        if isinstance(place, WebSource):
            return self._client.build_request("GET", place.url, headers={**headers, **plain})
        access = self._options.access(place.bucket)
        assert access is not None
        url = s3.address(access, place)
        signed = s3.signed("GET", url, headers, access, datetime.now(UTC))
        return self._client.build_request("GET", url, headers={**signed, **plain})

    async def _begin(self, response: httpx.Response, part: Part) -> None:
        """Go on with the part if the answer does, and start over if it is all of it."""
        if response.status_code == httpx.codes.OK:
            await in_thread(part.begin, _origin(response))
        elif not part.size or response.status_code not in _ABOUT_RANGES:
            status = response.status_code
            raise _NotFromThere(_MEANING.get(status, f"it answers {status}"))
        elif not _goes_on(response, part):
            await in_thread(part.begin, Origin())
            raise _Interrupted("it can't go on where it ended")

    async def _require_fit(self, artifact: Artifact, part: Part) -> None:
        """Refuse what has another size, or no room, before it is sent."""
        if (total := part.origin.total) is None:
            return
        if total > self._limit(artifact) or artifact.size not in (None, total):
            await self._refuse_size(artifact, part, f"{total:,}")
        await in_thread(self._store.require_room, total - part.size)

    async def _receive(self, artifact: Artifact, response: httpx.Response, part: Part) -> None:
        """Write what arrives, in large pieces; also what has arrived when it breaks."""
        self._tell(artifact, part)
        waiting = bytearray()
        try:
            async for piece in response.aiter_raw():
                waiting += piece
                if len(waiting) < PIECE:
                    continue
                data = bytes(waiting)
                waiting.clear()
                await in_thread(part.write, data)
                await self._require_within(artifact, part)
                self._tell(artifact, part)
        except httpx.TransportError as error:
            raise _Interrupted(http.reason(error, self._options.web)) from error
        finally:
            part.write(bytes(waiting))
        await self._require_within(artifact, part)
        self._tell(artifact, part)

    async def _require_within(self, artifact: Artifact, part: Part) -> None:
        if part.size > self._limit(artifact):
            await self._refuse_size(artifact, part, f"{part.size:,} or more")

    async def _refuse_size(self, artifact: Artifact, part: Part, found: str) -> NoReturn:
        await in_thread(part.begin, Origin())
        most = "" if artifact.size is not None else "at most "
        raise _NotFromThere(f"it has {found} bytes, want {most}{self._limit(artifact):,}")

    def _limit(self, artifact: Artifact) -> int:
        return self._options.largest if artifact.size is None else artifact.size

    def _tell(self, artifact: Artifact, part: Part) -> None:
        total = artifact.size if part.origin.total is None else part.origin.total
        self._progress(Advance(artifact.name, part.size, total))


def _checked(
    artifacts: Sequence[Artifact], options: Options
) -> list[tuple[Artifact, tuple[Source, ...]]]:
    """The artifacts with their sources, if all of them make sense."""
    checked, problems, names = [], list[Problem](), set[str]()
    for artifact in artifacts:
        places = tuple(_places(artifact, options, problems))
        problems += _contradictions(artifact, names)
        names.add(artifact.name)
        checked.append((artifact, places))
    if problems:
        raise InvalidInput("these artifacts can't be fetched", problems=problems)
    return checked


def _places(artifact: Artifact, options: Options, problems: list[Problem]) -> Iterator[Source]:
    where = f"`{artifact.name}`"
    for text in artifact.sources:
        try:
            place = sources.parse(text)
        except InvalidInput as error:
            problems.append(Problem(error.message, where=where, hint=error.hint))
            continue
        if isinstance(place, BucketSource):
            problems += _unreachable(place, options, where)
        yield place


def _unreachable(place: BucketSource, options: Options, where: str) -> Iterator[Problem]:
    if (access := options.access(place.bucket)) is None:
        hint = "give the endpoint of this bucket"
        yield Problem(f"nobody says where `{place}` is", where=where, hint=hint)
    elif access.fault:
        yield Problem(f"`{place}` can't be reached: {access.fault}", where=where, hint="correct it")


def _contradictions(artifact: Artifact, names: set[str]) -> Iterator[Problem]:
    where = f"`{artifact.name}`"
    if artifact.name in names:
        yield Problem("two artifacts have this name", where=where, hint="rename one")
    if not artifact.sources:
        yield Problem("it has no source", where=where, hint="name where it is")
    if artifact.sha256 is not None and not _SHA256.fullmatch(artifact.sha256):
        message = f"found the sha256 `{artifact.sha256[:80]}`, want 64 digits from 0 to f"
        yield Problem(message, where=where, hint="write it as `sha256sum` prints it")


def _require_all(outcomes: Sequence[_Outcome]) -> None:
    for outcome in outcomes:
        if isinstance(outcome, KubexmError):
            raise outcome
    missing = [outcome for outcome in outcomes if isinstance(outcome, _Missing)]
    if not missing:
        return
    lines = [f"  {problem}" for outcome in missing for problem in outcome.problems]
    count = f"{len(missing)} of {counted(len(outcomes), 'artifact')}"
    raise StepFailed(
        "\n".join((f"can't fetch {count}:", *lines)),
        hint="correct these sources or add others; what has arrived is kept for the next attempt",
    )


def _require_kind(artifact: Artifact, part: Part) -> None:
    if fault := kinds.fault(artifact.kind, part.path):
        raise _NotFromThere(fault)


def _missing_of(part: Part) -> dict[str, str]:
    """How the rest of a part is asked for, and no rest of anything else."""
    if not part.size or part.origin.validator is None:
        return {}
    return {"Range": f"bytes={part.size}-", "If-Range": part.origin.validator}


def _goes_on(response: httpx.Response, part: Part) -> bool:
    """Whether an answer is the rest of the part."""
    found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status_code != httpx.codes.PARTIAL_CONTENT or found is None:
        return False
    known = _origin(response).validator, part.origin.validator
    return int(found[1]) == part.size and (None in known or known[0] == known[1])


def _origin(response: httpx.Response) -> Origin:
    tag, date = response.headers.get("ETag", ""), response.headers.get("Last-Modified")
    length = response.headers.get("Content-Length", "")
    # A weak tag, `W/"…"`, may stand for other bytes.
    return Origin(tag if tag.startswith('"') else date, int(length) if length.isdecimal() else None)


def _next_piece(part: Part, file: IO[bytes]) -> bool:
    try:
        return part.copy(file)
    except OSError as error:
        raise StepFailed(f"can't be read: {error.strerror}") from error


async def _held(function: Callable[P, C], *args: P.args, **kwargs: P.kwargs) -> C:
    """Open something off the loop; who is cancelled meanwhile lets go of it."""
    work = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        if work.exception() is None and (thing := work.result()) is not None:
            thing.close()
        raise
