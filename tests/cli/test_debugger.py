"""The debugger's questions at a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.answers import Kubexm

Write = Callable[..., Path]
Type = Callable[[str], None]

TWO = """
- {name: one, directory: {path: /srv/one}}
- {name: two, directory: {path: /srv/two}}
"""
ONE_HOST = "    - {name: n1}\n"


@pytest.fixture
def type_in(monkeypatch: pytest.MonkeyPatch) -> Type:
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_line_stands_before_the_question_about_the_next_unit(
    kubexm: Kubexm, pipeline: Write, type_in: Type
) -> None:
    type_in("r\nr\n")

    answer = kubexm("run", "-f", pipeline(TWO, hosts=ONE_HOST), "--simulate", "--debug")

    assert answer.code == 0
    changed = answer.err.index("changed  n1  site/base/setup/one")
    assert changed < answer.err.index("site/base/setup/two on n1")


def test_the_end_of_a_unit_is_told_before_the_question_about_another_host(
    kubexm: Kubexm, pipeline: Write, type_in: Type
) -> None:
    type_in("r\nr\nr\nr\n")

    answer = kubexm("run", "-f", pipeline(TWO), "--simulate", "--debug")

    told = [line for line in answer.err.splitlines() if "site/base/setup" in line]
    asked, ended = told[::2], told[1::2]
    assert answer.code == 0
    assert all(" on n" in line for line in asked)
    assert all(line.startswith("changed  ") for line in ended)


def test_a_unit_that_waits_for_the_value_of_another_keeps_no_question_back(
    kubexm: Kubexm, pipeline: Write, type_in: Type
) -> None:
    steps = """
- {name: made, mint: {key: token, argv: [echo, x]}}
- {name: used, after: [made], command: {argv: [cat], stdin: "${values.token}"}}
"""
    type_in("r\nr\n")

    answer = kubexm("run", "-f", pipeline(steps, hosts=ONE_HOST), "--simulate", "--debug")

    assert answer.code == 0
    asked = [answer.err.index(f"site/base/setup/{name} on n1") for name in ("used", "made")]
    assert asked == sorted(asked)


def test_a_line_that_comes_amid_a_question_has_it_asked_again(
    kubexm: Kubexm, pipeline: Write, type_in: Type
) -> None:
    type_in("r\nr\n")

    answer = kubexm("run", "-f", pipeline(TWO), "--simulate", "--debug")

    assert answer.code == 3
    assert "changed  n1  site/base/setup/one" in answer.err
    assert "> changed" not in answer.err


def test_an_unknown_answer_is_told_what_is_possible(
    kubexm: Kubexm, pipeline: Write, type_in: Type
) -> None:
    type_in("x\nabort\n")

    answer = kubexm("run", "-f", pipeline(TWO, hosts=ONE_HOST), "--simulate", "--debug")

    assert "`x` is no answer here, want one of r, s, c, a, p" in answer.err
    assert answer.code == 3


@pytest.mark.parametrize("more", [(), ("--check",)])
def test_the_end_of_the_input_aborts(
    kubexm: Kubexm, pipeline: Write, type_in: Type, more: tuple[str, ...]
) -> None:
    type_in("")

    answer = kubexm("run", "-f", pipeline(TWO, hosts=ONE_HOST), "--simulate", "--debug", *more)

    assert answer.code == 3
    assert "the input has ended: aborting" in answer.err


def test_after_a_failure_other_answers_are_possible(
    kubexm: Kubexm, pipeline: Write, type_in: Type
) -> None:
    type_in("r\nc\nfail\n")
    broken = "- {name: one, command: {argv: [test, -e, /nowhere]}}"

    answer = kubexm("run", "-f", pipeline(broken, hosts=ONE_HOST), "--simulate", "--debug")

    assert "re[t]ry [s]kip [f]ail [a]bort [p]rint commands > " in answer.err
    assert "`c` is no answer here, want one of t, s, f, a, p" in answer.err
    assert answer.code == 1


def test_a_dry_run_that_was_aborted_does_not_say_that_there_is_nothing_to_do(
    kubexm: Kubexm, pipeline: Write, type_in: Type
) -> None:
    type_in("a\n")

    answer = kubexm("run", "-f", pipeline(TWO, hosts=ONE_HOST), "--simulate", "--debug", "--check")

    assert answer.code == 3
    assert "nothing to do" not in answer.out
    assert "2 not looked at\ncancelled, aborted in the debugger: nothing is known" in answer.out


def test_a_dry_run_that_was_aborted_tells_what_it_had_seen_by_then(
    kubexm: Kubexm, pipeline: Write, type_in: Type
) -> None:
    type_in("r\na\n")

    answer = kubexm("run", "-f", pipeline(TWO, hosts=ONE_HOST), "--simulate", "--debug", "--check")

    assert "1 to change · 1 not looked at" in answer.out
