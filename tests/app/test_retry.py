"""A run that has ended is opened again: what succeeded is kept, the rest is tried once more."""

from __future__ import annotations

import textwrap

import pytest
from tests.app.site import Site, statuses, stopping_at, task_of

from kubexm.app import runs, tasks
from kubexm.errors import InvalidInput, Refused
from kubexm.plan.result import GraphExecutionResult

HOSTS = """
hosts:
  - {name: n1, roles: [node]}
  - {name: n2, roles: [node]}
vars: {greeting: hello}
runOnRoles: [node]
"""
STEPS = """
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: plain, command: {argv: [count, plain]}}
          - {name: named, command: {argv: [count, "${host.name}"]}}
          - {name: greets, file: {path: /srv/greeting, content: "${vars.greeting}"}}
          - {name: fails, command: {argv: [deploy]}}
          - {name: last, file: {path: /srv/last, content: done}}
"""
FAILS_ONCE = """
simulate:
  scripts:
    - {argv: [count, "*"]}
    - {argv: [deploy], exit: 1, times: 1}
    - {argv: [deploy]}
"""
FAILS_ON_N2_ONCE = FAILS_ONCE.replace("exit: 1,", "hosts: n2, exit: 1,")
FAILS = FAILS_ONCE.replace(", times: 1}", "}")
ONCE = {"n1": 1, "n2": 1}


def failed(site: Site) -> str:
    outcome = site.run()
    assert outcome.result.status == "Failed"
    return task_of(outcome)


def test_retry_runs_what_failed_and_what_it_held_back_and_nothing_else(site: Site) -> None:
    site.write(HOSTS + STEPS + FAILS_ONCE)
    task = failed(site)

    outcome = site.retry(task)

    assert outcome.result.status == "Success"
    assert site.ran("count", "*") == {"n1": 2, "n2": 2}
    assert site.read("n1", "/srv/last") == "done"
    assert site.tries(task)["greets", "n1"] == 1
    assert [(run.id, run.status) for run in site.stored()] == [(task, "Success")]


def test_retry_lifts_quarantine(site: Site) -> None:
    site.write(HOSTS + STEPS + FAILS_ONCE.replace("exit: 1, times: 1", "exit: 0"))
    site.make_world()
    with site.hosts() as found:
        found("n2").stop()
    first = site.run()
    with site.hosts() as found:
        found("n2").revive()

    outcome = site.retry(task_of(first))

    assert (first.result.status, first.result.degraded) == ("Success", True)
    assert (outcome.result.status, outcome.result.degraded) == ("Success", False)
    assert outcome.result.quarantined == {}
    assert site.ran("count", "*") == {"n1": 2, "n2": 2}
    assert site.read("n2", "/srv/last") == "done"


def test_retry_lifts_the_quarantine_of_a_tolerated_failure(site: Site) -> None:
    body = STEPS.replace("- name: base\n", "- name: base\n    tolerance: {failed: 1}\n", 1)
    site.write(HOSTS + body + FAILS_ONCE.replace("exit: 1,", "hosts: n2, exit: 1,"))
    first = site.run()

    outcome = site.retry(task_of(first))

    assert (first.result.status, list(first.result.quarantined)) == ("Success", ["n2"])
    assert (outcome.result.status, outcome.result.degraded) == ("Success", False)
    assert site.ran("count", "*") == {"n1": 2, "n2": 2}


def test_nothing_to_retry_is_said(site: Site) -> None:
    site.write(HOSTS + STEPS + FAILS_ONCE.replace("exit: 1, times: 1", "exit: 0"))
    task = task_of(site.run())

    with pytest.raises(InvalidInput, match="succeeded, there is nothing to retry"):
        site.retry(task)


def test_retry_with_a_corrected_file_keeps_unchanged_nodes_only(site: Site) -> None:
    site.write(HOSTS + STEPS + FAILS)
    task = failed(site)
    corrected = STEPS.replace("${vars.greeting}", "good day").replace("[deploy]", "['true']")
    site.write(HOSTS + corrected + FAILS)

    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "Success"
    assert site.ran("count", "*") == {"n1": 2, "n2": 2}
    tries = site.tries(task)
    assert (tries["plain", "n1"], tries["named", "n1"], tries["greets", "n1"]) == (1, 1, 2)


