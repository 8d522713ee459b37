"""Kube nodes that are to take pods."""

from __future__ import annotations

from typing import Any

from tests.step.listening import kubectl, shown
from tests.step.test_kube import Make

from kubexm.sim import Script
from kubexm.step.kube_nodes import NodesReady

_STEP = NodesReady(("a", "b"))


def nodes(**ready: bool) -> Script:
    found: list[Any] = [
        {
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": str(is_ready)}]},
        }
        for name, is_ready in ready.items()
    ]
    return kubectl("get", "**", stdout=shown({"kind": "List", "items": found}))


def test_it_holds_when_every_node_takes_pods(cluster: Make) -> None:
    assert cluster(nodes(a=True, b=True)).verdict(_STEP).satisfied


def test_a_node_that_is_late_is_named(cluster: Make) -> None:
    verdict = cluster(nodes(a=True, b=False)).verdict(_STEP)
    assert (verdict.satisfied, verdict.reason) == (False, "not ready: `b`")


def test_a_node_that_has_not_joined_is_told_and_not_waited_for(cluster: Make) -> None:
    verdict = cluster(nodes(a=True)).verdict(_STEP)
    assert (verdict.satisfied, verdict.reason) == (True, "without `b`, which did not join")


def test_where_nobody_has_joined_there_is_nothing_to_rely_on(cluster: Make) -> None:
    verdict = cluster(nodes()).verdict(_STEP)
    assert (verdict.satisfied, verdict.reason) == (False, "none of them has joined")
