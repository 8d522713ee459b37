"""Whether somebody has a thing: those who may are asked, shortly, and nothing is fetched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Literal

import httpx
import msgspec
from msgspec.structs import replace

from kubexm.common.threads import in_thread
from kubexm.errors import InvalidFile, InvalidInput, KubexmError, Refused, StepFailed
from kubexm.resource import charts, http, images, s3, sources
from kubexm.resource.catalog import ChartRelease
from kubexm.resource.fetch import Options
from kubexm.resource.http import Settings, shown
from kubexm.resource.images import Reference
from kubexm.resource.registries import Giving, Way, reached
from kubexm.resource.registry import Registry
from kubexm.resource.sources import BucketSource, FileSource, Source

SECONDS = 20.0
"""How long whoever is asked for one thing may take in all."""
AT_ONCE = 64
"""Things that are asked for at the same time."""
_UNSURE = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Answers that may be others in a moment."""
_NOT_BY_HEAD = frozenset((403, 405, 501))
"""What servers say that know no question without the thing itself, or sign only that."""
Word = Literal["has", "lacks", "silent", "unsure"]


class Answer(msgspec.Struct, frozen=True):
    """What those say who may have something; the best of it if there are several."""

    word: Word
    """`silent` if nobody could be reached, `unsure` if it may be otherwise in a moment."""
    why: str = ""


class Asking:
    """Those who may have files, charts and images, ready to be asked."""

    def __init__(self, client: httpx.AsyncClient, options: Options, giving: Giving) -> None:
        self._client = client
        self._options = options
        self._giving = giving
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def file(self, urls: Iterable[str]) -> Answer:
        """Whether one of the addresses of a file has it."""
        return await self._in_time(self._any_source(urls))

    async def image(self, name: Reference) -> Answer:
        """Whether a registry, or a mirror of it, has an image."""
        return await self._in_time(self._any_registry(name))

    async def chart(self, chart: ChartRelease) -> Answer:
        """Whether the repository of a chart has it."""
        if chart.repository.startswith(charts.OCI):
            return await self._in_time(self._in_registry(chart))
        return await self._in_time(self._listed(chart))

    async def _in_time(self, question: Coroutine[Any, Any, Answer]) -> Answer:
        async with self._slots:
            try:
                return await asyncio.wait_for(question, SECONDS)
            except TimeoutError:
                return Answer("silent", f"no answer within {SECONDS:g} s")
            except InvalidInput as error:  # nobody can be asked for what has no name or address
                return Answer("lacks", error.message)

    async def _any_source(self, urls: Iterable[str]) -> Answer:
        answers: list[Answer] = []
        for url in urls:
            answers.append(await self._source(sources.parse(url)))
            if answers[-1].word == "has":
                break
        return best(answers)

    async def _source(self, place: Source) -> Answer:
        if isinstance(place, FileSource):
            found = place.path.is_file()
            return Answer("has") if found else Answer("lacks", f"there is no file `{place}`")
        answer = await self._web(place, "HEAD")
        return answer if answer is not None else await self._web(place, "GET") or Answer("lacks")

    async def _web(self, place: Source, method: str) -> Answer | None:
        """What a server says; None if it has to be asked otherwise."""
        try:
            response = await self._client.send(
                self._request(place, method),
                stream=True,
                follow_redirects=not isinstance(place, BucketSource),  # signed for one host
            )
        except httpx.HTTPError as error:
            why = f"no answer from {place}: {http.reason(error, self._options.web)}"
            return Answer("silent", why)
        except httpx.InvalidURL:
            return Answer("lacks", f"{place} is no address")
        await response.aclose()
        if method == "HEAD" and response.status_code in _NOT_BY_HEAD:
            return None
        return _of_status(response.status_code, str(place))

    def _request(self, place: Source, method: str) -> httpx.Request:
        headers = {} if method == "HEAD" else {"Range": "bytes=0-0"}
        if not isinstance(place, BucketSource):
            return self._client.build_request(
                method, str(getattr(place, "url", "")), headers=headers
            )
        access = self._options.access(place.bucket) or s3.Access()
        if access.fault:
            raise InvalidInput(f"{place} can't be reached: {access.fault}")
        url = s3.address(access, place)
        signed = s3.signed(method, url, headers, access, datetime.now(UTC))
        return self._client.build_request(method, url, headers=signed)

    async def _any_registry(self, name: Reference) -> Answer:
        answers: list[Answer] = []
        for registry in self._giving(name):
            answers.append(await _registry(registry, name))
            if answers[-1].word == "has":
                break
        return best(answers)

    async def _in_registry(self, chart: ChartRelease) -> Answer:
        place = f"{chart.repository.removeprefix(charts.OCI).rstrip('/')}/{chart.name}"
        if not chart.version:
            return Answer("lacks", "it has no version, and a registry does not say the newest")
        # A tag has no `+`, and helm writes this in its place.
        name = images.parse(f"{place}:{chart.version.replace('+', '_')}")
        return await self._any_registry(name)

    async def _listed(self, chart: ChartRelease) -> Answer:
        url = charts.address(chart.repository)
        try:
            index = await in_thread(charts.at_hand, chart.repository)
            if index is None:
                response = await self._client.get(url)
                if response.status_code != httpx.codes.OK:
                    return _of_status(response.status_code, shown(url))
                index = response.text
            charts.chosen(chart, charts.listed(index, chart.name))
        except httpx.HTTPError as error:
            why = f"no answer from {shown(url)}: {http.reason(error, self._options.web)}"
            return Answer("silent", why)
        except (httpx.InvalidURL, UnicodeError):
            return Answer("lacks", f"`{url}` is no address of a repository")
        except (InvalidFile, StepFailed) as error:
            return Answer("lacks", error.message)
        return Answer("has")


@asynccontextmanager
async def asking(options: Options, ways: Mapping[str, Way]) -> AsyncIterator[Asking]:
    """Ask as things are fetched: by the same ways, as the same users, but with less patience."""
    hasty = _hasty(options.web)
    async with http.client(hasty) as client, reached(ways, hasty) as giving:
        yield Asking(client, replace(options, web=hasty), giving)


def best(answers: Sequence[Answer]) -> Answer:
    """What several say together: one that has it will do, and who knows nothing denies nothing."""
    why = "; ".join(dict.fromkeys(answer.why for answer in answers if answer.why))
    words = [answer.word for answer in answers]
    order: tuple[Word, ...] = ("has", "unsure", "silent", "lacks")
    word: Word = next((each for each in order if each in words), "lacks")
    return Answer(word, "" if word == "has" else why or "it has no address")


def _hasty(web: Settings) -> Settings:
    return replace(web, connecting=5, silence=10, attempts=2, first_pause=0.2, longest_pause=2)


def _of_status(status: int, place: str) -> Answer:
    if httpx.codes.is_success(status):
        return Answer("has")
    word: Word = "unsure" if status in _UNSURE else "lacks"
    return Answer(word, f"{place} answers {status}")


async def _registry(registry: Registry, name: Reference) -> Answer:
    try:
        if await registry.digest(name.repository, name.wanted) is None:
            # Some tell no digest unless they give the document; others say here what they lack.
            await registry.document(name.repository, name.wanted)
    except (Refused, InvalidFile, InvalidInput) as error:
        return Answer("lacks", error.message)
    except KubexmError as error:
        return Answer("silent", error.message)
    return Answer("has")
