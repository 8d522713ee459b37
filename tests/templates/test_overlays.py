"""Templates of the operator take the place of ours, and all that is wrong with them is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubexm.errors import InvalidInput, Problem
from kubexm.templates import overlays, render
from kubexm.templates.registry import TEMPLATES


def test_a_template_takes_the_place_of_ours(tmp_path: Path) -> None:
    own = render.source("chrony/config") + "# mine\n"
    laid(tmp_path, "chrony/config.j2", own)
    laid(tmp_path, "README.md", "what is here")
    laid(tmp_path, ".git/config", "hidden")

    found = overlays.read(tmp_path)

    assert found.text("chrony/config") == own
    assert found.text("containerd/config") is None
    assert found.directory == tmp_path


def test_ours_are_sound_overlays_themselves(tmp_path: Path) -> None:
    for name in TEMPLATES:
        laid(tmp_path, f"{name}.j2", render.source(name))

    assert set(overlays.read(tmp_path).texts) == set(TEMPLATES)


def test_without_a_directory_ours_stay() -> None:
    assert overlays.Overlays().text("containerd/config") is None


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is no directory"):
        overlays.read(tmp_path / "missing")


@pytest.mark.parametrize(
    ("file", "text", "line", "message", "hint"),
    [
        ("chrony/confg.j2", "", "", "unknown template `chrony/confg`", "`chrony/config`"),
        ("chrony/config", "", "", "want a name that ends in `.j2`", "`chrony/config.j2`"),
        ("chrony/config.j2", "a\n{{ servers", ":2", "unexpected end", "close `{{`"),
        ("chrony/config.j2", "a\n{{ server }}", ":2", "`server` is not among", "`servers`"),
        ("chrony/config.j2", "{{ servers }}\n\n{{ servers.x }}", ":3", "no attribute 'x'", ""),
        ("containerd/config.j2", "a = {{ root }}", "", "not toml in line 1: not TOML", "show"),
        ("systemd/kubelet.j2", "{{ program }}", "", "not unit in line 1: found `/usr", "show"),
    ],
)
def test_what_is_wrong_with_a_template_is_told(
    tmp_path: Path, file: str, text: str, line: str, message: str, hint: str
) -> None:
    laid(tmp_path, file, text)

    (problem,) = problems(tmp_path)

    assert problem.where == f"{tmp_path / file}{line}"
    assert message in problem.message
    assert hint in problem.hint


def test_a_template_that_is_no_text_is_told(tmp_path: Path) -> None:
    laid(tmp_path, "chrony/config.j2", "")
    (tmp_path / "chrony/config.j2").write_bytes(b"\xff")

    assert [problem.message for problem in problems(tmp_path)] == ["not UTF-8 text"]


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    laid(tmp_path, "chrony/config.j2", "{{ one }}{{ two }}")
    laid(tmp_path, "etcd/environment.j2", "{% if")
    laid(tmp_path, "mine.txt", "")

    assert len(problems(tmp_path)) == 4


def laid(directory: Path, name: str, text: str) -> None:
    file = directory / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def problems(directory: Path) -> tuple[Problem, ...]:
    with pytest.raises(InvalidInput) as caught:
        overlays.read(directory)
    return caught.value.problems
