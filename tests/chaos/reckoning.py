"""What is left of a run when it is over: records, results, ledger, and the state of the hosts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.chaos.lives import Place

from kubexm.plan.records import AnyRecord, RunState, Unit, UnitDone, UnitIntended
from kubexm.sim import World
from kubexm.store import Run, Store


@dataclass(frozen=True)
class Row:
    """A line of the journal as it lies in the database."""

    seq: int
    token: int
    record: AnyRecord


@dataclass(frozen=True)
class Remains:
    """All that a run left behind."""

    run: Run
    rows: list[Row]
    state: RunState
    ledger: dict[tuple[str, str], Any]
    hosts: dict[str, dict[str, object]]
    changes: dict[str, dict[str, int]]

    def results(self) -> dict[Unit, Any]:
        """What came of every unit, without times and numbers of attempts."""
        return {unit: _result(done) for unit, done in self.state.done.items()}

    def finishes(self) -> Counter[Unit]:
        """How often each unit was accepted as finished; one that was cancelled is not."""
        done = (row.record for row in self.rows if isinstance(row.record, UnitDone))
        return Counter(
            (record.node, record.host) for record in done if record.result.status != "Cancelled"
        )

    def intents(self) -> Counter[Unit]:
        """How often each unit set out to change its host."""
        meant = (row.record for row in self.rows if isinstance(row.record, UnitIntended))
        return Counter((record.node, record.host) for record in meant)

    def began_again_after_it_was_finished(self) -> list[Unit]:
        finished: set[Unit] = set()
        again = []
        for row in self.rows:
            if isinstance(row.record, UnitDone) and row.record.result.status != "Cancelled":
                finished.add((row.record.node, row.record.host))
            elif isinstance(row.record, UnitIntended):
                unit = (row.record.node, row.record.host)
                again += [unit] if unit in finished else []
        return again


def reckon(place: Place) -> Remains:
    """Look at everything from outside, when nobody works on it any more."""
    world = World.open(place.world)
    try:
        hosts, changes = world.snapshot(), world.mutations()
    finally:
        world.close()
    with Store.open(place.database) as store:
        (run,) = store.runs()
        return Remains(
            run=run,
            rows=_rows(store, run.id),
            state=store.state(run.id),
            ledger={(e.host, e.resource): e.prior for e in store.ledger(run.name)},
            hosts=hosts,
            changes=changes,
        )


def _rows(store: Store, id: str) -> list[Row]:
    # The token is the store's own business; nothing else reads it.
    with store._database.reading() as connection:
        tokens = dict(
            tuple(row) for row in connection.execute("SELECT place % 4294967296, token FROM record")
        )
    return [Row(seq, tokens[seq], record) for seq, record in store.records(id)]


def _result(done: UnitDone) -> Any:
    result = done.result
    return (
        result.host_name,
        result.status,
        result.skipped,
        result.changed,
        result.failure,
        result.cause and (result.cause.node, result.cause.host),
        done.quarantines,
        done.blocks,
        [(value.key, value.host, value.value) for value in done.values],
        done.fragment and [node.id for node in done.fragment.nodes],
    )
