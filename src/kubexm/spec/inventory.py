"""The hosts of a pipeline with the variables that each of them has."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from kubexm.common.counting import few
from kubexm.common.roles import ALL, CONTROL_NODE
from kubexm.config import connection
from kubexm.config.connection import Connections, SshSettings
from kubexm.document import ranges
from kubexm.document.findings import Finding
from kubexm.document.given import Givens
from kubexm.document.source import DataPath
from kubexm.spec import layers, references
from kubexm.spec.expressions import BadExpression
from kubexm.spec.layers import Layer, Layers
from kubexm.spec.model import HostSpec, PipelineBody, as_data
from kubexm.spec.overrides import Override, applied
from kubexm.spec.references import BadReference, Reference
from kubexm.spec.sound import NO_GAPS, Gaps

MAX_CHAIN = 50
MAX_WEIGHT = 1_000_000


class InventoryHost(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A host as a run knows it; its variables are final."""

    name: str
    address: str
    connection: Literal["ssh", "local"] = "ssh"
    roles: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    vars: dict[str, Any] = {}
    sudo: bool = False
    facts: dict[str, Any] = {}
    """What is declared of it, for plans; a run asks the host."""
    ssh: SshSettings | None = None
    """How it is reached, unless that is `local`."""

    def described(self) -> dict[str, Any]:
        """What `${host.…}` names."""
        return {
            "name": self.name,
            "address": self.address,
            "roles": list(self.roles),
            "labels": self.labels,
        }


class Inventory:
    """Hosts by name and by role, in the order of the file, the control node first."""

    def __init__(
        self,
        hosts: Sequence[InventoryHost],
        declared: Iterable[str] = (),
        *,
        unknown: Iterable[str] = (),
        is_partial: bool = False,
    ) -> None:
        self.hosts = {host.name: host for host in hosts}
        self._unknown = frozenset(unknown)
        self._is_partial = is_partial
        self._by_roles: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._members: dict[tuple[str, ...], frozenset[str]] = {}
        found = (role for host in hosts for role in host.roles)
        self.roles = frozenset((ALL, CONTROL_NODE, *declared, *found))

    def names(self, roles: tuple[str, ...]) -> tuple[str, ...]:
        """The hosts that have one of these roles."""
        if (known := self._by_roles.get(roles)) is None:
            wanted = frozenset(roles)
            known = self._by_roles[roles] = tuple(
                host.name for host in self.hosts.values() if self._has(host, wanted)
            )
        return known

    def can_judge(self, reference: Reference) -> bool:
        """Whether it is known what a reference names, and if it is missing that it is."""
        if reference.root == "host":
            return not self._is_partial
        if reference.root != "vars":
            return True
        name = reference.path[0]
        if self._is_partial and name not in self.hosts[CONTROL_NODE].vars:
            return False  # a host may bring it
        return name not in self._unknown

    def members(self, roles: tuple[str, ...]) -> frozenset[str]:
        """The same hosts without their order."""
        if (known := self._members.get(roles)) is None:
            known = self._members[roles] = frozenset(self.names(roles))
        return known

    @staticmethod
    def _has(host: InventoryHost, wanted: frozenset[str]) -> bool:
        if ALL in wanted and host.name != CONTROL_NODE:
            return True
        return not wanted.isdisjoint(host.roles)


def build(
    body: PipelineBody,
    overrides: Sequence[Override],
    gaps: Gaps = NO_GAPS,
    directory: Path | None = None,
) -> tuple[Inventory, list[Finding]]:
    """The inventory of a pipeline, and what is wrong with its hosts beyond these gaps.

    Relative paths start from the directory.
    """
    builder = _Builder(body, overrides, gaps, directory)
    hosts = [builder.control_node()]
    for number, spec in enumerate(body.hosts):
        hosts.extend(builder.members(spec, number))
    hosts = builder.connected(hosts)
    unknown = builder.unknown.all
    known = Inventory(hosts, body.roles, unknown=unknown, is_partial=gaps.hosts)
    return known, [*builder.findings(len(hosts))]


