"""What a view of a run is told before the first unit starts."""

from __future__ import annotations

from tests.app.site import Site

from kubexm.app.execution import Front
from kubexm.engine.bus import Subscription
from kubexm.plan import ExecutionGraph, events

SLOW = """
    hosts: [{name: n1}]
    modules:
      - {name: m, tasks: [{name: t, steps: [{name: s, command: {argv: [sleep, '0.05']}}]}]}
"""


def told(site: Site, **params: bool) -> list[dict[str, float]]:
    """The times that a view was told to expect."""
    found: list[dict[str, float]] = []

    async def watch(subscription: Subscription, _graph: ExecutionGraph) -> None:
        found.extend([e.seconds async for e in subscription if isinstance(e, events.Expected)])

    site.run(front=Front(shows=(watch,)), **params)
    return found


def test_times_of_earlier_runs_are_told_unless_it_only_looks(site: Site) -> None:
    site.write(SLOW)

    first, second, looking = told(site), told(site), told(site, check=True)

    assert first == [{}]
    assert [*second[0]] == ["site/m/t/s"]
    assert second[0]["site/m/t/s"] >= 0.05
    assert looking == []
