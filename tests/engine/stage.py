"""A stage for the engine: steps that do what a test says, and hosts that only have a name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from tests import virtual

from kubexm.connector.base import Command, Completed, FileStat, LineSink
from kubexm.connector.source import Source
from kubexm.engine import Bus, Control, MemoryJournal, Options, execute
from kubexm.errors import HostUnreachable, KubexmError, StepFailed
from kubexm.plan import (
    ExecutionFragment,
    ExecutionGraph,
    GraphExecutionResult,
    HostResult,
    Key,
    StepSpec,
    build,
    node,
)
from kubexm.plan.events import AnyEvent
from kubexm.plan.node import ExecutionNode
from kubexm.plan.records import AnyRecord, RunState
from kubexm.runner.host import Host
from kubexm.runtime.assets import NOTHING
from kubexm.runtime.contexts import StepContext, UnitView
from kubexm.step.contract import Expander, Minter, NotYet, Outcome, Reader, Step, Verdict

E = TypeVar("E")


class NamedHost:
    """A connector that answers every command with success and counts round trips."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._name = name

    async def open(self) -> None:
        pass

    async def exec(self, command: Command, sink: LineSink | None = None) -> Completed:
        return self._stage.answer(self._name, command)

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        self._stage.batches.append((self._name, [command.argv for command in commands]))
        answers = [self._stage.answer(self._name, command) for command in commands]
        if self._stage.round_trip:
            await asyncio.sleep(self._stage.round_trip)
        if len(commands) > 1 and self._stage.breaks_batches:
            raise KubexmError("the batch broke")
        return answers

    async def put(self, path: str, data: bytes, **_: Any) -> None:
        pass

    async def get(self, path: str, *, sudo: bool = False) -> bytes:
        raise FileNotFoundError(path)

    async def upload(self, source: Source, path: str, **_: Any) -> bool:
        return True

    async def download(self, path: str, to: Path, **_: Any) -> bool:
        raise FileNotFoundError(path)

    def here(self, path: Path) -> Path:
        return path

    async def stat(self, path: str, *, sudo: bool = False) -> FileStat | None:
        return None

    async def close(self) -> None:
        pass


@dataclass
class Actor:
    """What the steps of one node do; every part may be a function of the context."""

    duration: float | Callable[[str], float] = 0.0
    run: Callable[[StepContext], Any] | None = None
    satisfied: bool | Callable[[str], bool] = False
    precheck: Callable[[StepContext], Any] | None = None
    judge: Callable[[Sequence[Completed]], Any] | None = None
    rollback: Callable[[StepContext], Any] | None = None
    diagnose: Callable[[StepContext], Any] | None = None
    role: type[Step] = Step
    values: Mapping[str, Any] = field(default_factory=dict)
    fragment: ExecutionFragment | None = None
    changed: bool = True
    probes: bool = False
    uninterruptible: bool = False
    undoes_itself: bool | Literal["going back"] = False
    verifies: bool = False
    declares_intent: bool = False
    can_be_undone: bool = True
    settles: bool = False
    when: Callable[[UnitView], bool] | None = None
    per_unit: bool = False
    """Its parameters name something that differs from unit to unit."""


