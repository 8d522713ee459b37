"""`kubexm run`: what it does, what it says, and how it ends."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.answers import Kubexm

Write = Callable[..., Path]
MOTD = "- {name: motd, file: {path: /etc/motd, content: hello}}"
FAILING = MOTD + "\n- {name: oops, assert: {argv: ['false'], message: is ready}}"


def test_a_second_run_changes_nothing_and_says_so(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline(MOTD)

    first = kubexm("run", "-f", file, "--simulate")
    second = kubexm("run", "-f", file, "--simulate")

    assert (first.code, second.code) == (0, 0)
    assert "2 changed" in first.out
    assert "2 satisfied" in second.out
    assert "changed" not in second.out


def test_a_failure_is_shown_with_its_reason_and_what_to_type_next(
    kubexm: Kubexm, pipeline: Write
) -> None:
    answer = kubexm("run", "-f", pipeline(FAILING), "--simulate")

    assert answer.code == 1
    assert "✗ site/base/setup/oops on n1" in answer.out
    assert "does not hold: is ready" in answer.out
    assert "kubexm task retry" in answer.out


def test_a_dry_run_changes_nothing_and_shows_the_difference(
    kubexm: Kubexm, pipeline: Write, home: Path
) -> None:
    file = pipeline(MOTD)

    answer = kubexm("run", "-f", file, "--simulate", "--check")
    after = kubexm("run", "-f", file, "--simulate", "--dry-run", "-o", "json")

    assert answer.code == 0
    assert "+ motd" in answer.out
    assert "+hello" in answer.out
    assert "2 to change" in answer.out
    assert json.loads(after.out)["task"] is None
    assert not list(home.glob("**/kubexm.db"))


MINTED = """
- {name: id, mint: {key: id, argv: [echo, vol-7]}}
- {name: c, command: {argv: [touch, "/srv-${values.id}"], creates: "/srv-${values.id}"}}
- {name: w, when: "values.id == 'vol-7'", file: {path: /w, content: x}}
- {name: f, file: {path: /f, content: "a ${values.id} z"}}
- {name: l, command: {argv: [touch, /l], creates: /l, env: {A: "${values.id}"}}}
"""


def test_what_a_check_goes_by_is_minted_first_and_what_only_a_run_uses_is_not(
    kubexm: Kubexm, pipeline: Write
) -> None:
    file = pipeline(MINTED, hosts="    - {name: n1}\n")

    first = kubexm("run", "-f", file, "--simulate")
    looked = kubexm("run", "-f", file, "--simulate", "--check")
    second = kubexm("run", "-f", file, "--simulate")

    assert "5 changed" in first.out
    assert looked.out.count("hangs on a value that would be made first") == 3
    assert "= l" in looked.out
    assert "4 satisfied · 1 changed" in second.out


WEB = """
- {name: config, file: {path: /etc/web.conf, content: '${vars.text}'}}
- {name: web, service: {unit: web, restartsOn: [/etc/web.conf]}}
- {name: note, file: {path: /etc/note, content: x}}
"""


def test_a_dry_run_foresees_that_a_service_would_restart(kubexm: Kubexm, pipeline: Write) -> None:
    more = "  vars: {text: one}\n  simulate: {machine: {services: {web: {}}}}\n"
    file = pipeline(WEB, more=more, hosts="    - {name: n1}\n")
    kubexm("run", "-f", file, "--simulate")

    same = kubexm("run", "-f", file, "--simulate", "--check")
    other = kubexm("run", "-f", file, "--simulate", "--check", "--set", "text=two")
    did = kubexm("run", "-f", file, "--simulate", "--set", "text=two")

    assert "3 satisfied" in same.out
    assert "follows /etc/web.conf, which would change" in other.out
    assert "2 to change" in other.out
    assert "2 changed" in did.out


def test_satisfied_and_held_back_are_said_the_same_everywhere(
    kubexm: Kubexm, pipeline: Write
) -> None:
    after = "\n- {name: after, file: {path: /etc/after, content: x}}"
    kubexm("run", "-f", pipeline(MOTD), "--simulate")
    file = pipeline(FAILING + after)

    ran = kubexm("run", "-f", file, "--simulate").out
    looked = kubexm("run", "-f", file, "--simulate", "--check").out

    for said in (ran, looked):
        assert "2 satisfied" in said
        assert "2 held back" in said


IDLE = """
- {name: made, directory: {path: /srv/made}}
- {name: read, value: {key: v, argv: [cat, /etc/hostname]}}
- {name: rest, pause: {seconds: 0}}
- {name: mark, noop: {changed: false}}
"""


def test_a_run_that_changes_nothing_says_so_and_so_does_a_look(
    kubexm: Kubexm, pipeline: Write
) -> None:
    file = pipeline(IDLE, hosts="    - {name: n1}\n")
    kubexm("run", "-f", file, "--simulate")

    ran = kubexm("run", "-f", file, "--simulate").out
    looked = kubexm("run", "-f", file, "--simulate", "--check").out

    assert "nothing to do: all 4 units change nothing" in ran
    assert looked.endswith("4 satisfied\nnothing to do: all 4 units change nothing\n")


def test_what_is_known_only_when_reached_has_its_line(kubexm: Kubexm, pipeline: Write) -> None:
    waits = "- {name: up, wait: {port: 8080}}"

    answer = kubexm("run", "-f", pipeline(waits), "--simulate", "--check")

    assert "would ?  n1  site/base/setup/up: port 8080 of 127.0.0.1 is closed" in answer.err
    assert answer.out.endswith("2 known only when reached\n")


def test_a_host_that_was_never_reached_is_told_in_words(kubexm: Kubexm, pipeline: Write) -> None:
    faults = "  simulate: {faults: [{kind: unreachable, hosts: n2, at: 1}]}\n"

    answer = kubexm("run", "-f", pipeline(MOTD, more=faults), "--simulate")

    assert "without n2: could not be reached: " in answer.out
    assert "@connect" not in answer.out + answer.err


def test_a_connection_that_is_lost_amid_the_facts_costs_no_host(
    kubexm: Kubexm, pipeline: Write
) -> None:
    faults = "  simulate: {faults: [{kind: connection-lost, hosts: n2, at: 1}]}\n"

    assert kubexm("run", "-f", pipeline(MOTD, more=faults), "--simulate").code == 0


def test_a_command_that_the_simulation_does_not_know_is_not_tried_again(
    kubexm: Kubexm, pipeline: Write
) -> None:
    unknown = "- {name: odd, retry: {attempts: 3}, command: {argv: [shop, open]}}"

    answer = kubexm("run", "-f", pipeline(unknown, hosts="    - {name: n1}\n"), "--simulate")

    assert answer.code == 1
    assert "retry" not in answer.err
    assert "`simulate.scripts`: - {argv:" in answer.out


def test_one_is_said_in_the_singular(kubexm: Kubexm, pipeline: Write) -> None:
    one = "    - {name: n1}\n"
    gone = "  simulate: {faults: [{kind: unreachable, hosts: n1, at: 1}]}\n"

    undone = kubexm(
        "run", "-f", pipeline(FAILING, hosts=one), "--simulate", "--on-failure", "rollback"
    )
    lost = kubexm(
        "run", "-f", pipeline(MOTD, name="lost", hosts=one, more=gone), "--simulate",
        "--require-all-hosts",
    )  # fmt: skip

    assert "rollback: Success, 1 unit undone\n" in undone.out
    assert "1 host can't be reached" in lost.err


def test_a_service_that_settles_after_a_rollback_is_told_and_not_counted(
    kubexm: Kubexm, pipeline: Write
) -> None:
    steps = """
