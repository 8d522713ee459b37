"""Fetching into the store, from servers that interrupt, refuse, lie and fall silent."""

import asyncio
import os
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path

import httpx
import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st
from tests.resource.serving import Reply, Request, Server, always, file, in_turn, serving, tunnel

from kubexm.errors import InvalidInput, StepFailed, StoreUnusable
from kubexm.resource.arriving import Origin, Part
from kubexm.resource.fetch import Advance, Artifact, Fetched, Options, fetch
from kubexm.resource.http import Login, Settings, asked_patience, client, proxy_for, shown
from kubexm.resource.store import Store

CONTENT = bytes(range(256)) * 12_000
"""Three pieces, the last one not whole."""
HALF = len(CONTENT) // 2
QUICK = Settings(first_pause=0.001, attempts=3)
EMPTY = sha256(b"").hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture(autouse=True)
def _no_proxy_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def artifact(
    *sources: str | Server, content: bytes = CONTENT, name: str = "tool", size: int | None = None
) -> Artifact:
    places = (each if isinstance(each, str) else f"{each.url}/tool.tgz" for each in sources)
    return Artifact(name=name, sources=tuple(places), sha256=digest(content), size=size)


async def fetched(
    wanted: Artifact, store: Store, web: Settings = QUICK, progress: list[Advance] | None = None
) -> Fetched:
    noted = [] if progress is None else progress
    (one,) = await fetch([wanted], store, Options(web=web), noted.append)
    return one


def parts(store: Store) -> list[str]:
    return sorted(path.name for path in (store.root / "parts").iterdir())


async def test_an_artifact_is_fetched_into_the_store_under_its_name(store: Store) -> None:
    async with serving(file(CONTENT)) as server:
        one = await fetched(artifact(server), store)

    assert one == Fetched("tool", digest(CONTENT), len(CONTENT), f"{server.url}/tool.tgz")
    assert store.find("tool") == digest(CONTENT)
    assert store.path(one.sha256).read_bytes() == CONTENT
    assert parts(store) == []


async def test_what_is_there_is_not_fetched_again(store: Store) -> None:
    store.add(CONTENT)

    async with serving(file(CONTENT)) as server:
        one = await fetched(artifact(server), store)

    assert one == Fetched("tool", digest(CONTENT), len(CONTENT))
    assert store.find("tool") == one.sha256
    assert server.requests == []


async def test_an_artifact_without_a_digest_is_known_again_by_its_name(store: Store) -> None:
    async with serving(file(CONTENT)) as server:
        wanted = Artifact(name="tool", sources=(f"{server.url}/tool.tgz",))
        first = await fetched(wanted, store)
        again = await fetched(wanted, store)

    assert (first.sha256, again.sha256) == (digest(CONTENT), digest(CONTENT))
    assert len(server.requests) == 1


async def test_an_empty_file_is_a_file(store: Store) -> None:
    async with serving(file(b"")) as server:
        one = await fetched(artifact(server, content=b""), store)

    assert (one.sha256, one.size) == (EMPTY, 0)


async def test_a_body_of_unknown_length_is_fetched(store: Store) -> None:
    async with serving(always(Reply(body=CONTENT, counted=False))) as server:
        noted: list[Advance] = []
        await fetched(artifact(server), store, progress=noted)

    assert noted[0] == Advance("tool", 0, None)
    assert store.verify_all() == []


async def test_progress_goes_up_to_the_end(store: Store) -> None:
    noted: list[Advance] = []

    async with serving(file(CONTENT)) as server:
        await fetched(artifact(server), store, progress=noted)

    done = [advance.done for advance in noted]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, len(CONTENT))
    assert {(advance.name, advance.total) for advance in noted} == {("tool", len(CONTENT))}


async def test_what_is_damaged_is_fetched_again_once_it_is_discarded(store: Store) -> None:
    async with serving(file(CONTENT)) as server:
        one = await fetched(artifact(server), store)
        store.path(one.sha256).chmod(0o644)
        store.path(one.sha256).write_bytes(CONTENT[:-1])
        (damage,) = store.verify_all()
        store.discard(damage.wanted)
        await fetched(artifact(server), store)

    assert damage.found == digest(CONTENT[:-1])
    assert store.verify_all() == []
    assert len(server.requests) == 2


