"""Runs that are killed and frozen hundreds of times: nothing is lost, nothing accepted twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.chaos.campaign import disturbed, undisturbed
from tests.chaos.reckoning import Remains

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("chaos"),
]

ONE_CHANGE = {
    "/srv/chaos/identity": "identity",
    "/srv/chaos/config": "config",
    "/srv/chaos/detected": "after",
    "/etc/webd.conf": "config",
    "starts:webd.service": "service",
    "script:make-once *": "guarded",
    "script:count-me *": "bare",
    "script:join *": "member",
    "script:be-ready": "ready",
    "package:alpha": "package[alpha]",
    "package:beta": "package[beta]",
}
"""Resources that an undisturbed run changes once, and the steps that do."""


def check_the_journal(found: Remains) -> None:
    """In order, without gaps, each line by who held the lock then; every unit finished once."""
    tokens = [row.token for row in found.rows]

    assert [row.seq for row in found.rows] == list(range(1, len(found.rows) + 1))
    assert tokens == sorted(tokens)
    assert {unit: n for unit, n in found.finishes().items() if n > 1} == {}
    assert found.began_again_after_it_was_finished() == []


def check_what_was_done(found: Remains) -> None:
    """Once, and once more at most for each time that it was under way when the process died."""
    for host, changes in found.changes.items():
        for resource, step in ONE_CHANGE.items():
            tries = sum(
                times
                for (node, on), times in found.intents().items()
                if on == host and node.endswith(f"/{step}")
            )
            assert changes.get(resource, 0) <= tries, (host, resource)


def check_the_end(found: Remains, wanted: Remains) -> None:
    """The same statuses, values, fragments, prior states and hosts."""
    assert (found.run.status, found.run.degraded) == (wanted.run.status, wanted.run.degraded)
    assert found.run.direction == wanted.run.direction
    assert found.results() == wanted.results()
    assert found.ledger == wanted.ledger
    assert found.hosts == wanted.hosts


def test_killed_at_any_instant_a_run_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    wanted = undisturbed("forward.yaml", tmp_path)
    kills: Counter[str] = Counter()
    for found, how in disturbed("kill", "forward.yaml", tmp_path, until=150):
        check_the_journal(found)
        check_what_was_done(found)
        check_the_end(found, wanted)
        kills += how

    print(dict(kills))
    assert (wanted.run.status, wanted.run.degraded) == ("Success", True)
    assert kills.total() - kills["by_cancelling"] >= 100


def test_killed_on_its_way_there_and_back_a_run_leaves_the_hosts_as_they_were(
    tmp_path: Path,
) -> None:
    wanted = undisturbed("back.yaml", tmp_path)
    kills: Counter[str] = Counter()
    for found, how in disturbed("kill", "back.yaml", tmp_path, until=60):
        check_the_journal(found)
        check_the_end(found, wanted)
        kills += how

    print(dict(kills))
    assert wanted.run.status == "RolledBack"


def test_what_was_under_way_when_killed_is_taken_back_too(tmp_path: Path) -> None:
    kills: Counter[str] = Counter()
    for found, how in disturbed("kill", "race.yaml", tmp_path, until=60):
        check_the_journal(found)
        ours = {key for host in found.hosts.values() for key in host}
        kills += how
        assert found.run.status == "RolledBack"
        assert {key for key in ours if not key.startswith("/var/lib/kubexm")} == set()

    print(dict(kills))


def test_frozen_longer_than_its_lease_a_process_can_not_write_when_it_wakes(tmp_path: Path) -> None:
    wanted = undisturbed("forward.yaml", tmp_path)
    freezes: Counter[str] = Counter()
    for found, how in disturbed("freeze", "forward.yaml", tmp_path, until=9):
        check_the_journal(found)
        check_what_was_done(found)
        check_the_end(found, wanted)
        freezes += how

    print(dict(freezes))
    assert freezes["woken while another worked"] > 0