- {name: nginx, package: {names: [nginx]}}
- {name: conf, file: {path: /etc/nginx.conf, content: "${vars.v}"}}
- {name: run, service: {unit: nginx, restartsOn: [/etc/nginx.conf]}}
- {name: broken, when: vars.v == 2, command: {argv: [test, -e, /nowhere]}}
"""
    file = pipeline(steps, hosts="    - {name: n1}\n  vars: {v: 1}\n")
    kubexm("run", "-f", file, "--simulate")

    answer = kubexm("run", "-f", file, "--simulate", "--on-failure", "rollback", "--set", "v=2")

    assert "rolling back 2 nodes" in answer.err
    assert "settled  n1  @undo/site/base/setup/run/@settle" in answer.err
    assert "rollback: Success, 2 units undone\n" in answer.out


def test_what_a_rollback_leaves_is_named(kubexm: Kubexm, pipeline: Write) -> None:
    steps = """
- {name: made, directory: {path: /srv/made}}
- {name: label, command: {argv: [touch, /srv/label], creates: /srv/label}}
- {name: broken, command: {argv: [test, -e, /nowhere]}}
"""
    file = pipeline(steps, hosts="    - {name: n1}\n")

    answer = kubexm("run", "-f", file, "--simulate", "--on-failure", "rollback")
    task = answer.out.split()[-1]

    assert "undone   n1  @undo/site/base/setup/made" in answer.err
    assert "left     n1  @undo/site/base/setup/label: the step has no undo" in answer.err
    for said in (answer.out, kubexm("task", "show", task).out):
        assert "1 rolled back" in said
        assert "1 changed" in said
        assert (
            "rollback: Success, 1 unit undone\n"
            "  left as it is: 1 unit\n"
            "    site/base/setup/label  [n1], because: the step has no undo\n"
        ) in said


def test_what_a_rollback_could_not_undo_is_named_with_the_reason(
    kubexm: Kubexm, pipeline: Write
) -> None:
    steps = """
