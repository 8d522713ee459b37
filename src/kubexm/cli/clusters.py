"""Commands on clusters that the store knows, by their names."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kubexm.cli.flags import Output
from kubexm.cli.messages import notice, warn
from kubexm.cli.output import document, place, say, table
from kubexm.common.paths import Home
from kubexm.errors import Problem, StoreError

if TYPE_CHECKING:
    from kubexm.app.known import KnownCluster
    from kubexm.app.kubeconfig import Config
    from kubexm.spec.inventory import InventoryHost

Name = Annotated[
    str, Parameter(metavar="NAME", help="The cluster, as `kubexm get clusters` has it.")
]
_COLUMNS = ("NAME", "STATE", "VERSION", "CONTROL PLANES", "WORKERS", "ENDPOINT", "LAST TASK")


def list_(*, output: Output = "text") -> int:
    """All clusters that were made from this machine, and not deleted since."""
    from kubexm.app import known

    unusable: list[StoreError] = []
    found = known.clusters(Home.from_environment(), unusable.append)
    _tell(unusable, is_all=not found)
    if output != "text":
        document({"clusters": [data(one) for one in found]}, output)
    elif found:
        say(table(_COLUMNS, [_row(one) for one in found]))
    else:
        say("there are no clusters; `kubexm create cluster -f FILE` makes one")
    return max((error.exit_code for error in unusable), default=0)


def _tell(unusable: Sequence[StoreError], *, is_all: bool) -> None:
    """Tell of stores that can't be used; raise if nobody can know what there is."""
    first = 1 if is_all else 0
    warn(Problem(error.message, error.where, error.hint) for error in unusable[first:])
    if unusable and is_all:
        raise unusable[0]


def show(name: Name, /, *, output: Output = "text") -> int:
    """One cluster: its hosts, how it is reached, and what was done with it last."""
    from kubexm.app import known

    found = known.cluster(Home.from_environment(), name)
    if output == "text":
        say(_text(found))
    else:
        document({"cluster": data(found)}, output)
    return 0


def kubeconfig(
    name: Name,
    /,
    *,
    merge: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Bring it into the kubeconfig that kubectl uses: the first of $KUBECONFIG, or"
            " ~/.kube/config.",
        ),
    ] = False,
    server: Annotated[
        str | None,
        Parameter(metavar="URL", help="Where the API is reached from here, if kubexm can't know."),
    ] = None,
) -> int:
    """What lets kubectl and others into a cluster, for its administrator."""
    from kubexm.app import known
    from kubexm.app import kubeconfig as ways

    cluster = known.cluster(Home.from_environment(), name)
    config = asyncio.run(ways.usable(cluster, server))
    say(_merged(name, config) if merge else ways.text(config))
    return 0


def merge_kubeconfig(name: str) -> str:
    """Let kubectl into a cluster; what to say of it."""
    from kubexm.app import known
    from kubexm.app import kubeconfig as ways

    cluster = known.cluster(Home.from_environment(), name)
    return _merged(name, asyncio.run(ways.usable(cluster)))


def take_out_of_kubectl(home: Home, name: str) -> None:
    """Have kubectl forget a cluster that is no more; that it can't be done is only warned of."""
    from kubexm.app import brought

    files, problems = brought.take_out(home, name)
    for path in files:
        notice(f"`{name}` was taken out of {place(path)}")
    warn(problems)


def _merged(name: str, config: Config) -> str:
    from kubexm.app import brought, kubectl_config

    path = kubectl_config.usual_place(os.environ)
    brought.bring(Home.from_environment(), name, config, path)
    return f"`{name}` is in {place(path)} now: kubectl --context {name} get nodes"


def access(cluster: KnownCluster) -> dict[str, str]:
    """How one gets in: by hosts of the cluster, from elsewhere, and with what."""
    about = cluster.about
    found = {"endpoint": f"{about.server} ({about.endpoint})"}
    if about.servers != (about.server,):
        found["reached at"] = ", ".join(about.servers)
    if cluster.world is not None:
        found["hosts"] = f"simulated, in {place(cluster.world)}"
    elif _fetched(cluster):
        found["kubeconfig"] = place(about.kubeconfig)
    return found


def lines(facts: Mapping[str, str]) -> Iterable[str]:
    """One below the other."""
    return (f"{name + ':':<12} {value}" for name, value in facts.items())


def data(cluster: KnownCluster) -> dict[str, Any]:
    """A cluster for programs."""
    about = cluster.about
    return {
        "name": cluster.name,
        "labels": about.labels,
        "state": cluster.state,
        "since": cluster.since,
        "kubernetes": about.version,
        "endpoint": {"kind": about.endpoint, "server": about.server, "servers": about.servers},
        "network": about.network,
        "etcd": about.etcd,
        "task": cluster.task,
        "world": cluster.world,
        "kubeconfig": about.kubeconfig if _fetched(cluster) else None,
        "hosts": [host_data(host) for host in cluster.hosts],
    }


def host_data(host: InventoryHost) -> dict[str, Any]:
    """A host of a cluster for programs."""
    return {"name": host.name, "address": host.address, "roles": host.roles}


def _fetched(cluster: KnownCluster) -> bool:
    """Whether this machine has what lets people in."""
    return cluster.world is None and Path(cluster.about.kubeconfig).is_file()


def _row(cluster: KnownCluster) -> tuple[str, ...]:
    about = cluster.about
    counts = [str(len(about.roles.get(role, ()))) for role in ("control-plane", "worker")]
    return (
        cluster.name,
        _state(cluster),
        about.version,
        *counts,
        about.servers[0],
        cluster.task,
    )


def _state(cluster: KnownCluster) -> str:
    return f"{cluster.state}, simulated" if cluster.world is not None else cluster.state


def _text(cluster: KnownCluster) -> str:
    about = cluster.about
    labels = ", ".join(f"{name}={value}" for name, value in about.labels.items())
    facts = {
        "cluster": cluster.name,
        **({"labels": labels} if labels else {}),
        "state": _state(cluster),
        "since": f"{cluster.since:%Y-%m-%d %H:%M:%S} UTC",
        "kubernetes": about.version,
        **access(cluster),
        "network": about.network,
        "etcd": about.etcd,
        "last task": cluster.task,
    }
    rows = [(host.name, host.address, ", ".join(host.roles)) for host in cluster.hosts]
    return "\n".join((*lines(facts), "", table(("HOST", "ADDRESS", "ROLES"), rows)))
