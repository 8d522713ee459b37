"""What `kubexm health` shows of what it was told."""

from __future__ import annotations

from kubexm.cli import health
from kubexm.step.health_look import Told

WELL = Told("api", "c1", "well", "https://10.0.0.11:6443 is ready", "never shown")
ILL = Told("endpoint", "w1", "ill", "no answer within 5 s", "look at the balancer")
SAME = Told("endpoint", "w2", "ill", "no answer within 5 s", "look at the balancer")
WARNED = Told("certificates", "c1", "warning", "9 days left, of apiserver.crt", "make it anew")


def test_every_check_is_a_line_and_every_remedy_is_told_once() -> None:
    lines = health.text("demo", [WELL, ILL, SAME, WARNED], is_well=False).splitlines()

    assert [line.split()[:3] for line in lines[:5]] == [
        ["CHECK", "WHERE", "STATE"],
        ["api", "c1", "ok"],
        ["endpoint", "w1", "FAILED"],
        ["endpoint", "w2", "FAILED"],
        ["certificates", "c1", "warning"],
    ]
    assert lines[5:] == [
        "",
        "`demo` is not healthy",
        "hint: look at the balancer",
        "hint: make it anew",
    ]


def test_a_warning_alone_leaves_a_cluster_healthy() -> None:
    assert "`demo` is healthy" in health.text("demo", [WELL, WARNED], is_well=True)
