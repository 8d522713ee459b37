"""A rollback of a retry with a corrected file undoes what the file before has changed, too."""

from __future__ import annotations

import asyncio

import pytest
from tests.app.site import Site, statuses, stopping_at, task_of

from kubexm.app import runs, tasks
from kubexm.app.execution import Front
from kubexm.app.params import PipelineParams, RetryParams
from kubexm.app.runs import RunOutcome
from kubexm.plan.result import GraphExecutionResult, NodeResult

HOSTS = """
hosts:
  - {name: n1, roles: [node]}
  - {name: n2, roles: [node]}
runOnRoles: [node]
"""
WORLD = """
simulate:
  machine:
    files: {/etc/kept: before, /etc/site.conf: before}
    services: {web: {active: true}}
  scripts: [{argv: [deploy], exit: 1}, {argv: ["true"]}]
"""
FAILS = "{name: fails, command: {argv: [deploy]}}"


def file(*steps: str, policy: str = "rollback", hosts: str = HOSTS, last: str = FAILS) -> str:
    listed = "\n".join(f"        - {step}" for step in (*steps, last))
    return (
        f"{hosts}onFailure: {policy}\nmodules:\n- name: base\n  tasks:\n"
        f"    - name: work\n      steps:\n{listed}\n{WORLD}"
    )


def failed(site: Site, *steps: str) -> str:
    """A run that has changed something, failed, and kept what it did."""
    site.write(file(*steps, policy="isolate"))
    outcome = site.run()
    assert outcome.result.status == "Failed"
    return task_of(outcome)


def corrected(site: Site, task: str, *steps: str, front: Front | None = None) -> RunOutcome:
    site.write(file(*steps))
    retried = RetryParams(task, PipelineParams(site.file))
    return asyncio.run(runs.retry(retried, front or Front(), site.home))


def undone(result: GraphExecutionResult) -> dict[str, list[str]]:
    """The hosts of each node on the way back, by path without the part that all have."""
    assert result.rollback is not None
    return {
        id.removeprefix("@undo/site/base/work/"): sorted(node.host_results)
        for id, node in result.rollback.node_results.items()
    }


def former(result: GraphExecutionResult, name: str) -> NodeResult:
    """What came of the undo of a node that the corrected file has no more."""
    assert result.rollback is not None
    (found,) = (
        node
        for id, node in result.rollback.node_results.items()
        if id.startswith(f"@undo/site/base/work/{name}/@former/")
    )
    return found


ALONE = HOSTS.replace("  - {name: n2, roles: [node]}\n", "")
BOTH = ["n1", "n2"]
MADE = "{name: made, file: {path: /srv/a, content: one}}"


def test_a_file_that_the_corrected_step_does_not_name_any_more_is_taken_away(site: Site) -> None:
    task = failed(site, MADE)

    outcome = corrected(site, task, MADE.replace("/srv/a", "/srv/b"))

    assert outcome.result.status == "RolledBack"
    assert (site.read("n1", "/srv/a"), site.read("n1", "/srv/b")) == (None, None)
    paths = undone(outcome.result)
    assert paths.pop("made") == BOTH
    assert paths.pop("made/@former/1") == BOTH


def test_what_only_the_old_file_had_is_put_back(site: Site) -> None:
    task = failed(site, "{name: kept, file: {path: /etc/kept, content: ours}}", MADE)

    outcome = corrected(site, task)

    assert outcome.result.status == "RolledBack"
    assert (site.read("n2", "/etc/kept"), site.read("n2", "/srv/a")) == ("before", None)


def test_another_content_at_the_same_path_is_undone_once(site: Site) -> None:
    site.write(file(MADE, policy="isolate", hosts=ALONE))
    task = task_of(site.run())
    site.write(file(MADE.replace("one", "two"), hosts=ALONE))

    outcome = site.retry(task, corrected=True)

    assert site.read("n1", "/srv/a") is None
    assert [path for path in undone(outcome.result) if "made" in path] == ["made/@former/1"]
    assert statuses(outcome.result)["made"] == {"n1": "RolledBack"}


