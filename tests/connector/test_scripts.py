"""What a shell does with a file that arrives, when something is not as it should be."""

import hashlib
import subprocess
import time
from pathlib import Path

import pytest

from kubexm.connector.scripts import DIFFERS, TAKE

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
    while not part.exists() or part.stat().st_size < 5000:
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
