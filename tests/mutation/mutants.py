"""Plans with one mistake each: a step that is missing, or one that comes too early.

A missing edge is made to matter: whatever no longer has to wait for the vertex that the edge came
from goes first, and that vertex comes last, as a scheduler would be free to let it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from tests.mutation.order import Edge, Sketch

from kubexm.plan.node import ExecutionNode


class Missing(msgspec.Struct, frozen=True):
    """A plan without one of its steps."""

    node: str

    def __str__(self) -> str:
        return self.node

    def of(self, sketch: Sketch) -> Sketch:
        """The plan with the mistake."""
        changed = sketch.copy()
        changed.drop_node(self.node)
        return changed


class Early(msgspec.Struct, frozen=True):
    """A plan without one of its edges, and with what followed it first."""

    edge: Edge

    def __str__(self) -> str:
        return str(self.edge)

    def of(self, sketch: Sketch) -> Sketch:
        """The plan with the mistake."""
        changed = sketch.copy()
        changed.drop_edge(self.edge)
        return put_off(changed, changed.nodes_before(self.edge.before))


Mutant = Missing | Early


def put_off(sketch: Sketch, last: set[str]) -> Sketch:
    """The same plan with these nodes behind all that does not have to wait for them."""
    held, changed = sketch.behind(last), sketch.copy()
    first = [id for id in sketch.vertices if id not in held]
    for id in sorted(last):
        changed.add_barriers(first, id)
    return changed


def mutants(sketch: Sketch) -> Iterator[Mutant]:
    """All of a plan that was reduced to the edges that matter."""
    for vertex in sketch.vertices.values():
        if isinstance(vertex, ExecutionNode):
            yield Missing(vertex.id)
    for edge in sketch.edges():
        yield Early(edge)
