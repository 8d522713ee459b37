"""Tests that are all required don't leave themselves out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.required import REQUIRED, may_be_left_out

ROOT = Path(__file__).parents[1]
SKIPPING = """
import pytest

@pytest.fixture
def program():
    pytest.skip("no program")

def test_that_passes(): pass
def test_by_a_fixture(program): pass
@pytest.mark.skipif(True, reason="no library")
def test_by_a_mark(): pass
def test_amid(): pytest.skip("nothing to do")
def test_of_the_machine(): pytest.skip("this machine has no IPv6")
@pytest.mark.xfail(strict=True)
def test_that_fails_as_expected(): assert False
@pytest.mark.parametrize("one", [])
def test_of_nothing(one): pass
"""
ALL_LEFT_OUT = """
import pytest

pytest.importorskip("no_such_module")
"""


def outcome(place: Path, **environment: str) -> tuple[int, str]:
    """How pytest ends on these files, and what it says."""
    (place / "test_some.py").write_text(SKIPPING)
    (place / "test_none.py").write_text(ALL_LEFT_OUT)
    (place / "pytest.ini").touch()
    words = ("-p", "tests.required", "-p", "no:cacheprovider", "-p", "no:xdist")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "--continue-on-collection-errors", str(place)],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        env={
            **{name: value for name, value in os.environ.items() if name != REQUIRED},
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            **environment,
        },
    )
    return done.returncode, done.stdout


def test_who_leaves_itself_out_fails_where_all_are_required(tmp_path: Path) -> None:
    code, said = outcome(tmp_path, **{REQUIRED: "1"})

    assert code == 1
    for why in ("no program", "no library", "nothing to do", "empty parameter set"):
        assert f"{why}" in said
    assert "left out: could not import 'no_such_module'" in said
    assert (
        said.splitlines()[-1]
        .strip("= ")
        .startswith("1 failed, 1 passed, 1 skipped, 1 xfailed, 4 errors in")
    )


def test_who_leaves_itself_out_is_told_elsewhere(tmp_path: Path) -> None:
    code, said = outcome(tmp_path)

    assert (code, "1 passed, 6 skipped, 1 xfailed" in said) == (0, True), said


def test_what_is_made_for_the_lab_is_wanted_once_it_was_made() -> None:
    why = "no kubeadm is at hand"

    assert may_be_left_out(why, has_software=False)
    assert not may_be_left_out(why, has_software=True)


@pytest.mark.parametrize("value", ["", "1"])
def test_a_package_that_can_not_be_had_fails_only_where_all_are_required(
    tmp_path: Path, value: str
) -> None:
    bash = "/bin/bash"
    words: list[str | Path] = [bash, ROOT / "scripts/unpack-package.sh", "some-program", tmp_path]
    there_is_nothing = {"PATH": str(tmp_path), REQUIRED: value}

    done = subprocess.run(words, env=there_is_nothing, capture_output=True, text=True, check=False)

    assert done.returncode == (1 if value else 0)
    assert "some-program" in done.stderr
