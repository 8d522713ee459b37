"""Long downloads and copies on behalf of the command line: a view of them, and a way to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from kubexm.cli import terminal
from kubexm.cli.messages import notice
from kubexm.resource.fetch import Advance, Progress
from kubexm.runtime.secrets import SecretVault

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

T = TypeVar("T")
STOPPED = "stopped; what has arrived is kept, and the same command goes on with it"
_LONGEST_NAME = 48


def run(work: Callable[[Progress | None], Coroutine[Any, Any, T]]) -> T | None:
    """Do something that takes long, and show how far it is; None if somebody stopped it."""
    return asyncio.run(_watched(work))


def vault() -> SecretVault:
    """Secrets by reference; a person is asked where there is one."""
    return SecretVault(terminal.secret if terminal.is_interactive() else None)


async def _watched(work: Callable[[Progress | None], Coroutine[Any, Any, T]]) -> T | None:
    with _view() as progress:
        task = asyncio.ensure_future(work(progress))
        with _stopping(task) as stopped:
            try:
                return await task
            except asyncio.CancelledError:
                if not stopped:
                    raise
    notice(STOPPED)
    return None


@contextmanager
def _stopping(task: asyncio.Future[Any]) -> Iterator[list[int]]:
    """Let a signal cancel the work; a second one ends the process."""
    loop, stopped = asyncio.get_running_loop(), list[int]()
    before = {number: signal.getsignal(number) for number in terminal.HANDLED}

    def stop(number: int, _frame: FrameType | None) -> None:
        stopped.append(number)
        signal.signal(number, signal.SIG_DFL)
        loop.call_soon_threadsafe(task.cancel)

    for number in terminal.HANDLED:
        signal.signal(number, stop)
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _view() -> Iterator[Progress | None]:
    """Bars for all that is under way, where there is a terminal to draw them on."""
    if not terminal.can_be_drawn_on():
        yield None
        return
    from rich import progress
    from rich.console import Console

    bars = progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=24),
        progress.DownloadColumn(binary_units=True),
        progress.TransferSpeedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    try:
        yield _Bars(bars).take
    finally:
        bars.stop()


class _Bars:
    """A bar for each thing, as long as some of it is missing."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._known: dict[str, TaskID] = {}

    def take(self, advance: Advance) -> None:
        """Show how far it is with one of them."""
        if advance.done == advance.total:
            if (ended := self._known.pop(advance.name, None)) is not None:
                self._bars.remove_task(ended)
            return
        self._bars.start()  # not before: somebody may be asked for a password first
        if advance.name not in self._known:
            self._known[advance.name] = self._bars.add_task(_short(advance.name))
        bar = self._known[advance.name]
        self._bars.update(bar, completed=advance.done, total=advance.total)


def _short(name: str) -> str:
    """A name that leaves room for a bar; its end tells more than its beginning."""
    return name if len(name) <= _LONGEST_NAME else f"…{name[-_LONGEST_NAME + 1 :]}"
