"""Hints that say what to do about this very mistake."""

from __future__ import annotations

import pytest
from tests.spec.texts import HOSTS, planned, with_steps

from kubexm.common.nearest import nearest
from kubexm.errors import InvalidInput, InvalidPipeline, Problem
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
        ("cron", None),
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
    "step",
    [
        "- {name: s, when: vars.prot > 1, noop: }",
        "- {name: s, when: facts.cpus > vars.prot, noop: }",
        "- {name: s, forEach: '${vars.prot}', noop: }",
        "- {name: s, file: {path: /a, content: '${vars.prot}'}}",
    ],
)
def test_an_unknown_variable_is_to_be_declared_or_given(step: str) -> None:
    declare = "declare `prot` under `spec.vars`, or give `--set prot=…`"

    assert hints_of(step) == [declare]
    assert hints_of(step, f"vars: {{port: 80}}{HOSTS}") == [f"{declare}; did you mean `port`?"]


def test_a_part_that_a_variable_lacks_is_to_be_added() -> None:
    hints = hints_of("- {name: s, when: vars.app.port > 1, noop: }", f"vars: {{app: {{}}}}{HOSTS}")

    assert hints == ["add `port` there, or give `--set app.port=…`"]


def test_an_unknown_override_is_to_be_declared_or_left_out() -> None:
    with pytest.raises(InvalidPipeline) as caught:
        planned(with_steps("- {name: s, noop: }"), "port=1")

    (problem,) = caught.value.problems
    assert problem.hint == "declare `port` under `spec.vars`, or leave the option out"


@pytest.mark.parametrize(
    ("role", "hosts"), [("all", " on `b`, `c`"), ("db", " on `c`"), ("nobody", "")]
)
def test_a_label_that_is_missing_names_the_hosts_and_where_to_write_it(
    role: str, hosts: str
) -> None:
    label = "zone" if hosts else "rack"
    step = f"- {{name: s, runOnRoles: [{role}], when: host.labels.{label} == 'x', noop: }}"

    (problem,) = problems_of(step, f"roles: [nobody]{HOSTS}")

    assert problem.message.endswith(f".when: `host.labels` has no `{label}`{hosts}")
    assert problem.hint == f"write `labels: {{{label}: …}}` at the host under `spec.hosts`"


def test_the_control_node_can_have_no_label() -> None:
    text = "- {name: s, runOnRoles: [control-node], file: {path: /a, content: '${host.labels.z}'}}"

    (problem,) = problems_of(text)

    assert problem.message.endswith("`host.labels` has no `z` on `control-node`")
    assert problem.hint == "`control-node` has no labels: name a variable of the host instead"


@pytest.mark.parametrize("role", ["web", "nobody", "misspelt"])
def test_a_condition_that_compares_what_cant_be_compared_names_no_host(role: str) -> None:
    step = f"- {{name: s, runOnRoles: [{role}], when: host.name > 3, noop: }}"

    found = problems_of(step, f"roles: [nobody]{HOSTS}")

    (message,) = [problem.message for problem in found if ".when: " in problem.message]
    assert message.endswith(".when: `host.name > 3` compares text with a number")


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


def test_a_part_of_a_variable_that_has_none_is_not_to_be_set() -> None:
    with pytest.raises(InvalidInput) as caught:
        planned(with_steps("- {name: s, noop: }", "vars: {app: {port: 1}}"), "app.port.x=1")

    assert caught.value.hint == "set the whole of it: `--set app.port=…`"


@pytest.mark.parametrize("written", ["3", "''", "[a]"])
def test_what_is_no_expression_says_what_one_is(written: str) -> None:
    hints = hints_of(f"- {{name: s, when: {written}, noop: }}")

    assert hints == ["write one that is true or false, such as `vars.count > 0`, or leave it out"]


@pytest.mark.parametrize("step", ["when: item.x == 1, noop: ", "file: {path: '/${item.x}'}"])
def test_a_part_that_an_entry_lacks_is_to_be_added(step: str) -> None:
    hints = hints_of(f"- {{name: s, forEach: [{{}}], {step}}}")

    assert hints == ["add `x` to the entry of `forEach`"]
