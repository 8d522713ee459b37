"""One run of a name at a time: who comes second is told who was first, and leaves no trace."""

from __future__ import annotations

import getpass
import re
import socket
import time
from contextlib import ExitStack

import pytest
from tests.app.site import Site

from kubexm.errors import LockHeld
from kubexm.store import Store

pytestmark = pytest.mark.timeout(120)  # most start processes

HELD = """
hosts:
  - {name: n1, roles: [node]}
runOnRoles: [node]
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - {name: one, file: {path: /srv/one, content: "1"}}
          - {name: held, wait: {command: [test, -e, /srv/go], interval: 0.02}}
"""
FIRST = ("one", "n1")


@pytest.mark.slow
def test_second_run_is_refused_with_who_works_since_when_and_leaves_nothing(site: Site) -> None:
    site.write(HELD)
    with site.running() as first:
        first.until(lambda: FIRST in site.finished())
        with pytest.raises(LockHeld) as refused:
            site.run()
        runs = site.stored()
        with site.running() as second:
            code, errors = second.ended()

    (run,) = runs
    assert run.holder is not None
    who = f"task {run.id} ({getpass.getuser()}@{socket.gethostname()}, pid {first.pid})"
    assert f"`site` is being worked on by {who}" in str(refused.value)
    assert re.search(r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", str(refused.value))
    assert f"kubexm task cancel {run.id}" in refused.value.hint
    assert code == 4
    assert "error: lock-held" in errors
    assert len(site.stored()) == 1


def test_run_that_is_being_worked_on_is_neither_resumed_nor_retried(site: Site) -> None:
    site.write(HELD)
    with site.running() as first:
        first.until(lambda: FIRST in site.finished())
        (run,) = site.stored()
        for ask in (site.resume, site.retry):
            with pytest.raises(LockHeld, match=run.id):
                ask(run.id)

        assert site.stored()[0].status == "Running"


def test_dead_holder_is_taken_over_at_once(site: Site) -> None:
    site.write(HELD)
    with site.running() as first:
        first.until(lambda: FIRST in site.finished())
        first.kill()
        site.put("n1", "/srv/go", "")

        # Its lease has a quarter of a minute to go, but nobody can wait for it any more.
        outcome = site.run()

    assert outcome.result.status == "Success"
    assert [run.status for run in site.stored()] == ["Success", "Running"]
    assert site.stored()[1].interrupted


def test_looking_needs_no_lock(site: Site) -> None:
    site.write(HELD)
    with site.running() as first:
        first.until(lambda: FIRST in site.finished())
        checked = site.run(check=True)

        assert checked.task is None
        assert len(site.stored()) == 1


def test_runs_of_other_names_do_not_wait_for_each_other(site: Site) -> None:
    site.write(HELD)
    with site.running() as first:
        first.until(lambda: FIRST in site.finished())
        other = Site(site.root)
        other.file = site.root / "other.yaml"
        text = site.file.read_text().replace("name: site", "name: other")
        other.file.write_text(text.replace("/srv/go", "/etc"))

        assert other.run(world=site.world).result.status == "Success"


@pytest.mark.slow
def test_of_many_that_start_at_once_where_nothing_is_yet_one_runs(site: Site) -> None:
    site.write(HELD)
    with ExitStack() as stack:
        crowd = [stack.enter_context(site.running()) for _ in range(6)]
        while sum(process.popen.poll() is None for process in crowd) > 1:
            time.sleep(0.05)
        (winner,) = (process for process in crowd if process.popen.poll() is None)
        winner.until(lambda: FIRST in site.finished())
        running = site.stored()
        winner.kill()
        others = [process.ended() for process in crowd if process is not winner]

    assert [code for code, _ in others] == [4] * 5
    assert [run.status for run in running] == ["Running"]


def test_process_that_lost_its_lease_ends_by_itself_and_says_why(site: Site) -> None:
    site.write(HELD)
    with site.running() as first:
        first.until(lambda: FIRST in site.finished())
        (run,) = site.stored()
        # To another machine whose clock is a minute ahead, it looks dead.
        later = Store.open(site.database, clock=lambda: time.time() + 60)
        with later, later.acquire(run.id):
            code, errors = first.ended()

            assert code == 1
    assert "error: lease-lost" in errors
    assert "was taken over by another process" in errors
    assert f"kubexm task show {run.id}" in errors
    assert site.stored()[0].interrupted
