"""Take a cluster away: what was done to make it, backwards, as far as the ledger knows of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubexm.common import layout
from kubexm.pipeline.create import create_cluster
from kubexm.plan.fragment import ExecutionFragment, parallel, per_host, prefixed, replace
from kubexm.plan.fragment import node as made
from kubexm.plan.node import ExecutionNode, Join, StepSpec
from kubexm.plan.policy import RetryPolicy
from kubexm.spec.hooks import PlannedHooks
from kubexm.step import registry
from kubexm.step.contract import Step
from kubexm.step.forgetting import Forgotten
from kubexm.step.undoing import settling, undoing
from kubexm.task.context import ClusterContext

NAME = "delete-cluster"
_GOES_WITH_IT = frozenset(
    (
        *("manifest", "manifest-file", "kube-node", "helm-release", "kubeadm-phase"),
        *("image", "image-pushed"),
    )
)
"""What lies in the cluster itself, or in the data of its container runtime."""
_MEMBERSHIP = frozenset(("kubeadm-init", "kubeadm-join"))
_VALUE = re.compile(r"\$\{values\.[^{}]*\}")
_AGAIN = RetryPolicy(attempts=2, delay=2.0)


def delete_cluster(ctx: ClusterContext, hooks: PlannedHooks) -> ExecutionFragment:
    """Everything that `create-cluster` lays on hosts is taken back, the last of it first."""
    return backwards(create_cluster(ctx, hooks))


def backwards(create: ExecutionFragment) -> ExecutionFragment:
    """The undoing of a fragment: each node follows the undoing of all that stood on it."""
    kept = {node.id: node for node in create.nodes if _is_undone(node)}
    followers = _Followers(create)
    undone = _with_networks(
        [_undone(node, followers.nearest(id, kept)) for id, node in reversed(kept.items())],
        networks=frozenset(_path(id) for id, node in kept.items() if _is_network(node)),
        members=tuple(_path(id) for id, node in kept.items() if node.step.kind in _MEMBERSHIP),
    )
    # What goes on with its old files does so when all of them are back.
    hosts = dict.fromkeys(host for node in kept.values() for host in node.hosts)
    notes = made(f"{NAME}/notes", Forgotten(), on=tuple(hosts), retry=_AGAIN)
    return per_host(undone, parallel(*map(_settled, kept.values())), notes)


def _is_network(node: ExecutionNode) -> bool:
    """Whether it says how pods are connected, and so how they are disconnected."""
    return str(node.step.params.get("path", "")).startswith(f"{layout.CNI_CONFIG}/")


def _with_networks(
    nodes: Sequence[ExecutionNode], networks: frozenset[str], members: tuple[str, ...]
) -> ExecutionFragment:
    """Nodes in an order in which hosts stop being members before their pod networks go.

    Pods are taken down by whoever takes a host out of the cluster, and what connected them is
    needed for that once more.
    """

    def later(node: ExecutionNode) -> ExecutionNode:
        if node.id in networks:
            return replace(node, after_same_host=(*node.after_same_host, *members))
        same = tuple(id for id in node.after_same_host if id not in networks)
        return replace(node, after_same_host=same)

    return ExecutionFragment(tuple(map(later, nodes)))


def _settled(node: ExecutionNode) -> ExecutionFragment | None:
    step = settling(_spec(node))
    if step is None:
        return None
    title = node.id.partition("/")[2].replace("/", "-")
    return prefixed(f"{NAME}/settle", made(title, step, on=node.hosts, retry=_AGAIN))


def _spec(node: ExecutionNode) -> StepSpec:
    params = _without_values(node.step.params)
    if node.step.kind in _MEMBERSHIP:
        params["goes_with_cluster"] = True
    return msgspec.structs.replace(node.step, params=params)


def _is_undone(node: ExecutionNode) -> bool:
    kind = registry.find(node.step.kind)
    has_undo = kind.rollback is not Step.rollback
    return has_undo and node.step.kind not in _GOES_WITH_IT


def _undone(node: ExecutionNode, after: Iterable[str]) -> ExecutionNode:
    """What takes a node back; each host goes its own way, since no other host is left to care."""
    return ExecutionNode(
        id=_path(node.id),
        name=node.name,
        step=undoing(_spec(node)),
        hosts=node.hosts,
        after_same_host=tuple(map(_path, after)),
        retry=_AGAIN,
        tags=node.tags,
    )


def _without_values(data: Any) -> Any:
    """Parameters without what only the making of the cluster knew: no undoing needs it."""
    if isinstance(data, Mapping):
        return {key: _without_values(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_without_values(value) for value in data]
    return None if isinstance(data, str) and _VALUE.fullmatch(data) else data


def _path(id: str) -> str:
    return f"{NAME}/{id.partition('/')[2]}"


class _Followers:
    """Who waits for whom, looked at from those who are waited for."""

    def __init__(self, fragment: ExecutionFragment) -> None:
        self._next: dict[str, list[str]] = {}
        vertices: Iterator[ExecutionNode | Join] = iter((*fragment.nodes, *fragment.joins))
        for vertex in vertices:
            for id in (*vertex.after, *vertex.after_same_host):
                self._next.setdefault(id, []).append(vertex.id)

    def nearest(self, id: str, kept: Collection[str]) -> list[str]:
        """Of those that come after a node the first that are kept."""
        found: dict[str, None] = {}
        seen: set[str] = set()
        waiting = [id]
        while waiting:
            for follower in self._next.get(waiting.pop(), ()):
                if follower in kept:
                    found[follower] = None
                elif follower not in seen:
                    seen.add(follower)
                    waiting.append(follower)
        return [*found]
