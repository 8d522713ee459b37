"""A world in which a scenario is acted out, and an exact account of all that happened in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests import virtual
from tests.engine.random_graphs import Fault, Role, Scenario
from tests.engine.stage import LoadedPlay, Stage, _Runtime

from kubexm.connector.base import Command, Completed
from kubexm.engine import Bus, Control, Options, execute
from kubexm.errors import ConnectionLost, HostUnreachable, Refused, StepFailed
from kubexm.plan import GraphExecutionResult, StepSpec, events
from kubexm.plan.node import ExecutionNode
from kubexm.plan.records import AnyRecord, RunState, Unit
from kubexm.plan.validation import inside
from kubexm.runner.host import Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Expander, Minter, NotYet, Outcome, Reader, Step, Verdict

FOREVER = 1e9
POLL = 1.0


class Moment(NamedTuple):
    """Something that happened, in order.

    Steps: look, looked, given (values), enter, leave, undo, undone. Engine: started, retried,
    final, lost, expanded. Journal: recorded, durable.
    """

    at: float
    what: str
    node: str = ""
    host: str = ""
    more: Any = None


class Acts(Step):
    """A step that does what its script says."""

    kind = "acts"

    def __init__(self, world: World, node: str, role: Role) -> None:
        self._world = world
        self._node = node
        self._role = role

    def spec(self) -> StepSpec:
        return StepSpec("acts")

    def summary(self) -> str:
        return self._node

    async def precheck(self, ctx: StepContext) -> Verdict:
        return await self._world.look(self._node, ctx.host.name)

    async def run(self, ctx: StepContext) -> Outcome | NotYet | None:
        self._world.tell("given", self._node, ctx.host.name, dict(ctx.values))
        return await self._world.work(self._node, ctx.host.name, self._role)

    async def rollback(self, ctx: StepContext) -> None:
        await self._world.undo(self._node, ctx.host.name)


class Probed(Acts):
    precheck = Step.precheck

    def probe(self, host: Host) -> Sequence[Command]:
        return (Command(("probe", self._node)),)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        return Verdict.holds("as wanted") if answers[0].ok else Verdict.needed("not yet", "+")


class Reads(Acts, Reader):
    pass


class Mints(Acts, Minter):
    pass


class Expands(Acts, Expander):
    pass


_ACTS: dict[Role, type[Acts]] = {
    "plain": Acts,
    "probed": Probed,
    "reader": Reads,
    "minter": Mints,
    "expander": Expands,
}
_FAULTS: dict[Fault, Exception] = {
    "failed": StepFailed("it said no"),
    "bug": KeyError("oops"),
    "refused": Refused("not allowed"),
    "look": StepFailed("could not look"),
    "hangs": StepFailed("hung"),
    "lost": ConnectionLost("broken pipe"),
    "gone": ConnectionLost("broken pipe"),
    "unreachable": HostUnreachable("no route"),
    "dark": HostUnreachable("no answer"),
}


@dataclass
class Remains:
    """What outlives a crash: the hosts, and how often things were made on them."""

    made: set[Unit] = field(default_factory=set)
    partly: set[Unit] = field(default_factory=set)
    minted: dict[Unit, int] = field(default_factory=dict)
    clock: float = 0.0


class World(Stage):
    """The hosts of a scenario in one life of a run."""

    def __init__(self, scenario: Scenario, remains: Remains | None = None) -> None:
        super().__init__()
        self.scenario = scenario
        if remains is None:
            remains = Remains({unit for unit, script in scenario.scripts.items() if script.made})
        self.remains = remains
        self.trace: list[Moment] = []
        self.tries: dict[Unit, int] = {}
        self.polled: dict[Unit, int] = {}
        self.busy: set[Unit] = set()
        self.broken: set[str] = set()
        self.bounded: set[str] = set()
        self.frozen = False
        self.unreachable = dict.fromkeys(scenario.unreachable, "no answer")

    # What the engine asks for.

    def now(self) -> float:
        return self.remains.clock + asyncio.get_running_loop().time()

    def load(self, node: ExecutionNode) -> LoadedPlay:
        role = self.scenario.role(node.id)
        if node.timeout is not None:
            self.bounded.add(node.id)
        step: Any = _ACTS[role](self, node.id, role)
        script = self.scenario.script
        return LoadedPlay(step, lambda view: script(node.id, view.host["name"]).wanted)

    def answer(self, host: str, command: Command) -> Completed:
        node = command.argv[1]
        self.tell("looked", node, host)
        return Completed(0 if (node, host) in self.remains.made else 1)

    async def reconnect_host(self, name: str) -> None:
        if name in self.broken:
            self.broken.discard(name)
            raise HostUnreachable("no route")

    # What steps do.

    def tell(self, what: str, node: str = "", host: str = "", more: Any = None) -> None:
        if not self.frozen:
            now = asyncio.get_running_loop().time()
            self.trace.append(Moment(now, what, node, host, more))

    async def look(self, node: str, host: str) -> Verdict:
        self.tell("look", node, host)
        try:
            await self._spend(self.scenario.script(node, host).look)
        finally:
            self.tell("looked", node, host)
        fault = self._fault(node, host)
        if fault in ("look", "dark"):
            raise _FAULTS[fault]
        if (node, host) in self.remains.made:
            return Verdict.holds("as wanted")
        return Verdict.needed("not yet", "+")

    async def work(self, node: str, host: str, role: Role) -> Outcome | NotYet | None:
        unit = node, host
        fault, script = self._fault(node, host), self.scenario.script(node, host)
        polls = not fault and self.polled.get(unit, 0) < script.polls
        self.tell("enter", node, host)
        self.busy.add(unit)
        try:
            await self._spend(FOREVER if fault == "hangs" else script.work)
        finally:
            self.busy.discard(unit)
            self.tell("leave", node, host, "polls" if polls else fault)
        if fault is not None:
            self._break(host, fault)
        if polls:
            self.polled[unit] = self.polled.get(unit, 0) + 1
            return NotYet(POLL, "not up yet")
        return self._outcome(unit, role)

    def _break(self, host: str, fault: Fault) -> None:
        if fault == "gone":
            self.broken.add(host)
        raise _FAULTS[fault]

    def _outcome(self, unit: Unit, role: Role) -> Outcome:
        _node, _host = unit
        if role == "expander":
            return Outcome(changed=False, fragment=self.scenario.fragments.get(unit))
        if role in ("reader", "minter"):
            self.remains.minted[unit] = self.remains.minted.get(unit, 0) + 1
            return Outcome(changed=role == "minter", values=self._values(unit))
        self.make(unit)
        return Outcome()

    def _values(self, unit: Unit) -> dict[str, Any]:
        """Who made it; what does not last is different every time, and says until when."""
        node, host = unit
        made = self.remains.minted[unit]
        return {
            key.name: f"by {node} on {host}" if key.ttl is None else [made, self.now() + key.ttl]
            for key in self.scenario.graph.nodes[node].step.provides
        }

    def make(self, unit: Unit) -> None:
        """The unit's whole effect on its host; that of a compensation is to undo its scope."""
        scope, compensates, _ = unit[0].partition("/@compensate/")
        if compensates:
            known = self.remains.made | self.remains.partly
            undone = {u for u in known if inside(u[0], scope) and not self.scenario.script(*u).made}
            self.remains.made -= undone
            self.remains.partly -= undone
        else:
            self.remains.made.add(unit)
        self.remains.partly.discard(unit)

    async def undo(self, node: str, host: str) -> None:
        script = self.scenario.script(node, host)
        self.tell("undo", node, host)
        try:
            await self._spend(script.work)
        finally:
            self.tell("undone", node, host)
        if script.undo_fails:
            raise StepFailed("can't be undone")
        self.remains.made.discard((node, host))
        self.remains.partly.discard((node, host))

    async def _spend(self, seconds: float) -> None:
        if seconds and not self.frozen:
            await asyncio.sleep(seconds)
        if self.frozen:
            await asyncio.get_running_loop().create_future()

    def _fault(self, node: str, host: str) -> Fault | None:
        faults = self.scenario.script(node, host).faults
        tried = self.tries.get((node, host), 1)
        return faults[tried - 1] if tried <= len(faults) else None

    # The end of the world as the run knew it.

    def freeze(self, fate: Callable[[Unit], str]) -> None:
        """The process is gone; what each unit was about came to pass as `fate` says."""
        self.remains.clock = self.now()
        self.frozen = True
        for unit in sorted(self.busy):
            self._leave_behind(unit, fate(unit))

    def _leave_behind(self, unit: Unit, fate: str) -> None:
        """Only what would have ended well can have been done already."""
        if self.scenario.role(unit[0]) not in ("plain", "probed") or unit[0] in self.bounded:
            return
        if self.scenario.script(*unit).faults:
            return
        if fate == "fully":
            self.make(unit)
        elif fate == "partly":
            self.remains.partly.add(unit)


