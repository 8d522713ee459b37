"""Runs that were interrupted go on where they were, however that came about."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.app.site import Site, statuses, stopping_at, task_of
from tests.chaos.steps import provider_known

from kubexm.app import tasks
from kubexm.errors import InvalidGraph, InvalidInput, Refused
from kubexm.plan.records import UnitDone
from kubexm.step import registry
from kubexm.store import Store
from kubexm.templates import render

pytestmark = pytest.mark.timeout(120)  # some start processes

HOSTS = """
hosts:
  - {name: n1, roles: [node]}
  - {name: n2, roles: [node]}
runOnRoles: [node]
"""
SLOW = """
simulate:
  latency: {kind: fixed, seconds: 0.005}
"""
HELD = (
    HOSTS
    + """
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: serial, value: {key: serial, argv: [read-serial], scope: host, secret: true}}
          - {name: one, file: {path: /srv/one, content: "${values.serial}"}}
          - {name: counted, command: {argv: [count]}}
          - {name: held, wait: {command: [test, -e, /srv/go], interval: 0.02}}
          - {name: last, file: {path: /srv/last, content: "${values.serial}"}}
simulate:
  scripts:
    - {argv: [count]}
    - {argv: [read-serial], stdout: "xyzzy-4711\\n"}
"""
)
BOTH = {"n1": 1, "n2": 1}


def let_go(site: Site) -> None:
    for host in ("n1", "n2"):
        site.put(host, "/srv/go", "")


def held_before(step: str) -> str:
    return HELD.replace("simulate:", f"          - {step}\nsimulate:")


def killed(site: Site) -> str:
    """The id of a run whose process was killed while it waited."""
    with site.running() as process:
        process.until(lambda: site.finished() >= {("counted", "n1"), ("counted", "n2")})
        process.kill()
    (run,) = site.stored()
    assert run.interrupted
    return run.id


@pytest.mark.slow
def test_killed_run_is_resumed_by_another_process_without_repeating_anything(site: Site) -> None:
    site.write(HELD)
    task = killed(site)
    let_go(site)

    with site.process("task", "resume", task) as process:
        code, errors = process.ended()

    assert (code, "Traceback" in errors) == (0, False)
    assert site.ran("count") == site.ran("read-serial") == BOTH
    assert site.read("n2", "/srv/one") == site.read("n2", "/srv/last") == "xyzzy-4711"
    assert site.tries(task)["one", "n1"] == 1
    assert [run.status for run in site.stored()] == ["Success"]


def test_secret_value_of_an_earlier_life_is_there_and_lies_nowhere_in_clear(site: Site) -> None:
    site.write(HELD)
    task = killed(site)
    let_go(site)
    site.resume(task)

    for path in site.world.glob("kubexm.db*"):
        assert b"xyzzy-4711" not in path.read_bytes()


def test_killed_run_on_this_machine_is_resumed(local: Site) -> None:
    place = local.root / "made"
    local.write(
        f"""
        runOnRoles: [control-node]
        modules:
          - name: base
            tasks:
              - name: work
                steps:
                  - {{name: directory, directory: {{path: {place}}}}}
                  - {{name: counted, command: {{argv: [sh, -c, "echo once >> {place}/count"]}}}}
                  - {{name: held, wait: {{command: [test, -e, {place}/go], interval: 0.02}}}}
                  - {{name: last, file: {{path: {place}/last, content: done}}}}
        """
    )
    with local.running() as process:
        process.until(lambda: ("counted", "control-node") in local.finished())
        process.kill()
    (place / "go").touch()

    outcome = local.resume(local.stored()[0].id)

    assert outcome.result.status == "Success"
    assert (place / "count").read_text() == "once\n"
    assert (place / "last").read_text() == "done"


@pytest.mark.usefixtures("provider")
def test_what_an_expander_added_is_there_after_a_resume(site: Site) -> None:
    site.write(
        HOSTS
        + """
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: provider, chaos-provider: {path: /etc/provider}}
          - {name: last, file: {path: /srv/last, content: done}}
