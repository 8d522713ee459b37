"""What a run needs beside its file is asked for before the first change, all at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.answers import Kubexm

Write = Callable[..., Path]
STEPS = """
- {name: first, file: {path: /a, content: x}}
- {name: unset, command: {argv: ["true"], secretEnv: {A: "env://UNSET"}}}
- {name: empty, secret-file: {path: /b, content: "env://EMPTY"}}
"""


@pytest.mark.parametrize("also", [(), ("--check",)])
def test_all_missing_secrets_are_named_before_anything_runs(
    kubexm: Kubexm, pipeline: Write, monkeypatch: pytest.MonkeyPatch, also: tuple[str, ...]
) -> None:
    monkeypatch.setenv("EMPTY", "")
    file = pipeline(STEPS)

    answer = kubexm("run", "-f", file, "--simulate", *also)

    assert answer.code == 2
    assert f"{file}:14:15: the environment variable `UNSET` is not set" in answer.err
    assert "`secretEnv.A` of `site/base/setup/unset` needs it" in answer.err
    assert "the environment variable `EMPTY` is empty" in answer.err
    assert "export UNSET before running kubexm" in answer.err
    assert "no runs yet" in kubexm("task", "list").out


def test_what_is_left_out_needs_no_secret_and_neither_does_a_plan(
    kubexm: Kubexm, pipeline: Write
) -> None:
    file = pipeline(STEPS)

    assert kubexm("plan", "-f", file).code == 0
    assert kubexm("graph", "-f", file).code == 0
    assert kubexm("run", "-f", file, "--simulate", "--only", "base/setup/first").code == 0


def test_a_secret_that_only_some_hosts_need_is_asked_for_when_their_facts_are_known(
    kubexm: Kubexm, pipeline: Write
) -> None:
    condition = "when: facts.cpus >= 1, " + "secret-file: {path: /b, content: 'file:///nowhere/pw'}"
    file = pipeline("- {name: first, file: {path: /a}}\n- {name: s, " + condition + "}")
    elsewhere = pipeline("- {name: s, " + condition.replace(">= 1", "< 0") + "}", name="other")

    answer = kubexm("run", "-f", file, "--simulate")

    assert answer.code == 2
    assert "can't read the secret `file:///nowhere/pw`" in answer.err
    assert kubexm("run", "-f", elsewhere, "--simulate").code == 0


def test_a_question_without_a_terminal_is_refused_before_anything_runs(
    kubexm: Kubexm, pipeline: Write
) -> None:
    file = pipeline("- {name: first, file: {path: /a}}\n- {name: ask, pause: {question: 'go?'}}")

    answer = kubexm("run", "-f", file, "--simulate")

    assert answer.code == 2
    assert "`site/base/setup/ask` asks a question, and there is no terminal" in answer.err
    assert "`--skip site/base/setup/ask`" in answer.err
    assert kubexm("run", "-f", file, "--simulate", "--check").code == 0
    assert kubexm("run", "-f", file, "--simulate", "--skip", "base/setup/ask").code == 0


def test_a_secret_to_be_typed_without_a_terminal_is_refused_before_anything_runs(
    kubexm: Kubexm, pipeline: Write
) -> None:
    file = pipeline("- {name: s, secret-file: {path: /b, content: 'prompt://key of the site'}}")

    answer = kubexm("run", "-f", file, "--simulate")

    assert answer.code == 2
    assert "there is no terminal to ask for `prompt://key of the site` on" in answer.err
    assert "`content` of `site/base/setup/s` needs it" in answer.err


def test_a_simulated_host_needs_no_secret_of_a_connection(kubexm: Kubexm, pipeline: Write) -> None:
    hosts = "    - {name: n1, ssh: {password: 'prompt://n1', jump: {address: e}}}\n"
    file = pipeline("- {name: s, noop: }", hosts=hosts)

    assert kubexm("run", "-f", file, "--simulate").code == 0


def test_a_retry_asks_only_for_the_secrets_of_what_is_left(
    kubexm: Kubexm, pipeline: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = pipeline(
        "- {name: done, secret-file: {path: /a, content: 'env://FIRST_SECRET'}}\n"
        "- {name: left, command: {argv: ['false'], secretEnv: {A: 'env://SECOND_SECRET'}}}\n"
    )
    monkeypatch.setenv("FIRST_SECRET", "correct-horse")
    monkeypatch.setenv("SECOND_SECRET", "battery-staple")
    task = json.loads(kubexm("run", "-f", file, "--simulate", "-o", "json").out)["task"]["id"]
    monkeypatch.delenv("FIRST_SECRET")
    monkeypatch.delenv("SECOND_SECRET")

    answer = kubexm("task", "retry", task)

    assert answer.code == 2
    assert "`SECOND_SECRET` is not set" in answer.err
    assert "FIRST_SECRET" not in answer.err
