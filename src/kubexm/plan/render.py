"""A graph for other programs: Mermaid, DOT, JSON; text and SVG have modules of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

import msgspec

from kubexm.plan import codec
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode
from kubexm.plan.outline import (
    UNDO,
    Describe,
    Edges,
    Scope,
    edges,
    heading,
    hosts,
    kind_and_params,
    one_line,
    summary,
    title,
    tree,
    whole,
)


def as_json(graph: ExecutionGraph) -> str:
    """The document of the graph, indented."""
    return msgspec.json.format(codec.encode(graph), indent=2).decode() + "\n"


def as_dot(graph: ExecutionGraph, describe: Describe = kind_and_params) -> str:
    """For Graphviz: scopes are clusters, barriers solid, same-host edges dashed, joins points.

    What undoes a scope is a dashed cluster in it.
    """
    nodes, joins = whole(graph)
    lines = [
        f"digraph {_dot(graph.name)} {{",
        '  graph [compound=true, fontname="sans-serif", newrank=true, rankdir=TB]',
        '  node [fontname="sans-serif", fontsize=10, shape=box, style=rounded]',
        '  edge [arrowsize=0.7, color="#555555"]',
        *_dot_scope(tree(nodes), "  ", describe, count(1)),
        *(f'  {_dot(id)} [shape=point, xlabel=""]' for id in joins),
        *_dot_edges(edges(nodes, joins)),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _dot_scope(
    scope: Scope, indent: str, describe: Describe, numbers: Iterator[int]
) -> Iterator[str]:
    for item in scope.items:
        if isinstance(item, Scope):
            yield f"{indent}subgraph cluster_{next(numbers)} {{"
            style = ", style=dashed" if item.name == UNDO else ""
            label = _dot(heading(item))
            yield f'{indent}  graph [color="#bbbbbb", label={label}, labeljust=l{style}]'
            yield from _dot_scope(item, f"{indent}  ", describe, numbers)
            yield f"{indent}}}"
        else:
            label = _dot("\n".join(_label(item, describe)))
            yield f"{indent}{_dot(item.id)} [label={label}, tooltip={_dot(item.id)}]"


def _dot_edges(found: Edges) -> Iterator[str]:
    for id, some in found.items():
        for edge in some:
            style = "" if edge.barrier else " [style=dashed]"
            yield f"  {_dot(edge.before)} -> {_dot(id)}{style}"


def _dot(text: str) -> str:
    # Graphviz reads escapes and entities in a quoted text; only our `\\n` is meant as one.
    escaped = text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'.replace("\n", "\\n")


def as_mermaid(graph: ExecutionGraph, describe: Describe = kind_and_params) -> str:
    """For Mermaid: a subgraph per scope, barriers solid, same-host edges dotted.

    What undoes a scope is a dashed subgraph in it.
    """
    nodes, joins = whole(graph)
    names = {id: f"n{number}" for number, id in enumerate(nodes)}
    names |= {id: f"j{number}" for number, id in enumerate(joins)}
    lines = [
        "flowchart TB",
        *_mermaid_scope(tree(nodes), "  ", describe, names, count(1)),
        *(f"  {names[id]}(( ))" for id in joins),
        *(
            f"  {names[edge.before]} {'-->' if edge.barrier else '-.->'} {names[id]}"
            for id, some in edges(nodes, joins).items()
            for edge in some
        ),
    ]
    return "\n".join(lines) + "\n"


def _mermaid_scope(
    scope: Scope,
    indent: str,
    describe: Describe,
    names: Mapping[str, str],
    numbers: Iterator[int],
) -> Iterator[str]:
    for item in scope.items:
        if isinstance(item, Scope):
            name = f"s{next(numbers)}"
            yield f'{indent}subgraph {name}["{_mermaid(heading(item))}"]'
            yield from _mermaid_scope(item, f"{indent}  ", describe, names, numbers)
            yield f"{indent}end"
            if item.name == UNDO:
                yield f"{indent}style {name} stroke-dasharray: 5 5"
        else:
            label = "<br/>".join(map(_mermaid, _label(item, describe)))
            yield f'{indent}{names[item.id]}["{label}"]'


_MERMAID = str.maketrans({letter: f"#{ord(letter)};" for letter in '"#<>&`\\[]{}()|'} | {"\n": " "})


def _mermaid(text: str) -> str:
    return text.translate(_MERMAID)


def _label(node: ExecutionNode, describe: Describe) -> Iterable[str]:
    return (
        one_line(title(node)),
        *filter(None, [one_line(summary(node, describe), 48)]),
        f"[{one_line(hosts(node), 48)}]",
    )
