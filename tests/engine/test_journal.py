"""What must be durable before what: the engine and its journal."""

import asyncio
from typing import Any

import pytest
from tests import virtual
from tests.engine.stage import Actor, Stage, fails, graph_of, of, play, statuses, unreachable

from kubexm.engine import Control
from kubexm.engine.commits import CROWD
from kubexm.engine.journal import Broken, Durable
from kubexm.errors import StoreUnusable
from kubexm.plan import ExecutionFragment, Key, chain, parallel, per_host
from kubexm.plan.events import LogLine, UnitFinished
from kubexm.plan.records import (
    AnyRecord,
    HostSeen,
    LedgerEntry,
    Quarantined,
    RunState,
    UnitDone,
    UnitIntended,
)
from kubexm.plan.result import Cause, HostResult
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Expander, Reader, Verdict

FULL = StoreUnusable("the disk is full")


class SlowJournal:
    """Commits what it was given after a while, or breaks."""

    def __init__(self, lag: float, *, breaks_at: int | None = None, settles: bool = False) -> None:
        self.records: list[AnyRecord] = []
        self.urgent: list[bool] = []
        self.within: list[float] = []
        self.lines: list[str] = []
        self.commits = 0
        self.closed = False
        self._lag = lag
        self._breaks_at = breaks_at
        self._settles = settles
        self._due = False

    def start(self, durable: Durable, broken: Broken) -> None:
        self._durable, self._broken = durable, broken

    def append(self, record: AnyRecord, *, urgent: bool, within: float = 0.0) -> int:
        self.records.append(record)
        self.urgent.append(urgent)
        self.within.append(within)
        if urgent and not self._due:
            self._due = True
            asyncio.get_running_loop().call_later(self._lag, self._commit)
        return len(self.records)

    def _commit(self) -> None:
        if not self._due:
            return
        self._due = False
        self.commits += 1
        if self._breaks_at is not None and len(self.records) >= self._breaks_at:
            self._broken(FULL)
        else:
            self._durable(len(self.records))

    def settle(self) -> bool:
        if self._settles:
            self._commit()
        return self._settles

    def log(self, line: LogLine) -> None:
        self.lines.append(line.text)

    async def close(self) -> None:
        self.closed = True
        if self._due:
            self._commit()


def kept(journal: SlowJournal) -> list[str]:
    return [r.node if isinstance(r, UnitDone) else type(r).__name__ for r in journal.records]


# Durable before what depends on it.


def test_what_depends_on_a_change_starts_when_that_is_durable() -> None:
    stage = Stage()

    stage.run(per_host(play("a"), play("b")), journal=SlowJournal(7.0))

    assert stage.at("start", "b", "h1") == 7.0


def test_what_does_not_depend_on_it_waits_for_nothing() -> None:
    stage = Stage()

    stage.run(parallel(chain(play("a"), play("b")), play("c", "h2")), journal=SlowJournal(7.0))

    assert stage.at("start", "c", "h2") == 0.0


def test_nothing_waits_for_satisfied_units_to_be_durable() -> None:
    stage = Stage(a=Actor(satisfied=True), b=Actor(satisfied=True))
    journal = SlowJournal(7.0)

    stage.run(chain(play("a"), play("b"), play("c")), journal=journal)

    assert stage.at("start", "c", "h1") == 0.0
    assert journal.urgent == [False, False, True]


def test_nothing_waits_for_units_that_ran_and_changed_nothing() -> None:
    stage = Stage(a=Actor(changed=False))

    stage.run(chain(play("a"), play("b")), journal=SlowJournal(7.0))

    assert stage.at("start", "b", "h1") == 0.0


def test_a_failure_is_durable_before_what_follows_an_ignored_error() -> None:
    stage = Stage(a=fails())

    stage.run(chain(play("a", ignore_errors=True), play("b")), journal=SlowJournal(7.0))

    assert stage.at("start", "b", "h1") == 7.0


def test_a_value_is_durable_before_it_is_used() -> None:
    stage = Stage(r=Actor(role=Reader, values={"v": 1}))

    stage.run(
        chain(play("r", provides=[Key("v")]), play("a", needs=["v"])), journal=SlowJournal(7.0)
    )

    assert stage.at("precheck", "a", "h1") == 7.0


def test_a_fragment_is_durable_before_it_runs() -> None:
    stage = Stage(e=Actor(role=Expander, fragment=play("x")))

    stage.run(play("e"), journal=SlowJournal(7.0))

    assert stage.at("start", "e/@h1/x", "h1") == 7.0