class TestInterrupted:
    async def test_downloads_go_on_where_they_ended(self, store: Store) -> None:
        answer = in_turn(file(CONTENT, sent=HALF), file(CONTENT, sent=1000), file(CONTENT))

        async with serving(answer) as server:
            await fetched(artifact(server), store)

        assert server.asked("range") == [None, f"bytes={HALF}-", f"bytes={HALF + 1000}-"]
        assert server.asked("if-range") == [None, '"one"', '"one"']
        assert store.verify_all() == []

    async def test_downloads_start_over_where_ranges_are_ignored(self, store: Store) -> None:
        whole = always(Reply(body=CONTENT, headers={"ETag": '"one"'}))

        async with serving(in_turn(file(CONTENT, sent=HALF), whole)) as server:
            await fetched(artifact(server), store)

        assert len(server.requests) == 2
        assert store.verify_all() == []

    async def test_downloads_start_over_where_the_server_has_another_by_now(
        self, store: Store
    ) -> None:
        other = bytes(HALF + 10)
        answer = in_turn(file(other, '"old"', sent=HALF), file(CONTENT, '"new"'))

        async with serving(answer) as server:
            await fetched(artifact(server), store)

        assert server.asked("if-range") == [None, '"old"']
        assert store.verify_all() == []

    @pytest.mark.parametrize("tag", [None, 'W/"one"'])
    async def test_downloads_start_over_where_nobody_can_tell(
        self, store: Store, tag: str | None
    ) -> None:
        answer = in_turn(file(CONTENT, tag, sent=HALF), file(CONTENT, tag))

        async with serving(answer) as server:
            await fetched(artifact(server), store)

        assert server.asked("range") == [None, None]

    @pytest.mark.parametrize(
        "rest",
        [
            Reply(206, CONTENT[HALF:], {"Content-Range": f"bytes {HALF - 1}-9/10"}),
            Reply(206, CONTENT[HALF:], {"Content-Range": f"bytes {HALF}-9/10", "ETag": '"two"'}),
            Reply(206, CONTENT[HALF:]),
            Reply(416),
        ],
    )
    async def test_downloads_start_over_when_the_rest_does_not_fit(
        self, store: Store, rest: Reply
    ) -> None:
        answer = in_turn(file(CONTENT, sent=HALF), rest, file(CONTENT))

        async with serving(answer) as server:
            await fetched(artifact(server), store)

        assert server.asked("range") == [None, f"bytes={HALF}-", None]

    async def test_downloads_are_given_up_that_do_not_get_on(self, store: Store) -> None:
        async with serving(file(CONTENT, None, sent=HALF)) as server:
            with pytest.raises(StepFailed, match="the connection broke"):
                await fetched(artifact(server), store)

        assert len(server.requests) == 1 + QUICK.attempts

    async def test_downloads_are_given_up_that_fall_silent(self, store: Store) -> None:
        silent = Reply(body=CONTENT, headers={"ETag": '"one"'}, sent=HALF, held=True)
        web = Settings(first_pause=0.001, attempts=1, silence=0.2)

        async with serving(always(silent)) as server:
            with pytest.raises(StepFailed, match=r"nothing was heard for 0.2 s"):
                await fetched(artifact(server), store, web)

    async def test_a_cancel_leaves_the_part_for_the_next_time(self, store: Store) -> None:
        silent = Reply(body=CONTENT, headers={"ETag": '"one"'}, sent=HALF, held=True)
        begun = asyncio.Event()

        def note(advance: Advance) -> None:
            if advance.done:
                begun.set()

        async with serving(in_turn(silent, file(CONTENT))) as server:
            task = asyncio.create_task(fetch([artifact(server)], store, progress=note))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert parts(store) == [digest(CONTENT), f"{digest(CONTENT)}.from"]
            left = store.part_size(digest(CONTENT))
            await fetched(artifact(server), store)

        assert 0 < left <= HALF
        assert server.asked("range") == [None, f"bytes={left}-"]
        assert (store.verify_all(), parts(store)) == ([], [])

    async def test_a_killed_process_leaves_the_part_for_the_next_time(self, store: Store) -> None:
        silent = Reply(body=CONTENT, headers={"ETag": '"one"'}, sent=HALF, held=True)

        async with serving(in_turn(silent, file(CONTENT))) as server:
            process = fetching_process(store, [artifact(server)])
            await asyncio.wait_for(server.silent.wait(), 15)
            await grown(store, digest(CONTENT))
            process.kill()
            await asyncio.to_thread(process.wait)
            left = store.part_size(digest(CONTENT))
            await fetched(artifact(server), store)

        assert server.asked("range") == [None, f"bytes={left}-"]
        assert (store.verify_all(), parts(store)) == ([], [])

    async def test_a_part_that_was_spoilt_costs_one_more_download_and_no_source(
        self, store: Store
    ) -> None:
        part = store.part_of(digest(CONTENT))
        assert part is not None
        part.begin(Origin('"one"', len(CONTENT)))
        part.write(bytes(HALF))
        part.close()

        async with serving(file(CONTENT)) as server:
            await fetched(artifact(server), store)

        assert server.asked("range") == [f"bytes={HALF}-", None]
        assert store.verify_all() == []

    async def test_a_part_of_which_nothing_is_missing_is_not_asked_for(self, store: Store) -> None:
        part = store.part_of(digest(CONTENT))
        assert part is not None
        part.begin(Origin('"one"', len(CONTENT)))
        part.write(CONTENT)
        part.close()

        async with serving(file(CONTENT)) as server:
            await fetched(artifact(server), store)

        assert server.requests == []
        assert store.find("tool") == digest(CONTENT)

    async def test_a_part_goes_on_at_another_source_that_has_the_same(self, store: Store) -> None:
        dying = in_turn(file(CONTENT, sent=HALF), Reply(404))

        async with serving(dying) as first, serving(file(CONTENT)) as second:
            await fetched(artifact(first, second), store)

        assert second.asked("range") == [f"bytes={HALF}-"]

    async def test_without_a_digest_no_other_source_goes_on(self, store: Store) -> None:
        dying = in_turn(file(CONTENT, sent=HALF), Reply(404))

        async with serving(dying) as first, serving(file(CONTENT)) as second:
            wanted = Artifact(name="tool", sources=(f"{first.url}/a", f"{second.url}/a"))
            await fetched(wanted, store)

        assert second.asked("range") == [None]


