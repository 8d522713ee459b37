"""How a cluster is, as its hosts tell of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
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
from kubexm.step.health_look import Told

SECONDS = 30.0
CHECKS = ("host", "api", "etcd", "node", "pods", "dns", "certificates")


async def health(cluster: KnownCluster, front: Front, home: Home) -> list[Told]:
    """Ask every host of a cluster; nothing is changed."""
    if cluster.world is not None:
        message = f"the cluster `{cluster.name}` is simulated: it has no health of its own"
        raise InvalidInput(message, hint="make it on real hosts, without `--simulate`")
    with closing(Reach(home, None, front.vault.reveal, None)) as reach:
        reach.call(cluster.hosts)
        ways = [reach.host(host) for host in cluster.hosts]
        async with Runtime.build(RuntimeConfig(hosts=ways, secrets=front.vault)) as runtime:
            found = await _asked(runtime, cluster)
    hosts = [host.name for host in cluster.hosts]
    return sorted(found, key=lambda one: (CHECKS.index(one.check), _place(one.where, hosts)))


def _place(where: str, hosts: Sequence[str]) -> int:
    return hosts.index(where) if where in hosts else len(hosts)


async def _asked(runtime: Runtime, cluster: KnownCluster) -> list[Told]:
    lost = [
        Told(
            "host", name, "ill", f"can't be reached: {runtime.redact(reason.message)}", reason.hint
        )
        for name, reason in runtime.reasons.items()
    ]
    answers = await asyncio.gather(*_looks(runtime, cluster))
    return [*lost, *(told for found in answers for told in found)]


def _looks(runtime: Runtime, cluster: KnownCluster) -> Iterator[Awaitable[list[Told]]]:
    roles, there = cluster.about.roles, frozenset(runtime.reached())
    planes = [name for name in roles[CONTROL_PLANE] if name in there]
    members = roles.get(ETCD) or (roles[CONTROL_PLANE] if cluster.about.etcd == "stacked" else ())
    kube_nodes = [*dict.fromkeys((*roles[CONTROL_PLANE], *roles.get(WORKER, ())))]
    servers = dict(zip(roles[CONTROL_PLANE], _own_servers(cluster), strict=True))
    now = datetime.now(UTC)
    for name in planes:
        yield _taken("api", name, looks.api(runtime.host(name), servers[name]))
    for name in (name for name in members if name in there):
        yield _taken("etcd", name, looks.etcd(runtime.host(name)))
    if planes:
        hosts = [runtime.host(name) for name in planes]
        yield _first("node", [partial(looks.nodes, host, kube_nodes) for host in hosts])
        yield _first("pods", [partial(looks.pods, host) for host in hosts])
    for name in (name for name in kube_nodes if name in there):
        yield _taken("dns", name, looks.names(runtime.host(name)))
    for name in runtime.reached():
        yield _taken("certificates", name, looks.certificates(runtime.host(name), now))


def _own_servers(cluster: KnownCluster) -> tuple[str, ...]:
    """The URLs of the API servers themselves, which come last of all ways to them."""
    return cluster.about.servers[-len(cluster.about.roles[CONTROL_PLANE]) :]


async def _taken(check: str, where: str, look: Awaitable[Told | None]) -> list[Told]:
    try:
        async with asyncio.timeout(SECONDS):
            found = await look
    except TimeoutError:
        return [Told(check, where, "ill", f"no answer within {SECONDS:g} s")]
    except KubexmError as error:
        return [looks.failed(check, where, error)]
    return [] if found is None else [found]


async def _first(check: str, ways: Sequence[Callable[[], Awaitable[list[Told]]]]) -> list[Told]:
    """What the first of several that answers has to tell."""
    failures: list[Told] = []
    for way in ways:
        try:
            async with asyncio.timeout(SECONDS):
                return await way()
        except TimeoutError:
            failures.append(Told(check, "cluster", "ill", f"no answer within {SECONDS:g} s"))
        except KubexmError as error:
            failures.append(looks.failed(check, "cluster", error))
    return failures[:1]
