"""Runs are kept with all they were made from, and are found again."""

import asyncio
import re
import threading
from pathlib import Path

import pytest
from tests.store.scenario import DOCUMENTS, begun, done, graph_of, started

from kubexm.errors import UnknownTask
from kubexm.plan.records import AnyRecord, Reopened, UnitDone, UnitIntended
from kubexm.plan.result import HostResult
from kubexm.store import Documents, Store


def kept(store: Store, name: str, record: AnyRecord) -> str:
    """A run with this one record; its id."""

    async def scenario() -> str:
        run, lease = begun(store, name)
        with lease:
            journal = store.journal(lease)
            started(journal)
            journal.append(record, urgent=True)
            await journal.close()
        return run.id

    return asyncio.run(scenario())


def test_run_and_documents_are_durable_when_it_is_created(store: Store, path: Path) -> None:
    run = store.create_run("demo", DOCUMENTS, selected=True, world="worlds/a")

    with Store.open(path) as other:
        found = other.run(run.id)
        documents = other.documents(run.id)

    assert found == run
    assert (found.name, found.status, found.direction) == ("demo", "Pending", "forward")
    assert (found.selected, found.world, found.started, found.ended) == (
        True,
        "worlds/a",
        None,
        None,
    )
    assert documents == DOCUMENTS


def test_ids_sort_by_time_and_never_clash(path: Path) -> None:
    now = 1_800_000_000.0
    with Store.open(path, clock=lambda: now) as store:
        same_second = [store.create_run("demo", DOCUMENTS).id for _ in range(50)]
        now += 1
        next_second = store.create_run("demo", DOCUMENTS).id

    assert len(set(same_second)) == 50
    assert max(same_second) < next_second
    assert re.fullmatch(r"20270115-080001-[0-9a-f]{4}", next_second)


def test_runs_are_listed_newest_first_by_name_and_up_to_a_limit(store: Store) -> None:
    made = [store.create_run(name, DOCUMENTS).id for name in ("a", "b", "a")]

    assert [run.id for run in store.runs()] == made[::-1]
    assert [run.id for run in store.runs("a")] == [made[2], made[0]]
    assert [run.id for run in store.runs(limit=1)] == [made[2]]


def test_unknown_id_is_refused_with_the_nearest(store: Store) -> None:
    run = store.create_run("demo", DOCUMENTS)
    near = run.id[:-1]

    with pytest.raises(UnknownTask) as refused:
        store.run(near)

    assert f"`{near}`" in refused.value.message
    assert refused.value.hint == f"did you mean `{run.id}`?"
    for ask in (
        store.documents,
        store.state,
        store.records,
        store.log_lines,
        store.acquire,
        store.later_change,
    ):
        with pytest.raises(UnknownTask):
            ask(near)


def test_run_is_running_from_begin_to_finish(path: Path) -> None:
    now = 1000.0
    with Store.open(path, clock=lambda: now) as store:
        run, lease = begun(store)
        store.begin(lease)
        running = store.run(run.id)
        now = 1005.0
        store.finish(lease, "Failed", message="h1: no", degraded=True)
        ended = store.run(run.id)
        now = 1010.0
        store.begin(lease)
        again = store.run(run.id)

    assert (running.status, running.ended) == ("Running", None)
    assert running.started is not None
    assert running.started.timestamp() == 1000.0
    assert (ended.status, ended.message, ended.degraded) == ("Failed", "h1: no", True)
    assert ended.ended is not None
    assert ended.ended.timestamp() == 1005.0
    assert (again.status, again.message, again.started) == ("Running", "", running.started)
    assert again.ended is None


def test_run_is_interrupted_when_nobody_works_on_it_any_more(store: Store) -> None:
    run, lease = begun(store)
    store.begin(lease)

    working = store.run(run.id)
    lease.release()
    left = store.run(run.id)

    assert working.holder is not None
    assert working.holder.run == run.id
    assert not working.interrupted
    assert left.holder is None
    assert left.interrupted


def test_ended_run_is_opened_again_with_a_corrected_plan(store: Store) -> None:
    run, lease = begun(store)
    store.finish(lease, "Failed", message="one host failed")
    corrected = Documents(graph_of("demo/b"), spec=b'{"a":2}')
    again = Reopened(at=1.0, units=(("demo/a", "h1"),))

    store.reopen(lease, again, corrected)

    found = store.run(run.id)
    assert (found.status, found.direction, found.ended, found.message) == (
        "Running",
        "forward",
        None,
        "",
    )
    assert store.records(run.id)[-1] == (2, again)
    assert store.documents(run.id) == corrected


def test_durations_are_learned_per_name_and_follow_the_latest_runs(store: Store) -> None:
    store.learn_durations("demo", {"a": 1.0, "b": 4.0})
    store.learn_durations("demo", {"a": 3.0})
    store.learn_durations("other", {"a": 9.0})
    store.learn_durations("other", {})
    first = store.durations("demo")
    for _ in range(60):
        store.learn_durations("demo", {"a": 10.0})

    assert first == {"a": 2.0, "b": 4.0}
    assert store.durations("demo")["a"] == pytest.approx(10.0, abs=0.1)
    assert store.durations("other") == {"a": 9.0}
    assert store.durations("none") == {}


def test_threads_may_share_a_store(store: Store) -> None:
    def make() -> None:
        for _ in range(5):
            store.create_run("demo", DOCUMENTS)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(store.runs()) == 20


def test_later_run_counts_only_if_it_changed_something_or_may_have(store: Store) -> None:
    first = store.create_run("demo", DOCUMENTS)
    satisfied = HostResult("h1", "Skipped", skipped=True)
    kept(store, "demo", UnitDone(at=1.0, node="demo/a", host="h1", result=satisfied))
    kept(store, "other", done())
    store.create_run("demo", DOCUMENTS)
    before = store.later_change(first.id)
    changed = kept(store, "demo", done())
    after = store.later_change(first.id)
    intended = kept(store, "demo", UnitIntended(at=1.0, node="demo/a", host="h1", attempt=1))

    assert before is None
    assert after is not None
    assert after.id == changed
    assert [run and run.id for run in map(store.later_change, (first.id, changed, intended))] == [
        intended,
        intended,
        None,
    ]


def test_lives_of_a_run_leave_out_the_time_in_which_nobody_worked_on_it(path: Path) -> None:
    clock = [1000.0]
    with Store.open(path, clock=lambda: clock[0]) as store:
        run, lease = store.start_run("c", DOCUMENTS)
        with lease:
            store.begin(lease)
            clock[0] = 1005.0
            store.finish(lease, "Cancelled")
        first = store.lives(store.run(run.id))
        clock[0] = 2000.0
        with store.acquire(run.id) as lease:
            store.begin(lease)
            clock[0] = 2003.0
            under_way = store.lives(store.run(run.id))
            clock[0] = 2004.0
            store.finish(lease, "Success")
        ended = store.lives(store.run(run.id))

    assert first == [(1000.0, 1005.0)]
    assert [end - start for start, end in under_way] == [5.0, 3.0]
    assert [end - start for start, end in ended] == [5.0, 4.0]
