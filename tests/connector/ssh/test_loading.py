"""What speaks SSH is loaded without other programs."""

import ctypes.util
import subprocess
import sys
from pathlib import Path

import pytest

from kubexm.connector.ssh import loading

LOAD = """
import sys
from kubexm.app.reaching import load_dialing

def note(event, words):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system"):
        print("started", words[0])

sys.addaudithook(note)
load_dialing()
print("loaded", "asyncssh" in sys.modules)
"""


def find(name: str) -> str | None:
    with loading.lightly():
        return ctypes.util.find_library(name)


def test_no_program_is_started_meanwhile() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOAD], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.splitlines() == ["loaded True"]


@pytest.mark.parametrize(
    "listed", ["\0libc.so.6\0", "\0/lib/libc.so.6\0", "\0libc.so.6.1\0x/libc.so.6\0"]
)
def test_a_library_is_found_where_it_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: str
) -> None:
    (tmp_path / "list").write_text(f"cache{listed}")
    monkeypatch.setattr(loading, "LISTED", tmp_path / "list")

    assert find("c") == "libc.so.6"
    assert find("m") is None


@pytest.mark.parametrize("listed", ["\0libodd.so.1\0", "\0xlibc.so.6\0", "\0libc.sofa\0", ""])
def test_one_that_is_not_for_us_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: str
) -> None:
    (tmp_path / "list").write_text(f"cache{listed}")
    monkeypatch.setattr(loading, "LISTED", tmp_path / "list")

    assert [find("odd"), find("c")] == [None, None]


def test_without_a_list_it_is_looked_for_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = ctypes.util.find_library
    monkeypatch.setattr(loading, "LISTED", tmp_path / "none")

    with loading.lightly():
        assert ctypes.util.find_library is usual
    assert ctypes.util.find_library is usual


def test_what_was_replaced_is_put_back_whatever_happens() -> None:
    usual = ctypes.util.find_library

    with pytest.raises(ImportError), loading.lightly():
        raise ImportError
    assert ctypes.util.find_library is usual