@given(st.lists(st.integers(min_value=0, max_value=60), max_size=5), st.booleans())
def test_however_a_download_is_cut_it_ends_whole(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], tagged: bool
) -> None:
    content = bytes(range(50))
    tag = '"one"' if tagged else None
    store = Store(tmp_path_factory.mktemp("store"))
    answers = [file(content, tag, sent=cut) for cut in cuts]

    async def run() -> None:
        async with serving(in_turn(*answers, file(content, tag))) as server:
            web = Settings(first_pause=0, attempts=9)
            await fetched(artifact(server, content=content), store, web)

    asyncio.run(run())

    assert store.path(digest(content)).read_bytes() == content


class TestTriedAgain:
    @pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
    async def test_is_what_may_be_better_in_a_moment(self, store: Store, status: int) -> None:
        async with serving(in_turn(Reply(status), Reply(status), file(CONTENT))) as server:
            await fetched(artifact(server), store)

        assert len(server.requests) == 3

    async def test_is_nothing_more_often_than_is_set(self, store: Store) -> None:
        async with serving(always(Reply(503))) as server:
            with pytest.raises(StepFailed, match="it answers 503"):
                await fetched(artifact(server), store)

        assert len(server.requests) == QUICK.attempts

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 501])
    async def test_is_not_what_stays_as_it_is(self, store: Store, status: int) -> None:
        async with serving(always(Reply(status))) as server:
            with pytest.raises(StepFailed, match=str(status)):
                await fetched(artifact(server), store)

        assert len(server.requests) == 1

    async def test_is_what_is_cut_off_before_the_answer(self, store: Store) -> None:
        async with serving(in_turn(Reply(0), Reply(0), file(CONTENT))) as server:
            await fetched(artifact(server), store)

        assert len(server.requests) == 3

    async def test_is_no_request_that_would_do_something_twice(self) -> None:
        async def stream() -> AsyncIterator[bytes]:
            yield b"once"

        async with serving(always(Reply(503))) as server, client(QUICK) as web:
            await web.post(server.url, content=b"one")
            await web.put(server.url, content=stream())

        assert [request.method for request in server.requests] == ["POST", "PUT"]

    @pytest.mark.parametrize("after", ["3", "Fri, 31 Dec 2100 23:59:59 GMT"])
    async def test_is_not_who_asks_for_more_patience_than_there_is(
        self, store: Store, after: str
    ) -> None:
        busy = Reply(429, headers={"Retry-After": after})
        web = Settings(first_pause=0.001, longest_pause=2)

        async with serving(in_turn(busy, file(CONTENT))) as server:
            with pytest.raises(StepFailed, match="it is asked too often"):
                await fetched(artifact(server), store, web)

        assert len(server.requests) == 1

    @pytest.mark.parametrize(("after", "seconds"), [("7", 7), ("0", 0), ("-1", 0), ("soon", 0)])
    def test_is_who_asks_for_patience_when_it_is_over(self, after: str, seconds: int) -> None:
        assert asked_patience(httpx.Response(429, headers={"Retry-After": after})) == seconds

    @pytest.mark.parametrize("after", ["0", "Fri, 24 May 2013 00:00:00 GMT", "soon"])
    async def test_is_who_asks_for_little(self, store: Store, after: str) -> None:
        busy = Reply(429, headers={"Retry-After": after})

        async with serving(in_turn(busy, file(CONTENT))) as server:
            await fetched(artifact(server), store)

        assert len(server.requests) == 2


