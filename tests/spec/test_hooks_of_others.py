"""Hooks that a file has which is no pipeline."""

from __future__ import annotations

import pytest

from kubexm.app.cluster_hosts import inventory
from kubexm.config.cluster import parse_cluster
from kubexm.errors import InvalidPipeline
from kubexm.spec.hooks import PlannedHooks, plan_hooks, unknown_parts

_FILE = """
apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata: {{name: prod}}
spec:
  kubernetes: {{version: v1.36.3}}
  hosts: [{{name: m1, address: 10.0.0.11}}, {{name: w1, address: 10.0.0.21}}]
  hooks:
{hooks}
"""
_PARTS = ("system", "etcd")


def planned(hooks: str) -> PlannedHooks:
    cluster = parse_cluster(_FILE.format(hooks=hooks))
    return plan_hooks(cluster.document, ("spec", "hooks"), inventory(cluster))


def test_each_hook_is_a_fragment_of_its_own_for_its_moment() -> None:
    hooks = planned(
        """
    etcd:
      pre: [{name: note, runOnRoles: [control-plane], command: {argv: [logger, begins]}}]
      post:
        - {name: done, command: {argv: [logger, done]}}
        - {name: told, barrier: true, runOnRoles: [control-node], command: {argv: [echo, done]}}
"""
    )
    first, second, third = hooks.of["etcd"]
    assert [hook.moment for hook in (first, second, third)] == ["pre", "post", "post"]
    assert [node.hosts for node in first.fragment.nodes] == [("m1",)]
    assert [node.hosts for node in second.fragment.nodes] == [("m1", "w1")]
    assert third.barrier
    assert [node.id for node in second.fragment.nodes] == ["done"]


def test_a_mistake_in_a_hook_is_told_at_its_place_in_the_file() -> None:
    with pytest.raises(InvalidPipeline) as caught:
        planned("    etcd: {pre: [{name: note, comand: {argv: [x]}}]}")
    (problem,) = caught.value.problems
    assert problem.where == "<text>:9:31"
    assert problem.message.startswith("spec.hooks.etcd.pre[0]")
    assert "command" in problem.hint


def test_a_hook_of_an_unknown_part_is_found_with_the_nearest_name() -> None:
    cluster = parse_cluster(_FILE.format(hooks="    etdc: {pre: []}"))
    (finding,) = unknown_parts(cluster.document, ("spec", "hooks"), _PARTS)
    assert finding.path == ("spec", "hooks", "etdc")
    assert finding.hint == "did you mean `etcd`?"


def test_a_file_without_hooks_has_none() -> None:
    cluster = parse_cluster(_FILE.format(hooks="    {}"))
    assert plan_hooks(cluster.document, ("spec", "hooks"), ()) == PlannedHooks()