RESTARTS = """
modules:
  - name: base
    tasks:
      - name: setup
        steps:
          - {name: package, package: {names: [nginx]}}
          - {name: settings, file: {path: /etc/site.conf, content: "${vars.greeting}"}}
          - {name: service, service: {unit: nginx, restartsOn: [/etc/site.conf]}}
      - name: announce
        runOnRoles: [control-node]
        steps:
          - {name: note, command: {argv: [count, note]}}
simulate:
  packages: {nginx: {services: {nginx: {}}}}
  scripts: [{argv: [count, "*"]}]
"""


def test_what_is_to_be_done_in_another_order_is_done_again(site: Site) -> None:
    site.write(HOSTS + STEPS + FAILS)
    task = failed(site)
    lines = STEPS.splitlines()
    first, second = (lines.index(line) for line in lines if "[count" in line)
    lines[first], lines[second] = lines[second], lines[first]
    site.write(HOSTS + "\n".join(lines).replace("[deploy]", "['true']") + FAILS)

    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "Success"
    tries = site.tries(task)
    assert (tries["plain", "n1"], tries["named", "n1"]) == (2, 2)


def test_what_stands_on_something_corrected_is_looked_at_again(site: Site) -> None:
    site.write(HOSTS + RESTARTS)
    task = task_of(site.run())
    site.write(HOSTS.replace("greeting: hello", "greeting: welcome") + RESTARTS)

    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "Success"
    assert site.read("n1", "/etc/site.conf") == "welcome"
    tries = site.tries(task)
    # The service runs with the new settings, and what is behind the barrier was told as well.
    assert (tries["service", "n1"], tries["service", "n2"]) == (2, 2)
    assert site.ran("count", "*") == {"control-node": 2}
    assert tries["package", "n1"] == 1
    assert site.run().result.node_results["site/base/setup/service"].changed is False


def test_correction_for_one_host_leaves_the_lane_of_another_alone(site: Site) -> None:
    site.write(HOSTS + RESTARTS)
    task = task_of(site.run())
    site.write(
        HOSTS.replace("n2, roles: [node]", "n2, roles: [node], vars: {greeting: hi}") + RESTARTS
    )

    site.retry(task, corrected=True)

    tries = site.tries(task)
    assert (tries["service", "n1"], tries["service", "n2"]) == (1, 2)


def test_what_an_earlier_life_changed_is_taken_back_though_it_was_only_looked_at_since(
    site: Site,
) -> None:
    body = STEPS.replace("[deploy]", "['true']")
    site.write(HOSTS + "onFailure: rollback\n" + body + FAILS)
    task = task_of(site.run())
    failing = body.replace("[count, plain]", "[count, other]").replace("['true']", "[deploy]")
    site.write(HOSTS + "onFailure: rollback\n" + failing + FAILS)

    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "RolledBack"
    assert site.read("n1", "/srv/greeting") is None


def test_retry_of_a_lost_host_does_not_repeat_what_others_did_behind_a_barrier(
    site: Site,
) -> None:
    body = """
modules:
  - name: base
    tolerance: {failed: 1}
    tasks:
      - {name: first, steps: [{name: fails, command: {argv: [deploy]}}]}
      - {name: second, steps: [{name: plain, command: {argv: [count, plain]}}]}
"""
    site.write(HOSTS + body + FAILS_ONCE.replace("exit: 1,", "hosts: n2, exit: 1,"))
    first = site.run()

    outcome = site.retry(task_of(first))

    assert (first.result.degraded, outcome.result.degraded) == (True, False)
    assert site.ran("count", "*") == ONCE


def test_what_went_on_after_an_ignored_failure_is_looked_at_when_that_is_tried_again(
    site: Site,
) -> None:
    body = """
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: ignored, ignoreErrors: true, command: {argv: [deploy]}}
          - {name: after, command: {argv: [count, after]}}
          - {name: refuses, command: {argv: [finish]}}
simulate:
  scripts:
    - {argv: [count, "*"]}
    - {argv: [deploy], exit: 1, times: 1}
    - {argv: [deploy]}
    - {argv: [finish], exit: 1, times: 1}
    - {argv: [finish]}
"""
    site.write(HOSTS + body)
    task = failed(site)

    outcome = site.retry(task)

    assert outcome.result.status == "Success"
    assert site.ran("count", "*") == {"n1": 2, "n2": 2}