class _Builder:
    """Makes hosts of the entries of a file; finds what is wrong on the way."""

    def __init__(
        self,
        body: PipelineBody,
        overrides: Sequence[Override],
        gaps: Gaps,
        directory: Path | None,
    ) -> None:
        self.unknown = _Unknown(gaps.variables)
        self._gaps = gaps
        self._layers = Layers(body)
        self._overrides = overrides
        self._directory = directory
        self._found = OnHosts()
        self._shared: dict[tuple[str, ...], _Variables] = {}
        around = self._layers.around(()).ssh
        self._connections = Connections(around, directory, is_partial=gaps.hosts)
        self._bad_paths = [found for owner in self._layers.owners() for found in self._paths(owner)]

    def findings(self, total: int) -> Iterator[Finding]:
        """Everything that was wrong, with the hosts that have it unless all do."""
        yield from self._found.findings(total)
        yield from self._bad_paths
        if not self._gaps.connections:
            yield from self._connections.findings()

    def connected(self, hosts: Sequence[InventoryHost]) -> list[InventoryHost]:
        """The same hosts, with the way to each."""
        settled = ((host, self._connections.of(host.name)) for host in hosts)
        return [msgspec.structs.replace(host, ssh=ssh) for host, ssh in settled]

    def control_node(self) -> InventoryHost:
        host = InventoryHost(CONTROL_NODE, "localhost", "local", (CONTROL_NODE,))
        self._connections.add(host.name, host.address, None)
        return self._with_variables(host, self._shared_variables(()))

    def members(self, spec: HostSpec, number: int) -> Iterator[InventoryHost]:
        """The hosts that an entry stands for."""
        groups, own = self._layers.groups(spec), layers.own_layer(spec, number)
        layer = own.over(self._layers.around(groups))
        hosts = [*_hosts(spec, layer)]
        for conflict in self._layers.conflicts(spec, own):
            self._found.add(conflict, [host.name for host in hosts])
        self._bad_paths.extend(self._paths(own))
        for host in hosts:
            settings = layer.ssh if host.connection == "ssh" else None
            self._connections.add(host.name, host.address, settings)
        variables = self._variables(layer) if own.vars else self._shared_variables(groups)
        return (self._with_variables(host, variables) for host in hosts)

    def _paths(self, layer: Layer) -> Iterator[Finding]:
        return connection.bad_paths(layer.ssh, self._directory)

    def _shared_variables(self, groups: tuple[str, ...]) -> _Variables:
        """The variables of hosts that have none of their own: one object for all of them."""
        if (known := self._shared.get(groups)) is None:
            known = self._shared[groups] = self._variables(self._layers.around(groups))
        return known

    def _variables(self, layer: Layer) -> _Variables:
        return _Variables(layer.vars, self._overrides, self.unknown)

    def _with_variables(self, host: InventoryHost, variables: _Variables) -> InventoryHost:
        values, findings = variables.of(host)
        for finding in findings:
            self._found.add(finding, [host.name])
        return msgspec.structs.replace(host, vars=values)


def _hosts(spec: HostSpec, layer: Layer) -> Iterator[InventoryHost]:
    """The hosts that an entry stands for, without their variables."""
    names = [*ranges.parse(spec.name).members()]
    addresses = [*ranges.parse(spec.address).members()] if spec.address else names
    labels = {name: given.value for name, given in layer.labels.items()}
    sudo, facts = layer.sudo is not None and layer.sudo.value, as_data(spec.facts)
    # One address for all is written once.
    for name, address in zip(names, itertools.cycle(addresses), strict=False):
        yield InventoryHost(
            name,
            address,
            spec.connection,
            spec.roles,
            _labels(labels, name, address),
            sudo=sudo,
            facts=facts,
        )


def _labels(labels: dict[str, str], name: str, address: str) -> dict[str, str]:
    if not references.holds_references(labels):
        return labels
    host = {"name": name, "address": address}
    resolved: dict[str, str] = references.resolved(
        labels, lambda reference: references.look_up(reference, host)
    )
    return resolved


class OnHosts:
    """What is wrong on some hosts: one finding for all that have it."""

    def __init__(self) -> None:
        self._found: dict[tuple[DataPath, str], tuple[Finding, list[str]]] = {}

    def add(self, finding: Finding, hosts: Sequence[str]) -> None:
        """Note it for some more hosts; the hint of the first of them stays."""
        key = (finding.path, finding.message)
        self._found.setdefault(key, (finding, []))[1].extend(hosts)

    def findings(self, total: int, *, everywhere: bool = False) -> Iterator[Finding]:
        """Each once, with the hosts that have it; without, where all do and none is peculiar.

        With `everywhere`, only what all have.
        """
        for finding, hosts in self._found.values():
            if len(hosts) == total and (everywhere or not finding.of_host):
                yield finding
            elif not everywhere:
                yield msgspec.structs.replace(finding, message=finding.message + _named(hosts))


