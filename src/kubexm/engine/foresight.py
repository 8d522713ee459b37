"""What a dry run knows and no host can say: that a file would have changed by then."""

from __future__ import annotations

from collections.abc import Mapping

from kubexm.engine.topology import NodeState, Unit
from kubexm.step.contract import Step


class Foresight:
    """Paths that units would change, and who would have to follow."""

    def __init__(self, states: Mapping[str, NodeState]) -> None:
        self._states = states
        self._writers: dict[tuple[str, str], set[str]] = {}

    def note(self, unit: Unit, step: Step) -> None:
        """The step would run on this host."""
        for path in step.writes():
            self._writers.setdefault((unit.host, path), set()).add(unit.node.id)

    def stirred(self, unit: Unit, step: Step) -> str | None:
        """A path that a node before this one would change, and that the step follows."""
        for path in step.follows():
            writers = self._writers.get((unit.host, path))
            if writers and not writers.isdisjoint(self._before(unit.node)):
                return path
        return None

    def _before(self, node: NodeState) -> set[str]:
        """All that a node waits for; only that will surely have happened by its turn."""
        found: set[str] = set()
        line = [node]
        while line:
            state = line.pop()
            if state.parent is not None:
                line.append(state.parent.node)
            for id in (*state.vertex.after, *state.vertex.after_same_host):
                if id not in found:
                    found.add(id)
                    line.append(self._states[id])
        return found