- {name: first, directory: {path: /srv/first}}
- {name: stuck, command: {argv: [touch, /srv/stuck], undo: [rm, /nowhere]}}
- {name: last, directory: {path: /srv/last}}
- {name: broken, command: {argv: [test, -e, /nowhere]}}
"""
    file = pipeline(steps, hosts="    - {name: n1}\n")

    answer = kubexm("run", "-f", file, "--simulate", "--on-failure", "rollback")
    shown = kubexm("task", "show", answer.out.split()[-1]).out

    for said in (answer.out, shown):
        _, _, rollback = said.partition("rollback: Failed, 1 unit undone\n  not undone: 2 units\n")
        stuck, first = rollback.splitlines()[:2]
        assert stuck.startswith("    site/base/setup/stuck  [n1], because: `rm /nowhere` exited")
        assert first.startswith("    site/base/setup/first  [n1], because: held back by @undo/site")
    assert "\n      ✓ first  changed, not undone  [n1]\n" in shown
    assert "\n      ✓ stuck  changed, not undone  [n1]\n" in shown
    assert "\n      ↶ last  [n1]\n" in shown


def test_a_lost_host_that_is_tolerated_ends_with_five(kubexm: Kubexm, pipeline: Write) -> None:
    faults = "  simulate: {faults: [{kind: unreachable, hosts: n2, at: 1}]}\n"

    answer = kubexm("run", "-f", pipeline(MOTD, more=faults), "--simulate")

    assert answer.code == 5
    assert "without 1 host" in answer.out
    assert "lost     n2" in answer.err


def test_all_hosts_can_be_required(kubexm: Kubexm, pipeline: Write) -> None:
    faults = "  simulate: {faults: [{kind: unreachable, hosts: n2, at: 1}]}\n"

    answer = kubexm("run", "-f", pipeline(MOTD, more=faults), "--simulate", "--require-all-hosts")

    assert answer.code == 1
    assert "n2" in answer.err
    assert "changed" not in answer.err


def test_rollback_takes_back_what_was_changed(kubexm: Kubexm, pipeline: Write) -> None:
    answer = kubexm("run", "-f", pipeline(FAILING), "--simulate", "--on-failure", "rollback")

    assert answer.code == 1
    assert "RolledBack" in answer.out
    assert "rolled back" in answer.out


def test_the_result_is_a_document_on_request(kubexm: Kubexm, pipeline: Write) -> None:
    answer = kubexm("run", "-f", pipeline(MOTD), "--simulate", "-o", "json")

    data = json.loads(answer.out)
    node = data["result"]["nodeResults"]["site/base/setup/motd"]
    assert data["result"]["status"] == "Success"
    assert node["hostResults"]["n1"]["changed"] is True
    assert [unit["node"] for unit in data["report"]["criticalPath"]] == ["site/base/setup/motd"]


def test_variables_of_the_command_line_win(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline(
        "- {name: motd, file: {path: /etc/motd, content: '${vars.greeting}'}}",
        more="  vars: {greeting: hello}\n",
    )

    answer = kubexm("run", "-f", file, "--simulate", "--check", "--set", "greeting=bonjour")

    assert "+bonjour" in answer.out


def test_a_selection_runs_only_its_part(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline(MOTD + "\n- {name: other, file: {path: /etc/other, content: x}}")

    answer = kubexm("run", "-f", file, "--simulate", "--only", "base/setup/other", "--hosts", "n2")

    assert "1 changed" in answer.out
    assert "site/base/setup/other" in answer.err


def test_an_unknown_path_is_refused_with_the_nearest(kubexm: Kubexm, pipeline: Write) -> None:
    answer = kubexm("run", "-f", pipeline(MOTD), "--simulate", "--only", "base/setup/modt")

    assert answer.code == 2
    assert "did you mean `base/setup/motd`?" in answer.err


def test_an_unknown_breakpoint_is_refused_with_the_nearest(
    kubexm: Kubexm, pipeline: Write, home: Path
) -> None:
    file = pipeline(MOTD)

    answer = kubexm("run", "-f", file, "--simulate", "--debug", "--break", "base/setup/modt")

    assert answer.code == 2
    assert "`--break base/setup/modt`: `site` has no such path or tag" in answer.err
    assert "did you mean `base/setup/motd`?" in answer.err
    assert not home.exists()


def test_a_breakpoint_may_leave_out_the_name_of_the_pipeline(
    kubexm: Kubexm, pipeline: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a\n"))

    answer = kubexm(
        "run", "-f", pipeline(MOTD), "--simulate", "--debug", "--break", "base/setup/motd"
    )

    assert answer.code == 3
    assert "site/base/setup/motd on n1" in answer.err


@pytest.mark.parametrize(
    ("given", "missing"),
    [(("--world", "here"), "--simulate"), (("--break", "base"), "--debug")],
)
def test_a_flag_that_would_have_no_effect_is_refused_with_the_one_it_needs(
    kubexm: Kubexm, pipeline: Write, home: Path, given: tuple[str, str], missing: str
) -> None:
    answer = kubexm("run", "-f", pipeline(MOTD), *given)

    assert answer.code == 2
    assert f"`{given[0]}` has no effect without `{missing}`" in answer.err
    assert f"hint: add `{missing}`" in answer.err
    assert not home.exists()


def test_more_units_at_once_are_refused_where_one_goes_after_the_other(
    kubexm: Kubexm, pipeline: Write, home: Path
) -> None:
    answer = kubexm("run", "-f", pipeline(MOTD), "--debug", "--parallelism", "4")

    assert answer.code == 2
    assert "`--parallelism` has no effect with `--debug`" in answer.err
    assert not home.exists()


def test_to_look_leaves_nothing_behind_where_there_was_nothing(
    kubexm: Kubexm, pipeline: Write, home: Path
) -> None:
    answer = kubexm("run", "-f", pipeline(MOTD), "--simulate", "--check")

    assert answer.code == 0
    assert "2 to change" in answer.out
    assert not home.exists()


def test_changed_settings_of_a_simulation_are_not_ignored(kubexm: Kubexm, pipeline: Write) -> None:
    kubexm("run", "-f", pipeline(MOTD), "--simulate")
    changed = pipeline(MOTD, more="  simulate: {machine: {cpus: 16}}\n")

    refused = kubexm("run", "-f", changed, "--simulate")
    elsewhere = kubexm("run", "-f", changed, "--simulate", "--world", changed.parent / "new")

    assert (refused.code, elsewhere.code) == (2, 0)
    assert "was made with other settings than `simulate` has now" in refused.err
    assert "--world NEW" in refused.err


def test_a_file_without_settings_takes_a_simulated_world_as_it_is(
    kubexm: Kubexm, pipeline: Write
) -> None:
    world = ("--simulate", "--world", pipeline(MOTD).parent / "world")
    kubexm("run", "-f", pipeline(MOTD, more="  simulate: {machine: {cpus: 16}}\n"), *world)
    cpus = "- {name: cpus, assert: {that: facts.cpus == 16, message: sixteen processors}}"

    answer = kubexm("run", "-f", pipeline(cpus, name="other"), *world)

    assert answer.code == 0


def test_hosts_that_ssh_can_not_reach_are_named_with_the_reason_and_a_remedy(
    kubexm: Kubexm, pipeline: Write
) -> None:
    hosts = (
        "    - {name: n1, address: 127.0.0.1, ssh: {port: 1}}\n"
        "    - {name: n2, address: no.such.host.invalid}\n"
    )

    answer = kubexm("run", "-f", pipeline(MOTD, hosts=hosts))

    assert answer.code == 1
    assert "n1: 127.0.0.1:1 refused the connection; see that sshd runs there" in answer.err
    assert "n2: `no.such.host.invalid` is no name that is known here; give its" in answer.err


def test_a_wrong_command_line_ends_with_two(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline(MOTD)

    codes = [
        kubexm("run").code,
        kubexm("run", "-f", file, "--parallelism", "0").code,
        kubexm("run", "-f", file, "--on-failure", "explode").code,
        kubexm("rnu").code,
        kubexm("run", "-f", "missing.yaml").code,
    ]

    assert codes == [2, 2, 2, 2, 2]


def test_all_problems_of_a_file_are_shown_at_once_with_their_places(
    kubexm: Kubexm, pipeline: Write
) -> None:
    file = pipeline("- {name: a, fil: {path: /x}}\n- {name: b, file: {pth: /x, content: y}}")

    answer = kubexm("run", "-f", file, "--simulate")

    assert answer.code == 2
    assert f"{file}:13:" in answer.err
    assert f"{file}:14:" in answer.err
    assert "did you mean `file`?" in answer.err


def test_a_log_takes_the_place_of_the_view(kubexm: Kubexm, pipeline: Write) -> None:
    answer = kubexm("--log-format", "json", "run", "-f", pipeline(MOTD), "--simulate")

    lines = [json.loads(line) for line in answer.err.splitlines()]
    changed = [line for line in lines if line["event"] == "unit changed"]
    assert {line["hostname"] for line in changed} == {"n1", "n2"}
    assert {line["step_name"] for line in changed} == {"site/base/setup/motd"}
    assert all(line["task_id"] for line in changed)


def test_a_literal_secret_is_refused_unless_allowed(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline(MOTD, more="  vars: {password: hunter2hunter2}\n")

    refused = kubexm("run", "-f", file, "--simulate")
    allowed = kubexm("run", "-f", file, "--simulate", "--allow-literal-secrets")

    assert (refused.code, allowed.code) == (2, 0)
    assert "env://" in refused.err
    assert "hunter2hunter2" not in refused.err


def test_a_world_is_made_only_where_there_can_be_one(
    kubexm: Kubexm, pipeline: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, foreign = pipeline(MOTD), tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").touch()

    answers = [
        kubexm("run", "-f", file, "--simulate", "--world", place)
        for place in (file, "/proc/nope", foreign)
    ]
    monkeypatch.setenv("KUBEXM_HOME", "/proc/nope")
    answers.append(kubexm("run", "-f", file, "--simulate"))

    assert [answer.code for answer in answers] == [2, 2, 2, 2]
    assert "there can't be a simulated world in" in answers[1].err
    assert "`thesis.txt` is there" in answers[2].err
    assert [path.name for path in foreign.iterdir()] == ["thesis.txt"]
    assert all("Traceback" not in answer.err for answer in answers)


def test_a_file_without_its_flag_is_said_with_the_command_to_type(
    kubexm: Kubexm, pipeline: Write
) -> None:
    bare, stdin = kubexm("run", "site.yaml"), kubexm("run", "-f", "-")
    more = kubexm("run", "-f", pipeline(MOTD), "more")

    assert (bare.code, stdin.code, more.code) == (2, 2, 2)
    assert "hint: kubexm run -f site.yaml\n" in bare.err
    assert "a pipeline file can't be read from standard input" in stdin.err
    assert "`more` is one word too many" in more.err


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("run",), "`kubexm run` needs a pipeline file", "kubexm run -f FILE"),
        (
            ("create", "cluster"),
            "`kubexm create cluster` needs a cluster file",
            "kubexm create cluster -f FILE",
        ),
        (("preflight",), "`kubexm preflight` needs a cluster file", "kubexm preflight -f FILE"),
        (("plan",), "`kubexm plan` needs a pipeline or cluster file", "kubexm plan -f FILE"),
        (("run", "-f"), "`-f` needs a value", "`kubexm run --help` shows which"),
        (("plan", "--only"), "`--only` needs a value", "`kubexm plan --help` shows which"),
        (
            ("task", "show"),
            "`kubexm task show` needs the id of a run",
            "`kubexm task list` shows the ids",
        ),
        (
            ("completion",),
            "`kubexm completion` needs SHELL",
            "`kubexm completion --help` shows what it can be",
        ),
    ],
)
def test_what_is_missing_on_a_command_line_is_named(
    kubexm: Kubexm, words: tuple[str, ...], message: str, hint: str
) -> None:
    answer = kubexm(*words)

    assert (answer.code, answer.err) == (2, f"error: usage\n  {message}\n\nhint: {hint}\n")


def test_an_assertion_that_holds_is_told_from_one_that_does_not_apply(
    kubexm: Kubexm, pipeline: Write
) -> None:
    steps = """