def remedy(error: BadReference | BadExpression, host: InventoryHost) -> str:
    """What to do about a mistake that was found on a host."""
    if error.of_host and host.name == CONTROL_NODE:
        return f"`{CONTROL_NODE}` has no labels: name a variable of the host instead"
    return error.hint


def _named(hosts: Sequence[str]) -> str:
    return f" on {few(hosts)}"


class _Unknown:
    """The variables that have no value: those that were wrong before, and those found since."""

    def __init__(self, before: frozenset[str]) -> None:
        self.before = before
        self.all = set(before)


class _Variables:
    """The variables of an entry, or of all hosts in the same groups that have none themselves."""

    def __init__(self, given: Givens, overrides: Sequence[Override], unknown: _Unknown) -> None:
        self._unknown = unknown
        self._given = given
        self._raw = applied({name: one.value for name, one in given.items()}, overrides)
        self._plain = not references.holds_references(self._raw)

    def of(self, host: InventoryHost) -> tuple[dict[str, Any], list[Finding]]:
        """The final values on a host; hosts that have the same values share one object."""
        if self._plain:
            return self._raw, []
        resolver = _Resolver(self._raw, host.described(), self._unknown.before)
        values, findings = {}, []
        for name in self._raw:
            try:
                values[name] = resolver.variable(name)
            except _NamesTheUnknown:
                self._unknown.all.add(name)
            except BadReference as error:
                self._unknown.all.add(name)
                findings.append(Finding(self._place(name), str(error), remedy(error, host)))
        return values, findings

    def _place(self, name: str) -> DataPath:
        return self._given[name].place if name in self._given else ("spec", "vars", name)


class _NamesTheUnknown(BadReference):
    """A variable names one that is wrong itself, which is told there."""


class _Resolver:
    """Resolves variables that name each other, each once, and none without bound."""

    def __init__(
        self, raw: Mapping[str, Any], host: Mapping[str, Any], unknown: frozenset[str]
    ) -> None:
        self._raw = raw
        self._unknown = unknown
        self._host = host
        self._known: dict[str, Any] = {}
        self._weights: dict[str, int] = {}
        self._open: dict[str, int] = {}
        """The variables that are being resolved, each with its weight so far."""

    def variable(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        self._check(name)
        self._open[name] = _weight(self._raw[name])
        try:
            value = references.resolved(self._raw[name], self._resolve)
        finally:
            self._weights[name] = self._open.pop(name)
        self._known[name] = value
        return value

    def _check(self, name: str) -> None:
        chain = list(self._open)
        if name in chain:
            ring = " → ".join((*chain[chain.index(name) :], name))
            raise BadReference(f"variables name each other: {ring}", "give one of them a value")
        if len(chain) >= MAX_CHAIN:
            raise BadReference(f"a chain of more than {MAX_CHAIN} variables", "make it shorter")

    def _resolve(self, reference: Reference) -> Any:
        if reference.root == "host":
            return references.look_up(reference, self._host)
        name = reference.path[0]
        if name in self._unknown:
            raise _NamesTheUnknown(f"`{name}` has no value")
        if name not in self._raw:
            return references.look_up(reference, self._raw)
        value = self.variable(name)
        self._grow(self._weights[name])
        return references.look_up(reference, {name: value})

    def _grow(self, weight: int) -> None:
        # Variables that hold each other twice would double with every one of them.
        user = next(reversed(self._open))
        self._open[user] += weight
        if self._open[user] > MAX_WEIGHT:
            raise BadReference(f"`{user}` grows beyond {MAX_WEIGHT} characters", "make it smaller")


def _weight(data: Any) -> int:
    if isinstance(data, str):
        return len(data) + 1
    if isinstance(data, Mapping):
        return 1 + sum(_weight(value) for value in data.values())
    return 1 + sum(_weight(value) for value in data) if isinstance(data, list) else 1
