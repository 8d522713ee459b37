"""How a cluster is, as its hosts tell of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

from kubexm.app.execution import Front
from kubexm.app.known import KnownCluster
from kubexm.app.reaching import Reach
from kubexm.common.paths import Home
from kubexm.common.roles import CONTROL_PLANE, ETCD, WORKER
from kubexm.errors import InvalidInput, KubexmError
from kubexm.runtime.build import Runtime, RuntimeConfig
from kubexm.step import health_look as looks
from kubexm.step import health_objects as objects
from kubexm.step.health_certificates import certificates
from kubexm.step.health_look import Told
from kubexm.step.health_names import names

SECONDS = 30.0
CHECKS = (
    *("host", "api", "endpoint", "etcd", "node"),
    *("workloads", "pods", "dns", "certificates"),
)
_ODD = (LookupError, ValueError, TypeError, AttributeError, OSError)
"""What comes of reading something that is not as it should be."""


async def health(cluster: KnownCluster, front: Front, home: Home) -> list[Told]:
    """Ask every host of a cluster; nothing is changed."""
    if cluster.world is not None:
        message = f"the cluster `{cluster.name}` is simulated: it has no health of its own"
        raise InvalidInput(message, hint="make it on real hosts, without `--simulate`")
    with closing(Reach(home, None, front.vault, None)) as reach:
        reach.call(cluster.hosts)
        ways = [reach.host(host) for host in cluster.hosts]
        async with Runtime.build(RuntimeConfig(hosts=ways, secrets=front.vault)) as runtime:
            found = await asked(runtime, cluster)
    hosts = [host.name for host in cluster.hosts]
    return sorted(found, key=lambda one: (CHECKS.index(one.check), _place(one.where, hosts)))


def _place(where: str, hosts: Sequence[str]) -> int:
    return hosts.index(where) if where in hosts else len(hosts)


async def asked(runtime: Runtime, cluster: KnownCluster) -> list[Told]:
    """What all hosts tell that are reached, and of the others that they are not."""
    lost = [
        Told(
            "host", name, "ill", f"can't be reached: {runtime.redact(reason.message)}", reason.hint
        )
        for name, reason in runtime.reasons.items()
    ]
    answers = await asyncio.gather(*_looks(runtime, cluster))
    found = [told for some in answers for told in some]
    return [*lost, *found, *_unasked(found)]


def _unasked(found: Sequence[Told]) -> Iterator[Told]:
    """What nobody could ask for."""
    if all(one.check != "dns" for one in found):
        what = "names were not asked for: no host that is reached has a pod with its own network"
        yield Told("dns", "cluster", "warning", what, "see that CoreDNS runs, and where")


def _looks(runtime: Runtime, cluster: KnownCluster) -> Iterator[Awaitable[list[Told]]]:
    now = datetime.now(UTC)
    yield from _of_api(runtime, cluster)
    yield from _of_endpoint(runtime, cluster)
    for name in _reached(runtime, _members(cluster)):
        yield _taken("etcd", name, looks.etcd(runtime.host(name)))
    yield from _of_objects(runtime, cluster)
    for name in _reached(runtime, _kube_nodes(cluster)):
        yield _taken("dns", name, names(runtime.host(name)))
    for name in runtime.reached():
        look = certificates(runtime.host(name), cluster.about.etcd, now)
        yield _taken("certificates", name, look)


def _of_api(runtime: Runtime, cluster: KnownCluster) -> Iterator[Awaitable[list[Told]]]:
    planes, servers = cluster.about.roles[CONTROL_PLANE], cluster.about.servers
    # The URLs of the API servers themselves come last of all ways to them.
    own = dict(zip(planes, servers[-len(planes) :], strict=True))
    for name in _reached(runtime, planes):
        yield _taken("api", name, looks.api(runtime.host(name), own[name]))


def _of_endpoint(runtime: Runtime, cluster: KnownCluster) -> Iterator[Awaitable[list[Told]]]:
    """Every node has its own way to the endpoint, and be it only an entry of its hosts file."""
    about = cluster.about
    for name in _reached(runtime, _kube_nodes(cluster)):
        is_plane = name in about.roles[CONTROL_PLANE]
        look = looks.endpoint if is_plane else looks.endpoint_of_worker
        yield _taken("endpoint", name, look(runtime.host(name), about.server, about.endpoint))


def _of_objects(runtime: Runtime, cluster: KnownCluster) -> Iterator[Awaitable[list[Told]]]:
    planes = [*map(runtime.host, _reached(runtime, cluster.about.roles[CONTROL_PLANE]))]
    wanted, laid = _kube_nodes(cluster), cluster.about.workloads
    yield _first("node", [partial(objects.nodes, host, wanted) for host in planes])
    if laid:  # nobody knows them of a cluster that an older kubexm has made
        yield _first("workloads", [partial(objects.laid, host, laid) for host in planes])
    yield _first("pods", [partial(objects.pods, host) for host in planes])


def _reached(runtime: Runtime, wanted: Iterable[str]) -> list[str]:
    there = frozenset(runtime.reached())
    return [name for name in wanted if name in there]


def _kube_nodes(cluster: KnownCluster) -> tuple[str, ...]:
    roles = cluster.about.roles
    return tuple(dict.fromkeys((*roles[CONTROL_PLANE], *roles.get(WORKER, ()))))


def _members(cluster: KnownCluster) -> tuple[str, ...]:
    """The hosts with a member of etcd: control planes, unless others are named for it."""
    about = cluster.about
    if about.etcd == "external":
        return ()
    own = about.roles.get(ETCD, ()) if about.etcd == "systemd" else ()
    return own or about.roles[CONTROL_PLANE]


async def _taken(check: str, where: str, look: Awaitable[list[Told]]) -> list[Told]:
    try:
        async with asyncio.timeout(SECONDS):
            return await look
    except TimeoutError:
        return [Told(check, where, "ill", f"no answer within {SECONDS:g} s")]
    except KubexmError as error:
        return [looks.failed(check, where, error)]
    except _ODD as error:
        return [looks.not_understood(check, where, error)]


async def _first(check: str, ways: Sequence[Callable[[], Awaitable[list[Told]]]]) -> list[Told]:
    """What the first of several that answers has to tell, or why nobody does."""
    if not ways:
        return [Told(check, "cluster", "ill", "no control plane is reached that could be asked")]
    failures: list[Told] = []
    for way in ways:
        try:
            async with asyncio.timeout(SECONDS):
                return await way()
        except TimeoutError:
            failures.append(Told(check, "cluster", "ill", f"no answer within {SECONDS:g} s"))
        except KubexmError as error:
            failures.append(looks.failed(check, "cluster", error))
        except _ODD as error:
            failures.append(looks.not_understood(check, "cluster", error))
    return failures[:1]
