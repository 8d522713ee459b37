"""Taking a lab down: nothing of it stays, whatever has become of those who made it."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from lab import cgroups, images, mounts, processes
from lab import site as sites
from lab.errors import LabError
from lab.site import Site

_PROPAGATE = Path("/run/systemd/nspawn/propagate")


def down(path: Path) -> bool:
    """Remove the lab in a directory; False if there is none."""
    if not path.exists():
        return False
    with sites.locked(path):
        site = sites.find(path)
        if site is None:
            _remove_lock_only(path)
            return False
        _demolish(site)
        _require_unmounted(path)
        _clear(path)
    return True


def _demolish(site: Site) -> None:
    if site.boot == processes.boot():
        # Everybody, and those they had just started too: from here on nobody makes anything.
        cgroups.kill(site.groups.unified)
    for name in _names(site):
        for at in site.home(name).mounts:
            mounts.unmount(at)
        _forget(site.machine(name))
    for at in (site.netns, site.path / "netns.half"):
        mounts.unmount(at)
    if site.boot == processes.boot():
        cgroups.remove(site.groups)
    images.discard_halves()


def _require_unmounted(path: Path) -> None:
    """Somebody may have mounted things of his own in there; those must not be emptied."""
    if foreign := mounts.below(path):
        raise LabError(f"not made by the lab: unmount `{foreign[0]}`, then take it down again")


def _clear(path: Path) -> None:
    """Remove the directory; what makes it a lab goes last, in case somebody kills us."""
    for child in path.iterdir():
        if child.is_dir():
            shutil.rmtree(child)
        elif child.name not in {"lab.json", "lock"}:
            child.unlink()
    shutil.rmtree(path)


def _names(site: Site) -> list[str]:
    return sorted(path.name for path in (site.path / "hosts").glob("*"))


def _forget(machine: str) -> None:
    # nspawn leaves this behind when it is killed.
    for place in _PROPAGATE.glob(machine):
        with contextlib.suppress(OSError):
            place.rmdir()


def _remove_lock_only(path: Path) -> None:
    """A directory that was only looked into is left as it was."""
    with contextlib.suppress(OSError):
        (path / "lock").unlink()
        path.rmdir()
