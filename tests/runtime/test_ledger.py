"""The ledger of a host: the first entry wins, in the run, in the store and on the host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.step.places import SimPlace

from kubexm.connector.base import Completed
from kubexm.plan.records import LedgerDropped, LedgerEntry
from kubexm.runner import priors
from kubexm.runner.host import Host
from kubexm.runner.priors import Prior
from kubexm.runtime.ledger import Book, HostLedger

RESOURCE = "file:/etc/app"
FIRST, SECOND = {"was": "first"}, {"was": "second"}


class Shelf:
    """A simulated host, the ledgers that somebody keeps of it, and what they had written down."""

    def __init__(self, place: SimPlace) -> None:
        self.place = place
        self.entries: list[LedgerEntry | LedgerDropped] = []

    def ledger(self, book: Book | None = None) -> HostLedger:
        async def remember(entry: LedgerEntry | LedgerDropped) -> None:
            self.entries.append(entry)

        return HostLedger(self.place.host, book or Book("site"), remember, lambda: 7.0)

    def remember(self, prior: Prior, book: Book | None = None) -> HostLedger:
        ledger = self.ledger(book)
        self.place.wait(ledger.remember(RESOURCE, prior))
        return ledger

    def copies(self) -> list[dict[str, Any]]:
        directory = f"{self.place.host.state_dir}/ledger"
        return [
            json.loads(self.place.ask("cat", f"{directory}/{name}"))
            for name in self.place.ask("ls", directory).split()
        ]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    place = SimPlace(tmp_path)
    yield Shelf(place)
    place.close()


def test_a_prior_state_is_recalled_recorded_and_copied(shelf: Shelf) -> None:
    ledger = shelf.remember(FIRST)

    assert ledger.recall(RESOURCE) == FIRST
    assert ledger.recall("file:/other") is None
    assert shelf.entries == [LedgerEntry(7.0, "there", RESOURCE, FIRST)]
    assert shelf.copies() == [{"name": "site", "resource": RESOURCE, "prior": FIRST}]


def test_it_is_durable_before_whoever_asked_goes_on(shelf: Shelf) -> None:
    written: list[str] = []

    async def slowly(entry: LedgerEntry | LedgerDropped) -> None:
        await asyncio.sleep(5.0)
        written.append(entry.resource)

    async def change() -> list[str]:
        ledger = HostLedger(shelf.place.host, Book("site"), slowly, lambda: 0.0)
        await ledger.remember(RESOURCE, FIRST)
        return list(written)

    assert shelf.place.wait(change()) == [RESOURCE]


def test_the_first_entry_of_a_run_wins(shelf: Shelf) -> None:
    book = Book("site")
    shelf.remember(FIRST, book)

    ledger = shelf.remember(SECOND, book)

    assert ledger.recall(RESOURCE) == FIRST
    assert len(shelf.entries) == 1


def test_who_comes_second_at_the_same_time_does_not_look_at_what_the_first_has_changed(
    shelf: Shelf,
) -> None:
    looks: list[str] = []

    async def look(copy: str) -> Prior:
        looks.append(copy)
        await asyncio.sleep(1.0)
        return {"was": len(looks)}

    async def both() -> None:
        ledger = shelf.ledger()
        await asyncio.gather(ledger.capture(RESOURCE, look), ledger.capture(RESOURCE, look))

    shelf.place.wait(both())

    assert len(looks) == 1


def test_a_later_run_has_an_entry_of_its_own_and_leaves_the_first_copy(shelf: Shelf) -> None:
    shelf.remember(FIRST)

    ledger = shelf.remember(SECOND, Book("site", known=frozenset([RESOURCE])))

    assert ledger.recall(RESOURCE) == SECOND
    assert shelf.entries[-1] == LedgerEntry(7.0, "there", RESOURCE, SECOND)
    assert [copy["prior"] for copy in shelf.copies()] == [FIRST]


def test_the_copy_on_the_host_tells_a_store_that_was_lost_what_was_first(shelf: Shelf) -> None:
    shelf.remember(FIRST)

    ledger = shelf.remember(SECOND, Book("site"))

    assert ledger.recall(RESOURCE) == SECOND
    assert shelf.entries[-1] == LedgerEntry(7.0, "there", RESOURCE, SECOND, FIRST)
    assert [copy["prior"] for copy in shelf.copies()] == [FIRST]


def test_another_name_has_a_copy_of_its_own(shelf: Shelf) -> None:
    shelf.remember(FIRST)

    shelf.remember(SECOND, Book("other"))

    priors = {copy["name"]: copy["prior"] for copy in shelf.copies()}
    assert priors == {"site": FIRST, "other": SECOND}


def test_copies_that_belong_to_the_first_entry_are_not_overwritten(shelf: Shelf) -> None:
    names: list[str] = []

    async def look(copy: str) -> Prior:
        names.append(copy)
        return {"copy": copy}

    for known in (frozenset[str](), frozenset([RESOURCE]), frozenset([RESOURCE])):
        ledger = shelf.ledger(Book("site", known=known))
        shelf.place.wait(ledger.capture(RESOURCE, look))

    first, second, third = names
    assert second == third != first


def test_the_first_entry_of_all_runs_is_known_beside_that_of_this_run(shelf: Shelf) -> None:
    book = Book("site", known=frozenset([RESOURCE]), first={RESOURCE: FIRST})
    ledger = shelf.remember(SECOND, book)

    assert ledger.recall(RESOURCE) == SECOND
    assert shelf.place.wait(ledger.recall_first(RESOURCE)) == FIRST


def test_the_host_knows_the_first_entry_when_the_store_does_not(shelf: Shelf) -> None:
    shelf.remember(FIRST)
    ledger = shelf.ledger(Book("site"))

    assert shelf.place.wait(ledger.recall_first(RESOURCE)) == FIRST
    assert shelf.place.wait(ledger.recall_first("file:/other")) is None


def test_the_host_is_asked_for_a_first_entry_that_was_not_loaded(shelf: Shelf) -> None:
    shelf.remember(FIRST)
    ledger = shelf.remember(SECOND, Book("site", known=frozenset([RESOURCE])))

    assert shelf.place.wait(ledger.recall_first(RESOURCE)) == FIRST


def test_asking_for_the_first_entry_leaves_nothing_on_the_host(shelf: Shelf) -> None:
    assert shelf.place.wait(shelf.ledger().recall_first(RESOURCE)) is None

    assert "kubexm" not in shelf.place.ask("ls", "/var/lib")


def test_what_is_dropped_is_forgotten_everywhere_and_recorded_anew(shelf: Shelf) -> None:
    book = Book("site")
    ledger = shelf.remember(FIRST, book)

    shelf.place.wait(ledger.drop(RESOURCE))

    assert shelf.entries[-1] == LedgerDropped(7.0, "there", RESOURCE)
    assert shelf.copies() == []
    assert ledger.recall(RESOURCE) is None
    assert shelf.place.wait(ledger.recall_first(RESOURCE)) is None
    shelf.remember(SECOND, book)
    assert [copy["prior"] for copy in shelf.copies()] == [SECOND]


def test_what_was_kept_for_a_dropped_entry_goes_too(shelf: Shelf) -> None:
    host = shelf.place.host

    async def look(copy: str) -> Prior:
        return await priors.untold(host, copy, {"secret": "x"})

    ledger = shelf.ledger()
    shelf.place.wait(ledger.capture(RESOURCE, look))
    before = shelf.place.ask("ls", f"{host.state_dir}/priors")

    shelf.place.wait(ledger.drop(RESOURCE))

    assert before
    assert shelf.place.ask("ls", f"{host.state_dir}/priors") == ""


def test_all_that_is_known_is_known_by_the_store_or_by_the_host(shelf: Shelf) -> None:
    shelf.remember(FIRST)
    shelf.remember(FIRST, Book("another"))
    shelf.place.ask("touch", f"{shelf.place.host.state_dir}/ledger/half-written")

    ledger = shelf.ledger(Book("site", known=frozenset({"file:/etc/known"})))

    assert shelf.place.wait(ledger.resources()) == {RESOURCE, "file:/etc/known"}


def test_what_goes_while_another_looks_is_not_taken_for_there(shelf: Shelf) -> None:
    """Two drop at once: the copies that the slower one has seen are not there any more."""
    other = "file:/etc/other"
    first = shelf.remember(FIRST)
    shelf.place.wait(first.remember(other, FIRST))
    ledger = shelf.ledger(Book("site", known=frozenset({RESOURCE, other})))
    asked = Host.ask
    waits = iter((5.0, 1.0))

    async def slowly(host: Host, *words: str, **options: Any) -> Completed:
        answer = await asked(host, *words, **options)
        if words[0] == "ls":
            await asyncio.sleep(next(waits))
        return answer

    async def dropped() -> frozenset[str]:
        await asyncio.gather(ledger.recall_first("file:/etc/third"), ledger.drop(RESOURCE))
        return await ledger.resources()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Host, "ask", slowly)
        assert shelf.place.wait(dropped()) == {other}