class Play(Step):
    """A step that follows its actor and tells the stage about it."""

    kind = "play"

    def __init__(self, stage: Stage, node: str, actor: Actor) -> None:
        self.stage = stage
        self.node = node
        self.actor = actor
        self.uninterruptible = actor.uninterruptible
        self.undoes_itself = actor.undoes_itself
        self.verifies = actor.verifies
        self.declares_intent = actor.declares_intent

    def summary(self) -> str:
        return self.node

    def spec(self) -> StepSpec:
        return StepSpec("play")

    async def precheck(self, ctx: StepContext) -> Verdict:
        self.stage.note("precheck", self.node, ctx.host.name)
        if self.actor.precheck is not None:
            return await _now_or_later(self.actor.precheck(ctx))  # type: ignore[no-any-return]
        satisfied = self.actor.satisfied
        done = (self.node, ctx.host.name) in self.stage.made
        if done or (satisfied(ctx.host.name) if callable(satisfied) else satisfied):
            return Verdict.holds("as wanted")
        return Verdict.needed("not yet", "+")

    async def run(self, ctx: StepContext) -> Outcome | NotYet | None:
        name = ctx.host.name
        self.stage.enter(self.node, name)
        try:
            duration = self.actor.duration
            seconds = duration(name) if callable(duration) else duration
            if seconds:
                await asyncio.sleep(seconds)
            answer = self.actor.run(ctx) if self.actor.run is not None else None
            answer = await _now_or_later(answer)
        finally:
            self.stage.leave(self.node, name)
        if answer is not None:
            return answer  # type: ignore[no-any-return]
        self.stage.made.add((self.node, name))
        return Outcome(
            changed=self.actor.changed, values=self.actor.values, fragment=self.actor.fragment
        )

    @property
    def can_be_undone(self) -> bool:
        return self.actor.can_be_undone

    async def rollback(self, ctx: StepContext) -> str | None:
        self.stage.note("rollback", self.node, ctx.host.name)
        left: str | None = None
        if self.actor.rollback is not None:
            left = await _now_or_later(self.actor.rollback(ctx))
        if left is None:
            self.stage.made.discard((self.node, ctx.host.name))
        return left

    async def diagnose(self, ctx: StepContext) -> str:
        if self.actor.diagnose is None:
            return ""
        self.stage.note("diagnose", self.node, ctx.host.name)
        return await _now_or_later(self.actor.diagnose(ctx))  # type: ignore[no-any-return]


async def _now_or_later(answer: Any) -> Any:
    return await answer if asyncio.iscoroutine(answer) else answer


class ProbedPlay(Play):
    """The same with a probe in place of a coroutine precheck."""

    precheck = Step.precheck

    def probe(self, host: Host) -> Sequence[Command]:
        return (Command(("probe", self.node)),)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        if self.actor.judge is not None:
            return self.actor.judge(answers)  # type: ignore[no-any-return]
        return Verdict.holds("as wanted") if answers[0].ok else Verdict.needed("not yet", "+")


class SettlingPlay(Play):
    """The same with something to do when all is undone."""

    async def settle(self, ctx: StepContext) -> bool:
        self.stage.note("settle", self.node, ctx.host.name)
        return True


class ReaderPlay(Play, Reader):
    pass


class MinterPlay(Play, Minter):
    pass


class ExpanderPlay(Play, Expander):
    pass


_ROLES: dict[type[Step], type[Play]] = {
    Step: Play,
    Reader: ReaderPlay,
    Minter: MinterPlay,
    Expander: ExpanderPlay,
}


class LoadedPlay:
    """Steps of a stage as the engine loads them."""

    def __init__(
        self, step: Play, when: Callable[[UnitView], bool] | None, *, per_unit: bool = False
    ) -> None:
        self.cls = type(step)
        self.step = step
        self.static = None if per_unit else step
        self.decisive: frozenset[str] = frozenset()
        self._when = when

    def bind(self, view: UnitView) -> Step:
        return self.step

    def wanted(self, view: UnitView) -> bool:
        return self._when is None or self._when(view)


class NoSecrets:
    def reveal(self, reference: Any) -> str:
        raise KubexmError("no secrets here")


class MemoryLedger:
    def __init__(self) -> None:
        self.entries: dict[str, Mapping[str, Any]] = {}

    async def remember(self, resource: str, prior: Mapping[str, Any]) -> None:
        self.entries.setdefault(resource, prior)

    async def capture(self, resource: str, look: Callable[[str], Any]) -> None:
        await self.remember(resource, await look("a-copy"))

    def recall(self, resource: str) -> Mapping[str, Any] | None:
        return self.entries.get(resource)

    async def knows(self, resource: str) -> bool:
        return self.recall(resource) is not None

    async def recall_first(self, resource: str) -> Mapping[str, Any] | None:
        return self.recall(resource)

    async def drop(self, resource: str) -> None:
        self.entries.pop(resource, None)

    async def resources(self) -> frozenset[str]:
        return frozenset(self.entries)