def test_the_end_of_a_unit_is_told_when_it_is_durable() -> None:
    stage = Stage()

    stage.run(play("a"), journal=SlowJournal(7.0))

    assert [event.at for event in stage.told(UnitFinished)] == [7.0]


def test_results_that_finish_together_are_committed_together() -> None:
    stage = Stage()
    journal = SlowJournal(7.0)

    stage.run(play("a", *(f"h{number}" for number in range(30))), journal=journal)

    assert journal.commits == 1


def test_slots_are_free_while_a_result_is_being_committed() -> None:
    stage = Stage()

    stage.run(parallel(play("a"), play("b")), journal=SlowJournal(7.0), parallelism=1)

    assert {stage.at("start", name, "h1") for name in "ab"} == {0.0}


def test_a_journal_that_can_commit_at_once_is_asked_to_when_nothing_else_is_to_do() -> None:
    stage = Stage()

    stage.run(chain(play("a"), play("b")), journal=SlowJournal(7.0, settles=True))

    assert stage.at("start", "b", "h1") == 0.0


def test_a_journal_is_left_alone_while_units_run() -> None:
    stage = Stage(x=Actor(duration=5.0))
    journal = SlowJournal(3.0, settles=True)

    stage.run(parallel(chain(play("a"), play("b")), play("x", "h2")), journal=journal)

    assert stage.at("start", "b", "h1") == 3.0


# Intent.


def test_intent_is_durable_before_a_step_that_declares_it_runs() -> None:
    stage = Stage(a=Actor(declares_intent=True))
    journal = SlowJournal(7.0)

    stage.run(play("a"), journal=journal)

    assert stage.at("start", "a", "h1") == 7.0
    assert journal.records[0] == UnitIntended(at=0.0, node="a", host="h1", attempt=1)


def test_a_satisfied_unit_intends_nothing() -> None:
    stage = Stage(a=Actor(declares_intent=True, satisfied=True))

    stage.run(play("a"))

    assert [type(record).__name__ for record in stage.records] == ["UnitDone"]


def test_intents_of_many_units_are_committed_together() -> None:
    stage = Stage(a=Actor(declares_intent=True))
    journal = SlowJournal(7.0)

    stage.run(play("a", *(f"h{number}" for number in range(30))), journal=journal)

    assert journal.commits == 2


def test_a_unit_that_waits_for_its_intent_does_not_keep_the_journal_from_settling() -> None:
    stage = Stage(a=Actor(declares_intent=True))

    stage.run(play("a"), journal=SlowJournal(7.0, settles=True))

    assert stage.at("start", "a", "h1") == 0.0


def test_a_unit_interrupted_after_its_intent_and_found_done_was_changed_by_this_run() -> None:
    stage = Stage(a=Actor(satisfied=True))
    state = RunState.fold([UnitIntended(at=0.0, node="a", host="h1", attempt=1)])

    result = stage.run(play("a"), state=state)

    assert (of(result, "a").status, of(result, "a").changed) == ("Success", True)


class Ledgered(Stage):
    def ledger(self, name: str, remember: Any) -> Any:
        ledger: Any = super().ledger(name, remember)
        ledger.remember = lambda resource, prior: remember(
            LedgerEntry(at=0.0, host=name, resource=resource, prior=dict(prior))
        )
        return ledger


def test_a_ledger_entry_is_durable_before_the_step_goes_on() -> None:
    went_on: list[float] = []

    async def run(ctx: StepContext) -> None:
        await ctx.ledger.remember("/etc/hosts", {"mode": 0o644})
        went_on.append(asyncio.get_running_loop().time())

    stage = Ledgered(a=Actor(run=run))

    stage.run(play("a"), journal=SlowJournal(7.0))

    assert went_on == [7.0]


# Order.


def test_a_failure_is_on_record_before_what_it_holds_back() -> None:
    """However the journal is cut, nothing is skipped for a reason that was lost."""
    stage = Stage(a=fails())
    journal = SlowJournal(0.0)

    stage.run(
        parallel(play("a"), play("b"), chain(play("x", "h2"), play("c"))),
        journal=journal,
        parallelism=1,
        durations={"a": 9.0},
        on_failure="fail-fast",
    )

    assert kept(journal)[0] == "a"


def test_the_loss_of_a_host_is_on_record_before_what_it_holds_back() -> None:
    stage = Stage(a=unreachable("h1"))
    journal = SlowJournal(0.0)

    stage.run(
        parallel(play("a", "h1", "h2"), play("b", "h1")),
        journal=journal,
        per_host=1,
        durations={"a": 9.0},
    )

    assert kept(journal).index("a") < kept(journal).index("b")