def test_another_kind_of_step_for_the_same_path_is_undone_once(site: Site) -> None:
    site.write(file(MADE, policy="isolate", hosts=ALONE))
    task = task_of(site.run())
    site.write(file("{name: made, template: {path: /srv/a, text: two}}", hosts=ALONE))

    outcome = site.retry(task, corrected=True)

    assert site.read("n1", "/srv/a") is None
    assert [path for path in undone(outcome.result) if "made" in path] == ["made/@former/1"]
    assert statuses(outcome.result)["made"] == {"n1": "RolledBack"}


def test_references_mean_what_they_meant(site: Site) -> None:
    placed = "{name: made, file: {path: '${vars.place}.${host.name}', content: one}}"
    site.write(file(placed, policy="isolate", hosts=HOSTS + "vars: {place: /srv/old}\n"))
    task = task_of(site.run())
    assert site.read("n2", "/srv/old.n2") == "one"
    site.write(file(placed, hosts=HOSTS + "vars: {place: /srv/new}\n"))

    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "RolledBack"
    for place in ("/srv/old.n2", "/srv/new.n2"):
        assert site.read("n2", place) is None


def test_an_escaped_reference_stays_text(site: Site) -> None:
    task = failed(site, "{name: made, file: {path: '/srv/$${vars.x}', content: '${host.name}'}}")
    assert site.read("n1", "/srv/${vars.x}") == "n1"

    corrected(site, task)

    assert site.read("n1", "/srv/${vars.x}") is None


def test_an_escaped_reference_stays_text_beside_what_only_the_run_knows(site: Site) -> None:
    made = "{name: made, file: {path: '/srv/$${vars.x}.${vars.y}', content: '${facts.hostname}'}}"
    site.write(file(made, policy="isolate", hosts=HOSTS + "vars: {y: '$${z}'}\n"))
    task = task_of(site.run())
    assert site.read("n1", "/srv/${vars.x}.${z}") == "n1"

    corrected(site, task)

    assert site.read("n1", "/srv/${vars.x}.${z}") is None


def test_the_undo_goes_backwards_through_the_old_file(site: Site) -> None:
    inside = [
        "{name: place, directory: {path: /srv/old/deep}}",
        "{name: inner, file: {path: /srv/old/deep/one, content: one}}",
    ]
    task = failed(site, *inside)

    outcome = corrected(site, task)

    assert outcome.result.status == "RolledBack"
    # A directory that is not empty would have been left.
    assert former(outcome.result, "place").host_results["n1"].status == "Success"


def test_a_service_that_is_in_the_file_no_more_runs_with_the_settings_of_before(site: Site) -> None:
    settings = "{name: settings, file: {path: /etc/site.conf, content: ours}}"
    service = "{name: web, service: {unit: web, restartsOn: [/etc/site.conf]}}"
    task = failed(site, settings, service)

    outcome = corrected(site, task)

    assert site.read("n1", "/etc/site.conf") == "before"
    assert any(path.endswith("/@settle") for path in undone(outcome.result))


def test_what_can_not_be_undone_is_named_as_left(site: Site) -> None:
    task = failed(site, "{name: ran, command: {argv: ['true']}}", MADE)

    outcome = corrected(site, task)

    left = former(outcome.result, "ran").host_results["n1"]
    assert left.message == "left as it is: the step has no undo"


def test_a_host_that_the_file_has_no_more_is_told(site: Site) -> None:
    task = failed(site, MADE)
    said: list[str] = []
    site.write(file(MADE, hosts=ALONE))

    retried = RetryParams(task, PipelineParams(site.file))
    outcome = asyncio.run(runs.retry(retried, Front(tell=said.append), site.home))

    assert outcome.result.status == "RolledBack"
    assert site.read("n1", "/srv/a") is None
    assert site.read("n2", "/srv/a") == "one"
    (note,) = said
    assert "has changed on n2 stays" in note


