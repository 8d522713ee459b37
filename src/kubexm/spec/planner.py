"""From a pipeline file to an execution graph, by the same algebra that code uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from kubexm.common.about import About
from kubexm.common.digests import Digests
from kubexm.common.nearest import did_you_mean
from kubexm.common.roles import CONTROL_NODE
from kubexm.document.findings import Finding
from kubexm.document.forms import camel
from kubexm.document.source import DataPath
from kubexm.errors import InvalidGraph, InvalidPipeline, Problem
from kubexm.plan import (
    ExecutionFragment,
    ExecutionGraph,
    ExecutionNode,
    HookFragment,
    HostGroup,
    Pool,
    build,
    node,
    one_of,
    rolling,
    scope,
)
from kubexm.plan.scope import Moment
from kubexm.sim.settings import WorldSettings
from kubexm.spec import complaints, exposure, inventory, linking, problems, references
from kubexm.spec.files import ExternalFiles
from kubexm.spec.hosts import connection_secrets, shared_addresses
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.linking import Sibling
from kubexm.spec.model import (
    HookSpec,
    HooksSpec,
    Link,
    ModuleSpec,
    RollingSpec,
    ScopeFields,
    StepFields,
    StepSpec,
    TaskSpec,
)
from kubexm.spec.overrides import Override
from kubexm.spec.pipeline import Pipeline
from kubexm.spec.references import Reference
from kubexm.spec.settings import Settings, constraints
from kubexm.spec.sound import Leavings
from kubexm.spec.steps import PlannedStep, StepPlanner
from kubexm.step.parameters import SECRETS

_MOMENTS: tuple[tuple[str, Moment], ...] = (
    ("pre", "pre"),
    ("post", "post"),
    ("on_failure", "on-failure"),
    ("always", "always"),
)


class PlannedPipeline(msgspec.Struct, frozen=True):
    """What a pipeline comes to: the graph, the hosts it runs on, and what is worth saying."""

    graph: ExecutionGraph
    hosts: tuple[InventoryHost, ...]
    """All hosts, the control node first; their variables are final."""
    world: WorldSettings
    """How simulated hosts behave."""
    warnings: tuple[Problem, ...] = ()
    """What is probably not meant as it is written."""
    notices: tuple[Problem, ...] = ()
    """What is worth knowing when one looks at the plan."""
    places: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Where the nodes that ask for secrets or for a person are written, and the secrets that
    connections need."""
    judge: Callable[[Mapping[str, Mapping[str, Any]]], Sequence[Problem]] | None = None
    """Holds hosts against each other by the facts of each, before anything is changed: what is
    worth a warning, or `Refused`."""
    about: About | None = None
    """The cluster that it is about, if it is about one."""


def plan(
    pipeline: Pipeline, overrides: Sequence[Override] = (), digests: Digests | None = None
) -> PlannedPipeline:
    """Plan a pipeline; `InvalidPipeline` with every problem if it can't be."""
    return _Planner(pipeline, overrides, digests or Digests()).planned()


class _Place(msgspec.Struct, frozen=True):
    """Where the planner is: a path in the file, the settings there, the hosts that roll."""

    path: DataPath
    settings: Settings
    rolling: frozenset[str] | None = None
    """All hosts of the scope that goes in batches."""
    batch: tuple[str, ...] | None = None
    """Those of them that are planned now."""
    unsettled: bool = False
    """Whether it is not known where or when the steps here run: they become no nodes."""

    def inside(self, spec: ScopeFields | StepFields, *path: str | int) -> _Place:
        """The place of a part of this scope."""
        return replace(self, path=(*self.path, *path), settings=self.settings.within(spec))


Body = Callable[[_Place], ExecutionFragment | None]


