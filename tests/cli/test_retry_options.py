"""What a retry takes over from the command line of the run, and what it is given anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.answers import Kubexm

Write = Callable[..., Path]
STEPS = """
- {name: motd, file: {path: /etc/motd, content: "${vars.word}"}}
- {name: oops, command: {argv: [deploy]}}
"""
MORE = """\
  vars: {word: plain, token: 'env://TOKEN'}
  simulate: {scripts: [{argv: [deploy], exit: 3}]}
"""
FIXED = STEPS.replace("argv: [deploy]", "argv: ['true']")


def run(kubexm: Kubexm, file: Path, *more: str) -> str:
    task: str = json.loads(kubexm("run", "-f", file, "--simulate", "-o", "json", *more).out)[
        "task"
    ]["id"]
    return task


def motd(kubexm: Kubexm, file: Path) -> str:
    """Which word a run would find at its place."""
    words = ("plain", "special", "other")
    return next(
        word
        for word in words
        if "1 to change"
        not in kubexm(
            "run",
            "-f",
            file,
            "--simulate",
            "--check",
            "--set",
            f"word={word}",
            "--hosts",
            "n1",
            "--only",
            "base/setup/motd",
        ).out
    )


def test_a_retry_with_a_file_keeps_the_variables_of_the_run(
    kubexm: Kubexm, pipeline: Write
) -> None:
    task = run(kubexm, pipeline(STEPS, more=MORE), "--set", "word=special")

    answer = kubexm("task", "retry", task, "-f", pipeline(FIXED, more=MORE))

    assert answer.code == 0
    assert "motd" not in answer.err
    assert motd(kubexm, pipeline(FIXED, more=MORE)) == "special"


def test_a_new_variable_wins_and_is_kept_for_the_next_retry(
    kubexm: Kubexm, pipeline: Write
) -> None:
    task = run(kubexm, pipeline(STEPS, more=MORE), "--set", "word=special")

    kubexm("task", "retry", task, "-f", pipeline(STEPS, more=MORE), "--set", "word=other")
    answer = kubexm("task", "retry", task, "-f", pipeline(FIXED, more=MORE))

    assert answer.code == 0
    assert motd(kubexm, pipeline(FIXED, more=MORE)) == "other"


def test_a_variable_that_the_corrected_file_has_no_more_is_left_out(
    kubexm: Kubexm, pipeline: Write
) -> None:
    task = run(kubexm, pipeline(STEPS, more=MORE), "--set", "word=special")
    without = pipeline(FIXED.replace("${vars.word}", "x"), more=MORE.replace("word: plain, ", ""))

    kept = kubexm("task", "retry", task, "-f", without)
    given = kubexm("task", "retry", task, "-f", without, "--set", "word=other")

    assert kept.code == 0, kept.err
    assert (given.code, "no variable `word`" in given.err) == (2, True)


def test_a_retry_without_a_file_refuses_what_would_have_no_effect(
    kubexm: Kubexm, pipeline: Write
) -> None:
    task = run(kubexm, pipeline(STEPS, more=MORE))

    variable = kubexm("task", "retry", task, "--set", "word=other")
    secrets = kubexm("task", "retry", task, "--allow-literal-secrets")

    assert (variable.code, secrets.code) == (2, 2)
    assert "`--set` has no effect without `-f`" in variable.err
    assert "`--allow-literal-secrets` has no effect without `-f`" in secrets.err


def test_a_secret_on_the_command_line_is_refused_or_at_least_not_kept(
    kubexm: Kubexm, pipeline: Write
) -> None:
    file = pipeline(STEPS, more=MORE)
    given = ("--set", "token=hunter2hunter2", "--allow-literal-secrets")

    refused = kubexm("run", "-f", file, "--simulate", *given[:2])
    task = run(kubexm, file, *given)
    forgotten = kubexm("task", "retry", task, "-f", pipeline(FIXED, more=MORE))
    again = kubexm("task", "retry", task, "-f", pipeline(FIXED, more=MORE), *given)

    assert (refused.code, forgotten.code, again.code) == (2, 2, 0)
    assert "--set token: a secret written out" in refused.err
    assert "hunter2" not in refused.err
    assert "hint: give it again: --set token=VALUE" in forgotten.err