@pytest.mark.usefixtures("provider")
def test_what_an_expander_added_is_opened_again_with_it(site: Site) -> None:
    body = """
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: greets, file: {path: /srv/greeting, content: "${vars.greeting}"}}
          - {name: provider, chaos-provider: {path: /etc/provider}}
simulate:
  machine: {files: {/etc/provider: "cloud-a\\n", /srv/chaos/x: ""}}
  scripts:
    - {argv: [provide, "*"], effects: {files: {/srv/chaos/provided: "yes"}}}
"""
    site.write(HOSTS + body)
    task = task_of(site.run())
    site.write(HOSTS.replace("greeting: hello", "greeting: welcome") + body)

    outcome = site.retry(task, corrected=True)

    driver = outcome.result.node_results["site/base/work/provider/@n1/driver"]
    assert outcome.result.status == "Success"
    assert driver.start_time is not None
    assert outcome.result.start_time is not None
    assert driver.start_time > outcome.result.start_time


def test_retry_with_another_variable_runs_what_names_it(site: Site) -> None:
    site.write(HOSTS + STEPS + FAILS)
    task = failed(site)
    fixed = STEPS.replace("[deploy]", "['true']")
    site.write(HOSTS.replace("greeting: hello", "greeting: welcome") + fixed + FAILS)

    site.retry(task, corrected=True)

    assert site.read("n1", "/srv/greeting") == "welcome"
    assert site.ran("count", "*") == {"n1": 2, "n2": 2}


@pytest.mark.parametrize(("level", "times"), [(2, 3), (3, 4)])
def test_retry_with_another_variable_runs_what_its_condition_names(
    site: Site, level: int, times: int
) -> None:
    told = "{name: told, when: vars.level > 1, command: {argv: [count, told]}}"
    steps = STEPS.replace("- {name: fails", f"- {told}\n          - {{name: fails")
    hosts = HOSTS.replace("vars: {", "vars: {level: 2, ")
    site.write(hosts + steps + FAILS)
    task = failed(site)
    site.write(
        hosts.replace("level: 2", f"level: {level}, other: 1")
        + steps.replace("[deploy]", "['true']")
        + FAILS
    )

    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "Success"
    assert site.ran("count", "*") == {"n1": times, "n2": times}


def test_retry_with_one_more_host_runs_everything_there_and_keeps_the_rest(site: Site) -> None:
    site.write(HOSTS + STEPS + FAILS)
    task = failed(site)
    more = HOSTS.replace("vars:", "  - {name: n3, roles: [node]}\nvars:")
    site.write(more + STEPS.replace("[deploy]", "['true']") + FAILS)

    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "Success"
    assert site.ran("count", "*") == {"n1": 2, "n2": 2, "n3": 2}
    assert statuses(outcome.result)["last"] == dict.fromkeys(("n1", "n2", "n3"), "Success")


def test_what_took_a_value_runs_again_when_the_value_is_read_anew(site: Site) -> None:
    body = """
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: before, command: {argv: [count, before]}}
          - {name: read, value: {key: version, argv: [version, "1"], scope: host}}
          - {name: uses, file: {path: /srv/version, content: "${values.version}"}}
          - {name: fails, command: {argv: [deploy]}}
simulate:
  scripts:
    - {argv: [version, "1"], stdout: "1\\n"}
    - {argv: [version, "2"], stdout: "2\\n"}
    - {argv: [count, "*"]}
    - {argv: [deploy], exit: 1}
"""
    site.write(HOSTS + body)
    task = failed(site)
    site.write(HOSTS + body.replace('[version, "1"], scope', '[version, "2"], scope'))

    site.retry(task, corrected=True)

    assert site.read("n1", "/srv/version") == "2"
    assert site.ran("count", "*") == ONCE


