"""Keys that are trusted on first use: added to a file of others, believed from then on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import asyncssh
import pytest

from kubexm.connector.ssh.hostkeys import KeyBook
from kubexm.connector.ssh.target import HostKeys, Target

OLD, NEW = Target("old.example"), Target("new.example", 2222)
KEYS = tuple(asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))


def line(name: str, key: asyncssh.SSHKey) -> str:
    algorithm, encoded, *_ = key.export_public_key().decode().split()
    return f"{name} {algorithm} {encoded}"


def trusting(file: Path) -> KeyBook:
    """What a later run knows that trusts on first use."""
    return KeyBook(HostKeys((file,), trust="first-use"))


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_key_that_is_added_takes_no_other_host_from_a_file(tmp_path: Path, end: str) -> None:
    file, (first, second) = tmp_path / "known_hosts", KEYS
    file.write_text(f"{line('old.example', first)}{end}")

    assert trusting(file).accepts(NEW, second)

    both = [line("old.example", first), line("[new.example]:2222", second)]
    assert file.read_text().splitlines() == both
    assert not trusting(file).accepts(OLD, second)
    assert not trusting(file).accepts(NEW, first)


def test_a_file_that_is_not_there_or_empty_begins_with_the_key(tmp_path: Path) -> None:
    missing, empty = tmp_path / "ssh" / "known_hosts", tmp_path / "empty"
    empty.touch()

    for file in (missing, empty):
        assert trusting(file).accepts(OLD, KEYS[0])
        assert file.read_text() == f"{line('old.example', KEYS[0])}\n"


@pytest.mark.parametrize("end", ["", "\n"])
def test_what_a_refusal_says_adds_the_key_and_takes_no_other_host(tmp_path: Path, end: str) -> None:
    file, (first, second) = tmp_path / "known_hosts", KEYS
    file.write_text(f"{line('old.example', first)}{end}")
    book = KeyBook(HostKeys((file,)))

    hint = book.refusal(NEW, second).hint
    subprocess.run(["sh", "-c", hint.partition("the same: ")[2]], check=True)

    both = [line("old.example", first), line("[new.example]:2222", second)]
    assert file.read_text().splitlines() == both


ADD = """
import sys
from pathlib import Path
from kubexm.connector.ssh import hostkeys
for number in range(50):
    hostkeys._append(Path(sys.argv[1]), f"{sys.argv[2]}-{number}")
"""


def test_runs_that_add_keys_at_the_same_time_lose_none(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text("unended")

    words = [sys.executable, "-c", ADD, str(file)]
    runs = [subprocess.Popen([*words, name]) for name in ("one", "two", "three")]

    assert [run.wait() for run in runs] == [0, 0, 0]
    wanted = [f"{name}-{number}" for name in ("one", "two", "three") for number in range(50)]
    assert sorted(file.read_text().splitlines()) == sorted(["unended", *wanted])