class TestMirrors:
    async def test_are_tried_in_order_until_one_has_it(self, store: Store) -> None:
        async with (
            serving(always(Reply(404))) as first,
            serving(file(CONTENT)) as second,
            serving(file(CONTENT)) as third,
        ):
            one = await fetched(artifact(first, nowhere(), second, third), store)

        assert one.source == f"{second.url}/tool.tgz"
        assert (len(first.requests), third.requests) == (1, [])

    async def test_are_all_named_when_none_has_it(self, store: Store, tmp_path: Path) -> None:
        async with serving(always(Reply(404))) as server:
            with pytest.raises(StepFailed) as caught:
                await fetched(artifact(server, nowhere(), str(tmp_path / "missing")), store)

        lines = str(caught.value).splitlines()
        assert lines[0] == "can't fetch 1 of 1 artifact:"
        assert lines[1] == f"  `tool` from {server.url}/tool.tgz: it does not have this (404)"
        assert lines[2] == f"  `tool` from {nowhere()}: connection refused"
        assert lines[3].endswith("missing: can't be read: no such file or directory")
        assert caught.value.hint

    async def test_with_wrong_bytes_are_named_and_left(self, store: Store) -> None:
        wrong = bytes(len(CONTENT))

        async with serving(file(wrong)) as first:
            with pytest.raises(StepFailed) as caught:
                await fetched(artifact(first), store)
            assert f"sha256 {digest(wrong)}, want {digest(CONTENT)}" in str(caught.value)
            assert (parts(store), store.blobs()) == ([], [])

            async with serving(file(CONTENT)) as second:
                await fetched(artifact(first, second), store)

        assert second.asked("range") == [None]
        assert store.verify_all() == []

    async def test_with_another_size_are_left_before_it_is_sent(self, store: Store) -> None:
        async with serving(file(CONTENT + b"more")) as server:
            with pytest.raises(StepFailed, match="it has 3,072,004 bytes, want 3,072,000"):
                await fetched(artifact(server, size=len(CONTENT)), store)

        assert parts(store) == []

    @pytest.mark.parametrize("counted", [True, False])
    async def test_that_send_more_than_is_allowed_are_left(
        self, store: Store, counted: bool
    ) -> None:
        options = Options(web=QUICK, largest=1000)

        async with serving(always(Reply(body=CONTENT, counted=counted))) as server:
            with pytest.raises(StepFailed, match="want at most 1,000"):
                await fetch([artifact(server)], store, options)

        assert parts(store) == []

    async def test_that_end_too_early_are_left(self, store: Store) -> None:
        short = Reply(body=CONTENT[:HALF], counted=False)

        async with serving(always(short)) as server:
            with pytest.raises(StepFailed, match="it ended after 1,536,000 of 3,072,000 bytes"):
                await fetched(artifact(server, size=len(CONTENT)), store)


