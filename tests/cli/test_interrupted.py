"""Runs that nobody works on any more: how they are shown, gone on with, and not forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.answers import Kubexm

from kubexm.store import Store

Write = Callable[..., Path]
MOTD = "- {name: motd, file: {path: /etc/motd, content: hello}}"
FAILING = MOTD + "\n- {name: oops, command: {argv: ['false']}}"


def interrupted(kubexm: Kubexm, file: Path, *more: str) -> str:
    """The id of a run whose process died right before it could say how it ended."""

    def dies(*_: object, **__: object) -> None:
        raise RuntimeError("power failure")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "finish", dies)
        kubexm("run", "-f", file, "--simulate", *more)
    found: str = json.loads(kubexm("task", "list", "-o", "json").out)[0]["id"]
    return found


def test_documents_say_that_a_run_was_interrupted(kubexm: Kubexm, pipeline: Write) -> None:
    task = interrupted(kubexm, pipeline(MOTD))

    listed = json.loads(kubexm("task", "list", "-o", "json").out)[0]
    shown = json.loads(kubexm("task", "show", task, "-o", "json").out)

    assert (listed["status"], listed["interrupted"]) == ("Running", True)
    assert listed["state"] == shown["task"]["state"] == "Interrupted"
    assert shown["task"]["interrupted"] is True
    assert shown["report"]["units"] == 2


def test_a_run_that_died_on_its_way_back_says_so(kubexm: Kubexm, pipeline: Write) -> None:
    task = interrupted(kubexm, pipeline(FAILING), "--hosts", "n1", "--on-failure", "rollback")

    shown = kubexm("task", "show", task).out
    again = kubexm("run", "-f", pipeline(MOTD), "--simulate")

    assert "\n\nrollback: on its way back, 1 unit undone so far\n" in shown
    assert "was interrupted on its way back, so what it changed is undone in part" in again.err
    assert f"kubexm task resume {task}" in again.err


def test_a_run_that_was_interrupted_is_resumed_and_not_retried(
    kubexm: Kubexm, pipeline: Write
) -> None:
    task = interrupted(kubexm, pipeline(MOTD))

    cancelled = kubexm("task", "cancel", task)
    retried = kubexm("task", "retry", task)
    resumed = kubexm("task", "resume", task)

    assert f"nothing to stop; go on with: kubexm task resume {task}" in cancelled.err
    assert retried.code == 2
    assert "has not ended: it was interrupted" in retried.err
    assert f"hint: go on with: kubexm task resume {task}" in retried.err
    assert resumed.code == 0


def test_who_starts_anew_is_told_of_the_one_that_was_interrupted(
    kubexm: Kubexm, pipeline: Write
) -> None:
    task = interrupted(kubexm, pipeline(MOTD))

    anew, after = (kubexm("run", "-f", pipeline(MOTD), "--simulate") for _ in range(2))

    assert (anew.code, after.code) == (0, 0)
    assert f"note: task {task} of `site` was interrupted; this run begins anew" in anew.err
    assert "note:" not in after.err
