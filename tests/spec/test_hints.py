"""Hints that say what to do about this very mistake."""

from __future__ import annotations

import pytest
from tests.spec.texts import HOSTS, planned, with_steps

from kubexm.common.nearest import nearest
from kubexm.errors import InvalidPipeline, Problem
from kubexm.step import registry


def problems_of(steps: str, spec: str = HOSTS) -> list[Problem]:
    with pytest.raises(InvalidPipeline) as caught:
        planned(with_steps(steps, spec))
    return list(caught.value.problems)


def hints_of(steps: str, spec: str = HOSTS) -> list[str]:
    return [problem.hint for problem in problems_of(steps, spec)]


def test_a_parameter_beside_its_step_is_to_be_indented() -> None:
    hints = hints_of("""
        - name: s
          file:
          path: /a
          content: x
    """)

    assert hints.count("indent it below `file`: it is a parameter of that") == 2


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("user", None),
        ("group", None),
        ("comand", "command"),
        ("fiel", "file"),
        ("sevrice", "service"),
        ("asert", "assert"),
    ],
)
def test_a_kind_is_offered_only_if_it_is_like_the_word(word: str, near: str | None) -> None:
    assert nearest(word, registry.kinds()) == near


def test_a_short_word_with_letters_in_another_order_is_near() -> None:
    assert nearest("wbe", ["web", "db"]) == "web"


def test_a_question_ends_its_hint() -> None:
    hints = hints_of("""
        - {name: s, file: {path: /a, content: "${host.nme} ${hosts.name}"}}
        - {name: r, when: fact.cpus > 1, noop: }
    """)

    assert not [hint for hint in hints if "?;" in hint]
    assert "write `$${` for a literal `${`; did you mean `host`?" in hints
    assert "text is written in quotes; did you mean `facts`?" in hints


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("timeout: -3", "write `30s`, `5m`, `1h30m` or seconds, or leave it out for no limit"),
        ("timeout: 0s", "write `30s`, `5m`, `1h30m` or seconds, or leave it out for no limit"),
        ("timeout: 400d", "write `30s`, `5m`, `1h30m` or seconds"),
        ("retry: {attempts: 2, delay: -1}", "write `30s`, `5m`, `1h30m` or seconds"),
        ("retry: {attempts: 0}", "write 1 or more"),
        ("retry: {attempts: 2000}", "write 1000 or less"),
        ("retry: {attempts: 2, jitter: 10.5}", "write 10 or less"),
        ("limits: {maxConcurrencyPerHost: 0}", "write 1 or more"),
    ],
)
def test_a_number_out_of_bounds_says_what_to_write(written: str, hint: str) -> None:
    assert hints_of(f"- {{name: s, {written}, noop: }}") == [hint]
