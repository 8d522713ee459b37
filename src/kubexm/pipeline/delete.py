"""Take a cluster away: what was done to make it, backwards, as far as the ledger knows of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from kubexm.common import layout
from kubexm.plan.fragment import ExecutionFragment, parallel, per_host, prefixed, replace
from kubexm.plan.fragment import node as made
from kubexm.plan.node import ExecutionNode, Join, StepSpec
from kubexm.plan.policy import RetryPolicy
from kubexm.plan.records import FORMER
from kubexm.step import registry
from kubexm.step.contract import Step
from kubexm.step.forgetting import Forgotten
from kubexm.step.undoing import settling, undoing

NAME = "delete-cluster"
_GOES_WITH_IT = frozenset(
    (
        *("manifest", "manifest-file", "kube-node", "helm-release", "kubeadm-phase"),
        *("image", "image-pushed"),
    )
)
"""What lies in the cluster itself, or in the data of its container runtime."""
GONE = ("image", "kube-node", "kubeadm-phase", "manifest", "release")
"""The same as the ledger calls it."""
_MEMBERSHIP = frozenset(("kubeadm-init", "kubeadm-join"))
_VALUE = re.compile(r"\$\{values\.[^{}]*\}")
_AGAIN = RetryPolicy(attempts=2, delay=2.0)
Edges = Mapping[str, Collection[str]]
"""By node those whose undoing comes before its own."""


class Former(msgspec.Struct, frozen=True):
    """A plan that the cluster was made by before, and what of it no later plan takes back."""

    create: ExecutionFragment
    left: Mapping[str, Sequence[ExecutionNode]]
    """By node of the plan what is taken back of it, under ids that no other plan has."""


def backwards(create: ExecutionFragment, former: Iterable[Former] = ()) -> ExecutionFragment:
    """The undoing of a plan and of what is left of former ones, those of late first.

    Each node follows the undoing of all that stood on it.
    """
    kept = {node.id: node for node in create.nodes if is_undone(node)}
    after: Edges = _edges(create, {id: (id,) for id in kept})
    kept = dict(reversed(kept.items()))
    for plan in former:
        left = {node.id: node for nodes in plan.left.values() for node in nodes}
        after = _with_former(plan, kept, left, after)
        kept |= left
    undone = _with_networks([_undone(node, after.get(id, ())) for id, node in kept.items()], kept)
    # What goes on with its old files does so when all of them are back.
    hosts = dict.fromkeys(host for node in kept.values() for host in node.hosts)
    notes = made(f"{NAME}/notes", Forgotten(gone=GONE), on=tuple(hosts), retry=_AGAIN)
    return per_host(undone, parallel(*map(_settled, kept.values())), notes)


def _edges(plan: ExecutionFragment, there: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
    """What comes before what on the way back, if this is there of the nodes of a plan."""
    followers = _Followers(plan)
    after: dict[str, set[str]] = {}
    for id, own in there.items():
        before = {one for follower in followers.nearest(id, there) for one in there[follower]}
        for one in own:
            after.setdefault(one, set()).update(before)
    return after


def _with_former(
    plan: Former, known: Collection[str], left: Collection[str], after: Edges
) -> Edges:
    """An order in which what is left of a former plan has its place between later ones."""
    later: dict[str, list[str]] = {}
    for id in known:
        later.setdefault(_origin(id), []).append(id)
    there = {
        node.id: (*later.get(_origin(node.id), ()), *(one.id for one in plan.left.get(node.id, ())))
        for node in plan.create.nodes
    }
    there = {id: ids for id, ids in there.items() if ids}
    # Among what later plans have too, their own order counts.
    more = [
        (one, other)
        for one, others in _edges(plan.create, there).items()
        for other in others
        if one in left or other in left
    ]
    # What was begun by a former plan and gone on with by a later one goes the other way round.
    more += [(one, other) for one in left for other in later.get(_origin(one), ())]
    whole = _joined(after, more)
    if _is_in_order(whole):
        return whole
    # Plans that contradict each other: what stands now stands on nothing that is left over.
    return _joined(after, [(one, other) for one, other in more if other in left])


def _joined(after: Edges, more: Iterable[tuple[str, str]]) -> Edges:
    whole = {id: set(others) for id, others in after.items()}
    for one, other in more:
        whole.setdefault(one, set()).add(other)
    return whole


def _is_in_order(after: Edges) -> bool:
    try:
        TopologicalSorter(after).prepare()
    except CycleError:
        return False
    return True


def _is_network(node: ExecutionNode) -> bool:
    """Whether it says how pods are connected, and so how they are disconnected."""
    return str(node.step.params.get("path", "")).startswith(f"{layout.CNI_CONFIG}/")


def _with_networks(
    nodes: Sequence[ExecutionNode], kept: Mapping[str, ExecutionNode]
) -> ExecutionFragment:
    """Nodes in an order in which hosts stop being members before their pod networks go.

    Pods are taken down by whoever takes a host out of the cluster, and what connected them is
    needed for that once more.
    """
    networks = frozenset(_path(id) for id, node in kept.items() if _is_network(node))
    members = tuple(_path(id) for id, node in kept.items() if node.step.kind in _MEMBERSHIP)

    def later(node: ExecutionNode) -> ExecutionNode:
        if node.id in networks:
            return replace(node, after_same_host=(*node.after_same_host, *members))
        same = tuple(id for id in node.after_same_host if id not in networks)
        return replace(node, after_same_host=same)

    return ExecutionFragment(tuple(map(later, nodes)))


def _settled(node: ExecutionNode) -> ExecutionFragment | None:
    step = settling(spec_of(node))
    if step is None:
        return None
    title = node.id.partition("/")[2].replace("/", "-")
    return prefixed(f"{NAME}/settle", made(title, step, on=node.hosts, retry=_AGAIN))


def spec_of(node: ExecutionNode) -> StepSpec:
    """The step of a node as it is undone."""
    params = _without_values(node.step.params)
    if node.step.kind in _MEMBERSHIP:
        params["goes_with_cluster"] = True
    return msgspec.structs.replace(node.step, params=params)


def is_undone(node: ExecutionNode) -> bool:
    """Whether a deletion takes it back, on the hosts that it has."""
    kind = registry.find(node.step.kind)
    has_undo = kind.rollback is not Step.rollback
    return bool(node.hosts) and has_undo and node.step.kind not in _GOES_WITH_IT


def _undone(node: ExecutionNode, after: Iterable[str]) -> ExecutionNode:
    """What takes a node back; each host goes its own way, since no other host is left to care."""
    return ExecutionNode(
        id=_path(node.id),
        name=node.name,
        step=undoing(spec_of(node), for_good=True),
        hosts=node.hosts,
        after_same_host=tuple(sorted(map(_path, after))),
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


def _origin(id: str) -> str:
    """What a node is called in its own plan."""
    return id.partition(FORMER)[0]


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
