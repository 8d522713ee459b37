"""Plans as people and programs read them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from kubexm.app.planning import Planned
from kubexm.cli import messages
from kubexm.common.counting import counted
from kubexm.plan import render
from kubexm.plan.svg import as_svg
from kubexm.plan.text import as_text
from kubexm.spec.description import as_known, describe

Drawing = Literal["text", "mermaid", "dot", "svg"]


def overview(planned: Planned) -> str:
    """The tree of what would run where, what is worth knowing about it, and its size."""
    graph = as_known(planned.graph, planned.hosts)
    hosts = {host for node in graph for host in node.hosts}
    undecided = sum(node.when is not None for node in graph)
    lines = [as_text(graph, describe).rstrip("\n"), ""]
    sizes = ((len(graph), "node"), (graph.unit_count, "unit"), (len(hosts), "host"))
    lines.append(" · ".join(counted(number, word) for number, word in sizes))
    if undecided:
        lines.append(f"{counted(undecided, 'condition')} (`if`) will be decided on the hosts")
    lines.extend(messages.remarked("warning", warning) for warning in planned.warnings)
    lines.extend(messages.remarked("note", notice) for notice in planned.notices)
    lines.append("hint: `kubexm run -f FILE --check` connects and says what would change")
    return "\n".join(lines)


def as_data(planned: Planned) -> dict[str, Any]:
    """The same for programs."""
    graph = msgspec.json.decode(render.as_json(planned.graph))
    return {
        "graph": graph,
        "warnings": msgspec.to_builtins(planned.warnings),
        "notices": msgspec.to_builtins(planned.notices),
    }


def drawn(planned: Planned, style: Drawing) -> str:
    """The graph in one of the drawing languages."""
    graph = as_known(planned.graph, planned.hosts)
    return {
        "text": as_text,
        "mermaid": render.as_mermaid,
        "dot": render.as_dot,
        "svg": as_svg,
    }[style](graph, describe)
