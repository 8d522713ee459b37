"""One step of a file as the graph knows it: per entry of its list, with needs and provisions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubexm.common.roles import CONTROL_NODE
from kubexm.document.findings import Finding, shown
from kubexm.document.source import DataPath
from kubexm.plan import Key, StepSpec
from kubexm.spec import (
    conditions,
    exposure,
    expressions,
    parameters,
    references,
    secrets,
    sources,
    targets,
    templating,
)
from kubexm.spec.expressions import BadExpression, Expression
from kubexm.spec.files import BESIDE, FETCH, NAMING, TO, ExternalFiles
from kubexm.spec.inventory import Inventory, InventoryHost, OnHosts, remedy
from kubexm.spec.local import SOURCE, BadFile
from kubexm.spec.model import StepFields
from kubexm.spec.references import BadReference, Reference
from kubexm.step import registry
from kubexm.step.contract import Step

MAX_ENTRIES = 10_000
MAX_TRIED = 1000
"""Parameters are tried on so many hosts with variables of their own; enough to find a mistake."""
_EARLY = ("vars", "host")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VALUE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


_Group = tuple[int, bool | None]
"""What hosts have in common: their variables, and what a condition says of them."""


class PlannedStep(msgspec.Struct, frozen=True, eq=False):
    """A step, or one entry of its list, ready to become a node."""

    label: str
    spec: StepSpec
    path: DataPath
    condition: Expression | None
    named: tuple[tuple[DataPath, Reference], ...]
    """What its parameters name, with the places."""

    @property
    def when(self) -> str | None:
        return self.condition.text if self.condition else None

    @property
    def asked(self) -> tuple[Reference, ...]:
        """What its parameters and its condition name."""
        named = tuple(reference for _, reference in self.named)
        return (*named, *self.condition.references) if self.condition else named

    @property
    def is_early(self) -> bool:
        """Whether all its parameters are known when planning."""
        return all(reference.root in _EARLY for _, reference in self.named)

    def choice(self, host: InventoryHost) -> bool | None:
        """What its condition says of a host by what is peculiar to that; None if nothing."""
        condition = self.condition
        if condition is None or all(named.root != "host" for named in condition.references):
            return None
        return condition.decided(_scope(host))


class StepPlanner:
    """Makes steps of a file into steps of a graph; finds what is wrong on the way."""

    def __init__(self, inventory: Inventory, variables: Mapping[str, Any], files: ExternalFiles):
        self.findings: list[Finding] = []
        self.notices: list[Finding] = []
        self.gaps: set[DataPath] = set()
        """The steps that could not be judged, or not in full, because something is wrong."""
        self.digests: dict[str, str] = {}
        self.variables: set[str] = set()
        """Every variable that some step names."""
        self._inventory = inventory
        self._variables = variables
        self._files = files
        self._planned: dict[DataPath, list[PlannedStep]] = {}
        self._fine: set[tuple[PlannedStep, _Group]] = set()
        """Steps with the groups of hosts for which nothing was found."""

    def planned(
        self, step: StepFields, path: DataPath, hosts: Sequence[str]
    ) -> Sequence[PlannedStep]:
        """The step once, or once per entry of its list; the same objects however often asked.

        The hosts are all that it runs on, whether in batches or not.
        """
        if (known := self._planned.get(path)) is None:
            known = self._planned[path] = list(self._entries(step, path, hosts))
        return known

    def _entries(
        self, step: StepFields, path: DataPath, hosts: Sequence[str]
    ) -> Iterator[PlannedStep]:
        params, when = conditions.turned(step.kind, step.params, step.when)
        if step.for_each is None:
            yield from self._one(step, path, step.name, params, when, hosts)
            return
        self.variables.update(reference.path[0] for _, reference in _named(step.for_each, path))
        items = self._items(step, path)
        for label, item in zip(_labels(items), items, strict=True):
            try:
                condition = when and expressions.with_item(when, item)
            except BadExpression as error:
                place = conditions.place(step.kind, path)
                self._lost(path, Finding(place, str(error), error.hint))
                continue
            inside = (*path, step.kind)
            missing = list(_missing_items(params, inside, item))
            if missing:
                self._lost(path, *missing)
                continue
            own = parameters.as_taken(step.kind, params, references.with_item(params, item))
            brought = secrets.misplaced(step.kind, own)
            self.findings.extend(finding.under(*inside) for finding in brought)
            yield from self._one(step, path, f"{step.name}[{label}]", own, condition, hosts)

    def _items(self, step: StepFields, path: DataPath) -> list[Any]:
        place = (*path, "forEach")
        if not self._can_judge(reference for _, reference in _named(step.for_each, place)):
            self._lost(path)
            return []
        try:
            items = references.resolved(
                step.for_each,
                lambda reference: references.in_scope(reference, {"vars": self._variables}),
            )
        except BadReference as error:
            self._lost(path, Finding(place, str(error), error.hint))
            return []
        if not isinstance(items, list):
            message = f"found {shown(items)}, want a list"
            self._lost(path, Finding(place, message, "name a variable that holds a list"))
            return []
        if len(items) > MAX_ENTRIES:
            message = f"a list of {len(items)} entries, want at most {MAX_ENTRIES}"
            self._lost(path, Finding(place, message, "go over them inside of one command"))
            return []
        if not items:
            hint = "put something into the list, if the step shall run"
            self.notices.append(Finding(place, "an empty list: the step is left out", hint))
        return items

    def _lost(self, path: DataPath, *findings: Finding) -> None:
        """Note what keeps a step, or a value that it leaves, out of the graph."""
        self.findings.extend(findings)
        self.gaps.add(path)

    def _can_judge(self, asked: Iterable[Reference]) -> bool:
        return all(self._inventory.can_judge(reference) for reference in asked)

    def _one(
        self,
        step: StepFields,
        path: DataPath,
        label: str,
        params: Any,
        when: str | None,
        hosts: Sequence[str],
    ) -> Iterator[PlannedStep]:
        inside = (*path, step.kind)
        params = self._with_file_named(step.kind, params, inside, hosts)
        if params is None:
            return
        try:
            params = self._files.embedded(step.kind, params)
            condition = expressions.compile_expression(when) if when else None
        except BadFile as error:
            self._lost(path, Finding((*inside, error.key), str(error), error.hint))
            return
        except BadExpression as error:
            place = conditions.place(step.kind, path)
            self._lost(path, Finding(place, str(error), error.hint))
            return
        if (unreadable := templating.unreadable(step.kind, step.params, params)) is not None:
            self._lost(path, unreadable.under(*inside))
            return
        if step.kind == FETCH and not step.run_on_one_of and condition is None:
            known = [self._inventory.hosts[name] for name in hosts]
            clashes = targets.clashes(params[TO], params[BESIDE], known)
            self.findings.extend(finding.under(*inside, TO) for finding in clashes)
        named = tuple(_named(params, inside))
        asked = [reference for _, reference in named]
        asked.extend(condition.references if condition else ())
        self.variables.update(reference.path[0] for reference in asked if reference.root == "vars")
        fields = parameters.as_fields(step.kind, params)
        yield PlannedStep(
            label, self._spec(step.kind, fields, asked, inside), path, condition, named
        )

    def _with_file_named(
        self, kind: str, params: Mapping[str, Any], inside: DataPath, hosts: Sequence[str]
    ) -> Mapping[str, Any] | None:
        """The parameters with a `source` that is the name of a file; None if it comes to none."""
        if kind not in NAMING or not references.holds_references(source := params.get(SOURCE)):
            return params
        asked = [reference for _, reference in _named(source, inside)]
        self.variables.update(reference.path[0] for reference in asked if reference.root == "vars")
        if not self._can_judge(asked):
            self._lost(inside[:-1])
            return None
        known = [self._inventory.hosts[name] for name in hosts or (CONTROL_NODE,)]
        name, wrong = sources.named(str(source), known)
        if wrong:
            self._lost(inside[:-1], *(finding.under(*inside, SOURCE) for finding in wrong))
        return None if wrong else {**params, SOURCE: name}

    def _spec(
        self, kind: str, fields: dict[str, Any], asked: Sequence[Reference], place: DataPath
    ) -> StepSpec:
        self.digests[f"step:{kind}"] = registry.digest(kind)
        self.digests.update(templating.digests(kind, fields))
        cls = registry.find(kind)
        needs: tuple[str, ...] = ()
        provides: tuple[Key, ...] = ()
        if cls.needs is not Step.needs or cls.provides is not Step.provides:
            sketch = parameters.sketch(cls, fields)
            needs, provides = sketch.needs(), sketch.provides()
        if not all(_is_settled(key) for key in provides):
            message = "the value it leaves depends on a reference"
            hint = "write its name, scope and time to live out: the graph has to know them"
            self._lost(place, Finding(place, message, hint))
            provides = ()
        values = [reference.path[0] for reference in asked if reference.root == "values"]
        needed = tuple(dict.fromkeys((*needs, *values)))
        return StepSpec(kind, fields, needed, provides, references=True)

    def check(self, step: PlannedStep, hosts: Sequence[str], *, everywhere: bool = False) -> None:
        """Note what the step names and these hosts don't have, or what it can't take from them.

        With `everywhere`, only what is wrong on all of them.
        """
        if not self._can_judge(step.asked):
            self.gaps.add(step.path)
            return
        found = OnHosts()
        for number, (group, alike) in enumerate(self._alike(step, hosts).items()):
            if (step, group) in self._fine:
                continue
            host = self._inventory.hosts[alike[0]]
            wrong = list(_wrong_on(step, host, tried=number < MAX_TRIED))
            for finding in wrong:
                found.add(finding, alike)
            if not wrong:
                self._fine.add((step, group))
        self.findings.extend(found.findings(len(hosts), everywhere=everywhere))

    def secret_values(self) -> frozenset[str]:
        """The values that the steps planned so far leave as secrets."""
        return exposure.secret_values(step.spec for step in self._all())

    def exposed(self, secret: frozenset[str]) -> Iterator[Finding]:
        """Where the steps planned so far let one of these values be seen."""
        for step in self._all():
            found = exposure.exposed(step.spec, secret)
            yield from (finding.under(*step.path, step.spec.kind) for finding in found)

    def _all(self) -> Iterator[PlannedStep]:
        return (step for entries in self._planned.values() for step in entries)

    def _alike(self, step: PlannedStep, hosts: Sequence[str]) -> dict[_Group, list[str]]:
        """The hosts in groups for which the check comes to the same."""
        asked = step.asked
        # Every host has a name, an address and roles: only what lies deeper may be missing.
        deep = any(reference.root == "host" and len(reference.path) > 1 for reference in asked)
        own = any(reference.root == "vars" for reference in asked)
        groups: dict[_Group, list[str]] = {}
        for name in hosts:
            host = self._inventory.hosts[name]
            key = id(host) if deep else id(host.vars) if own else 0
            groups.setdefault((key, step.choice(host)), []).append(name)
        return groups


def _named(params: Any, path: DataPath) -> Iterator[tuple[DataPath, Reference]]:
    for place, reference in references.scan(params, path):
        if isinstance(reference, Reference):
            yield place, reference


def _is_settled(key: Key) -> bool:
    try:
        msgspec.convert(msgspec.to_builtins(key), Key)
    except msgspec.ValidationError:
        return False
    return _VALUE_NAME.fullmatch(key.name) is not None


def _wrong_on(step: PlannedStep, host: InventoryHost, *, tried: bool) -> Iterator[Finding]:
    scope = _scope(host)
    guarded: frozenset[Reference] = frozenset()
    if step.condition is not None:
        try:
            if step.condition.judged(scope) is False:
                return
        except BadExpression as error:
            place = conditions.place(step.spec.kind, step.path)
            yield Finding(place, str(error), remedy(error, host), of_host=error.of_host)
            return
        guarded = frozenset(step.condition.references) - frozenset(step.condition.certain)
    missing = list(_missing(step.named, host, guarded))
    yield from missing
    inside = (*step.path, step.spec.kind)
    named = [(place[len(inside) :], reference) for place, reference in step.named]
    brought = list(secrets.misplaced_by(step.spec.kind, named, scope))
    yield from (finding.under(*inside) for finding in brought)
    if not missing and not brought and tried and step.is_early:
        yield from (finding.under(*inside) for finding in _refusals(step.spec, scope))


def _scope(host: InventoryHost) -> Mapping[str, Any]:
    return {"vars": host.vars, "host": host.described()}


def _missing(
    named: Iterable[tuple[DataPath, Reference]],
    host: InventoryHost,
    guarded: frozenset[Reference],
) -> Iterator[Finding]:
    scope = _scope(host)
    for place, reference in named:
        if reference.root not in _EARLY or reference in guarded:
            continue
        try:
            references.in_scope(reference, scope)
        except BadReference as error:
            hint, written = remedy(error, host), reference.written_out
            yield Finding(place, str(error), hint, excerpt=written, of_host=error.of_host)


def _refusals(spec: StepSpec, scope: Mapping[str, Any]) -> Iterator[Finding]:
    try:
        fields = references.resolved(
            spec.params, lambda reference: references.in_scope(reference, scope)
        )
    except BadReference:
        # A variable that the condition asks for: whether it is needed shows only on the host.
        return
    fields = parameters.as_taken(spec.kind, spec.params, fields)
    found = list(parameters.refusals(spec.kind, fields))
    yield from found or templating.findings(spec.kind, fields)


def _missing_items(params: Any, path: DataPath, item: Any) -> Iterator[Finding]:
    for place, reference in _named(params, path):
        try:
            if reference.root == "item":
                references.look_up(reference, item)
        except BadReference as error:
            yield Finding(place, str(error), error.hint, excerpt=reference.written_out)


def _labels(items: Sequence[Any]) -> Sequence[str]:
    """A word for each entry that stays the same from run to run: its name, or its number."""
    words = [item.get("name") if isinstance(item, Mapping) else item for item in items]
    labels = [_label(word) for word in words]
    if None in labels or len(set(labels)) != len(labels):
        return [str(number) for number in range(len(items))]
    return [str(label) for label in labels]


def _label(word: Any) -> str | None:
    if isinstance(word, bool) or not isinstance(word, str | int):
        return None
    return str(word) if _LABEL.fullmatch(str(word)) else None
