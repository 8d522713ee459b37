"""What an operation on a cluster needs before it can be planned for good: facts, and its bundle."""

from __future__ import annotations

from pathlib import Path

from kubexm.app import clusters, hosts
from kubexm.app.bills import BillParams, billed
from kubexm.app.cluster_hosts import inventory
from kubexm.app.execution import Front
from kubexm.app.params import OperationParams, RunParams
from kubexm.app.remembered import Facts, stored_facts
from kubexm.common.paths import Home
from kubexm.common.roles import CONTROL_NODE
from kubexm.errors import InvalidInput
from kubexm.resource import bundle
from kubexm.resource.store import Store


async def prepared(params: RunParams, front: Front, home: Home) -> Facts | None:
    """What hosts tell, where a plan hangs on it and nobody knows; and the bundle in the store.

    None if what is declared or stored will do.
    """
    source = params.plan.pipeline
    if not isinstance(source, OperationParams) or params.simulate:
        return None
    if source.bundle is not None and source.operation == "create-cluster":
        await _brought(source, source.bundle, params.check, front, home)
    return await _told(source, front, home)


async def _brought(
    source: OperationParams, path: Path, check: bool, front: Front, home: Home
) -> None:
    """All of a bundle in the store; one that lacks something is refused before anything begins."""
    wanted = billed(BillParams(file=source.cluster.file, catalogs=source.cluster.catalogs))
    lacking = bundle.missing(bundle.contents(path), wanted.bill)
    if lacking:
        raise InvalidInput(
            f"the bundle `{path}` is not for this cluster",
            problems=lacking,
            hint="build one for it: kubexm bundle build -f FILE -o BUNDLE; nothing was changed",
        )
    if not check:
        front.tell(f"bringing `{path}` into the store of artifacts")
        await bundle.load(path, Store(home.artifacts))


async def _told(source: OperationParams, front: Front, home: Home) -> Facts | None:
    """What is asked of hosts whose architecture is neither declared nor known from before."""
    cluster = clusters.read(source.cluster)
    known, _ = stored_facts(cluster.declared.name)
    members = [host for host in inventory(cluster) if host.name != CONTROL_NODE]
    unknown = [host for host in members if "arch" not in host.facts and host.name not in known]
    if not unknown:
        return None
    checked = await hosts.looked_at(unknown, None, front, home)
    told = {host: each.facts for host, each in known.items()}
    return told | {host.name: dict(host.facts) for host in checked if host.reached}