@pytest.mark.usefixtures("provider")
def test_what_an_expander_added_is_kept_with_it(site: Site) -> None:
    body = """
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: provider, chaos-provider: {path: /etc/provider}}
          - {name: fails, command: {argv: [deploy]}}
simulate:
  machine: {files: {/etc/provider: "cloud-a\\n", /srv/chaos/x: ""}}
  scripts:
    - {argv: [provide, "*"], effects: {files: {/srv/chaos/provided: "yes"}}}
    - {argv: [deploy], exit: 1}
"""
    site.write(HOSTS + body)
    task = failed(site)
    site.write(HOSTS + body.replace("command: {argv: [deploy]}", "command: {argv: ['true']}"))

    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "Success"
    assert site.tries(task)["driver", "n1"] == site.tries(task)["setup", "n1"] == 1
    assert "site/base/work/provider/@n1/driver" in outcome.result.node_results


def test_retry_after_a_rollback_does_everything_again(site: Site) -> None:
    fails = FAILS_ONCE.replace("exit: 1,", "hosts: n1, exit: 1,")
    site.write(HOSTS + "onFailure: rollback\n" + STEPS + fails)
    first = site.run()
    gone = site.read("n1", "/srv/greeting")

    outcome = site.retry(task_of(first))

    assert (first.result.status, gone) == ("RolledBack", None)
    assert outcome.result.status == "Success"
    assert outcome.result.rollback is None
    assert site.stored()[0].direction == "forward"
    assert site.read("n2", "/srv/greeting") == "hello"
    assert site.read("n2", "/srv/last") == "done"


def test_hook_that_was_not_due_runs_when_the_retry_succeeds(site: Site) -> None:
    hooks = """
        hooks:
          post:
            - {name: after, file: {path: /srv/after, content: done}}
"""
    site.write(HOSTS + STEPS.rstrip() + hooks + FAILS_ONCE)
    task = failed(site)
    before = site.read("n1", "/srv/after")

    site.retry(task)

    assert (before, site.read("n1", "/srv/after")) == (None, "done")


HOOKED = """
modules:
  - name: base
    hooks:
      pre: [{name: lock, runOnRoles: [control-node], command: {argv: [lock]}}]
      always: [{name: unlock, runOnRoles: [control-node], command: {argv: [unlock]}}]
    tasks:
      - name: work
        hooks:
          pre: [{name: drain, command: {argv: [drain]}}]
          always: [{name: undrain, command: {argv: [undrain]}}]
        steps:
          - {name: first, file: {path: /srv/first, content: done}}
          - {name: fails, command: {argv: [deploy]}}
  - name: other
    tasks:
      - name: work
        hooks:
          always: [{name: tidy, command: {argv: [tidy]}}]
        steps:
          - {name: rest, file: {path: /srv/rest, content: done}}
simulate:
  scripts:
    - {argv: [lock]}
    - {argv: [unlock]}
    - {argv: [drain]}
    - {argv: [undrain]}
    - {argv: [tidy]}
    - {argv: [deploy], hosts: n2, exit: 1, times: 1}
    - {argv: [deploy]}
"""
LOCKED = {"control-node": 1}


@pytest.mark.parametrize("policy", ["isolate", "rollback"])
def test_hooks_around_what_is_tried_again_run_again_where_that_is(site: Site, policy: str) -> None:
    site.write(f"{HOSTS}onFailure: {policy}\n{HOOKED}")
    first = site.run()
    before = [site.ran(name) for name in ("lock", "unlock", "drain", "undrain")]

    outcome = site.retry(task_of(first))

    after = [site.ran(name) for name in ("lock", "unlock", "drain", "undrain")]
    twice = {"n1": 2, "n2": 2} if policy == "rollback" else {"n1": 1, "n2": 2}
    assert outcome.result.status == "Success"
    assert before == [LOCKED, LOCKED, ONCE, ONCE]
    assert after == [{"control-node": 2}, {"control-node": 2}, twice, twice]


def test_hooks_of_a_scope_in_which_nothing_is_left_to_do_do_not_run_again(site: Site) -> None:
    site.write(HOSTS + "link: parallel\n" + HOOKED)
    task = failed(site)

    site.retry(task)

    assert site.ran("tidy") == ONCE


