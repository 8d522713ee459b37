"""Mounts of a lab: made where its records say, and found there again after a crash."""

from __future__ import annotations

from pathlib import Path

from lab.commands import run


def is_mounted(path: Path) -> bool:
    return str(path) in _points()


def disk(image: Path, at: Path) -> None:
    """Mount a file as a disk."""
    at.mkdir(exist_ok=True)
    # What a host deletes is given back to the machine's disk at once.
    run("mount", "-t", "ext4", "-o", "loop,discard", image, at)


def overlay(lower: Path, disk: Path, at: Path) -> None:
    """A root directory that is `lower` until something is changed, which goes to the disk."""
    for path in (disk / "upper", disk / "work", at):
        path.mkdir(exist_ok=True)
    options = f"lowerdir={lower},upperdir={disk / 'upper'},workdir={disk / 'work'}"
    run("mount", "-t", "overlay", "-o", options, "overlay", at)


def move(source: Path, target: Path) -> None:
    """Show at `target` what is mounted at `source`, and there no more."""
    target.touch()
    # Not `--move`: the kernel refuses that below a shared mount, such as most machines' root.
    run("mount", "--bind", source, target)
    unmount(source)
    source.unlink()


def unmount(path: Path) -> None:
    """Take away whatever is mounted at a path, as often as it is."""
    while is_mounted(path):
        # Whoever still stands in it keeps what he sees, but it is gone from here.
        run("umount", "--lazy", path)


def below(path: Path) -> list[Path]:
    """All that is mounted in a directory."""
    return [Path(point) for point in _points() if Path(point).is_relative_to(path)]


def _points() -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [_unescaped(line.split()[4]) for line in lines]


def _unescaped(path: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, character)
    return path
