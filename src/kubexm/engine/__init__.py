"""The engine: a scheduler of graphs that knows steps only by their contract."""

from kubexm.engine.bus import Bus
from kubexm.engine.execute import execute
from kubexm.engine.journal import Journal, MemoryJournal
from kubexm.engine.options import Control, Options
from kubexm.engine.ports import EngineRuntime, Load, Loaded

__all__ = [
    "Bus",
    "Control",
    "EngineRuntime",
    "Journal",
    "Load",
    "Loaded",
    "MemoryJournal",
    "Options",
    "execute",
]
