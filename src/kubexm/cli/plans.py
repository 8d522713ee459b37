"""Plans as people and programs read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from kubexm.app.outlook import Outlook
from kubexm.app.planning import Planned
from kubexm.cli import messages
from kubexm.common.counting import counted
from kubexm.plan import ExecutionGraph, ExecutionNode, render
from kubexm.plan.longest import longest_chain
from kubexm.plan.outline import hosts as hosts_of
from kubexm.plan.outline import one_line, whole
from kubexm.plan.svg import as_svg
from kubexm.plan.text import as_text
from kubexm.spec.decisions import Decision
from kubexm.spec.description import as_known, describe

Drawing = Literal["text", "mermaid", "dot", "svg"]
SIGNS: Mapping[Decision, str] = {"yes": "yes", "no": "no", "unknown": "?"}
MOST_NAMES = 3


def overview(outlook: Outlook) -> str:
    """The tree of what would run where, what is worth knowing about it, and its size."""
    planned = outlook.planned
    graph = as_known(planned.graph, planned.hosts, outlook.facts)
    lines = [as_text(graph, describe, lambda node: _foreseen(node, outlook)).rstrip("\n"), ""]
    lines.extend(_closing(outlook))
    lines.append("hint: `kubexm run -f FILE --check` connects and says what would change")
    return "\n".join(lines)


def _closing(outlook: Outlook) -> Iterator[str]:
    """How large a plan is, what is decided of it, and what is worth knowing."""
    graph = outlook.planned.graph
    hosts = {host for node in graph for host in node.hosts}
    sizes = ((len(graph), "node"), (graph.unit_count, "unit"), (len(hosts), "host"))
    yield " · ".join(counted(number, word) for number, word in sizes)
    yield from _decided(outlook)
    yield from (messages.remarked("warning", warning) for warning in outlook.warnings)
    yield from (f"note: {text}" for text in _sources(outlook))
    yield from (messages.remarked("note", notice) for notice in outlook.planned.notices)


def by_module(outlook: Outlook) -> str:
    """What an operation does in each of its modules, how far it reaches, and its longest chain."""
    graph = outlook.planned.graph
    rows = [*_modules(graph)]
    width = max((len(row[0]) for row in rows), default=0)
    lines = [f"{name:<{width}}  {rest}" for name, rest in rows]
    chain = longest_chain(graph)
    lines += ["", f"the longest chain has {counted(len(chain), 'node')} of {len(graph)}:"]
    lines += [f"  {id}  [{one_line(hosts_of(graph.nodes[id]))}]" for id in chain]
    lines += ["", *_closing(outlook)]
    lines.append("hint: `kubexm graph -f FILE` shows every step, `kubexm plan -f FILE --check`")
    lines.append("      connects and says what would change")
    return "\n".join(lines)


def _modules(graph: ExecutionGraph) -> Iterator[tuple[str, str]]:
    """Each module with its nodes, units and hosts, in the order of the plan."""
    found: dict[str, list[ExecutionNode]] = {}
    for node in graph:
        found.setdefault(node.id.split("/")[1], []).append(node)
    for name, nodes in found.items():
        units = sum(1 if node.one_of else len(node.hosts) for node in nodes)
        hosts = dict.fromkeys(host for node in nodes for host in node.hosts)
        sizes = f"{counted(len(nodes), 'node'):>9}  {counted(units, 'unit'):>11}"
        yield name, f"{sizes}  {_few([*hosts])}"


def _foreseen(node: ExecutionNode, outlook: Outlook) -> str:
    """What is decided of a node: in one word, or by hosts where they differ."""
    decided = outlook.decisions[node.id]
    hosts = {word: [host for host in decided if decided[host] == word] for word in SIGNS}
    parts = {SIGNS[word]: some for word, some in hosts.items() if some}
    if len(parts) == 1:
        return next(iter(parts))
    return ", ".join(f"{sign} on {_few(some)}" for sign, some in parts.items())


def _few(hosts: Sequence[str]) -> str:
    return counted(len(hosts), "host") if len(hosts) > MOST_NAMES else one_line(" ".join(hosts))


def _decided(outlook: Outlook) -> Iterator[str]:
    """How many conditions there are, and what they come to."""
    if not outlook.decisions:
        return
    nodes, _ = whole(outlook.planned.graph)
    found = ((nodes[id], decided) for id, decided in outlook.decisions.items())
    units = Counter(word for node, decided in found for word in _units(node, decided))
    parts = [f"{SIGNS[word]} for {counted(units[word], 'unit')}" for word in SIGNS if units[word]]
    later = ", which the hosts decide" if units["unknown"] else ""
    yield f"{counted(len(outlook.decisions), 'condition')} (`if`): {', '.join(parts)}{later}"


def _units(node: ExecutionNode, decided: Mapping[str, Decision]) -> Iterable[Decision]:
    """What is decided of each unit of a node; of one on any of its hosts, if they agree."""
    if not node.one_of:
        return decided.values()
    words = set(decided.values())
    return words if len(words) == 1 else ("unknown",)


def _sources(outlook: Outlook) -> Iterator[str]:
    """How old the stored facts are, and of whom none are known."""
    if outlook.as_of:
        first, last = (f"{limit(outlook.as_of.values()):%Y-%m-%d %H:%M}" for limit in (min, max))
        when = first if first == last else f"{first} to {last}"
        yield f"facts of {counted(len(outlook.as_of), 'host')} as of {when} UTC"
    if outlook.strangers:
        number = counted(len(outlook.strangers), "host")
        yield f"the facts of {number} are not known; a run stores them, or the file declares them"


def as_data(outlook: Outlook) -> dict[str, Any]:
    """The same for programs."""
    return {
        "graph": graph_data(outlook.planned),
        "decisions": outlook.decisions,
        "factsAsOf": outlook.as_of,
        "warnings": msgspec.to_builtins(outlook.warnings),
        "notices": msgspec.to_builtins(outlook.planned.notices),
    }


def graph_data(planned: Planned) -> Any:
    """The graph as it is stored and executed."""
    return msgspec.json.decode(render.as_json(planned.graph))


def drawn(planned: Planned, style: Drawing) -> str:
    """The graph in one of the drawing languages."""
    graph = as_known(planned.graph, planned.hosts)
    return {
        "text": as_text,
        "mermaid": render.as_mermaid,
        "dot": render.as_dot,
        "svg": as_svg,
    }[style](graph, describe)