class _Planner:
    """Walks a file once and collects what is wrong and what is worth saying."""

    def __init__(self, pipeline: Pipeline, overrides: Sequence[Override], digests: Digests) -> None:
        self._pipeline = pipeline
        self._document = pipeline.document
        self._body = pipeline.spec.spec
        self._overrides = overrides
        self._known_gaps = pipeline.gaps
        directory = self._document.directory
        self._inventory, self._findings = inventory.build(
            self._body, overrides, pipeline.gaps, directory
        )
        self._files = ExternalFiles(directory, digests)
        variables = self._inventory.hosts[CONTROL_NODE].vars
        self._steps = StepPlanner(self._inventory, variables, self._files)
        self._warnings = [*shared_addresses(self._body.hosts)]
        self._looked_at: set[DataPath] = set()
        self._origin: dict[int, DataPath] = {}
        self._unplaced: list[Problem] = []
        """What is wrong and stands nowhere in the file."""
        self._gaps = set(pipeline.gaps.paths)
        """Where steps are missing in the graph, because something is wrong with them."""

    def planned(self) -> PlannedPipeline:
        body, name = self._body, self._pipeline.name
        root = _Place(("spec",), Settings().within(body))
        whole = self._scope(name, body, root, self._modules) or ExecutionFragment()
        self._unplaced.extend(self._unknown_overrides())
        groups = tuple(self._groups())
        secret = self._steps.secret_values()
        self._findings.extend(self._steps.exposed(secret))
        private = self._kept_private(linking.with_values(whole), secret)
        graph = self._graph(name, private, groups)
        if graph is None or not self._pipeline.is_valid or self._unplaced or self._all_findings():
            raise self._refusal()
        return PlannedPipeline(
            graph,
            tuple(self._inventory.hosts.values()),
            msgspec.convert(body.simulate, WorldSettings),
            tuple(self._said(graph)),
            tuple(self._placed(self._steps.notices)),
            self._places(graph),
        )

    def _all_findings(self) -> list[Finding]:
        return [*self._pipeline.found, *self._findings, *self._steps.findings]

    def _refusal(self) -> InvalidPipeline:
        said = "can't be planned" if self._pipeline.is_valid else "is not a valid pipeline"
        found = [*self._unplaced, *self._placed(self._all_findings())]
        is_all = not self._known_gaps.hosts and not self._all_gaps()
        return problems.refusal(self._document, said, found, is_all=is_all)

    def _all_gaps(self) -> set[DataPath]:
        return self._gaps | self._steps.gaps

    def _placed(self, findings: Iterable[Finding]) -> list[Problem]:
        return problems.placed(findings, self._document)

    def _places(self, graph: ExecutionGraph) -> dict[str, str]:
        undone = (node for item in graph.compensations for node in item.nodes)
        paths = {
            node.id: self._origin[id(node.step)]
            for node in (*graph, *undone)
            if node.step.kind == "pause" or node.step.kind in SECRETS
        }
        for uri, path in connection_secrets(self._document.data["spec"]):
            paths.setdefault(uri, path)
        return {name: str(self._document.at(path)) for name, path in paths.items()}

    def _unknown_overrides(self) -> Iterator[Problem]:
        if self._all_gaps():
            return  # what is not planned may name them
        written = [self._body.vars, *(host.vars for host in self._body.hosts)]
        written.extend(group.vars for group in self._body.groups.values())
        known = {name for variables in written for name in variables}
        named = {ref.path[0] for _, ref in references.scan(written) if isinstance(ref, Reference)}
        for override in self._overrides:
            name = override.path[0]
            if name not in known | named | self._steps.variables:
                message = f"the pipeline has no variable `{name}`"
                declare = f"declare `{name}` under `spec.vars`, or leave the option out"
                hint = "; ".join(filter(None, (declare, did_you_mean(name, known))))
                yield Problem(message, str(override), hint)

    def _modules(self, place: _Place) -> ExecutionFragment | None:
        siblings = [
            Sibling(module.name, self._module(module, place, number), module.after)
            for number, module in enumerate(self._body.modules)
        ]
        return self._linked(siblings, self._body.link, (*place.path, "modules"))

    def _module(self, module: ModuleSpec, place: _Place, number: int) -> ExecutionFragment | None:
        inner = place.inside(module, "modules", number)
        tasks = partial(self._tasks, module)
        return self._scope(module.name, module, inner, tasks, module.rolling)

    def _tasks(self, module: ModuleSpec, place: _Place) -> ExecutionFragment | None:
        siblings = [
            Sibling(task.name, self._task(task, place, number), task.after)
            for number, task in enumerate(module.tasks)
        ]
        return self._linked(siblings, module.link, (*place.path, "tasks"))

    def _task(self, task: TaskSpec, place: _Place, number: int) -> ExecutionFragment | None:
        inner = place.inside(task, "tasks", number)
        steps = partial(self._listed, task.steps, key="steps", link=task.link)
        return self._scope(task.name, task, inner, steps, task.rolling)

    def _listed(
        self, steps: Sequence[StepSpec], place: _Place, *, key: str, link: Link
    ) -> ExecutionFragment | None:
        siblings = [
            Sibling(step.name, self._step(step, place.inside(step, key, number), link), step.after)
            for number, step in enumerate(steps)
        ]
        return self._linked(siblings, link, (*place.path, key), same_host=True)

    def _linked(
        self, siblings: Sequence[Sibling], link: Link, path: DataPath, *, same_host: bool = False
    ) -> ExecutionFragment | None:
        ring = list(linking.cycles(siblings, link))
        self._findings.extend(finding.under(*path) for finding in ring)
        if ring:
            self._gaps.add(path)
            return None
        if link == "per-host":
            self._warnings.extend(finding.under(*path) for finding in linking.strangers(siblings))
        return linking.linked(siblings, link, same_host=same_host)

    def _scope(
        self,
        name: str,
        spec: ScopeFields,
        place: _Place,
        body: Body,
        batches: RollingSpec | None = None,
    ) -> ExecutionFragment | None:
        place = self._settled(place)
        if self._is_first_look(place):
            self._known_roles(spec, place)
        whole = body(place) if batches is None else self._rolling(batches, place, body)
        return scope(
            name,
            whole,
            hooks=list(self._hooks(spec.hooks, place)),
            compensate=self._listed(spec.compensate, place, key="compensate", link="per-host"),
        )

    def _rolling(self, spec: RollingSpec, place: _Place, body: Body) -> ExecutionFragment:
        hosts = self._hosts(place.settings.roles, place)
        rolls = replace(place, rolling=frozenset(hosts))
        if not hosts:
            body(replace(rolls, batch=()))  # to see what is wrong there whatever the hosts
        return rolling(hosts, spec.batch, lambda some: body(replace(rolls, batch=tuple(some))))

    def _hooks(self, hooks: HooksSpec, place: _Place) -> Iterator[HookFragment]:
        for attribute, moment in _MOMENTS:
            listed: tuple[HookSpec, ...] = getattr(hooks, attribute)
            for number, hook in enumerate(listed):
                inner = place.inside(hook, "hooks", camel(attribute), number)
                if (fragment := self._step(hook, inner, "per-host")) is not None:
                    yield HookFragment(moment, fragment, hook.barrier)

    def _step(self, step: StepFields, place: _Place, link: Link) -> ExecutionFragment | None:
        if place.path in self._known_gaps.left_out:
            return None
        place = self._settled(place)
        if is_first := self._is_first_look(place):
            self._known_roles(step, place)
            self._rolls_along(step, place)
        roles = step.run_on_one_of or place.settings.roles
        hosts = self._hosts(roles, place)
        entries = self._steps.planned(step, place.path, self._inventory.names(roles))
        if not hosts:
            if is_first:
                self._look_everywhere(entries)
            return None
        for entry in entries:
            self._steps.check(entry, hosts)
        nodes = [self._node(entry, step, place, hosts) for entry in entries]
        return linking.sequence(nodes, link)

    def _settled(self, place: _Place) -> _Place:
        """The place, marked if the file leaves open where or when its steps run."""
        is_open = place.path in self._known_gaps.unsettled or self._known_gaps.hosts
        return replace(place, unsettled=True) if is_open else place

    def _look_everywhere(self, entries: Sequence[PlannedStep]) -> None:
        """Find what is wrong with steps whatever host they would run on."""
        # What is said is that of the first: the control node last, which is unlike the others.
        hosts = tuple(reversed(self._inventory.hosts))
        for entry in entries:
            self._steps.check(entry, hosts, everywhere=True)

    def _node(
        self, entry: PlannedStep, step: StepFields, place: _Place, hosts: tuple[str, ...]
    ) -> ExecutionFragment | None:
        self._origin[id(entry.spec)] = entry.path
        settings = place.settings
        single = node(
            "",
            entry.spec,
            on=one_of(hosts) if step.run_on_one_of else hosts,
            title=entry.label,
            retry=settings.retry,
            limits=constraints(step.limits),
            timeout=settings.timeout,
            tolerance=settings.tolerance,
            when=entry.when,
            ignore_errors=settings.ignore_errors,
            tags=settings.tags,
        )
        hooks = list(self._hooks(step.hooks, place)) if isinstance(step, StepSpec) else []
        return scope(entry.label, single, hooks=hooks)

    def _hosts(self, roles: tuple[str, ...], place: _Place) -> tuple[str, ...]:
        if place.unsettled:
            return ()
        if place.batch is None:
            return self._inventory.names(roles)
        among = self._inventory.members(roles)
        return tuple(name for name in place.batch if name in among)

    def _is_first_look(self, place: _Place) -> bool:
        """Whether this part was not planned before, for another batch."""
        known = len(self._looked_at)
        self._looked_at.add(place.path)
        return len(self._looked_at) > known

    def _known_roles(self, spec: ScopeFields | StepFields, place: _Place) -> None:
        if self._known_gaps.hosts:
            return
        known = self._inventory.roles
        asked = [("runOnRoles", spec.run_on_roles or ())]
        if isinstance(spec, StepFields):
            asked.append(("runOnOneOf", spec.run_on_one_of or ()))
        for key, roles in asked:
            for number, role in enumerate(roles):
                if role not in known:
                    self._gaps.add(place.path)
                    message, hint = f"no host has the role `{role}`", self._role_hint(role)
                    finding = Finding((key, number), message, hint)
                    self._findings.append(finding.under(*place.path))

    def _role_hint(self, role: str) -> str:
        if role in self._inventory.hosts:
            return f"`{role}` is a host: give it a role, and name that"
        declare = f"if it may have no host, say `roles: [{role}]` under `spec`"
        return "; ".join(filter(None, (declare, did_you_mean(role, self._inventory.roles))))

    def _rolls_along(self, step: StepFields, place: _Place) -> None:
        if place.rolling is None or place.unsettled:
            return
        if step.run_on_one_of:
            message, hint = "`runOnOneOf` inside of `rolling`", "put it into a task of its own"
            self._findings.append(Finding((*place.path, "runOnOneOf"), message, hint, at_key=True))
        elif not place.rolling.issuperset(self._inventory.names(place.settings.roles)):
            message = "runs on hosts that are not among those that roll"
            hint = "put it into a task of its own, before or after the rolling one"
            self._findings.append(Finding((*place.path, "runOnRoles"), message, hint))

    def _groups(self) -> Iterator[HostGroup]:
        for name, group in self._body.groups.items():
            hosts = self._inventory.names(group.roles)
            if group.minimum is None:
                continue
            if group.minimum > len(hosts):
                if self._known_gaps.hosts:
                    continue
                message = f"wants {group.minimum} hosts, and only {len(hosts)} have these roles"
                path = ("spec", "groups", name, "minimum")
                self._findings.append(Finding(path, message, "lower it or add hosts"))
                continue
            yield HostGroup(name, hosts, group.minimum)

    def _kept_private(self, whole: ExecutionFragment, secret: frozenset[str]) -> ExecutionFragment:
        """The same with every step that holds a secret value as such a step has to be.

        Only now is it known which values are secret: who leaves one may stand after who is first
        planned to take it.
        """

        def kept(node: ExecutionNode) -> ExecutionNode:
            step = exposure.kept_private(node.step, secret)
            self._origin[id(step)] = self._origin[id(node.step)]
            return replace(node, step=step)

        if not secret:
            return whole
        undone = (replace(item, nodes=tuple(map(kept, item.nodes))) for item in whole.compensations)
        return ExecutionFragment(tuple(map(kept, whole.nodes)), whole.joins, tuple(undone))

    def _graph(
        self, name: str, whole: ExecutionFragment, groups: tuple[HostGroup, ...]
    ) -> ExecutionGraph | None:
        # Nobody misses a value that a step may leave which could not be planned.
        anything = self._known_gaps.blanks
        left = Leavings(self._document.data, self._all_gaps(), anything=anything)
        part = linking.without_needs(whole, left)
        try:
            return build(
                name,
                part.nodes,
                joins=part.joins,
                hosts=tuple(self._inventory.hosts),
                groups=groups,
                pools={key: Pool(pool.size, pool.scope) for key, pool in self._body.pools.items()},
                on_failure=self._body.on_failure,
                digests={**self._steps.digests, **self._files.digests},
                compensations=part.compensations,
            )
        except InvalidGraph as error:
            found = error.problems or (Problem(error.message, hint=error.hint),)
            self._complain(found, whole)
            return None

    def _complain(self, found: Iterable[Problem], whole: ExecutionFragment) -> None:
        """Note problems of the graph at the steps they are about."""
        undone = (item for part in whole.compensations for item in part.nodes)
        origin = {item.id: self._origin[id(item.step)] for item in (*whole.nodes, *undone)}
        findings, elsewhere = complaints.placed(found, origin, self._document)
        self._findings.extend(findings)
        self._unplaced.extend(elsewhere)

    def _said(self, graph: ExecutionGraph) -> Iterator[Problem]:
        yield from self._placed(self._warnings)
        if not graph.nodes:
            hint = f"add hosts with the roles it names, or run it on `{CONTROL_NODE}`"
            yield Problem("nothing to do: no step has a host to run on", hint=hint)
