"""A task is found among all that were ever run, wherever it is kept."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.scenario import DOCUMENTS

from kubexm.app import places
from kubexm.common.paths import Home
from kubexm.errors import UnknownTask

_MANY_MORE = """
    WITH RECURSIVE copy (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < 10000)
    INSERT INTO run (id, name, status, direction, created, message, selected, degraded)
    SELECT 'copy-' || n, name, status, direction, created, message, selected, degraded
    FROM run, copy WHERE id = ?
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "state", tmp_path / "data", tmp_path / "cache")


def kept(database: Path) -> str:
    """A run that is kept there, which may have to be made."""
    database.parent.mkdir(parents=True)
    with places.open_store(database) as store:
        return store.create_run("demo", DOCUMENTS).id


def test_a_task_is_found_however_many_came_after_it(home: Home) -> None:
    oldest = kept(home.database)
    with closing(sqlite3.connect(home.database)) as database, database:
        database.execute(_MANY_MORE, (oldest,))

    with places.store_of(home, oldest) as store:
        assert store.run(oldest).name == "demo"


def test_a_task_of_a_simulated_world_is_found_there(home: Home) -> None:
    kept(home.database)
    simulated = kept(home.worlds / "demo" / places.DATABASE)

    with places.store_of(home, simulated) as store:
        assert store.run(simulated).name == "demo"


def test_who_asks_for_no_task_is_told_the_nearest_of_all_stores(home: Home) -> None:
    kept(home.database)
    simulated = kept(home.worlds / "demo" / places.DATABASE)

    with pytest.raises(UnknownTask) as refused, places.store_of(home, f"{simulated}x"):
        pass

    assert f"did you mean `{simulated}`?" in refused.value.hint
