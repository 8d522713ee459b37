"""The step about what a kube node is marked with: labels, and taints that keep pods away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from kubexm.errors import StepFailed
from kubexm.runner import kubectl
from kubexm.runner.kubectl import Object
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import NotYet, Outcome, Step, Verdict
from kubexm.step.kube import INTERVAL
from kubexm.step.parameters import BadParameter, require_names
from kubexm.step.registry import step

_LABELS = "kubexm.io/labels"
_TAINTS = "kubexm.io/taints"
"""Annotations that say which labels and taints are ours, so that one that is no longer wanted goes
and those of others stay."""
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NO_NODE = "the cluster has no such node"


@step("kube-node")
class MarkedNode(Step):
    """A kube node has these labels and taints; what it got from kubexm before and is not wanted any
    more is gone, and those of others stay.

    ```yaml
    - name: marks
      timeout: 2m
      kube-node:
        node: worker1
        labels: {example.org/disk: ssd}
        taints: ["dedicated=db:NoSchedule"]
    ```
    """

    node: str
    """The name of the kube node; it waits for one that is not there yet, unless a host of that name
    is lost in this run."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels by name."""
    taints: tuple[str, ...] = ()
    """`NAME=VALUE:EFFECT` or `NAME:EFFECT`."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    verifies = True

    def __post_init__(self) -> None:
        require_names((self.node,), "node")
        require_names(self.labels, "label")
        for taint in self.taints:
            name, _, effect = _split(taint)
            if effect not in _EFFECTS or not name or name.startswith("-"):
                raise BadParameter(
                    f"`taints` has `{taint}`, want NAME=VALUE:EFFECT or NAME:EFFECT",
                    f"an effect is one of {', '.join(_EFFECTS)}",
                )

    def summary(self) -> str:
        return f"node {self.node} has its labels and taints"

    async def precheck(self, ctx: StepContext) -> Verdict:
        node = await self._found(ctx)
        if node is None and self.node in ctx.lost:
            return Verdict.holds(f"without `{self.node}`, which did not join")
        if node is None:
            return Verdict.needed(_NO_NODE, "?")
        found = _marks(node)
        lacking = [word for _, *words in _orders(found, self._wanted(found)) for word in words]
        return Verdict.needed(f"lacks {', '.join(lacking)}") if lacking else Verdict.holds()

    async def run(self, ctx: StepContext) -> Outcome | NotYet:
        node = await self._found(ctx)
        if node is None:
            return NotYet(INTERVAL, _NO_NODE)
        found = _marks(node)
        wanted = self._wanted(found)
        await ctx.ledger.remember(self.resources[0], _of(found, wanted))
        await self._carry_out(ctx, _orders(found, wanted))
        return Outcome()

    async def rollback(self, ctx: StepContext) -> str | None:
        prior = ctx.ledger.recall(self.resources[0])
        if prior is None:
            return None
        try:
            if (node := await self._found(ctx)) is not None:
                await self._carry_out(ctx, _orders(_marks(node), prior))
        except StepFailed as error:
            if kubectl.is_silent(error):
                return "the API server does not answer"
            raise
        return None

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"kube-node:{self.node}",)

    def _wanted(self, found: _Marks) -> _Marks:
        """Marks by name, None for one that has to go."""
        taints = {f"{name}:{effect}": value for name, value, effect in map(_split, self.taints)}
        ours = found["annotate"]
        return {
            "label": {**_gone(ours.get(_LABELS)), **self.labels},
            "taint": {**_gone(ours.get(_TAINTS)), **taints},
            "annotate": {_LABELS: _listed(self.labels), _TAINTS: _listed(taints)},
        }

    async def _found(self, ctx: StepContext) -> Object | None:
        return next(iter(await kubectl.get(ctx.host, "node", self.node, sudo=self.sudo)), None)

    async def _carry_out(self, ctx: StepContext, orders: Iterable[Sequence[str]]) -> None:
        for verb, *words in orders:
            order = (verb, "--overwrite", "node", self.node, *words)
            await kubectl.change(ctx.host, *order, sudo=self.sudo)


_Marks = Mapping[str, Mapping[str, str | None]]
"""Marks of a node by the verb of kubectl that sets them, each by its name."""


def _marks(node: Object) -> _Marks:
    metadata, taints = node["metadata"], node.get("spec", {}).get("taints", ())
    return {
        "label": metadata.get("labels", {}),
        "taint": {f"{one['key']}:{one['effect']}": one.get("value", "") for one in taints},
        # Last: what is ours is known as such only when it is as it should be.
        "annotate": metadata.get("annotations", {}),
    }


def _of(found: _Marks, wanted: _Marks) -> dict[str, Any]:
    """What is there now in place of what is wanted."""
    return {verb: {name: found[verb].get(name) for name in wanted[verb]} for verb in wanted}


def _orders(found: _Marks, wanted: _Marks) -> list[tuple[str, ...]]:
    """What kubectl has to be told: a verb, and what it is to set and to take away."""
    told = ((verb, *_words(verb, found[verb], wanted[verb])) for verb in found)
    return [order for order in told if len(order) > 1]


def _words(
    verb: str, found: Mapping[str, str | None], wanted: Mapping[str, str | None]
) -> Iterator[str]:
    for name, value in wanted.items():
        if found.get(name) != value:
            yield _word(verb, name, value)


def _word(verb: str, name: str, value: str | None) -> str:
    if value is None:
        return f"{name}-"
    if verb != "taint":
        return f"{name}={value}"
    key, _, effect = name.rpartition(":")
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _split(taint: str) -> tuple[str, str, str]:
    """Name, value and effect."""
    key, _, effect = taint.rpartition(":")
    name, _, value = key.partition("=")
    return name, value, effect


def _gone(names: str | None) -> dict[str, None]:
    return dict.fromkeys((names or "").split(",") if names else ())


def _listed(names: Iterable[str]) -> str | None:
    return ",".join(sorted(names)) or None