def test_what_was_locked_on_a_lost_host_and_never_unlocked_is_not_locked_again(
    site: Site,
) -> None:
    locks = HOOKED.replace("    tasks:\n", "    tolerance: {failed: 1}\n    tasks:\n", 1)
    site.write(HOSTS + locks)
    first = site.run()

    outcome = site.retry(task_of(first))

    assert (first.result.degraded, outcome.result.degraded) == (True, False)
    assert site.ran("drain") == ONCE
    assert site.ran("undrain") == ONCE


ROLLS_BACK = """
onFailure: rollback
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: conf, file: {path: /srv/conf, content: ours}}
          - {name: line, line: {path: /srv/lines, line: x=ours, match: ^x=}}
          - {name: fails, command: {argv: [deploy]}}
"""


def test_a_retry_after_a_rollback_goes_back_to_what_it_has_found_itself(site: Site) -> None:
    site.write(HOSTS + ROLLS_BACK + FAILS)
    task = task_of(site.run())
    site.put("n1", "/srv/conf", "by hand")
    site.put("n1", "/srv/lines", "x=by hand\ny\n")

    outcome = site.retry(task)

    assert outcome.result.status == "RolledBack"
    assert site.read("n1", "/srv/conf") == "by hand"
    assert site.read("n1", "/srv/lines") == "x=by hand\ny\n"
    assert site.read("n2", "/srv/conf") is None


SLOW_UNDO = """
hosts: [{name: n1}]
onFailure: rollback
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: conf, file: {path: /srv/conf, content: ours}}
          - {name: made, command: {argv: [make], undo: [take-back]}}
          - {name: fails, command: {argv: [deploy]}}
simulate:
  machine: {files: {/srv/conf: theirs}}
  scripts:
    - {argv: [make]}
    - {argv: [take-back], duration: {kind: fixed, seconds: 0.5}}
    - {argv: [deploy], exit: 1}
"""


def test_a_retry_after_a_rollback_that_was_stopped_still_knows_what_was_there(site: Site) -> None:
    site.write(SLOW_UNDO)
    stopped = site.run(front=stopping_at("made", undo=True))
    assert (stopped.result.status, site.read("n1", "/srv/conf")) == ("Cancelled", "ours")

    outcome = site.retry(task_of(stopped))

    assert outcome.result.status == "RolledBack"
    assert site.read("n1", "/srv/conf") == "theirs"


def test_a_retry_may_ask_for_another_policy(site: Site) -> None:
    site.write(SLOW_UNDO.replace("rollback", "isolate"))
    task = failed(site)

    outcome = site.retry(task, on_failure="rollback")

    assert outcome.result.status == "RolledBack"
    assert site.read("n1", "/srv/conf") == "theirs"


UNDO_FAILS_ONCE = """
simulate:
  scripts:
    - {argv: [take-back], exit: 1, times: 1}
    - {argv: [take-back], effects: {absent: [/srv/made]}}
    - {argv: [deploy], exit: 1}
"""


@pytest.mark.parametrize(
    ("undo", "compensate"),
    [(", undo: [take-back]", ""), ("", "compensate: [{name: back, command: {argv: [take-back]}}]")],
    ids=["undo", "compensation"],
)
def test_what_could_not_be_undone_still_counts_as_changed_by_the_run(
    site: Site, undo: str, compensate: str
) -> None:
    steps = f"""
    hosts: [{{name: n1}}]
    onFailure: rollback
    modules:
      - name: base
        {compensate}
        tasks:
          - name: work
            steps:
              - name: made
                command: {{argv: [touch, /srv/made], creates: /srv/made{undo}}}
      - name: check
        tasks: [{{name: work, steps: [{{name: fails, command: {{argv: [deploy]}}}}]}}]
    """
    site.write(textwrap.dedent(steps) + UNDO_FAILS_ONCE)
    first = site.run()
    left = site.read("n1", "/srv/made")

    outcome = site.retry(task_of(first))

    assert (first.result.status, left) == ("Failed", "")
    assert (outcome.result.status, site.read("n1", "/srv/made")) == ("RolledBack", None)


