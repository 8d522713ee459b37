"""Graphs of the four shapes that schedulers meet, of any size."""

from __future__ import annotations

from collections.abc import Callable

from kubexm.plan import (
    ExecutionFragment,
    ExecutionGraph,
    StepSpec,
    build,
    chain,
    node,
    parallel,
    per_host,
)

NOTHING = StepSpec("noop")
WIDTH = 100


def graph(shape: str, units: int, width: int = WIDTH) -> ExecutionGraph:
    """About this many units in this shape."""
    hosts = [f"host{number:04}" for number in range(width)]
    fragment = SHAPES[shape](units, hosts)
    return build(shape, fragment.nodes, joins=fragment.joins, hosts=tuple(hosts))


def _chain(units: int, hosts: list[str]) -> ExecutionFragment:
    return per_host(*(node(f"n{at}", NOTHING, on=hosts[:1]) for at in range(units)))


def _fan(units: int, hosts: list[str]) -> ExecutionFragment:
    last = node("last", NOTHING, on=hosts[:1])
    many = (node(f"n{at}", NOTHING, on=[hosts[at % len(hosts)]]) for at in range(units - 1))
    return chain(parallel(*many), last)


def _layers(units: int, hosts: list[str]) -> ExecutionFragment:
    return chain(*(node(f"n{at}", NOTHING, on=hosts) for at in range(units // len(hosts))))


def _lanes(units: int, hosts: list[str]) -> ExecutionFragment:
    return per_host(*(node(f"n{at}", NOTHING, on=hosts) for at in range(units // len(hosts))))


SHAPES: dict[str, Callable[[int, list[str]], ExecutionFragment]] = {
    "chain": _chain,
    "fan": _fan,
    "layers": _layers,
    "lanes": _lanes,
}