class Stage:
    """Everything a test sets up before a run and looks at afterwards."""

    def __init__(self, **actors: Actor) -> None:
        self.actors: dict[str, Actor] = dict(actors)
        self.notes: list[tuple[float, str, str, str]] = []
        self.made: set[tuple[str, str]] = set()
        self.running: dict[tuple[str, str], int] = {}
        self.most: dict[str, int] = {}
        self.batches: list[tuple[str, list[tuple[str, ...]]]] = []
        self.round_trip = 0.0
        self.breaks_batches = False
        self.unsatisfied: set[tuple[str, str]] = set()
        self.unreachable: dict[str, str] = {}
        self.reconnects: list[str] = []
        self.reconnect: Callable[[str], Any] | None = None
        self.facts: dict[str, dict[str, Any]] = {}
        self.secrets = NoSecrets()
        self.concealed: set[str] = set()
        self.ledgers: dict[str, MemoryLedger] = {}
        self.events: list[AnyEvent] = []
        self.journal = MemoryJournal()
        self.end = 0.0

    # What the engine's runtime has to offer.

    def host(self, name: str) -> Host:
        return Host(name, NamedHost(self, name))

    def view(self, name: str, values: Mapping[str, Any]) -> UnitView:
        return UnitView(host={"name": name}, facts=self.facts.get(name, {}), values=values)

    def ledger(self, name: str, remember: Any) -> MemoryLedger:
        return self.ledgers.setdefault(name, MemoryLedger())

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def redact(self, text: str) -> str:
        for secret in self.concealed:
            text = text.replace(secret, "***")
        return text

    def conceal(self, value: Any) -> None:
        self.concealed.add(str(value))

    async def confirm(self, question: str) -> None:
        pass

    async def reconnect_host(self, name: str) -> None:
        self.reconnects.append(name)
        if self.reconnect is not None:
            await _now_or_later(self.reconnect(name))

    # What steps tell.

    def note(self, what: str, node: str, host: str) -> None:
        self.notes.append((asyncio.get_running_loop().time(), what, node, host))

    def enter(self, node: str, host: str) -> None:
        self.note("start", node, host)
        self.running[node, host] = self.running.get((node, host), 0) + 1
        for group in ("all", f"node:{node}", f"host:{host}"):
            now = [
                count
                for (a, b), count in self.running.items()
                if group in ("all", f"node:{a}", f"host:{b}")
            ]
            self.most[group] = max(self.most.get(group, 0), sum(now))

    def leave(self, node: str, host: str) -> None:
        self.running[node, host] -= 1
        if not self.running[node, host]:
            del self.running[node, host]
        self.note("end", node, host)

    def answer(self, host: str, command: Command) -> Completed:
        node = command.argv[1] if len(command.argv) > 1 else ""
        return Completed(1 if (node, host) in self.unsatisfied else 0)

    # Running.

    def load(self, node: ExecutionNode) -> LoadedPlay:
        actor = self.actors.get(node.id) or self.actors.get(node.id.rsplit("/", 1)[-1], Actor())
        cls = ProbedPlay if actor.probes else _ROLES[actor.role]
        cls = SettlingPlay if actor.settles else cls
        return LoadedPlay(cls(self, node.id, actor), actor.when, per_unit=actor.per_unit)

    async def perform(
        self,
        graph: ExecutionGraph,
        *,
        state: RunState | None = None,
        control: Control | None = None,
        journal: Any = None,
        durations: Mapping[str, float] | None = None,
        **options: Any,
    ) -> GraphExecutionResult:
        bus = Bus()
        subscription = bus.subscribe(1_000_000)
        runtime = _Runtime(self)
        result = await execute(
            graph,
            runtime,
            Options(**options),
            load=self.load,
            journal=journal or self.journal,
            state=state,
            control=control,
            durations=durations,
            bus=bus,
        )
        self.end = asyncio.get_running_loop().time()
        bus.close()
        self.events = [event async for event in subscription]
        return result

    def run(
        self,
        plan: ExecutionFragment | ExecutionGraph | None,
        *,
        graph: Mapping[str, Any] | None = None,
        **rest: Any,
    ) -> GraphExecutionResult:
        """Perform a fragment or graph under virtual time; `graph` are settings of the graph."""
        if not isinstance(plan, ExecutionGraph):
            plan = graph_of(plan, **(graph or {}))
        return virtual.run(self.perform(plan, **rest))

    def started(self, what: str = "start") -> list[tuple[str, str]]:
        return [(node, host) for _, kind, node, host in self.notes if kind == what]

    def at(self, what: str, node: str, host: str) -> float:
        return next(t for t, kind, n, h in self.notes if (kind, n, h) == (what, node, host))

    def order(self, *nodes: str, what: str = "start") -> list[str]:
        """The nodes of these that did something, in the order in which they did."""
        return [node for node, _ in self.started(what) if not nodes or node in nodes]

    def told(self, kind: type[E]) -> list[E]:
        """The events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def records(self) -> list[AnyRecord]:
        return self.journal.records


class _Runtime:
    """The stage as the engine's runtime: one name differs."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.host = stage.host
        self.view = stage.view
        self.ledger = stage.ledger
        self.now = stage.now
        self.redact = stage.redact
        self.conceal = stage.conceal
        self.confirm = stage.confirm
        self.secrets = stage.secrets
        self.assets = NOTHING

    @property
    def unreachable(self) -> Mapping[str, str]:
        return self._stage.unreachable

    async def reconnect(self, name: str) -> None:
        await self._stage.reconnect_host(name)


