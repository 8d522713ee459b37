"""The simulated world of a run: made where there is none, and never another than asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from kubexm.app import places
from kubexm.app.params import RunParams
from kubexm.app.planning import Planned
from kubexm.common.paths import Home
from kubexm.errors import InvalidInput
from kubexm.sim.settings import WorldSettings

DOCUMENT = "world.json"
"""The file by which a directory is a simulated world."""
ANOTHER = "make another one with `--simulate --world NEW`, or remove that directory"
SAME = (
    "a task stays in its world: leave `simulate` as it was, or run the file anew"
    " with: kubexm run -f FILE --simulate --world NEW"
)


def place(params: RunParams, name: str, home: Home) -> Path | None:
    """Where the simulated world of a run lies; None for a real one."""
    return places.world_path(home, name, params.world) if params.simulate else None


@contextmanager
def world_of(params: RunParams, planned: Planned, home: Home) -> Iterator[Path | None]:
    """The simulated world of this run; who only looks where there is none leaves none behind."""
    if not params.simulate:
        yield None
        return
    path = places.world_path(home, planned.graph.name, params.world)
    if params.check and not (path / DOCUMENT).exists():
        from tempfile import TemporaryDirectory

        from kubexm.sim.world import World

        _refuse_what_is_none(path)
        with TemporaryDirectory(prefix="kubexm-") as directory:
            World.create(Path(directory), planned.world).close()
            yield Path(directory)
    else:
        yield _prepared(path, planned, home)


def _prepared(path: Path, planned: Planned, home: Home) -> Path:
    """The same for who works in it: made if it is not there yet."""
    try:
        _make_world(path, planned.world)
        refuse_if_another(path, planned)
        places.keep_in_mind(home, path)
    except OSError as error:
        raise InvalidInput(
            f"there can't be a simulated world in `{path}`: {error.strerror}",
            hint="give another directory with `--world`, or set KUBEXM_HOME to one",
        ) from error
    return path


def _make_world(path: Path, settings: WorldSettings) -> None:
    from kubexm.sim.world import World

    if (path / DOCUMENT).exists():
        return
    _refuse_what_is_none(path)
    with suppress(InvalidInput):  # another process may have been faster
        World.create(path, settings)


def _refuse_what_is_none(path: Path) -> None:
    foreign = [each.name for each in path.iterdir() if not _is_ours(each)] if path.exists() else []
    if foreign:
        raise InvalidInput(
            f"`{path}` is no simulated world, and it is not empty: `{min(foreign)}` is there",
            hint="give a directory that is empty, or does not exist yet, with `--world`",
        )


def _is_ours(path: Path) -> bool:
    """Whether another process may have put it there, about to make the same world."""
    return path.name in ("hosts", "blobs", "locks") or path.stem in ("world", "kubexm")


def refuse_if_another(path: Path, planned: Planned, hint: str = ANOTHER) -> None:
    """A world is what it was made as; a file without `simulate` takes it as it is."""
    from kubexm.sim.world import World

    with closing(World.open(path)) as world:
        if planned.world in (WorldSettings(), world.settings):
            return
    raise another(path, hint)


def another(path: Path, hint: str = ANOTHER) -> InvalidInput:
    """That a world is not what is asked for."""
    return InvalidInput(
        f"the simulated world in `{path}` was made with other settings than `simulate` has now",
        hint=hint,
    )