- {name: cpus, assert: {that: facts.cpus >= 1, message: a processor}}
- {name: elsewhere, when: "host.name == 'n2'", assert: {that: facts.cpus >= 1, message: a cpu}}
- {name: asked, assert: {argv: ["true"], message: it is so}}
"""
    file = pipeline(steps, hosts="    - {name: n1}\n")

    answer = kubexm("run", "-f", file, "--simulate", "-o", "json")

    nodes = json.loads(answer.out)["result"]["nodeResults"].values()
    units = [node["hostResults"]["n1"] for node in nodes]
    assert [unit["message"] for unit in units] == [
        "holds: a processor",
        "`when` does not hold",
        "holds: it is so",
    ]
    assert {(unit["status"], unit["skipped"]) for unit in units} == {("Skipped", True)}


def test_an_assertion_that_fails_shows_what_was_found(kubexm: Kubexm, pipeline: Write) -> None:
    steps = """
- {name: read, value: {key: lines, argv: [echo, a], parse: lines, scope: host}}
- name: all
  after: [read]
  assert:
    that: len(values.lines) > 1 and facts.cpus >= 2 or defined(host.labels.x)
    message: fit
"""
    file = pipeline(steps, hosts="    - {name: n1}\n")

    answer = kubexm("run", "-f", file, "--simulate")

    assert (
        "does not hold: fit: want `len(values.lines) > 1 and facts.cpus >= 2 or"
        " defined(host.labels.x)`, but `values.lines` is a list of 1, `facts.cpus` is"
    ) in answer.out
    assert "`host.labels.x` is not there" in answer.out
