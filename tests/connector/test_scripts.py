"""What a shell does with a file that arrives, when something is not as it should be."""

import hashlib
import os
import subprocess
import time
from pathlib import Path

import pytest

from kubexm.connector.scripts import DIFFERS, HANDED, KEEP, TAKE, WRITE

DATA = b"some data\n" * 1000


def take(
    place: Path, *, digest: str | None = None, size: int = len(DATA)
) -> subprocess.Popen[bytes]:
    """A shell that takes a file to `place/target` by way of `place/part`."""
    wanted = digest or hashlib.sha256(DATA).hexdigest()
    words = [str(place / "target"), str(place / "part"), str(size), wanted, "", "", "", "0"]
    return subprocess.Popen(
        ["sh", "-c", TAKE, "sh", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_file_is_put_in_place_whole(tmp_path: Path) -> None:
    shell = take(tmp_path)

    _, said = shell.communicate(DATA, timeout=20)

    assert (shell.returncode, said) == (0, b"")
    assert (tmp_path / "target").read_bytes() == DATA
    assert not (tmp_path / "part").exists()


def test_a_part_into_which_somebody_else_writes_is_no_file(tmp_path: Path) -> None:
    shell, part = take(tmp_path), tmp_path / "part"
    assert shell.stdin is not None
    shell.stdin.write(DATA[:5000])
    shell.stdin.flush()
    deadline = time.monotonic() + 20
    while not part.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with part.open("ab") as other:
        other.write(b"of another file")

    _, said = shell.communicate(DATA[5000:], timeout=20)

    assert shell.returncode == 1
    assert b"10015 bytes of 10000 have arrived" in said
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("sent", [b"", DATA[:-1]])
def test_what_has_not_arrived_whole_stays_a_part(tmp_path: Path, sent: bytes) -> None:
    shell = take(tmp_path)

    shell.communicate(sent, timeout=20)

    assert shell.returncode == 1
    assert (tmp_path / "part").read_bytes() == sent
    assert not (tmp_path / "target").exists()


def test_another_file_of_the_same_size_is_told_by_its_digest(tmp_path: Path) -> None:
    shell = take(tmp_path, digest="0" * 64)

    told, _ = shell.communicate(DATA, timeout=20)

    assert shell.returncode == DIFFERS
    assert told.decode().strip() == hashlib.sha256(DATA).hexdigest()
    assert not any(tmp_path.iterdir())


def write(
    place: Path, sent: bytes, *more: str, digest: str | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Have a shell write the data to `place/target`, of which this is sent."""
    wanted = hashlib.sha256(DATA).hexdigest() if digest is None else digest
    words = (str(place / "target"), "", "", "", str(len(DATA)), wanted, *more)
    return subprocess.run(
        ["sh", "-c", WRITE, "sh", *words], input=sent, capture_output=True, check=False, timeout=20
    )


def test_only_as_much_is_read_as_the_file_has(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, DATA + b"not of the file")
    words = (str(tmp_path / "target"), "", "", "", str(len(DATA)), "")

    done = subprocess.run(["sh", "-c", WRITE, "sh", *words], stdin=read_end, check=False)

    assert done.returncode == 0
    assert (tmp_path / "target").read_bytes() == DATA
    assert os.read(read_end, 100) == b"not of the file"
    os.close(read_end)
    os.close(write_end)


@pytest.mark.parametrize("sent", [b"", DATA[:-1], DATA[::-1]])
def test_what_is_written_differs_or_is_cut_off_is_no_file(tmp_path: Path, sent: bytes) -> None:
    done = write(tmp_path, sent)

    assert (done.returncode, done.stderr) == (1, b"it has not arrived whole\n")
    assert list(tmp_path.iterdir()) == []


def test_text_may_come_as_a_word(tmp_path: Path) -> None:
    done = write(tmp_path, b"", DATA.decode(), digest="")

    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "target").read_bytes() == DATA


END = b"that is all\n"
COMPLETE = """c() { read -r last && [ "$last" = "that is all" ]; }"""


def keep(sent: bytes, *argv: str, place: Path) -> subprocess.CompletedProcess[bytes]:
    """Have a shell keep the data, of which this is sent, for a command."""
    return subprocess.run(
        ["sh", "-c", COMPLETE + KEEP, "sh", str(len(DATA)), *argv],
        input=sent,
        capture_output=True,
        check=False,
        timeout=20,
        env={**os.environ, "TMPDIR": str(place)},
    )


def test_a_command_begins_when_its_input_is_there_and_nothing_stays_of_it(tmp_path: Path) -> None:
    done = keep(
        DATA + END, "sh", "-c", 'cat; echo "$1" >&2; exit 3', "sh", "a word", place=tmp_path
    )

    assert (done.returncode, done.stdout, done.stderr) == (3, DATA, b"a word\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sent", [b"", DATA[:-1], DATA, DATA[:-1] + END])
def test_a_command_does_not_begin_whose_input_was_cut_off(tmp_path: Path, sent: bytes) -> None:
    done = keep(sent, "touch", str(tmp_path / "begun"), place=tmp_path)

    assert done.returncode == 126
    assert done.stderr == b"its input has not arrived whole\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sent", [b"", DATA[:-1], DATA, DATA[:-1] + END])
def test_what_was_not_handed_over_to_the_end_is_no_file(tmp_path: Path, sent: bytes) -> None:
    words = (str(tmp_path / "target"), "", "", "", str(len(DATA)), HANDED)
    argv = ["sh", "-c", COMPLETE + WRITE, "sh", *words]

    done = subprocess.run(argv, input=sent, capture_output=True, check=False, timeout=20)
    left = list(tmp_path.iterdir())
    again = subprocess.run(argv, input=DATA + END, check=False, timeout=20)

    assert (done.returncode, done.stderr) == (1, b"it has not arrived whole\n")
    assert left == []
    assert again.returncode == 0
    assert (tmp_path / "target").read_bytes() == DATA