# Everything is kept.


def test_the_journal_is_closed_before_the_result_is_given() -> None:
    stage = Stage(a=Actor(satisfied=True))
    journal = SlowJournal(7.0)

    stage.run(play("a"), journal=journal)

    assert journal.closed
    assert kept(journal) == ["a"]


def test_lines_of_output_go_to_the_journal_without_secrets() -> None:
    stage = Stage(a=Actor(run=lambda ctx: ctx.say("stdout", "the s3cret")))
    stage.conceal("s3cret")
    journal = SlowJournal(0.0)

    stage.run(play("a"), journal=journal)

    assert journal.lines == ["the ***"]


def test_the_boot_of_each_host_is_on_record() -> None:
    stage = Stage()
    stage.facts = {"h1": {"boot_id": "b1"}}

    stage.run(play("a", "h1", "h2"))

    assert [r for r in stage.records if isinstance(r, HostSeen)] == [
        HostSeen(at=0.0, host="h1", boot_id="b1")
    ]


def test_a_host_that_rebooted_starts_its_finished_units_at_their_precheck() -> None:
    stage = Stage(a=Actor(satisfied=True))
    stage.facts = {"h1": {"boot_id": "b2"}, "h2": {"boot_id": "b1"}}
    done = [
        UnitDone(at=0.0, node="a", host=host, result=HostResult(host, "Success", changed=True))
        for host in ("h1", "h2")
    ]
    seen = [HostSeen(at=0.0, host=host, boot_id="b1") for host in ("h1", "h2")]

    stage.run(play("a", "h1", "h2"), state=RunState.fold([*seen, *done]))

    assert stage.started("precheck") == [("a", "h1")]


def test_a_quarantined_host_that_rebooted_keeps_what_it_had_finished() -> None:
    stage = Stage()
    stage.facts = {"h1": {"boot_id": "b2"}}
    records: list[AnyRecord] = [
        HostSeen(at=0.0, host="h1", boot_id="b1"),
        UnitDone(at=0.0, node="a", host="h1", result=HostResult("h1", "Success", changed=True)),
        Quarantined(at=0.0, host="h1", cause=Cause("b", "h1", "gone", "unreachable")),
    ]
    plan = parallel(per_host(play("a"), play("b")), play("c", "h2"))

    result = stage.run(plan, state=RunState.fold(records))

    assert statuses(result) == {"a@h1": "Success", "b@h1": "Skipped", "c@h2": "Success"}


# A journal that breaks.


def test_a_journal_that_breaks_ends_the_run_with_its_error() -> None:
    stage = Stage(x=Actor(duration=5.0))
    plan = parallel(chain(play("a"), play("b")), per_host(play("x", "h2"), play("y", "h2")))

    with pytest.raises(StoreUnusable, match="the disk is full"):
        stage.run(plan, journal=SlowJournal(1.0, breaks_at=1))
    assert stage.order("b", "y") == []


def test_what_runs_when_the_journal_breaks_gets_no_grace() -> None:
    stage = Stage(x=Actor(duration=600.0))

    async def main() -> float:
        with pytest.raises(StoreUnusable):
            await stage.perform(
                graph_of(parallel(play("a"), play("x", "h2"))),
                journal=SlowJournal(1.0, breaks_at=1),
            )
        return asyncio.get_running_loop().time()

    assert virtual.run(main()) == 1.0


def test_what_may_not_be_ended_is_awaited_when_the_journal_breaks() -> None:
    stage = Stage(x=Actor(duration=600.0, uninterruptible=True))

    with pytest.raises(StoreUnusable):
        stage.run(parallel(play("a"), play("x", "h2")), journal=SlowJournal(1.0, breaks_at=1))
    assert stage.at("end", "x", "h2") == 600.0


@pytest.mark.parametrize("uninterruptible", [False, True])
def test_who_waits_for_a_broken_journal_is_not_left_waiting(uninterruptible: bool) -> None:
    stage = Stage(a=Actor(declares_intent=True, uninterruptible=uninterruptible))

    with pytest.raises(StoreUnusable):
        stage.run(play("a"), journal=SlowJournal(1.0, breaks_at=1))
    assert stage.order() == []


