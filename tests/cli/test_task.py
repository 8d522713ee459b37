"""`kubexm task`: runs of the past, resumed, retried and shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from tests.cli.answers import Kubexm

Write = Callable[..., Path]
MOTD = "- {name: motd, file: {path: /etc/motd, content: hello}}"
FAILING = MOTD + "\n- {name: oops, command: {argv: [deploy, now]}}"
BROKEN = "  simulate: {scripts: [{argv: [deploy, now], exit: 3, stderr: no disk}]}\n"


def task_of(kubexm: Kubexm, file: Path) -> str:
    answer = kubexm("run", "-f", file, "--simulate", "-o", "json")
    task: str = json.loads(answer.out)["task"]["id"]
    return task


def test_no_runs_are_no_error(kubexm: Kubexm, home: Path) -> None:
    answer = kubexm("task", "list")

    assert (answer.code, answer.out) == (0, "no runs yet\n")
    assert not home.exists()


def test_the_list_shows_the_newest_run_first(kubexm: Kubexm, pipeline: Write) -> None:
    first = task_of(kubexm, pipeline(MOTD, more=BROKEN))
    second = task_of(kubexm, pipeline(FAILING, more=BROKEN))

    listed = [run["id"] for run in json.loads(kubexm("task", "list", "-o", "json").out)]
    text = kubexm("task", "list").out

    assert listed == [second, first]
    assert "Failed" in text.splitlines()[1]
    assert "Success" in text.splitlines()[2]


def test_a_run_is_shown_with_every_unit(kubexm: Kubexm, pipeline: Write) -> None:
    task = task_of(kubexm, pipeline(FAILING, more=BROKEN))

    text = kubexm("task", "show", task)
    data = json.loads(kubexm("task", "show", task, "-o", "json").out)

    nodes = data["result"]["nodeResults"]
    assert "no disk" in text.out
    assert nodes["site/base/setup/motd"]["hostResults"]["n1"]["status"] == "Success"
    assert nodes["site/base/setup/oops"]["hostResults"]["n1"]["status"] == "Failed"


def test_the_lines_that_units_said_are_kept(kubexm: Kubexm, pipeline: Write) -> None:
    task = task_of(kubexm, pipeline(FAILING, more=BROKEN))

    everything = kubexm("task", "logs", task)
    one_host = json.loads(kubexm("task", "logs", task, "--host", "n2", "-o", "json").out)

    assert "n1 site/base/setup/oops stderr: no disk" in everything.out
    assert {line["host"] for line in one_host} == {"n2"}


def test_a_run_that_said_nothing_says_so_beside_the_output(kubexm: Kubexm, pipeline: Write) -> None:
    task = task_of(kubexm, pipeline(FAILING, more=BROKEN))

    one = kubexm("task", "logs", task, "--node", "site/base/setup/motd", "--host", "n1")
    silent = task_of(kubexm, pipeline(MOTD, name="silent"))
    whole = kubexm("task", "logs", silent)
    document = kubexm("task", "logs", silent, "-o", "json")

    assert (one.code, one.out) == (0, "")
    assert one.err == "`site/base/setup/motd` on `n1` said nothing\n"
    assert (whole.code, whole.out, whole.err) == (0, "", f"task {silent} said nothing\n")
    assert (document.out, document.err) == ("[]\n", "")


def test_a_retry_keeps_what_succeeded(kubexm: Kubexm, pipeline: Write) -> None:
    twice = (
        "  simulate: {scripts: [{argv: [deploy, now], exit: 3, times: 1}, {argv: [deploy, now]}]}\n"
    )
    task = task_of(kubexm, pipeline(FAILING, more=twice))

    answer = kubexm("task", "retry", task)

    assert answer.code == 0
    assert "site/base/setup/oops" in answer.err
    assert "site/base/setup/motd" not in answer.err
    assert "4 changed" in answer.out
    assert "2 of 4 changed had been done before" in answer.out


def test_a_retry_with_a_corrected_file_runs_what_changed(kubexm: Kubexm, pipeline: Write) -> None:
    task = task_of(kubexm, pipeline(FAILING, more=BROKEN))
    corrected = pipeline(MOTD + "\n- {name: oops, file: {path: /etc/ok, content: x}}", more=BROKEN)

    answer = kubexm("task", "retry", task, "-f", corrected)

    assert answer.code == 0
    assert "site/base/setup/oops" in answer.err
    assert "site/base/setup/motd" not in answer.err


def test_what_a_retry_only_looks_at_again_is_not_called_changed(
    kubexm: Kubexm, pipeline: Write
) -> None:
    steps = "- {name: place, directory: {path: /srv/a}}\n" + MOTD
    hosts = "    - {name: n1}\n"
    task = task_of(
        kubexm,
        pipeline(steps + "\n- {name: no, command: {argv: [test, -e, /nowhere]}}", hosts=hosts),
    )
    corrected = pipeline(steps.replace("/srv/a}", "/srv/a, mode: '0700'}"), hosts=hosts)

    answer = kubexm("task", "retry", task, "-f", corrected)

    assert "changed  n1  site/base/setup/place" in answer.err
    assert "changed  n1  site/base/setup/motd" not in answer.err
    assert "before   n1  site/base/setup/motd " in answer.err
    assert "1 of 2 changed had been done before" in answer.out


def test_a_retry_with_a_corrected_file_keeps_to_what_was_selected(
    kubexm: Kubexm, pipeline: Write
) -> None:
    part = ("--only", "base/setup/oops", "--hosts", "n2")
    ran = kubexm("run", "-f", pipeline(FAILING, more=BROKEN), "--simulate", *part, "-o", "json")
    corrected = pipeline(MOTD + "\n- {name: oops, file: {path: /etc/ok, content: x}}", more=BROKEN)

    answer = kubexm("task", "retry", json.loads(ran.out)["task"]["id"], "-f", corrected)

    assert answer.code == 0
    assert "1 changed" in answer.out
    assert "changed  n2  site/base/setup/oops" in answer.err
    assert "motd" not in answer.err


def test_a_retry_does_not_ignore_changed_settings_of_the_simulation(
    kubexm: Kubexm, pipeline: Write
) -> None:
    task = task_of(kubexm, pipeline(FAILING, more=BROKEN))
    corrected = pipeline(FAILING, more=BROKEN.replace("exit: 3", "exit: 0"))

    answer = kubexm("task", "retry", task, "-f", corrected)

    assert answer.code == 2
    assert "was made with other settings" in answer.err
    assert (
        "a task stays in its world: leave `simulate` as it was, or run the file anew" in answer.err
    )


def test_a_run_that_succeeded_can_be_neither_resumed_nor_retried(
    kubexm: Kubexm, pipeline: Write
) -> None:
    task = task_of(kubexm, pipeline(MOTD))

    resumed, retried = kubexm("task", "resume", task), kubexm("task", "retry", task)

    assert (resumed.code, retried.code) == (2, 2)
    assert "has ended" in resumed.err
    assert "hint: there is nothing left to do" in resumed.err
    assert "nothing to retry" in retried.err


def test_nobody_to_cancel_is_said(kubexm: Kubexm, pipeline: Write) -> None:
    task = task_of(kubexm, pipeline(MOTD))

    answer = kubexm("task", "cancel", task)

    assert answer.code == 2
    assert "nobody works on" in answer.err
    assert f"hint: there is nothing to stop; `kubexm task show {task}` shows" in answer.err


def test_an_unknown_task_names_the_nearest(kubexm: Kubexm, pipeline: Write) -> None:
    task = task_of(kubexm, pipeline(MOTD))

    answer = kubexm("task", "show", f"{task}x")

    far = kubexm("task", "show", "whatever")

    assert (answer.code, far.code) == (2, 2)
    assert f"did you mean `{task}`?" in answer.err
    assert f"the latest are `{task}`; `kubexm task list` shows what there is" in far.err


def test_documents_of_a_run_have_the_same_shape_at_its_end_and_later(
    kubexm: Kubexm, pipeline: Write
) -> None:
    ran = json.loads(kubexm("run", "-f", pipeline(MOTD), "--simulate", "-o", "json").out)
    shown = json.loads(kubexm("task", "show", ran["task"]["id"], "-o", "json").out)
    listed = json.loads(kubexm("task", "list", "-o", "json").out)

    assert shown.keys() == {"task", "world", "result", "report"}
    assert ran.keys() == {*shown, "warnings"}  # those are about the file
    assert shown["task"] == ran["task"] == listed[0]
    assert shown["report"]["duration"] == ran["report"]["duration"] == listed[0]["worked"]


def test_lines_have_the_time_in_the_same_format_as_everything(
    kubexm: Kubexm, pipeline: Write
) -> None:
    task = task_of(kubexm, pipeline(FAILING, more=BROKEN))

    line = json.loads(kubexm("task", "logs", task, "-o", "json").out)[0]

    assert datetime.fromisoformat(line["at"]).tzinfo is not None


def test_lines_are_found_by_a_part_of_the_path(kubexm: Kubexm, pipeline: Write) -> None:
    task = task_of(kubexm, pipeline(FAILING, more=BROKEN))

    whole = kubexm("task", "logs", task).out
    below = kubexm("task", "logs", task, "--node", "base/setup").out
    other = kubexm("task", "logs", task, "--node", "base/setup/motd")

    assert whole == below != ""
    assert (other.code, other.out) == (0, "")


def test_lines_of_a_node_or_host_that_is_not_there_are_refused_with_the_nearest(
    kubexm: Kubexm, pipeline: Write
) -> None:
    task = task_of(kubexm, pipeline(FAILING, more=BROKEN))

    node = kubexm("task", "logs", task, "--node", "base/setup/oups")
    host = kubexm("task", "logs", task, "--host", "n3")

    assert (node.code, host.code) == (2, 2)
    assert "did you mean `base/setup/oops`?" in node.err
    assert "`--node base/setup/oups`: `site` has no such path or tag" in node.err
    assert "`--host n3`: `site` has no such host" in host.err


def test_a_list_has_at_least_one_line(kubexm: Kubexm) -> None:
    assert kubexm("task", "list", "--limit", "0").code == 2
    assert kubexm("task", "list", "--limit", "-3").code == 2


def test_a_home_that_is_no_directory_is_said(
    kubexm: Kubexm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("KUBEXM_HOME", str(tmp_path / "file"))

    answer = kubexm("task", "list")

    assert answer.code == 2
    assert f"`{tmp_path / 'file'}` is no directory" in answer.err


def test_paths_below_the_home_directory_are_written_as_people_do(
    kubexm: Kubexm, pipeline: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_of(kubexm, pipeline(MOTD))
    monkeypatch.setenv("HOME", str(tmp_path))

    assert "  ~/home/data/worlds/site\n" in kubexm("task", "list").out


def test_a_part_of_a_pipeline_is_shown_as_such(kubexm: Kubexm, pipeline: Write) -> None:
    kubexm("run", "-f", pipeline(FAILING, more=BROKEN), "--simulate", "--only", "base/setup/motd")
    task = json.loads(kubexm("task", "list", "-o", "json").out)[0]["id"]

    assert "Success, selected" in kubexm("task", "list").out
    assert "Success · a selected part\n" in kubexm("task", "show", task).out


def test_a_unit_that_has_no_host_yet_is_shown_without_one(kubexm: Kubexm, pipeline: Write) -> None:
    steps = FAILING + "\n- {name: once, runOnOneOf: [web], command: {argv: ['true']}}"
    task = task_of(kubexm, pipeline(steps, more=BROKEN))

    shown = kubexm("task", "show", task).out
    assert "[one of its hosts]" in shown
    assert "[*]" not in shown


def test_a_store_that_can_not_be_used_does_not_hide_the_runs_of_others(
    kubexm: Kubexm, pipeline: Write, home: Path
) -> None:
    task = task_of(kubexm, pipeline(MOTD))
    damaged = home / "data/worlds/damaged/kubexm.db"
    damaged.parent.mkdir()
    damaged.write_text("this is no database" * 100)

    listed, document = kubexm("task", "list"), kubexm("task", "list", "-o", "json")
    shown, unknown = kubexm("task", "show", task), kubexm("task", "show", "unknown")

    assert (listed.code, document.code, shown.code, unknown.code) == (1, 1, 0, 1)
    assert task in listed.out
    assert json.loads(document.out)[0]["id"] == task
    for answer in (listed, document, unknown):
        assert "error: store-unusable\n" in answer.err
        assert str(damaged) in answer.err


def test_logs_are_pointed_to_only_where_there_are_some(kubexm: Kubexm, pipeline: Write) -> None:
    silence = BROKEN.replace("stderr: no disk", "stderr: ''")

    silent = kubexm("run", "-f", pipeline(FAILING, more=silence), "--simulate")
    loud = kubexm("run", "-f", pipeline(FAILING, name="loud", more=BROKEN), "--simulate")

    for answer, is_pointed_to in ((silent, False), (loud, True)):
        task = answer.out.split()[-1]
        for out in (answer.out, kubexm("task", "show", task).out):
            assert ("kubexm task logs" in out) is is_pointed_to
            assert f"try again with: kubexm task retry {task}" in out
