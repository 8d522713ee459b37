"""What hosts told of themselves is kept by name and host, the last of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.store.scenario import begun

from kubexm.db import migration
from kubexm.db.database import Database
from kubexm.errors import LeaseLost
from kubexm.store import Store, facts
from kubexm.store.facts import KnownFacts

OLD, NEW = {"kernel": "5.1", "addresses": ["10.0.0.1"]}, {"kernel": "6.6"}


def test_the_last_facts_of_each_host_are_kept_by_name(path: Path) -> None:
    now = 100.0
    with Store.open(path, clock=lambda: now) as store:
        for name in ("site", "other"):
            with begun(store, name)[1] as lease:
                store.keep_facts(lease, {"n1": OLD, "n2": OLD})
        now = 200.0
        with begun(store, "site")[1] as lease:
            store.keep_facts(lease, {"n1": NEW})

        in_use = facts.read(path, "site")

    assert in_use == {"n1": KnownFacts(200.0, NEW), "n2": KnownFacts(100.0, OLD)}
    assert facts.read(path, "site") == in_use
    assert facts.read(path, "other")["n1"] == KnownFacts(100.0, OLD)
    assert facts.read(path, "nobody") == {}


def test_facts_of_who_lost_the_lease_are_not_kept(path: Path) -> None:
    now = 100.0
    with Store.open(path, clock=lambda: now) as store:
        run, lost = begun(store)
        lost.release()
        with store.acquire(run.id), pytest.raises(LeaseLost):
            store.keep_facts(lost, {"n1": OLD})

    assert facts.read(path, "demo") == {}


def test_a_store_from_before_facts_were_kept_knows_none(path: Path) -> None:
    path.parent.mkdir()
    with Database(path) as old, old.writing() as connection:
        migration.upgrade(connection, "0002")

    assert facts.read(path, "site") == {}
    with Store.open(path) as store, begun(store, "site")[1] as lease:
        store.keep_facts(lease, {"n1": NEW})
        assert facts.read(path, "site")["n1"].facts == NEW