def test_a_retry_that_succeeds_forgets_what_only_the_old_file_had(site: Site) -> None:
    task = failed(site, MADE)
    site.write(file(last="{name: other, file: {path: /srv/b, content: two}}"))

    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "Success"
    assert (site.read("n1", "/srv/a"), site.read("n1", "/srv/b")) == ("one", "two")


def test_what_was_undone_is_not_undone_again(site: Site) -> None:
    task = failed(site, MADE)
    corrected(site, task)
    site.put("n1", "/srv/a", "somebody else's")

    outcome = corrected(site, task, "{name: other, file: {path: /srv/b, content: two}}")

    assert outcome.result.status == "RolledBack"
    assert site.read("n1", "/srv/a") == "somebody else's"
    assert [path for path in undone(outcome.result) if "made" in path] == []


def test_a_way_back_that_was_stopped_goes_on(site: Site) -> None:
    task = failed(site, MADE, "{name: kept, file: {path: /etc/kept, content: ours}}")
    stopped = corrected(site, task, front=stopping_at("2", undo=True))
    assert stopped.result.status == "Cancelled"

    outcome = site.resume(task)

    assert outcome.result.status == "RolledBack"
    assert (site.read("n1", "/etc/kept"), site.read("n1", "/srv/a")) == ("before", None)


def test_task_show_knows_what_was_undone(site: Site) -> None:
    task = failed(site, MADE)
    outcome = corrected(site, task)

    shown = tasks.show(site.home, task)

    assert undone(shown.result) == undone(outcome.result)


LINE = "{name: line, line: {path: /etc/lines, line: 'x=${vars.v}', match: ^x=}}"
WAITS = "{name: waits, command: {argv: [wait-for, '${vars.v}']}}"
WITH_LINES = """
simulate:
  machine: {files: {/etc/lines: "a\\nx=0\\nb\\n"}}
  scripts:
    - {argv: [wait-for, v2], hosts: n2, duration: {kind: fixed, seconds: 2}}
    - {argv: [wait-for, "*"]}
    - {argv: [deploy], exit: 1}
"""


@pytest.mark.slow
def test_a_step_that_never_came_to_its_new_work_is_undone_as_it_was(site: Site) -> None:
    first = file(WAITS, LINE, policy="isolate", hosts=HOSTS + "vars: {v: v1}\n")
    site.write(first.replace(WORLD, WITH_LINES))
    task = task_of(site.run())
    second = file(WAITS, LINE, hosts=HOSTS + "vars: {v: v2}\n")
    site.write(second.replace(WORLD, WITH_LINES))

    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "RolledBack"
    for host in ("n1", "n2"):
        assert site.read(host, "/etc/lines") == "a\nx=0\nb\n"


def test_a_line_that_is_to_be_absent_now_is_put_back_as_it_was(site: Site) -> None:
    line = "{name: line, line: {path: /etc/lines, line: x=1, match: ^x=}}"
    site.write(file(line, policy="isolate").replace(WORLD, WITH_LINES))
    task = task_of(site.run())
    site.write(file(line.replace("^x=", "^x=, absent: true")).replace(WORLD, WITH_LINES))

    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "RolledBack"
    assert site.read("n1", "/etc/lines") == "a\nx=0\nb\n"


CONF = "{name: conf, template: {path: /etc/site.conf, text: ours}}"
CONF_LINE = "{name: line, line: {path: /etc/site.conf, line: x=1, match: ^x=}}"
DIRECTORY = "{name: place, directory: {path: /srv/d}}"
INNER = "{name: inner, file: {path: /srv/d/inner, content: one}}"
OLD = "{name: gone, absent: {path: /srv/d, recursive: true}}"


