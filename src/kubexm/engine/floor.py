"""What a running unit may ask for: its context, its values, a pause, slots, a durable intent."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from kubexm.engine.announcements import Announcements
from kubexm.engine.dispatch import Dispatcher
from kubexm.engine.failures import Ended, HeldBack
from kubexm.engine.foresight import Foresight
from kubexm.engine.journal import Journal
from kubexm.engine.limits import WITH_POOLS
from kubexm.engine.options import Options
from kubexm.engine.ports import EngineRuntime
from kubexm.engine.topology import FREELY, Unit
from kubexm.engine.values import Values
from kubexm.engine.work import LeftOut
from kubexm.plan.records import AnyRecord, LedgerDropped, LedgerEntry, UnitIntended
from kubexm.plan.result import Cause
from kubexm.runtime.contexts import Ledger, StepContext, UnitView
from kubexm.step.contract import Step


class Walk(Protocol):
    """The scheduler as the floor needs it."""

    @property
    def lost(self) -> Collection[str]: ...
    def stopping(self, unit: Unit) -> Ended | None: ...
    def pump(self) -> None: ...
    def foresee(self, unit: Unit) -> Step | LeftOut | None: ...
    def when_durable(self, record: AnyRecord, then: Callable[[], None]) -> None: ...
    def demand(self, provider: Unit) -> asyncio.Future[Cause | None]: ...
    def wish(self, provider: Unit) -> None: ...
    def was_intended(self, unit: Unit) -> bool: ...
    def was_changed(self, unit: Unit) -> bool: ...


class Floor:
    """The services of one walk to its units."""

    def __init__(
        self,
        walk: Walk,
        dispatcher: Dispatcher,
        runtime: EngineRuntime,
        options: Options,
        values: Values,
        announcements: Announcements,
        journal: Journal,
        foresight: Foresight,
        *,
        may_go_back: bool,
    ) -> None:
        self.runtime = runtime
        self.options = options
        self.values = values
        self.foresight = foresight
        self.may_go_back = may_go_back
        self.stopping, self.foresee = walk.stopping, walk.foresee
        self.wish = walk.wish
        self.was_intended, self.was_changed = walk.was_intended, walk.was_changed
        self._walk = walk
        self._dispatcher = dispatcher
        self.announce, self.announce_retry = announcements.unit_started, announcements.unit_retried
        self._announcements = announcements
        self._journal = journal
        self._unsafe: set[asyncio.Future[None]] = set()
        self._lost: BaseException | None = None
        self._ledgers: dict[str, Ledger] = {}

    def view(self, unit: Unit) -> UnitView:
        values = self.values.view(unit.node.work.needs, unit.host)
        return self.runtime.view(unit.host, values)

    def context(self, unit: Unit) -> StepContext:
        say = functools.partial(self._say, unit)
        needs = unit.node.work.needs
        return StepContext(
            host=self.runtime.host(unit.host).listening(say),
            node=unit.node.id,
            ledger=self._ledger(unit.host),
            secrets=self.runtime.secrets,
            assets=self.runtime.assets,
            values=self.values.view(needs, unit.host) if needs else {},
            lost=self._walk.lost,
            attempt=unit.attempt,
            dry_run=self.options.dry_run,
            say=say,
            progress=functools.partial(self._announcements.progressed, unit),
            confirm=functools.partial(self._confirm, unit),
        )

    def _ledger(self, host: str) -> Ledger:
        if (ledger := self._ledgers.get(host)) is None:
            ledger = self._ledgers[host] = self.runtime.ledger(host, self._remember)
        return ledger

    def give_back(self, unit: Unit) -> None:
        """Let others have its slots while it waits; raise `Ended` if there is no going on."""
        if (ended := self._walk.stopping(unit)) is not None:
            raise ended
        unit.ends = FREELY
        self._dispatcher.give_back(unit)
        self._walk.pump()

    def give_back_pools(self, unit: Unit) -> None:
        """What pools guard is over."""
        if self._dispatcher.give_back_pools(unit):
            self._walk.pump()

    async def take_again(self, unit: Unit) -> None:
        await self._dispatcher.take(unit)

    async def take_pools(self, unit: Unit) -> None:
        """The unit's pools too; if they are full, all is given back and taken at once later."""
        if not self._dispatcher.add_pools(unit):
            self.give_back(unit)
            await self._dispatcher.take(unit, WITH_POOLS)

    async def pause(self, unit: Unit, seconds: float) -> None:
        """Wait without holding a slot."""
        self.give_back(unit)
        await asyncio.sleep(seconds)
        await self._dispatcher.take(unit)

    async def intend(self, unit: Unit) -> None:
        """Make it durable that this unit is about to change its host."""
        node, host = unit.key
        now = self.runtime.now()
        await self._durably(UnitIntended(at=now, node=node, host=host, attempt=unit.attempt))

    async def _remember(self, entry: LedgerEntry | LedgerDropped) -> None:
        await self._durably(entry)

    async def _durably(self, record: AnyRecord) -> None:
        if self.options.dry_run:
            return
        if self._lost is not None:
            raise self._lost
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._walk.when_durable(record, functools.partial(_resolve, done))
        if not done.done():
            # It only waits for the journal: if all others do too, the commit can be made here.
            self._dispatcher.busy -= 1
            self._unsafe.add(done)
            self._walk.pump()
            try:
                await done
            finally:
                self._unsafe.discard(done)
                self._dispatcher.busy += 1

    def lose_journal(self, error: BaseException) -> None:
        """Nothing will be durable any more: whoever waits for that has failed."""
        self._lost = error
        for done in self._unsafe:
            if not done.done():
                done.set_exception(error)

    async def provide(self, unit: Unit, providers: Sequence[Unit]) -> None:
        """Wait, without a slot, until other units have left their values afresh."""
        if not providers:
            return
        self.give_back(unit)
        for demand in [self._walk.demand(provider) for provider in providers]:
            # Others wait for the same: that this unit is ended must not end their waiting.
            if (cause := await asyncio.shield(demand)) is not None:
                raise HeldBack(cause)
        await self._dispatcher.take(unit)

    async def _confirm(self, unit: Unit, question: str) -> None:
        ends, unit.ends = unit.ends, FREELY
        await self.runtime.confirm(question)
        unit.ends = ends

    def _say(self, unit: Unit, stream: str, text: str) -> None:
        self._journal.log(self._announcements.said(unit, stream, text))


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