class TestSeveral:
    async def test_are_fetched_beside_each_other_up_to_a_limit(self, store: Store) -> None:
        contents = {f"tool{number}": bytes([number]) for number in range(6)}
        gate, two = asyncio.Event(), asyncio.Event()

        def answer(request: Request) -> Reply:
            if server.busy == 2:
                two.set()
            return Reply(body=contents[request.target[1:]], gate=gate)

        async with serving(answer) as server, serving(file(CONTENT)) as other:
            wanted = [
                Artifact(name=name, sources=(f"{server.url}/{name}",), sha256=digest(content))
                for name, content in contents.items()
            ]
            task = asyncio.create_task(fetch(wanted, store, Options(web=QUICK, at_once=2)))
            await two.wait()
            # Meanwhile any other of them could have come as far.
            await fetched(artifact(other), store)
            gate.set()
            done = await task

        assert [one.name for one in done] == list(contents)
        assert {store.find(name) for name in contents} == set(map(digest, contents.values()))
        assert server.most == 2

    async def test_are_fetched_although_one_fails(self, store: Store) -> None:
        async with serving(file(CONTENT)) as good, serving(always(Reply(404))) as bad:
            wanted = [
                artifact(bad, content=b"one", name="one"),
                artifact(good, name="two"),
                artifact(bad, content=b"three", name="three"),
            ]
            with pytest.raises(StepFailed, match="can't fetch 2 of 3 artifacts") as caught:
                await fetch(wanted, store, Options(web=QUICK))

        assert "`one` from" in str(caught.value)
        assert "`three` from" in str(caught.value)
        assert store.names() == {"two": digest(CONTENT)}

    async def test_names_of_one_content_cost_one_download(self, store: Store) -> None:
        async with serving(file(CONTENT)) as server:
            wanted = [artifact(server, name=name) for name in ("one", "two", "three")]
            await fetch(wanted, store, Options(web=QUICK))

        assert len(server.requests) == 1
        assert set(store.names()) == {"one", "two", "three"}

    async def test_processes_share_one_download(self, store: Store) -> None:
        async with serving(file(CONTENT)) as server:
            processes = [fetching_process(store, [artifact(server)]) for _ in range(3)]
            ends = [await asyncio.to_thread(process.wait) for process in processes]

        assert ends == [0, 0, 0]
        assert len(server.requests) == 1
        assert (store.verify_all(), parts(store)) == ([], [])

    async def test_are_not_fetched_that_another_brings_in_the_meantime(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        part_of = store.part_of

        def late(wanted: str) -> Part | None:
            store.add(CONTENT)
            return part_of(wanted)

        monkeypatch.setattr(store, "part_of", late)

        async with serving(file(CONTENT)) as server:
            one = await fetched(artifact(server), store)

        assert (one.source, server.requests, parts(store)) == ("", [], [])

    async def test_do_not_wait_for_a_process_that_stands_still(self, store: Store) -> None:
        stuck = store.part_of(digest(CONTENT))
        assert stuck is not None
        web = Settings(silence=0.2)

        async with serving(file(CONTENT)) as server:
            await fetched(artifact(server), store, web)

        stuck.close()
        assert store.verify_all() == []

    async def test_mistakes_are_told_all_at_once_before_anything_is_asked(
        self, store: Store
    ) -> None:
        wanted = [
            Artifact(name="one", sources=("ftp://example.org/x",)),
            Artifact(name="two", sources=("https://me:hush@example.org/x",)),
            Artifact(name="three", sources=(), sha256="short"),
            Artifact(name="three", sources=("https:///x", "file://far/x", "")),
        ]

        with pytest.raises(InvalidInput) as caught:
            await fetch(wanted, store)

        assert len(caught.value.problems) == 8
        assert all(problem.hint for problem in caught.value.problems)
        assert "hush" not in str(caught.value)
        assert not store.root.exists()

    async def test_end_with_the_store_that_can_not_be_used(self, tmp_path: Path) -> None:
        (tmp_path / "thesis.txt").touch()

        async with serving(file(CONTENT)) as server:
            with pytest.raises(StoreUnusable, match="no artifact store"):
                await fetched(artifact(server), Store(tmp_path))

        assert server.requests == []


class TestFiles:
    @pytest.mark.parametrize("before", ["", "file://", "file://localhost"])
    async def test_are_copied(self, store: Store, tmp_path: Path, before: str) -> None:
        (tmp_path / "a tool").write_bytes(CONTENT)
        path = str(tmp_path / "a tool")
        noted: list[Advance] = []

        await fetched(
            artifact(before + (path.replace(" ", "%20") if before else path)), store, progress=noted
        )

        assert noted[-1] == Advance("tool", len(CONTENT), len(CONTENT))
        assert store.verify_all() == []

    async def test_with_other_bytes_are_left(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "tool").write_bytes(b"other")

        async with serving(file(CONTENT)) as server:
            one = await fetched(artifact(str(tmp_path / "tool"), server), store)

        assert one.source == f"{server.url}/tool.tgz"

    async def test_that_are_none_are_told(self, store: Store, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")

        with pytest.raises(StepFailed, match="this is no file"):
            await fetched(artifact(str(tmp_path / "pipe")), store)


class TestRedirects:
    async def test_are_followed(self, store: Store) -> None:
        async with serving(file(CONTENT)) as far:
            near = Reply(302, headers={"Location": f"{far.url}/there?signature=hush"})
            async with serving(always(near)) as server:
                one = await fetched(artifact(server), store)

        assert one.source == f"{server.url}/tool.tgz"
        assert far.requests[0].target == "/there?signature=hush"

    async def test_to_what_is_no_web_address_are_not_followed(self, store: Store) -> None:
        async with serving(always(Reply(302, headers={"Location": "file:///etc/x"}))) as server:
            with pytest.raises(StepFailed, match="redirects to what is no web address"):
                await fetched(artifact(server), store)

    async def test_without_end_are_given_up(self, store: Store) -> None:
        async with serving(always(Reply(302, headers={"Location": "/again"}))) as server:
            with pytest.raises(StepFailed, match="it redirects more than 10 times"):
                await fetched(artifact(server), store)

        assert len(server.requests) == 11

    async def test_take_no_login_to_another_server(self, store: Store) -> None:
        async with serving(file(CONTENT)) as far:
            answer = in_turn(Reply(302, headers={"Location": f"{far.url}/there"}))
            async with serving(answer) as server:
                web = Settings(logins={server.url: Login(token="hush")})
                await fetched(artifact(server), store, web)

        assert server.asked("authorization") == ["Bearer hush"]
        assert far.asked("authorization") == [None]


class TestLogins:
    async def test_are_sent_to_their_server(self, store: Store) -> None:
        async with serving(file(CONTENT)) as server:
            web = Settings(logins={server.url: Login(user="me", password="hush")})
            await fetched(artifact(server), store, web)

        assert server.asked("authorization") == [f"Basic {b64encode(b'me:hush').decode()}"]

    async def test_are_not_sent_in_the_clear_unless_told(self, store: Store) -> None:
        async with serving(file(CONTENT)) as server:
            place = server.url.removeprefix("http://")
            web = Settings(logins={place: Login(token="hush"), "127.0.0.1": Login(token="hush")})
            await fetched(artifact(server), store, web)

        assert server.asked("authorization") == [None]

    async def test_of_a_request_itself_come_first(self) -> None:
        async with serving(file(b"")) as server:
            settings = Settings(logins={server.url: Login(token="usual")})
            async with client(settings) as web:
                await web.get(server.url, headers={"Authorization": "Bearer own"})

        assert server.asked("authorization") == ["Bearer own"]

    async def test_and_proxies_are_shown_nowhere(self, store: Store) -> None:
        async with serving(always(Reply(401))) as server:
            web = Settings(
                logins={server.url: Login("me", "hush", "hush")}, proxy="http://me:hush@127.0.0.1:1"
            )
            with pytest.raises(StepFailed) as caught:
                await fetched(artifact(f"{server.url}/x?token=hush"), store, web)

        texts = f"{caught.value} {web!r} {Options(web=web)!r} {Login('me', 'hush', 'hush')!r}"
        assert "hush" not in texts
        assert shown("https://me:hush@example.org/x?hush") == "https://example.org/x?…"


class TestTls:
    async def test_trusts_a_certificate_that_is_named(self, store: Store, tmp_path: Path) -> None:
        ca, server_side = certificates(tmp_path)

        async with serving(file(CONTENT), server_side) as server:
            web = Settings(ca_file=ca, logins={f"127.0.0.1:{server.port}": Login(token="hush")})
            await fetched(artifact(server), store, web)

        assert server.asked("authorization") == ["Bearer hush"]

    async def test_trusts_no_other_and_does_not_try_again(
        self, store: Store, tmp_path: Path
    ) -> None:
        _, server_side = certificates(tmp_path)
        greeted: list[str | None] = []
        server_side.sni_callback = lambda connection, name, context: greeted.append(name)

        async with serving(file(CONTENT), server_side) as server:
            with pytest.raises(StepFailed, match="its certificate is not trusted"):
                await fetched(artifact(server), store)

        assert (len(greeted), server.requests) == (1, [])

    async def test_refuses_a_file_without_certificates(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "ca").write_text("no certificate")

        for name, problem in (("ca", "no certificate"), ("missing", "can't read the trusted")):
            with pytest.raises(InvalidInput, match=problem):
                await fetched(artifact("http://x"), store, Settings(ca_file=tmp_path / name))


class TestProxies:
    async def test_are_asked_for_what_lies_behind_them(self, store: Store) -> None:
        async with serving(file(CONTENT)) as proxy:
            web = Settings(proxy=f"http://me:hush@127.0.0.1:{proxy.port}")
            await fetched(artifact("http://files.test/tool.tgz"), store, web)

        assert proxy.requests[0].target == "http://files.test/tool.tgz"
        assert proxy.asked("proxy-authorization") == [f"Basic {b64encode(b'me:hush').decode()}"]

    async def test_of_the_environment_are_asked(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with serving(file(CONTENT)) as proxy:
            monkeypatch.setenv("http_proxy", f"127.0.0.1:{proxy.port}")
            await fetched(artifact("http://files.test/tool.tgz"), store)

        assert len(proxy.requests) == 1

    async def test_are_not_asked_for_this_machine(self, store: Store) -> None:
        async with serving(file(CONTENT)) as server, serving(always(Reply(502))) as proxy:
            await fetched(artifact(server), store, Settings(proxy=proxy.url))

        assert proxy.requests == []

    async def test_that_refuse_are_named(self, store: Store) -> None:
        async with serving(always(Reply(407))) as proxy:
            web = Settings(proxy=proxy.url, attempts=1)
            with pytest.raises(StepFailed, match="the proxy refused: 407"):
                await fetched(artifact("https://files.test/tool.tgz"), store, web)

    async def test_that_are_not_there_are_named(self, store: Store) -> None:
        web = Settings(proxy="http://me:hush@127.0.0.1:1", attempts=1)

        with pytest.raises(StepFailed, match=r"refused \(by the proxy http://127.0.0.1:1/?\)"):
            await fetched(artifact("http://files.test/tool.tgz"), store, web)

    async def test_lead_to_encrypted_servers_without_seeing_what_is_sent(
        self, store: Store, tmp_path: Path
    ) -> None:
        ca, server_side = certificates(tmp_path)

        async with serving(file(CONTENT), server_side) as server, tunnel(server.port) as proxy:
            web = Settings(
                proxy=proxy.url, ca_file=ca, logins={"files.test": Login(token="to the server")}
            )
            await fetched(artifact("https://files.test/tool.tgz"), store, web)

        assert [request.target for request in proxy.requests] == ["files.test:443"]
        assert proxy.asked("authorization") == [None]
        assert server.asked("authorization") == ["Bearer to the server"]

    @pytest.mark.parametrize(
        ("proxy", "problem"),
        [
            ("socks5://me:hush@far:1", "the proxy is `socks5://…`"),
            ("http://me:hush@far:port", "the address of the proxy can't be read"),
        ],
    )
    async def test_that_can_not_be_used_are_refused(
        self, store: Store, proxy: str, problem: str
    ) -> None:
        with pytest.raises(InvalidInput, match=problem) as caught:
            await fetched(artifact("http://files.test/x"), store, Settings(proxy=proxy))

        assert "hush" not in str(caught.value)

    @pytest.mark.parametrize(
        ("place", "url", "is_asked"),
        [
            ("example.org", "http://example.org/x", False),
            ("example.org", "http://files.example.org/x", False),
            (".example.org", "http://files.example.org/x", False),
            ("*.example.org", "https://files.example.org/x", False),
            ("example.org", "http://badexample.org/x", True),
            ("EXAMPLE.org", "http://example.ORG/x", False),
            ("10.0.0.0/8", "http://10.1.2.3/x", False),
            ("10.0.0.0/8", "http://11.1.2.3/x", True),
            ("10.1.2.3", "http://10.1.2.3:8080/x", False),
            ("example.org:8080", "http://example.org:8080/x", False),
            ("example.org:8080", "http://example.org/x", True),
            ("fd00::/8", "http://[fd00::1]/x", False),
            ("[fd00::1]:80", "http://[fd00::1]/x", False),
            ("fd00::1", "http://[fd00::2]/x", True),
            ("*", "http://example.org/x", False),
            ("", "http://example.org/x", True),
            ("other", "http://localhost/x", False),
            ("other", "http://[::1]:80/x", False),
        ],
    )
    def test_are_left_out_where_no_proxy_says_so(
        self, place: str, url: str, is_asked: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        proxy = "http://proxy:3128"
        set_here = Settings(proxy=proxy, no_proxy=("unlikely", place))

        assert proxy_for(set_here, url) == (proxy if is_asked else None)

        monkeypatch.setenv("all_proxy", proxy)
        monkeypatch.setenv("no_proxy", f"unlikely, {place}")
        assert proxy_for(Settings(), url) == (proxy if is_asked else None)
        assert proxy_for(Settings(proxy=""), url) is None


def nowhere() -> str:
    """An address at which nobody listens."""
    return "http://127.0.0.1:1/tool.tgz"


async def grown(store: Store, wanted: str) -> None:
    """Until some of a part is on the disk."""
    for _ in range(2000):
        if store.part_size(wanted):
            return
        await asyncio.sleep(0.005)
    raise AssertionError("nothing has arrived")


def fetching_process(store: Store, wanted: Sequence[Artifact]) -> "subprocess.Popen[bytes]":
    text = (
        "import asyncio, sys; from pathlib import Path\n"
        "import msgspec\n"
        "from kubexm.resource.fetch import Artifact, fetch\n"
        "from kubexm.resource.store import Store\n"
        "wanted = msgspec.json.decode(sys.argv[2], type=list[Artifact])\n"
        "asyncio.run(fetch(wanted, Store(Path(sys.argv[1]))))\n"
    )
    given = msgspec.json.encode(wanted).decode()
    return subprocess.Popen([sys.executable, "-c", text, str(store.root), given])


def certificates(place: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for a server here: as a file for who trusts it, and the side of its server."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "of the test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("files.test")]
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    (place / "ca.pem").write_bytes(pem)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (place / "server.pem").write_bytes(pem + secret)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(place / "server.pem")
    return place / "ca.pem", context