def test_what_a_kept_step_had_changed_before_is_undone_after_what_came_upon_it(site: Site) -> None:
    task = failed(site, CONF_LINE, CONF)

    outcome = corrected(site, task, CONF_LINE)

    assert outcome.result.status == "RolledBack"
    assert site.read("n1", "/etc/site.conf") == "before"


def test_a_directory_is_removed_after_what_only_the_old_file_had_in_it(site: Site) -> None:
    task = failed(site, DIRECTORY, INNER)

    outcome = corrected(site, task, DIRECTORY)

    assert outcome.result.status == "RolledBack"
    assert statuses(outcome.result)["place"] == {"n1": "RolledBack", "n2": "RolledBack"}


def test_steps_in_another_order_are_undone_as_they_came(site: Site) -> None:
    task = failed(site, CONF_LINE, CONF)

    outcome = corrected(site, task, CONF, CONF_LINE.replace("x=1", "x=2"))

    assert outcome.result.status == "RolledBack"
    assert site.read("n1", "/etc/site.conf") == "before"


def test_what_a_new_step_removes_is_put_back_before_it_is_undone_itself(site: Site) -> None:
    task = failed(site, DIRECTORY, INNER)

    outcome = corrected(site, task, OLD, DIRECTORY, INNER)

    assert outcome.result.status == "RolledBack"
    with site.hosts() as found:
        assert [path for path in found("n1").difference() if path.startswith("/srv")] == []


def test_what_a_retry_that_was_stopped_did_not_come_to_is_still_known(site: Site) -> None:
    ignored = "{name: ignored, ignoreErrors: true, command: {argv: [slow]}}"
    slow = "{argv: [slow], exit: 1, duration: {kind: fixed, seconds: 0.3}}"
    world = WORLD.replace("scripts: [", f"scripts: [{slow}, ")
    site.write(file(ignored, MADE, policy="isolate").replace(WORLD, world))
    task = task_of(site.run())
    stopped = site.retry(task, front=stopping_at("ignored"))
    assert stopped.result.status == "Cancelled"

    site.write(file().replace(WORLD, world))
    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "RolledBack"
    assert site.read("n1", "/srv/a") is None


def test_a_service_is_settled_though_the_way_back_was_stopped_before(site: Site) -> None:
    ran = "{name: ran, command: {argv: ['true'], undo: [slow]}}"
    service = "{name: web, service: {unit: web, restartsOn: [/etc/site.conf]}}"
    slow = "{argv: [slow], duration: {kind: fixed, seconds: 0.5}}"
    world = WORLD.replace("scripts: [", f"scripts: [{slow}, ")
    site.write(file(ran, CONF, service, policy="isolate").replace(WORLD, world))
    task = task_of(site.run())
    site.write(file().replace(WORLD, world))
    stopped = site.retry(task, corrected=True, front=stopping_at("1", undo=True))
    assert stopped.result.status == "Cancelled"

    site.write(file(MADE).replace(WORLD, world))
    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "RolledBack"
    with site.hosts() as found:
        assert found("n1").starts("web") == 2, "with ours, and with that of before"


def test_what_was_left_once_is_named_again(site: Site) -> None:
    task = failed(site, "{name: ran, command: {argv: ['true']}}", MADE)
    corrected(site, task)

    outcome = corrected(site, task, MADE)

    left = former(outcome.result, "ran").host_results["n1"]
    assert left.message == "left as it is: the step has no undo"


def test_a_command_that_goes_on_is_undone_once(site: Site) -> None:
    ran = "{name: ran, command: {argv: ['true'], undo: ['true', back]}}"
    world = WORLD.replace('{argv: ["true"]}', '{argv: ["true", back]}, {argv: ["true"]}')
    site.write(file(MADE, ran, policy="isolate").replace(WORLD, world))
    task = task_of(site.run())
    site.write(file(ran).replace(WORLD, world))

    outcome = site.retry(task, corrected=True)

    assert outcome.result.status == "RolledBack"
    assert site.ran("true", "back") == {"n1": 1, "n2": 1}
