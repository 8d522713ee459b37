"""Where runs are kept: the store of this machine, and one in each simulated world."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from kubexm.common.nearest import did_you_mean
from kubexm.common.paths import Home
from kubexm.errors import UnknownTask
from kubexm.store import Run, Store
from kubexm.store.lease import LEASE

DATABASE = "kubexm.db"
LEASE_SECONDS = LEASE
"""How long a process that gives no sign of life keeps its lock."""


def world_path(home: Home, name: str, given: Path | None) -> Path:
    """Where the simulated world of a pipeline lies."""
    return (given or home.worlds / name).absolute()


def database_path(home: Home, world: Path | None) -> Path:
    """Where the runs of a world, or of the real one, are kept."""
    return home.database if world is None else world / DATABASE


def keep_in_mind(home: Home, world: Path) -> None:
    """Have `databases` find a world that lies elsewhere."""
    if world.parent != home.worlds:
        home.worlds.mkdir(parents=True, exist_ok=True)
        digest = sha256(str(world).encode()).hexdigest()[:8]
        with suppress(FileExistsError):
            (home.worlds / f"{world.name}-{digest}").symlink_to(world)


def open_store(path: Path) -> Store:
    """The store in this file, made if it is not there."""
    return Store.open(path, lease=LEASE_SECONDS)


@contextmanager
def store_of(home: Home, task: str) -> Iterator[Store]:
    """The store that knows this task."""
    known: list[str] = []
    for path in databases(home):
        with open_store(path) as store:
            ids = [run.id for run in store.runs(limit=10_000)]
            if task in ids:
                yield store
                return
            known.extend(ids)
    hint = did_you_mean(task, known) or "`kubexm task list` shows what there is"
    raise UnknownTask(f"there is no task `{task}`", hint=hint)


def all_runs(home: Home, limit: int) -> list[Run]:
    """The latest runs of all stores, newest first."""
    found: list[Run] = []
    for path in databases(home):
        with open_store(path) as store:
            found.extend(store.runs(limit=limit))
    return sorted(found, key=lambda run: run.created, reverse=True)[:limit]


def databases(home: Home) -> list[Path]:
    """Every database there is, the real one first; none is made by asking."""
    worlds = sorted(home.worlds.glob(f"*/{DATABASE}")) if home.worlds.is_dir() else []
    return [path for path in (home.database, *worlds) if path.exists()]
