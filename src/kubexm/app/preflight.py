"""Whether the hosts of a cluster file are fit for it, by every check at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec.structs import replace as with_fields

from kubexm.app import across, artifacts, clusters, places, worlds
from kubexm.app.artifacts import Sought
from kubexm.app.cluster_hosts import MACHINES, inventory
from kubexm.app.examining import REACHED, Looked, looked_at
from kubexm.app.execution import Front
from kubexm.app.params import ClusterParams
from kubexm.app.readiness import Readiness
from kubexm.common.checks import CHECKS, Finding, Kind
from kubexm.common.paths import Home
from kubexm.common.roles import CONTROL_NODE, CONTROL_PLANE
from kubexm.common.threads import in_thread
from kubexm.config.cluster import Cluster
from kubexm.config.rules.rule import Declared
from kubexm.plan.graph import as_graph
from kubexm.plan.select import named_hosts
from kubexm.resource import bundle, catalog
from kubexm.sim.settings import Machine, WorldSettings
from kubexm.spec.inventory import InventoryHost
from kubexm.step.preflight import Fit
from kubexm.task.preflight_groups import groups


class PreflightParams(msgspec.Struct, frozen=True):
    """A cluster file, and which of its hosts are to be looked at."""

    cluster: ClusterParams
    hosts: tuple[str, ...] = ()
    """Names, with `*` for any part of one; all hosts if there are none."""
    simulate: bool = False
    world: Path | None = None
    """Where the simulated world lies; by default under the data directory, by name."""
    bundle: Path | None = None
    """Where everything comes from, so that nobody outside is asked."""


class Preflight(msgspec.Struct, frozen=True):
    """What came of all checks."""

    cluster: str
    hosts: tuple[str, ...]
    """Those that were looked at."""
    made: Mapping[str, tuple[str, ...]]
    """By check the hosts on which it was made."""
    findings: tuple[Finding, ...]
    skipped: tuple[str, ...] = ()
    """Checks that the file leaves out."""
    missing: tuple[str, ...] = ()
    """Hosts that could not be asked."""
    notes: tuple[str, ...] = ()
    """What else is worth knowing, such as checks that this look at hosts leaves out."""

    @property
    def is_refused(self) -> bool:
        """Whether no cluster would be made with these hosts."""
        return any(each.kind == "refusal" for each in self.findings)


async def check(params: PreflightParams, front: Front, home: Home) -> Preflight:
    """Connect to all hosts and make every check."""
    known = catalog.load(params.cluster.catalogs)
    cluster = clusters.read_whole(params.cluster, known)
    if params.bundle is not None:
        await in_thread(bundle.contents, params.bundle)  # what is none is told before a host is
    chosen = _chosen(cluster, params.hosts)
    steps = _steps(cluster.declared, known)
    with _world(params, cluster.declared, home) as world:
        reached = [] if world is not None else chosen
        nothing = as_graph(cluster.declared.name, None, hosts=())
        Readiness(nothing, front.confirm, hosts=reached, vault=front.vault).require({})
        looked = await looked_at(chosen, steps, world, front, home)
    things = await _things(params, looked, front, home)
    return _told(cluster.declared, chosen, steps, looked, things)


async def _things(
    params: PreflightParams, looked: Looked, front: Front, home: Home
) -> list[Finding] | None:
    """What can't be had of all that the cluster needs; None in a simulation."""
    if params.simulate:
        return None
    sought = Sought(params.cluster, looked.facts, params.bundle)
    return await artifacts.lacking(sought, home, front.vault)


def _chosen(cluster: Cluster, patterns: Sequence[str]) -> list[InventoryHost]:
    known = {host.name: host for host in inventory(cluster) if host.name != CONTROL_NODE}
    if not patterns:
        return [*known.values()]
    return [known[name] for name in named_hosts(patterns, [*known], cluster.declared.name)]


def _steps(declared: Declared, known: catalog.Catalog) -> dict[str, Fit]:
    """What every host has to be like."""
    network, version = declared.spec.network, declared.spec.kubernetes.version
    cilium = ""
    if network.plugin == "cilium":
        cilium = network.cilium.version or known.default("cilium", version)
    arch = {one.name: one.arch for one in declared.members if one.arch is not None}
    found = groups(declared, arch, cilium)
    return {host: group.step for group in found for host in group.hosts}