class Tape(Bus):
    """Takes down what the engine says, in line with everything else."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.heard = True
        self._world = world

    def publish(self, event: events.AnyEvent) -> None:
        world = self._world
        match event:
            case events.UnitStarted():
                unit = event.node, event.host
                world.tries[unit] = world.tries.get(unit, 0) + 1
                world.polled[unit] = 0
                world.tell("started", event.node, event.host, event.attempt)
            case events.UnitRetried():
                world.tell("retried", event.node, event.host, event.delay)
            case events.UnitFinished():
                world.tell("final", event.node, event.host, event.result)
            case events.HostQuarantined():
                world.tell("lost", "", event.host, event.cause)
            case events.Expanded():
                world.tell("expanded", event.node, event.host, event.fragment)


class Diary:
    """A journal that commits in groups after a lag; with `keep`, it dies after so many records."""

    def __init__(self, world: World, *, keep: int | None = None) -> None:
        self.records: list[AnyRecord] = []
        self.crashed = False
        self.on_crash: Callable[[], None] = lambda: None
        self._world = world
        self._lag = world.scenario.lag
        self._keep = keep
        self._pending = False
        self._durable: Callable[[int], None] = lambda number: None

    def start(
        self, durable: Callable[[int], None], broken: Callable[[BaseException], None]
    ) -> None:
        self._durable = durable

    def append(self, record: AnyRecord, *, urgent: bool, within: float = 0.0) -> int:
        self.records.append(record)
        self._world.tell("recorded", more=record)
        number = len(self.records)
        if self._lag is None:
            self._commit()
        elif not self._pending:
            self._pending = True
            asyncio.get_running_loop().call_later(self._lag, self._commit)
        return number

    def _commit(self) -> None:
        self._pending = False
        if self._keep is not None and len(self.records) > self._keep:
            self._die()
        if not self.crashed:
            self._world.tell("durable", more=len(self.records))
            self._durable(len(self.records))

    def _die(self) -> None:
        if not self.crashed:
            self.crashed = True
            self.on_crash()

    @property
    def kept(self) -> list[AnyRecord]:
        return self.records[: self._keep]

    def settle(self) -> bool:
        return False

    def log(self, line: events.LogLine) -> None:
        pass

    async def close(self) -> None:
        self._commit()


@dataclass
class Story:
    """A run and what came of it; `result` is None if it died."""

    scenario: Scenario
    world: World
    diary: Diary
    result: GraphExecutionResult | None

    @property
    def trace(self) -> list[Moment]:
        return self.world.trace

    @property
    def ended(self) -> GraphExecutionResult:
        assert self.result is not None
        return self.result


def act(
    scenario: Scenario,
    *,
    remains: Remains | None = None,
    records: Iterable[AnyRecord] = (),
    keep: int | None = None,
    fate: Callable[[Unit], str] = lambda unit: "not at all",
    durations: Mapping[str, float] | None = None,
    cancel_at: float | None = None,
    boots: Mapping[str, str] | None = None,
    **options: Any,
) -> Story:
    """Run a scenario under virtual time after earlier lives; die after `keep` records."""
    world = World(scenario, remains)
    diary = Diary(world, keep=keep)
    control = Control()
    if boots is not None:
        world.facts = {h: {"boot_id": boots.get(h, "first")} for h in scenario.graph.hosts}

    async def life() -> GraphExecutionResult:
        main = asyncio.current_task()
        assert main is not None

        def crash() -> None:
            world.freeze(fate)
            main.cancel()

        diary.on_crash = crash
        if cancel_at is not None:
            asyncio.get_running_loop().call_later(cancel_at, control.cancel, "by the user")
        return await execute(
            scenario.graph,
            _Runtime(world),
            Options(**{**scenario.options, **options}),
            load=world.load,
            journal=diary,
            state=RunState.fold(records),
            control=control,
            durations=durations,
            bus=Tape(world),
        )

    try:
        result = virtual.run(life())
    except asyncio.CancelledError:
        assert diary.crashed
        return Story(scenario, world, diary, None)
    return Story(scenario, world, diary, result)
