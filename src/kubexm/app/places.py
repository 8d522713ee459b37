"""Where runs are kept: the store of this machine, and one in each simulated world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from kubexm.common.nearest import nearest
from kubexm.common.paths import Home
from kubexm.errors import InvalidInput, StoreError, StoreUnusable, UnknownTask
from kubexm.store import Store
from kubexm.store.lease import LEASE

DATABASE = "kubexm.db"
SHOWN_TASKS, COMPARED_TASKS = 3, 10_000
Seen = TypeVar("Seen")
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
        home.worlds.mkdir(0o700, parents=True, exist_ok=True)
        digest = sha256(str(world).encode()).hexdigest()[:8]
        with suppress(FileExistsError):
            (home.worlds / f"{world.name}-{digest}").symlink_to(world)


def open_store(path: Path) -> Store:
    """The store in this file, made if it is not there."""
    return Store.open(path, lease=LEASE_SECONDS)


@contextmanager
def store_of(home: Home, task: str) -> Iterator[Store]:
    """The store that knows this task."""
    unusable: list[StoreError] = []
    for store in stores(home, unusable.append):
        if _knows(store, task):
            yield store
            return
    if unusable:
        raise unusable[0]  # where it may be
    raise UnknownTask(f"there is no task `{task}`", hint=_hint(home, task))


def _knows(store: Store, task: str) -> bool:
    try:
        store.run(task)
    except UnknownTask:
        return False
    return True


def _hint(home: Home, task: str) -> str:
    """The nearest, or the latest ones: they are what people look for."""
    there = stores(home, lambda _: None)
    known = [run.id for store in there for run in store.runs(limit=COMPARED_TASKS)]
    if (match := nearest(task, known)) is not None:
        return f"did you mean `{match}`? `kubexm task list` shows what there is"
    latest = sorted(known, reverse=True)[:SHOWN_TASKS]
    shown = f"the latest are {', '.join(f'`{id}`' for id in latest)}; " if latest else ""
    return f"{shown}`kubexm task list` shows what there is"


def stores(home: Home, unusable: Callable[[StoreError], None]) -> Iterator[Store]:
    """Every store that can be used, one after the other, each open while it is looked at."""
    for path in databases(home, unusable):
        try:
            store = open_store(path)
        except StoreError as error:
            unusable(error)
            continue
        with store:
            yield store


def databases(home: Home, unusable: Callable[[StoreError], None]) -> list[Path]:
    """Every database there is, the real one first; none is made by asking."""
    for directory in (home.state, home.data):
        with suppress(PermissionError):  # it may be one; that it is closed is told of below
            _refuse_if_no_directory(directory)
    worlds = _seen(home.worlds, lambda: sorted(home.worlds.iterdir()), unusable) or []
    paths = (home.database, *(world / DATABASE for world in worlds))
    return [path for path in paths if _seen(path.parent, path.stat, unusable)]


def _seen(
    directory: Path, look: Callable[[], Seen], unusable: Callable[[StoreError], None]
) -> Seen | None:
    """What a look into a directory shows; what it may hide from us is told of."""
    try:
        return look()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        message = f"the directory can't be looked into ({error.strerror})"
        hint = "check its owner and its mode, or set KUBEXM_HOME to another"
        unusable(StoreUnusable(message, where=str(directory), hint=hint))
        return None


def _refuse_if_no_directory(path: Path) -> None:
    there = next(place for place in (path, *path.parents) if place.exists())
    if not there.is_dir():
        raise InvalidInput(
            f"`{there}` is no directory, so there can't be a `{path}`",
            hint="set KUBEXM_HOME to a directory, or to a path where one can be made",
        )