def test_retry_that_dies_before_its_first_unit_is_gone_on_with(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(*_: object) -> GraphExecutionResult:
        raise RuntimeError("power failure")

    site.write(HOSTS + STEPS + FAILS)
    task = failed(site)
    site.write(HOSTS + STEPS.replace("[deploy]", "['true']") + FAILS)
    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(runs, "perform_held", dies)
        site.retry(task, corrected=True)
    interrupted = site.stored()[0]

    outcome = site.resume(task)

    assert interrupted.interrupted
    assert outcome.result.status == "Success"
    assert site.ran("count", "*") == {"n1": 2, "n2": 2}


def test_retry_is_refused_when_a_later_run_changed_something(site: Site) -> None:
    site.write(HOSTS + STEPS + FAILS)
    task, later = failed(site), failed(site)

    with pytest.raises(Refused, match=f"task `{later}` has changed `site` since"):
        site.retry(task)

    assert site.stored()[1].status == "Failed"
    assert site.retry(task, force=True).result.status == "Failed"


def test_file_of_another_pipeline_is_refused(site: Site) -> None:
    site.write(HOSTS + STEPS + FAILS)
    task = failed(site)
    site.file.write_text(site.file.read_text().replace("name: site", "name: other"))

    with pytest.raises(InvalidInput, match="ran `site`, but the file describes `other`"):
        site.retry(task, corrected=True)

    assert site.stored()[0].status == "Failed"


def test_what_a_rollback_left_starts_again_at_its_precheck(site: Site) -> None:
    """It may have stood on what was undone, and be gone with it."""
    steps = """
    onFailure: rollback
    modules:
      - name: base
        tasks:
          - name: work
            steps:
              - name: place
                command: {argv: [mkdir, -p, /srv/data], undo: [rm, -rf, /srv/data]}
              - {name: fill, command: {argv: [touch, /srv/data/seed], creates: /srv/data/seed}}
              - {name: label, command: {argv: [touch, /srv/label], creates: /srv/label}}
              - {name: fails, command: {argv: [deploy]}}
    """
    site.write(HOSTS + textwrap.dedent(steps) + FAILS_ON_N2_ONCE)
    first = site.run()

    outcome = site.retry(task_of(first))

    assert first.result.status == "RolledBack"
    assert statuses(first.result)["label"] == {"n1": "Success", "n2": "Success"}
    assert outcome.result.status == "Success"
    assert site.read("n1", "/srv/data/seed") == ""
    # The run has made it, and it is still there: a later rollback would have to name it again.
    assert statuses(outcome.result)["label"] == {"n1": "Success", "n2": "Success"}


def test_a_directory_that_a_rollback_had_to_keep_is_taken_away_by_a_later_one(
    site: Site,
) -> None:
    steps = """
    hosts: [{name: n1}]
    onFailure: rollback
    modules:
      - name: base
        tasks:
          - name: work
            steps:
              - {name: place, directory: {path: /srv/place}}
              - {name: other, command: {argv: [others]}}
              - {name: fails, command: {argv: [deploy]}}
    simulate:
      scripts:
        - {argv: [others], effects: {files: {/srv/place/theirs: x}}, times: 1}
        - {argv: [others], effects: {absent: [/srv/place/theirs]}}
        - {argv: [deploy], exit: 1}
    """
    site.write(textwrap.dedent(steps))

    kept = site.run().result
    gone = site.retry(site.stored()[0].id).result

    assert "is not empty" in kept.node_results["site/base/work/place"].host_results["n1"].message
    assert statuses(gone)["place"] == {"n1": "RolledBack"}
    with site.hosts() as found, pytest.raises(FileNotFoundError):
        found("n1").read("/srv/place/theirs")
    assert (
        site.run(check=True).result.node_results["site/base/work/place"].host_results["n1"].sign
        == "+"
    )


UNDO_REMOVES_AND_FAILS = (
    "command: {argv: [touch, /srv/conf], creates: /srv/conf, undo: [take-back]}",
    "",
    "- {argv: [take-back], exit: 7, effects: {absent: [/srv/conf]}}",
)
COMPENSATION_FAILS_ON_ONE = (
    "command: {argv: [touch, /srv/conf], creates: /srv/conf}",
    "compensate: [{name: wipe, command: {argv: [wipe]}}]",
    "- {argv: [wipe], hosts: n2, exit: 7}\n    - {argv: [wipe], effects: {absent: [/srv/conf]}}",
)


@pytest.mark.parametrize(
    ("conf", "more", "scripts"),
    [UNDO_REMOVES_AND_FAILS, COMPENSATION_FAILS_ON_ONE],
    ids=["undo", "compensation"],
)
def test_what_a_rollback_failed_to_take_back_starts_again_at_its_precheck(
    site: Site, conf: str, more: str, scripts: str
) -> None:
    """It may be gone all the same, here or on another host: nothing is taken for granted."""
    steps = f"""
    onFailure: rollback
    modules:
      - name: base
        {more}
        tasks:
          - name: work
            steps:
              - {{name: conf, {conf}}}
              - {{name: fails, command: {{argv: [deploy]}}}}
    """
    site.write(HOSTS + textwrap.dedent(steps) + FAILS_ON_N2_ONCE + f"    {scripts}\n")
    first = site.run()

    outcome = site.retry(task_of(first))

    assert (first.result.status, outcome.result.status) == ("Failed", "Success")
    assert {site.read(host, "/srv/conf") for host in ("n1", "n2")} == {""}


def test_what_is_written_otherwise_and_comes_to_the_same_is_kept(site: Site) -> None:
    site.write(HOSTS + STEPS + FAILS)
    task = failed(site)
    same = STEPS.replace("[count, plain]", "[count, '${vars.word}']").replace(
        "[deploy]", "['true']"
    )
    site.write(HOSTS.replace("vars: {", "vars: {word: plain, ") + same + FAILS)

    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "Success"
    assert site.ran("count", "*") == {"n1": 2, "n2": 2}


FAILS_THE_SECOND_TIME = """
hosts: [{name: n1}]
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: ignored, ignoreErrors: true, command: {argv: [deploy]}}
          - {name: made, command: {argv: [make], undo: [take-back]}}
          - {name: fails, command: {argv: [deploy]}}
simulate:
  scripts:
    - {argv: [make], effects: {files: {/srv/made: ours}}, times: 1}
    - {argv: [make], exit: 1}
    - {argv: [take-back], effects: {absent: [/srv/made]}}
    - {argv: [deploy], exit: 1}
"""


def test_what_fails_when_it_is_done_again_is_still_taken_back(site: Site) -> None:
    site.write(FAILS_THE_SECOND_TIME)
    task = failed(site)

    outcome = site.retry(task, on_failure="rollback")

    assert outcome.result.status == "RolledBack"
    assert site.read("n1", "/srv/made") is None


def test_what_a_stopped_retry_had_kept_is_told_as_it_was(site: Site) -> None:
    slow = "{argv: [lock], duration: {kind: fixed, seconds: 0.5}}"
    site.write(
        HOSTS
        + HOOKED.replace(
            "{argv: [lock]}\n    - {argv: [unlock]}", f"{slow}\n    - {{argv: [unlock]}}"
        )
    )
    task = failed(site)

    outcome = site.retry(task, front=stopping_at("lock"))

    assert outcome.result.status == "Cancelled"
    assert statuses(outcome.result)["first"] == {"n1": "Success", "n2": "Success"}
    assert statuses(outcome.result) == statuses(tasks.show(site.home, task).result)


def test_what_a_stopped_rollback_had_taken_back_is_looked_at_anew(site: Site) -> None:
    line = "{name: line, line: {path: /srv/both, line: x=1}}"
    both = "{name: both, file: {path: /srv/both, content: ours}}"
    first = "- {name: conf, file: {path: /srv/conf, content: ours}}"
    made = "- {name: made, command: {argv: [make], undo: [take-back]}}"
    more = f"{made}\n          - {line}\n          - {both}"
    site.write(SLOW_UNDO.replace(made, more))
    stopped = site.run(front=stopping_at("made", undo=True))
    assert (stopped.result.status, site.read("n1", "/srv/both")) == ("Cancelled", None)

    site.write(SLOW_UNDO.replace(first, f"{first}\n          - {both}"))
    outcome = site.retry(task_of(stopped), corrected=True)

    assert outcome.result.status == "RolledBack"
    assert site.read("n1", "/srv/both") is None
    assert site.read("n1", "/srv/conf") == "theirs"