simulate:
  latency: {kind: fixed, seconds: 0.005}
  machine: {files: {/etc/provider: "cloud-a\\n", /srv/chaos/x: ""}}
  scripts:
    - {argv: [provide, cloud-a], effects: {files: {/srv/chaos/provided: "yes"}}}
"""
    )
    task = site.stopped_at("setup")
    # Who asked again would find another provider, and add other steps.
    for host in ("n1", "n2"):
        site.put(host, "/etc/provider", "cloud-b\n")

    outcome = site.resume(task)

    assert outcome.result.status == "Success"
    assert set(site.ran("provide", "cloud-a")) == {"n1", "n2"}
    assert site.read("n1", "/srv/chaos/cloud-b") is None
    assert site.read("control-node", "/tmp/provider-of-n2") == "cloud-a\n"
    assert "site/base/work/provider/@n1/driver" in tasks.show(site.home, task).result.node_results


def test_value_that_expired_meanwhile_is_produced_again(site: Site) -> None:
    site.write(HELD.replace("scope: host,", "scope: host, ttl: 0.001,"))
    task = site.stopped_at("held")
    let_go(site)
    with Store.open(site.database) as store:
        done = [r for _, r in store.records(task) if isinstance(r, UnitDone) and r.values]
    while time.time() <= max(record.values[0].expires or 0.0 for record in done):
        time.sleep(0.001)

    site.resume(task)

    assert all(times >= 2 for times in site.ran("read-serial").values())
    assert site.read("n1", "/srv/last") == "xyzzy-4711"


def test_run_that_has_ended_is_not_resumed(site: Site) -> None:
    site.write(HELD)
    task = site.stopped_at("held")
    let_go(site)
    site.resume(task)

    with pytest.raises(InvalidInput, match=f"task `{task}` has ended: Success") as refused:
        site.resume(task)

    assert "there is nothing left to do" in refused.value.hint


def test_resume_is_refused_when_a_later_run_changed_something(site: Site) -> None:
    site.write(HELD)
    task = site.stopped_at("held")
    let_go(site)
    later = task_of(site.run())

    with pytest.raises(Refused, match=f"task `{later}` has changed `site` since") as refused:
        site.resume(task)

    assert "--force" in refused.value.hint
    assert site.stored()[1].status == "Cancelled"
    assert site.resume(task, force=True).result.status == "Success"


def test_later_run_that_changed_nothing_is_no_reason_to_refuse(site: Site) -> None:
    site.write(HELD.replace("- {name: counted, command: {argv: [count]}}", ""))
    first = site.stopped_at("held")
    let_go(site)
    with site.hosts() as found:
        found("n1").stop()
        found("n2").stop()
    site.run()
    with site.hosts() as found:
        found("n1").revive()
        found("n2").revive()

    assert site.resume(first).result.status == "Success"


def test_resume_is_refused_when_steps_are_not_what_they_were(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.write(HELD)
    task = site.stopped_at("held")
    let_go(site)
    known = registry.digest
    monkeypatch.setattr(registry, "digest", lambda k: "other" if k == "file" else known(k))

    with pytest.raises(Refused, match=f"not what they were when `{task}` was planned: step `file`"):
        site.resume(task)

    assert site.resume(task, force=True).result.status == "Success"


def test_resume_is_refused_when_a_template_is_not_what_it_was(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = "{path: /etc/x.service, template: systemd/service, data: {command: [/bin/x]}}"
    site.write(held_before(f"{{name: unit, template: {unit}}}"))
    task = site.stopped_at("held")
    let_go(site)
    monkeypatch.setattr(render, "digest", lambda name: f"other {name}")

    with pytest.raises(Refused, match="was planned: template `systemd/service`"):
        site.resume(task)

    assert site.resume(task, force=True).result.status == "Success"


@pytest.mark.parametrize("go_on", [Site.resume, Site.retry])
@pytest.mark.parametrize("force", [False, True])
def test_run_with_steps_that_this_kubexm_does_not_know_is_not_gone_on_with(
    site: Site, go_on: Callable[..., object], force: bool
) -> None:
    site.write(held_before("{name: provider, chaos-provider: {path: /etc/provider}}"))
    with provider_known():
        task = site.stopped_at("held")

    with pytest.raises(InvalidGraph) as refused:
        go_on(site, task, force=force)

    assert f"task `{task}` has steps that this kubexm does not know" in str(refused.value)
    assert [(problem.where, problem.message) for problem in refused.value.problems] == [
        ("site/base/work/provider", "unknown step kind `chaos-provider`")
    ]
    assert site.stored()[0].status == "Cancelled"


def test_host_that_rebooted_is_looked_at_again_from_its_first_unit(site: Site) -> None:
    site.write(
        HOSTS
        + """
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: kept, file: {path: /srv/kept, content: "1"}}
          - {name: lost, file: {path: /run/lost, content: "2"}}
          - {name: bound, runOnOneOf: [node], file: {path: /run/bound, content: "3"}}
          - {name: stop, pause: {seconds: 0}}
          - {name: last, file: {path: /srv/last, content: "4"}}
