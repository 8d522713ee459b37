"""However a run was stopped, resumed and retried: a rollback ends where its first go began."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.app.chains import (
    COMPENSATED,
    LOCK,
    Act,
    Chain,
    File,
    chain,
    described,
    has_directory_of_two_names,
    on_one_host,
)
from tests.app.site import Site, stopping_at_start, task_of

from kubexm.app import tasks
from kubexm.app.runs import RunOutcome
from kubexm.connector.base import Command
from kubexm.engine.undo import COMPENSATE, FORMER, UNDO, is_settling, is_undo
from kubexm.errors import InvalidInput
from kubexm.plan.result import LEFT, GraphExecutionResult
from kubexm.sim import World

Cell = tuple[str, str]
"""A host, and something on it: a path, a service, a package."""
Cells = dict[Cell, object]
"""All that is not as it was delivered."""
Said = dict[tuple[str, str], tuple[str, str]]
"""What is said of each unit: its status and message."""
_OWN = "/var/lib/kubexm"
"""What kubexm keeps for itself on a host; what a service was started with must be true, though."""
_CHAINS = 6


class Play:
    """Acts a chain out, and looks after each act."""

    def __init__(self, site: Site, acts: Chain) -> None:
        self._site = site
        self._acts = acts
        self._file = File(())
        self._touched: dict[str, set[str]] = {}
        self._task = ""
        self._may_fail = has_directory_of_two_names(acts)
        self._before: Cells = {}
        self.log: list[str] = []

    def whole(self) -> Said:
        """What is said in the end, when all is taken back."""
        assert self._acts[0].file is not None
        self._write(self._acts[0].file)
        self._site.make_world()
        asyncio.run(_prepared(self._site, self._file.hosts))
        self._before = self._cells()
        result = self._result(self._acts[0])
        assert result is not None
        for act in self._acts[1:]:
            result = self._result(act) or result
        while result.status == "Cancelled":
            resumed = self._result(Act("resume"))
            assert resumed is not None
            result = resumed
        assert result.status in ("RolledBack", "Failed")
        self._require_all_back(result)
        return _said(result)

    def _result(self, act: Act) -> GraphExecutionResult | None:
        """What came of an act; None if it is refused, as a resume of what has ended."""
        try:
            result = self._acted(act).result
        except InvalidInput as error:
            self.log.append(f"{act.kind}: {error}")
            assert act.kind != "run"
            return None
        back = result.rollback.status if result.rollback is not None else "none"
        self.log.append(f"{act.kind}: {result.status}, way back: {back}")
        self._look(result)
        return result

    def _acted(self, act: Act) -> RunOutcome:
        stop = act.stop
        front = stopping_at_start(stop.number, undo=stop.undo) if stop is not None else None
        if act.file is not None:
            self._write(act.file)
        if act.kind == "resume":
            return self._site.resume(self._task, front=front)
        if act.kind == "retry":
            corrected, asked = act.file is not None, act.on_failure
            return self._site.retry(self._task, corrected=corrected, front=front, on_failure=asked)
        outcome = self._site.run(front=front)
        self._task = task_of(outcome)
        return outcome

    def _write(self, file: File) -> None:
        self._site.write(file.spec())
        self._file = file
        for name, step in file.steps.items():
            self._touched.setdefault(name, set()).update(step.touches())

    def _look(self, result: GraphExecutionResult) -> None:
        shown = tasks.show(self._site.home, self._task).result
        assert shown.status == result.status
        told, other = _said(result), _said(shown)
        differing = {
            unit for unit in told.keys() | other.keys() if told.get(unit) != other.get(unit)
        }
        assert not differing, {unit: (told.get(unit), other.get(unit)) for unit in differing}
        if result.status == "Cancelled":
            return
        if self._file.hooks:
            assert not {(host, LOCK) for host in self._file.hosts} & self._cells().keys(), (
                "it is still locked"
            )
        if result.rollback is not None:
            self._require_all_back(result)

    def _require_all_back(self, result: GraphExecutionResult) -> None:
        """All is as before, but for what is told as left; that an undo fails is no excuse."""
        if result.rollback is not None and not self._may_fail:
            assert result.rollback.status == "Success", result.rollback.message
        left, before, now = {*self._left(result)}, self._before, self._cells()
        wrong = {
            cell: f"was {before.get(cell)}, is {now.get(cell)}"
            for cell in before.keys() | now.keys()
            if before.get(cell) != now.get(cell) and not _is_in(cell, left)
        }
        assert not wrong, f"{result.status}, but {wrong}"

    def _left(self, result: GraphExecutionResult) -> Iterator[Cell]:
        for id, node in result.rollback.node_results.items() if result.rollback else ():
            path = id.removeprefix(f"{UNDO}/").partition(FORMER)[0]
            for host, end in node.host_results.items():
                if end.status != "Success" and not is_settling(id):
                    assert end.message.startswith(LEFT) or self._may_fail, end
                    for cell in self._cells_of(path):
                        yield host, cell

    def _cells_of(self, path: str) -> set[str]:
        """What the step of this path may have changed, in any of the files."""
        name = path.rpartition("/")[2]
        if COMPENSATE in path or name == "scoped":
            return {COMPENSATED}
        return {LOCK} if name == "lock" else self._touched.get(name, set())

    def _cells(self) -> Cells:
        with self._site.hosts() as found:
            return {
                (name, key): value
                for name in self._file.hosts
                for key, value in found(name).difference().items()
                if _OWN not in key or key.endswith(".sha256")
            }


def _is_in(cell: Cell, others: set[Cell]) -> bool:
    host, what = cell
    return any(host == at and (what == it or what.startswith(f"{it}/")) for at, it in others)


def _said(result: GraphExecutionResult) -> Said:
    both = (result.node_results, result.rollback.node_results if result.rollback else {})
    return {
        (id, host.host_name): (host.status, host.message)
        for nodes in both
        for id, node in nodes.items()
        for host in node.host_results.values()
        # Of a way back only what has come to an end is stored.
        if not (is_undo(id) and host.message.startswith("not started: "))
    }


async def _prepared(site: Site, hosts: Sequence[str]) -> None:
    """Have files of others, not all of which are for everyone."""
    world = World.open(site.world)
    for name in hosts:
        connector = world.connector(name)
        await connector.open()
        await connector.exec(Command(("chmod", "0640", "/etc/conf")))
        await connector.exec(Command(("chown", "daemon", "/srv/b")))
    world.close()


def played(root: Path, acts: Chain) -> Said:
    play = Play(Site(root), acts)
    try:
        return play.whole()
    except AssertionError as error:
        said = "\n".join(play.log)
        raise AssertionError(f"{error}\n\n{described(acts)}\n\n{said}") from error


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(6))
def test_a_rollback_ends_where_the_run_began(tmp_path: Path, seed: int) -> None:
    for number in range(_CHAINS):
        root = tmp_path / str(number)
        root.mkdir()
        played(root, chain(seed * _CHAINS + number))


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_chain_that_nobody_stops_ends_the_same_way_again(tmp_path: Path) -> None:
    # Of several hosts that fail at once, either may be the one that ends the others.
    chains = [on_one_host(chain(seed)) for seed in range(60)]
    calm = [acts for acts in chains if not any(act.stop for act in acts)]
    assert calm
    for number, acts in enumerate(calm):
        first, second = tmp_path / f"{number}", tmp_path / f"{number}-again"
        first.mkdir()
        second.mkdir()
        assert played(first, acts) == played(second, acts), described(acts)