def test_a_step_in_the_midst_of_its_work_hears_that_its_ledger_is_lost() -> None:
    heard: list[str] = []

    async def run(ctx: StepContext) -> None:
        try:
            await ctx.ledger.remember("/etc/hosts", {})
        except StoreUnusable as error:
            heard.append(str(error))
            raise

    stage = Ledgered(a=Actor(run=run, uninterruptible=True))

    with pytest.raises(StoreUnusable):
        stage.run(play("a"), journal=SlowJournal(1.0, breaks_at=1))
    assert heard == ["the disk is full"]


def test_a_journal_that_breaks_while_the_run_is_being_cancelled_ends_it() -> None:
    async def main() -> float:
        control = Control()
        asyncio.get_running_loop().call_later(0.5, control.cancel, "by request")
        with pytest.raises(StoreUnusable):
            await stage.perform(
                graph_of(parallel(play("a"), play("x", "h2"))),
                journal=SlowJournal(1.0, breaks_at=1),
                control=control,
            )
        return asyncio.get_running_loop().time()

    stage = Stage(x=Actor(duration=600.0))

    assert virtual.run(main()) == 1.0


def test_a_journal_that_breaks_before_the_way_back_ends_the_run() -> None:
    stage = Stage(b=fails())

    with pytest.raises(StoreUnusable):
        stage.run(
            chain(play("a"), play("b")),
            journal=SlowJournal(1.0, breaks_at=3),
            on_failure="rollback",
        )
    assert stage.started("rollback") == []


def test_a_journal_that_breaks_on_the_way_back_ends_the_run() -> None:
    stage = Stage(c=fails())

    with pytest.raises(StoreUnusable):
        stage.run(
            chain(play("a"), play("b"), play("c")),
            journal=SlowJournal(1.0, breaks_at=8),
            on_failure="rollback",
        )
    assert stage.order(what="rollback") == ["b"]


def test_a_journal_that_is_broken_from_the_start_lets_nothing_start() -> None:
    class Dead(SlowJournal):
        def start(self, durable: Durable, broken: Broken) -> None:
            super().start(durable, broken)
            broken(FULL)

    stage = Stage()

    with pytest.raises(StoreUnusable):
        stage.run(play("a"), journal=Dead(1.0))
    assert stage.notes == []


@pytest.mark.parametrize("actor", [Actor(), fails()])
def test_a_journal_that_raises_instead_of_calling_back_ends_the_run(actor: Actor) -> None:
    class Raising(SlowJournal):
        def append(self, record: AnyRecord, *, urgent: bool, within: float = 0.0) -> int:
            if len(self.records) == 1:
                raise FULL
            return super().append(record, urgent=urgent)

    stage = Stage(a=actor)

    with pytest.raises(StoreUnusable):
        stage.run(chain(play("a"), play("b"), play("c")), journal=Raising(1.0))
    assert stage.order("c") == []


def test_a_journal_that_breaks_in_its_last_commit_ends_the_run() -> None:
    stage = Stage(a=Actor(precheck=lambda ctx: Verdict.holds()))

    class Last(SlowJournal):
        async def close(self) -> None:
            await super().close()
            self._broken(FULL)

    with pytest.raises(StoreUnusable):
        stage.run(play("a"), journal=Last(1.0))


def test_a_late_word_of_the_journal_after_it_broke_starts_nothing() -> None:
    class Confused(SlowJournal):
        def _commit(self) -> None:
            super()._commit()
            self._durable(len(self.records))

    stage = Stage()

    with pytest.raises(StoreUnusable):
        stage.run(chain(play("a"), play("b")), journal=Confused(1.0, breaks_at=1))
    assert stage.order() == ["a"]


def long_chain(length: int) -> ExecutionFragment:
    return chain(*(play(f"n{number}") for number in range(length)))


def test_a_chain_waits_once_per_unit_for_the_journal() -> None:
    stage = Stage()

    stage.run(long_chain(10), journal=SlowJournal(1.0))

    assert stage.end == 10.0


@pytest.mark.parametrize(("hosts", "waits"), [(CROWD - 1, False), (CROWD, True), (500, True)])
def test_records_wait_for_each_other_where_many_units_are_under_way(
    hosts: int, waits: bool
) -> None:
    journal = SlowJournal(0.01)

    Stage(a=Actor(declares_intent=True)).run(
        play("a", on=tuple(f"h{number}" for number in range(hosts))), journal=journal
    )

    intended = [
        within
        for record, within in zip(journal.records, journal.within, strict=True)
        if isinstance(record, UnitIntended)
    ]
    assert len(intended) == hosts
    assert max(intended) <= 0.008
    assert (max(intended) > 0.0) is waits
