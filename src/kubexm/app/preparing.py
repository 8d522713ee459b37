"""What an operation on a cluster needs before it can be planned for good: facts, and its things."""

from __future__ import annotations

from kubexm.app import artifacts, clusters, hosts, known, lasting, worlds
from kubexm.app.artifacts import Sought, as_problems
from kubexm.app.cluster_hosts import inventory
from kubexm.app.execution import Front
from kubexm.app.params import OperationParams, RunParams
from kubexm.app.places import open_store
from kubexm.app.remembered import Facts, stored_facts
from kubexm.common.checks import Finding
from kubexm.common.paths import Home
from kubexm.common.roles import CONTROL_NODE
from kubexm.common.threads import in_thread
from kubexm.errors import InvalidInput
from kubexm.pipeline import create
from kubexm.plan.select import Selection
from kubexm.resource import bundle
from kubexm.resource.store import Store


async def prepared(params: RunParams, front: Front, home: Home) -> Facts | None:
    """What hosts tell, where a plan hangs on it and nobody knows; and the bundle in the store.

    None if what is declared or stored will do.
    """
    source = params.plan.pipeline
    if not isinstance(source, OperationParams):
        return None
    if source.operation == "create-cluster":
        await in_thread(_refuse_another_cluster, source, params, home)
    if params.simulate:
        front.warn(await in_thread(artifacts.foretold, Sought(source.cluster, {}, source.bundle)))
        return None
    if source.bundle is not None:
        await in_thread(bundle.contents, source.bundle)  # what is none is told before a host is
    facts = await _told(source, front, home)
    if source.operation == "create-cluster":
        await _at_hand(params, Sought(source.cluster, facts or {}, source.bundle), front, home)
    return facts


def _refuse_another_cluster(source: OperationParams, params: RunParams, home: Home) -> None:
    """What the file says has to fit the cluster that is there, if there is one."""
    cluster = clusters.read_whole(source.cluster, templates=source.templates)
    name = cluster.declared.name
    world = worlds.place(params, name, home)
    if (before := known.there(home, name, world)) is not None:
        lasting.refuse(cluster, before)


async def _at_hand(params: RunParams, sought: Sought, front: Front, home: Home) -> None:
    """All that is needed can be had, else it is refused before anything begins; see to a bundle."""
    is_part = params.plan.selection != Selection()
    if sought.bundle is None and (is_part or await in_thread(_was_made, sought, home)):
        return  # who wants a part, or has it all, need not have what the rest is made of
    found = await artifacts.lacking(sought, home, front.vault)
    # A dry run of a cluster that is there needs nothing of it.
    is_needed = sought.bundle is not None or not params.check
    front.warn(as_problems(found, "warning", *(() if is_needed else ("refusal",))))
    if is_needed:
        _require(sought, found)
    if sought.bundle is not None and not params.check:
        front.tell(f"bringing `{sought.bundle}` into the store of artifacts")
        await bundle.load(sought.bundle, Store(home.artifacts))


def _was_made(sought: Sought, home: Home) -> bool:
    """Whether the cluster was made, and not deleted since: then nearly nothing is fetched."""
    if not home.database.exists():
        return False
    with open_store(home.database) as store:
        found = store.runs(clusters.read(sought.cluster).declared.name)
        last = next((run for run in found if run.status == "Success" and not run.selected), None)
        nodes = () if last is None else store.documents(last.id).graph.nodes
        return any(id.startswith(f"{create.NAME}/") for id in nodes)


def _require(sought: Sought, found: list[Finding]) -> None:
    problems = as_problems(found, "refusal")
    if not problems:
        return
    if sought.bundle is not None:
        message = f"the bundle `{sought.bundle}` is not for this cluster"
        hint = "build one for it: kubexm bundle build -f FILE -o BUNDLE; nothing was changed"
    else:
        message = "what the cluster needs can't be had"
        hint = (
            "nothing was changed; to go on without this check, write"
            f" `preflight: {{skip: [{artifacts.CHECK}]}}` in the `spec` of the file"
        )
    raise InvalidInput(message, problems=problems, hint=hint)


async def _told(source: OperationParams, front: Front, home: Home) -> Facts | None:
    """What is asked of hosts whose architecture is neither declared nor known from before."""
    cluster = clusters.read_whole(source.cluster, templates=source.templates)
    known, _ = stored_facts(cluster.declared.name)
    members = [host for host in inventory(cluster) if host.name != CONTROL_NODE]
    unknown = [
        host
        for host in members
        if "arch" not in host.facts and host.name not in {*known, *source.without}
    ]
    if not unknown:
        return None
    checked = await hosts.looked_at(unknown, None, front, home)
    told = {host: each.facts for host, each in known.items()}
    return told | {host.name: dict(host.facts) for host in checked if host.reached}
