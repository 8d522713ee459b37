"""Pipelines as text, so that a test shows only what it is about."""

from __future__ import annotations

from textwrap import dedent, indent

from kubexm.plan import ExecutionNode
from kubexm.spec.overrides import parse_overrides
from kubexm.spec.pipeline import parse_pipeline
from kubexm.spec.planner import PlannedPipeline, plan

HEAD = "apiVersion: kubexm.io/v1alpha1\nkind: Pipeline\nmetadata: {name: p}\n"
HOSTS = """
hosts:
  - {name: a, roles: [web], labels: {zone: x}}
  - {name: b, roles: [web]}
  - {name: c, roles: [db]}
"""


def pipeline(spec: str) -> str:
    """A whole file with this body."""
    return HEAD + "spec:\n" + indent(dedent(spec).strip("\n"), "  ") + "\n"


def with_steps(steps: str, spec: str = HOSTS) -> str:
    """A file with one module `m`, one task `t` and these steps."""
    listed = indent(dedent(steps).strip("\n"), "          ")
    head = "modules:\n  - name: m\n    tasks:\n      - name: t\n        steps:\n"
    return pipeline(f"{dedent(spec).strip()}\n{head}{listed}\n")


def planned(text: str, *overrides: str) -> PlannedPipeline:
    """What a text comes to."""
    return plan(parse_pipeline(text, "p.yaml"), parse_overrides(overrides))


def nodes(text: str, *overrides: str) -> dict[str, ExecutionNode]:
    """The nodes of a text by id, without the name of the pipeline in front."""
    graph = planned(text, *overrides).graph
    return {id.removeprefix("p/"): node for id, node in graph.nodes.items()}
