"""What hosts are given by the pipeline, by the groups they are in and by themselves.

The nearer wins, setting by setting: a host over its groups, these over the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubexm.common.roles import ALL
from kubexm.config import connection
from kubexm.document.findings import Finding, written_path
from kubexm.document.given import Given, Givens
from kubexm.document.source import DataPath
from kubexm.spec.model import GroupSpec, HostSpec, PipelineBody


class Layer(msgspec.Struct, frozen=True):
    """Settings of one owner, or of several that lie over each other."""

    vars: Givens = msgspec.field(default_factory=dict)
    labels: Givens = msgspec.field(default_factory=dict)
    ssh: Givens = msgspec.field(default_factory=dict)
    sudo: Given | None = None

    def over(self, others: Layer) -> Layer:
        """These settings, and those of the others that are not among them."""
        return Layer(
            _over(self.vars, others.vars),
            _over(self.labels, others.labels),
            _over(self.ssh, others.ssh),
            self.sudo or others.sudo,
        )

    def settings(self) -> Iterator[tuple[str, Given]]:
        """Every setting by the name it has below its owner."""
        for key, givens in (("vars", self.vars), ("labels", self.labels), ("ssh", self.ssh)):
            yield from ((written_path((key, name)), given) for name, given in givens.items())
        if self.sudo is not None:
            yield "sudo", self.sudo


class Layers:
    """The settings around hosts, found once for all hosts that are in the same groups."""

    def __init__(self, body: PipelineBody) -> None:
        variables = _given(body.vars, ("spec", "vars"))
        self._pipeline = Layer(variables, ssh=connection.given(body.ssh, ("spec", "ssh")))
        self._roles = {name: frozenset(group.roles) for name, group in body.groups.items()}
        self._groups = {
            name: _of_owner(group, ("spec", "groups", name)) for name, group in body.groups.items()
        }
        self._around: dict[tuple[str, ...], Layer] = {}
        self._differing: dict[tuple[str, ...], list[tuple[str, Finding]]] = {}

    def owners(self) -> Iterator[Layer]:
        """What the pipeline and each of its groups gives."""
        yield self._pipeline
        yield from self._groups.values()

    def groups(self, spec: HostSpec) -> tuple[str, ...]:
        """The groups that a host is in."""
        held = {ALL, *spec.roles}
        return tuple(name for name, roles in self._roles.items() if not held.isdisjoint(roles))

    def around(self, groups: tuple[str, ...]) -> Layer:
        """What a host in these groups is given by others."""
        if (known := self._around.get(groups)) is None:
            known = self._pipeline
            for name in groups:
                known = self._groups[name].over(known)
            self._around[groups] = known
        return known

    def conflicts(self, spec: HostSpec, own: Layer) -> Iterator[Finding]:
        """What groups of a host give it differently, while it says nothing itself."""
        groups = self.groups(spec)
        if (known := self._differing.get(groups)) is None:
            known = self._differing[groups] = [*self._conflicts(groups)]
        settled = {name for name, _ in own.settings()} if known else ()
        for name, finding in known:
            needless = name.startswith("ssh.") and spec.connection == "local"
            if name not in settled and not needless:
                yield finding

    def _conflicts(self, groups: tuple[str, ...]) -> Iterator[tuple[str, Finding]]:
        first: dict[str, tuple[str, Given]] = {}
        for group in groups:
            for name, given in self._groups[group].settings():
                before, other = first.setdefault(name, (group, given))
                if other.value != given.value:
                    yield name, _conflict(name, (before, group), given.place)


def own_layer(spec: HostSpec, number: int) -> Layer:
    """What an entry of the inventory gives to its hosts."""
    return _of_owner(spec, ("spec", "hosts", number))


def _of_owner(spec: GroupSpec | HostSpec, place: DataPath) -> Layer:
    return Layer(
        _given(spec.vars, (*place, "vars")),
        _given(spec.labels, (*place, "labels")),
        connection.given(spec.ssh, (*place, "ssh")),
        Given(spec.sudo, (*place, "sudo")) if spec.sudo is not None else None,
    )


def _given(values: Mapping[str, Any], place: DataPath) -> Givens:
    return {name: Given(value, (*place, name)) for name, value in values.items()}


def _over(near: Givens, far: Givens) -> Givens:
    return {**far, **near} if near else far


def _conflict(setting: str, groups: Sequence[str], place: DataPath) -> Finding:
    named = " and ".join(f"`{group}`" for group in groups)
    message = f"the groups {named} give different values to `{setting}`"
    hint = "give it in one of them, or at the host, which wins"
    return Finding(place, message, hint, of_host=True)
