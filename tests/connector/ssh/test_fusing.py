"""Looks that one process makes for several: told apart, they are what each would have said."""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.examples import many

from kubexm.connector.base import C_LOCALE, STAT, Command, Completed, digesting, reading
from kubexm.connector.ssh import fusing

Kind = Callable[[str], tuple[str, ...]]
SHOW = ("systemctl", "show", "--property=LoadState,ActiveState", "--")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    furnish(tmp_path)
    return tmp_path


def furnish(place: Path) -> None:
    (place / "one").write_text("first\n")
    (place / "two").write_bytes(b"\0\xff without an end")
    (place / "empty").touch()
    (place / "big").write_bytes(b"x" * 100)
    (place / "odd\nname").write_text("odd")
    (place / "back\\slash").write_text("odd")
    (place / "directory").mkdir()
    (place / "link").symlink_to("one")
    os.mkfifo(place / "pipe")


def stat(path: str) -> tuple[str, ...]:
    return (*STAT, path)


def content(path: str, size: int = 64) -> tuple[str, ...]:
    return reading(path, size, count=1)


def looked(place: Path, kind: Kind, name: str) -> Command:
    return Command(kind(str(place / name)), env=C_LOCALE, changes=False)


def run(command: Command) -> Completed:
    done = subprocess.run(
        command.argv, capture_output=True, check=False, env={**os.environ, **command.env}
    )
    return Completed(done.returncode, done.stdout, done.stderr)


def processes(commands: Sequence[Command]) -> list[tuple[str, ...]]:
    return [look.command.argv for look in fusing.fused(commands)]


def known(commands: Sequence[Command]) -> dict[int, Completed]:
    looks = fusing.fused(commands)
    return fusing.answers(looks, [run(look.command) for look in looks])


def test_looks_of_a_kind_are_made_by_one_process(place: Path) -> None:
    names = ("one", "two", "empty")
    kinds = (stat, content, digesting)
    commands = [looked(place, kind, name) for name in names for kind in kinds]

    assert len(processes(commands)) == 3
    assert known(commands) == {n: run(command) for n, command in enumerate(commands)}


def test_whoever_asks_the_same_gets_the_same_answer(place: Path) -> None:
    commands = [looked(place, stat, name) for name in ("one", "two", "one")]

    assert processes(commands) == [(*STAT, str(place / "one"), str(place / "two"))]
    assert known(commands)[0] == known(commands)[2] == run(commands[0])


def test_other_commands_stay_as_they_are(place: Path) -> None:
    commands = [
        Command(("test", "-e", "/x")),
        Command(("test", "-e", "/x")),
        looked(place, stat, "one"),
        Command((*STAT, "/x"), user="somebody"),
        Command((*STAT, "/x"), cwd="/"),
    ]

    assert processes(commands) == [command.argv for command in commands]


def test_what_is_not_there_is_asked_for_singly(place: Path) -> None:
    commands = [looked(place, stat, name) for name in ("one", "none")]

    assert known(commands) == {}


def test_nobody_waits_for_complaints_of_what_only_reads(place: Path) -> None:
    path = str(place / "one")
    several = [Command(reading(path + end, 10, count=1), env=C_LOCALE) for end in ("", "2")]
    (beginnings,) = fusing.fused(several)
    reads = [
        (*STAT, path),
        reading(path, 10),
        reading(path, 10, start=3, count=1),
        digesting(path, path),
        beginnings.command.argv,
    ]
    others = [
        ("stat", path),
        ("dd", f"if={path}", f"of={path}"),
        ("find", "-L", path, "-print"),
        ("sh", "-c", "true"),
        ("systemctl", "show", "--", "ssh"),
    ]

    assert [argv for argv in reads if not fusing.only_reads(Command(argv))] == []
    assert [argv for argv in others if fusing.only_reads(Command(argv))] == []


def test_contents_are_asked_for_singly_where_no_size_was_seen(place: Path) -> None:
    reads = [looked(place, content, name) for name in ("one", "link")]

    assert known(reads) == {}
    assert known([*reads, looked(place, stat, "one"), looked(place, stat, "link")]).keys() == {
        2,
        3,
    }


def test_a_file_longer_than_what_is_read_of_it_is_asked_for_singly(place: Path) -> None:
    names = ("one", "big")
    reads = [looked(place, content, name) for name in names]

    assert known([*reads, *(looked(place, stat, name) for name in names)]).keys() == {2, 3}


def test_units_are_told_apart() -> None:
    commands = [Command((*SHOW, unit)) for unit in ("a.service", "b.service")]
    (look,) = fusing.fused(commands)
    said = b"LoadState=loaded\nActiveState=active\n\nLoadState=not-found\nActiveState=inactive\n"

    found = fusing.answers([look], [Completed(0, said)])

    assert look.command.argv == (*SHOW, "a.service", "b.service")
    assert found == {
        0: Completed(0, b"LoadState=loaded\nActiveState=active\n"),
        1: Completed(0, b"LoadState=not-found\nActiveState=inactive\n"),
    }


names = some.sampled_from(
    ["one", "two", "empty", "big", "odd\nname", "back\\slash", "directory", "link", "pipe", "none"]
)
kinds = some.sampled_from([stat, digesting, content, partial(content, size=200)])


@pytest.fixture(scope="module")
def furnished() -> Iterator[Path]:
    with TemporaryDirectory() as directory:
        furnish(Path(directory))
        yield Path(directory)


@many(60)
@given(asked=some.lists(some.tuples(kinds, names), max_size=12))
def test_no_answer_is_another_than_it_would_be_singly(
    furnished: Path, asked: list[tuple[Kind, str]]
) -> None:
    commands = [looked(furnished, kind, name) for kind, name in asked]

    for number, answer in known(commands).items():
        assert answer == run(commands[number])


def test_only_a_look_at_one_place_is_answered_without_a_process() -> None:
    looks = {
        "/a": (*STAT, "/a"),
        "/b": digesting("/b"),
        "several": (*STAT, "/a", "/b"),
        "digests": digesting("/a", "/b"),
        "relative": (*STAT, "a"),
        "directory": (*STAT, "/a/"),
        "other": ("test", "-e", "/a"),
    }

    found = {name: fusing.place_of(Command(argv)) for name, argv in looks.items()}

    assert {name for name, place in found.items() if place is not None} == {"/a", "/b"}
    assert (found["/a"], found["/b"]) == ("/a", "/b")
    assert fusing.place_of(Command((*STAT, "/a"), cwd="/")) is None
