"""The live view: a few lines that stay readable with ten hosts and with ten thousand."""

from __future__ import annotations

import asyncio
import shutil
import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kubexm.cli import terminal
from kubexm.cli.tally import UNDOING, Running, Section, Tally
from kubexm.common.counting import counted
from kubexm.engine import Control
from kubexm.engine.bus import Subscription
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.report import duration
from kubexm.plan.result import Cause, gist

FRAMES_PER_SECOND = 5
BAR = 24


class LiveView:
    """Draws a run until it ends; failures stay above as they happen."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._followed = False

    async def show(self, subscription: Subscription, graph: ExecutionGraph) -> None:
        """Follow the events of a run."""
        tally = Tally.of(graph)
        self._followed = True
        self._begin()
        drawing = asyncio.create_task(self._draw(tally))
        try:
            shown = 0
            async for event in subscription:
                tally.take(event)
                for failure in tally.failures[shown:]:
                    self._console.print(_failure_line(failure), highlight=False)
                shown = len(tally.failures)
        finally:
            drawing.cancel()
            self._followed = False
            self._end()

    async def confirm(self, question: str) -> None:
        """Ask a person to go on, with nothing drawn over the question."""
        self._end()
        try:
            await terminal.confirm(question)
        finally:
            self._begin()

    async def _draw(self, tally: Tally) -> None:
        while True:
            tally.stopping = self._control.cancelled is not None
            if self._live is not None:
                height = shutil.get_terminal_size().lines
                self._live.update(frame(tally, time.time(), height), refresh=True)
            await asyncio.sleep(1 / FRAMES_PER_SECOND)

    def _begin(self) -> None:
        # Always a new one: it believes that the cursor is where it left it.
        if self._followed:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()

    def _end(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def frame(tally: Tally, now: float, height: int) -> RenderableType:
    """One picture of the run that fits the height."""
    sections = Table.grid(padding=(0, 1))
    for section in _shown_sections(tally, max(height // 2, 4)):
        sections.add_row(*_section_row(section))
    room = max(height - len(tally.sections) - 7, 2)
    last = [Text(terminal.STOPPING, style="yellow")] if tally.stopping else []
    return Group(_headline(tally, now), sections, _running(tally, now, room), *last)


def _headline(tally: Tally, now: float) -> Text:
    elapsed = now - tally.started if tally.started else 0.0
    left = tally.remaining(now)
    text = Text(f"{tally.name}", style="bold")
    text.append(f"  {tally.done:,} of {tally.units:,} units", style="default")
    text.append(f" · {duration(elapsed)}", style="default")
    if left is not None and left >= 1:
        text.append(f" · about {duration(left)} to go", style="dim")
    if tally.quarantined:
        text.append(f" · without {counted(len(tally.quarantined), 'host')}", style="red")
    if tally.turned:
        text.append(" · rolling back", style="yellow")
    return text


def _shown_sections(tally: Tally, room: int) -> list[Section]:
    """Those under way first, when there are more than fit."""
    sections = list(tally.sections.values())
    if len(sections) <= room:
        return sections
    busy = [section for section in sections if 0 < section.done < section.units]
    rest = [section for section in sections if section not in busy]
    chosen = (busy + rest)[:room]
    return [section for section in sections if section in chosen]


def _section_row(section: Section) -> tuple[Text, Text, Text, Text]:
    share = section.done / section.units if section.units else 1.0
    full = int(share * BAR)
    style = "red" if section.failed else "green" if section.done >= section.units else "cyan"
    bar = Text("━" * full, style=style)
    bar.append("╌" * (BAR - full), style="bright_black")
    return (
        Text(f"  {section.name}"),
        bar,
        Text(f"{section.done:,}/{section.units:,}"),
        _marks(section),
    )


def _marks(section: Section) -> Text:
    text = Text()
    undoing = section.name == UNDOING
    for count, word, style in (
        (section.changed, "undone" if undoing else "changed", "yellow"),
        (section.satisfied if undoing else 0, "left", "magenta"),
        (section.failed, "failed", "red"),
        (section.held_back, "held back", "magenta"),
    ):
        if count:
            text.append(f"{count:,} {word}  ", style=style)
    return text


def _running(tally: Tally, now: float, room: int) -> RenderableType:
    """The units that have run longest, one line each while they fit."""
    units = sorted(tally.running.values(), key=lambda unit: unit.since)
    lines = Table.grid(padding=(0, 1))
    for unit in units[:room]:
        lines.add_row(*_running_row(unit, now))
    if len(units) > room:
        lines.add_row(Text(f"  … and {len(units) - room:,} more", style="dim"), "", "", "")
    return lines


def _running_row(unit: Running, now: float) -> tuple[Text, Text, Text, Text]:
    path = unit.node.partition("/")[2] or unit.node
    return (
        Text(f"  {unit.host}", style="bold"),
        Text(path),
        Text(duration(now - unit.since), style="dim"),
        Text(unit.note, style="dim"),
    )


def _failure_line(failure: Cause) -> Text:
    text = Text("✗ ", style="red")
    text.append(f"{failure.host} ", style="bold")
    text.append(f"{failure.node}: ")
    text.append(gist(failure.message) or failure.failure)
    return text