def graph_of(fragment: ExecutionFragment | None, **rest: Any) -> ExecutionGraph:
    """A graph of a fragment; its hosts are those it names."""
    assert fragment is not None
    hosts = {host: None for node in fragment.nodes for host in node.hosts}
    for item in fragment.compensations:
        hosts.update({host: None for node in item.nodes for host in node.hosts})
    return build(
        "test",
        fragment.nodes,
        joins=fragment.joins,
        compensations=fragment.compensations,
        hosts=tuple(rest.pop("hosts", None) or hosts),
        **rest,
    )


def step(**values: Any) -> StepSpec:
    """A step that leaves or needs values: `provides=[Key(..)]`, `needs=["a"]`."""
    provides: tuple[Key, ...] = tuple(values.get("provides", ()))
    return StepSpec("play", {}, tuple(values.get("needs", ())), provides)


def play(
    name: str,
    *hosts: str,
    needs: Sequence[str] = (),
    provides: Sequence[Key] = (),
    **settings: Any,
) -> ExecutionFragment:
    """A node of a scripted step; on `h1` if no host is named."""
    on = settings.pop("on", None) or hosts or ("h1",)
    fragment = node(name, step(needs=needs, provides=provides), on=on, **settings)
    assert fragment is not None
    return fragment


def of(result: GraphExecutionResult, node: str, host: str = "h1") -> HostResult:
    """What one unit came to."""
    return result.node_results[node].host_results[host]


def statuses(result: GraphExecutionResult) -> dict[str, str]:
    """The status of every unit as `node@host`."""
    return {
        f"{id}@{name}": host.status
        for id, node in result.node_results.items()
        for name, host in node.host_results.items()
    }


def raising(error: BaseException, *hosts: str) -> Callable[[Any], Any]:
    """A part of an actor that raises this, on all hosts or on these."""

    def act(ctx: Any) -> Any:
        if not hosts or ctx.host.name in hosts:
            raise error

    return act


def noting(seen: list[Any], what: Callable[[Any], Any], answer: Any = None) -> Callable[[Any], Any]:
    """A part of an actor that takes note of something and answers."""

    def act(ctx: Any) -> Any:
        seen.append(what(ctx))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return act


def fails(message: str = "no", on: Sequence[str] = ()) -> Actor:
    """An actor whose run fails, everywhere or on some hosts."""
    return Actor(run=raising(StepFailed(message), *on))


def unreachable(*hosts: str) -> Actor:
    """An actor that finds its host gone, everywhere or on some hosts."""
    return Actor(run=raising(HostUnreachable("no route"), *hosts))


def back(stage: Stage, plan: ExecutionFragment | None, **rest: Any) -> GraphExecutionResult:
    """Run under `rollback`."""
    return stage.run(plan, on_failure="rollback", **rest)


def undone(stage: Stage) -> list[tuple[str, str]]:
    """The units that were taken back, in order."""
    return stage.started("rollback")