"""
        + SLOW
    )
    task = site.stopped_at("stop")
    with site.hosts() as found:
        found("n1").reboot()

    outcome = site.resume(task)

    assert outcome.result.status == "Success"
    assert (site.read("n1", "/run/lost"), site.read("n1", "/run/bound")) == ("2", "3")
    tries = site.tries(task)
    assert (tries["kept", "n1"], tries["lost", "n1"], tries["lost", "n2"]) == (1, 2, 1)
    assert statuses(outcome.result)["kept"] == {"n1": "Success", "n2": "Success"}


def test_what_a_run_changed_before_a_host_rebooted_is_taken_back_too(site: Site) -> None:
    site.write(
        HOSTS
        + """
onFailure: rollback
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: one, file: {path: /srv/one, content: "1"}}
          - {name: stop, pause: {seconds: 0}}
          - {name: never, command: {argv: ["false"]}}
"""
        + SLOW
    )
    task = site.stopped_at("stop")
    with site.hosts() as found:
        found("n1").reboot()

    outcome = site.resume(task)

    assert outcome.result.status == "RolledBack"
    assert (site.read("n1", "/srv/one"), site.read("n2", "/srv/one")) == (None, None)


def test_host_that_rebooted_on_the_way_back_goes_on_back(site: Site) -> None:
    site.write(
        HOSTS
        + """
onFailure: rollback
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: one, file: {path: /srv/one, content: "1"}}
          - {name: two, file: {path: /srv/two, content: "2"}}
          - {name: three, file: {path: /srv/three, content: "3"}}
      - name: fails
        steps:
          - {name: never, command: {argv: ["false"]}}
"""
        + SLOW
    )
    task = task_of(site.run(front=stopping_at("two", undo=True)))
    stopped = site.stored()[0]
    with site.hosts() as found:
        found("n1").reboot()

    outcome = site.resume(task)

    assert (stopped.status, stopped.direction) == ("Cancelled", "back")
    assert outcome.result.status == "RolledBack"
    for path in ("/srv/one", "/srv/two", "/srv/three"):
        assert (site.read("n1", path), site.read("n2", path)) == (None, None)


def test_run_is_cancelled_from_another_process_and_can_be_resumed(site: Site) -> None:
    site.write(HELD)
    with site.running() as process:
        process.until(lambda: site.finished() >= {("counted", "n1"), ("counted", "n2")})
        task = tasks.cancel(site.home, site.stored()[0].id).id
        code, _ = process.ended()
    cancelled = site.stored()[0]
    let_go(site)

    outcome = site.resume(task)

    assert (code, cancelled.status) == (3, "Cancelled")
    assert "kubexm task cancel" in cancelled.message
    assert outcome.result.status == "Success"
    assert site.ran("count") == BOTH


def test_run_in_a_world_that_lies_elsewhere_is_found_by_its_id(site: Site, tmp_path: Path) -> None:
    site.write(HELD.replace("- {name: held, wait: {command: [test, -e, /srv/go]}}", ""))
    elsewhere = tmp_path / "elsewhere" / "world"
    front = stopping_at("held")
    task = task_of(site.run(front=front, world=elsewhere))

    shown = tasks.show(site.home, task).run

    assert (shown.status, shown.world) == ("Cancelled", str(elsewhere))
    assert task in [line.run.id for line in tasks.list_runs(site.home)]