def _told(
    declared: Declared,
    chosen: Sequence[InventoryHost],
    steps: Mapping[str, Fit],
    looked: Looked,
    things: Sequence[Finding] | None,
) -> Preflight:
    asked = {host.name: steps[host.name] for host in chosen if host.name not in looked.lost}
    facts = {name: told for name, told in looked.facts.items() if name in asked}
    skip = declared.spec.preflight.skip
    found = [
        *_of_lost(declared, looked),
        *_settled(looked),
        *across.across(facts, declared),
        *(things or ()),
    ]
    return Preflight(
        cluster=declared.name,
        hosts=tuple(host.name for host in chosen),
        made=_made(declared, chosen, asked, with_things=things is not None),
        findings=tuple(_in_order(found, chosen)),
        skipped=tuple(name for name in CHECKS if name in skip),
        missing=tuple(looked.lost),
        notes=(artifacts.NOT_SIMULATED,) if things is None else (),
    )


def _in_order(found: Sequence[Finding], chosen: Sequence[InventoryHost]) -> list[Finding]:
    """By check, then by host, whoever was the first to answer."""
    checks = {name: number for number, name in enumerate(CHECKS)}
    hosts = {host.name: number for number, host in enumerate(chosen)}
    return sorted(
        found, key=lambda each: (checks[each.check], *(hosts.get(host, -1) for host in each.hosts))
    )


def _of_lost(declared: Declared, looked: Looked) -> Iterator[Finding]:
    """No cluster begins without a control plane or a member of etcd; others may be missing."""
    begin = (*declared.having(CONTROL_PLANE), *declared.etcd_members)
    needed = {member.name for member in begin} if not looked.is_begun else set()
    for name, finding in looked.lost.items():
        spared = finding.check == REACHED and name not in needed
        kind: Kind = "warning" if spared else "refusal"
        if finding.check not in declared.spec.preflight.skip:
            yield with_fields(finding, kind=kind)


def _settled(looked: Looked) -> Iterator[Finding]:
    """Where a part of the cluster is there already, the address of its endpoint is its own."""
    for each in looked.findings:
        its_own = each.check == "endpoint-address-free" and each.kind == "refusal"
        what = "the cluster has it already"
        if its_own and looked.is_begun:
            yield with_fields(each, found=what, figure="", kind="held")
        else:
            yield each


def _made(
    declared: Declared,
    chosen: Sequence[InventoryHost],
    steps: Mapping[str, Fit],
    *,
    with_things: bool,
) -> dict[str, tuple[str, ...]]:
    """By check the hosts on which it was made, in the order of the checks."""
    found: dict[str, list[str]] = {REACHED: [host.name for host in chosen]}
    for host, step in steps.items():
        for name in step.checks:
            found.setdefault(name, []).append(host)
    between = across.JUDGES if len(steps) > 1 else across.OF_ONE
    found |= {name: [*steps] for name in between}
    if with_things:
        found[artifacts.CHECK] = [CONTROL_NODE]
    skip = declared.spec.preflight.skip
    return {name: tuple(found[name]) for name in CHECKS if found.get(name) and name not in skip}


@contextmanager
def _world(params: PreflightParams, declared: Declared, home: Home) -> Iterator[Path | None]:
    """The simulated world of the cluster, if that is wanted; one to throw away if there is none."""
    path = places.world_path(home, declared.name, params.world)
    if not params.simulate:
        yield None
    elif (path / worlds.DOCUMENT).exists():
        _refuse_another(path, declared)
        yield path
    else:
        from kubexm.sim.world import World

        with TemporaryDirectory(prefix="kubexm-") as directory:
            World.create(Path(directory), _settings(declared)).close()
            yield Path(directory)


def _refuse_another(path: Path, declared: Declared) -> None:
    """A world whose hosts are not those of the file would tell what is true of other hosts.

    Other settings may differ: a host that is too small is what a simulation is made for.
    """
    from kubexm.sim.world import World

    with closing(World.open(path)) as world:
        made = world.settings
    for member in declared.members:
        kind = next((glob for glob in made.machines if fnmatchcase(member.name, glob)), "")
        machine = made.machines.get(kind, made.machine)
        is_like = member.arch is None or machine.arch == MACHINES[member.arch]
        if made.addresses.get(member.name) != member.internal or not is_like:
            raise worlds.another(path)


def _settings(declared: Declared) -> WorldSettings:
    """Simulated hosts like those that the file declares."""
    arm = [member.name for member in declared.members if member.arch == "arm64"]
    return WorldSettings(
        addresses={member.name: member.internal for member in declared.members},
        machines=dict.fromkeys(arm, Machine(arch=MACHINES["arm64"])),
    )
