"""What lets people into a cluster: the kubeconfig of its administrator, made usable from here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kubexm.app.known import KnownCluster
from kubexm.app.kubectl_config import EMPTY
from kubexm.document import source, writing
from kubexm.errors import InvalidInput

Config = dict[str, Any]
_SECONDS = 2.0


async def usable(cluster: KnownCluster, server: str | None = None) -> Config:
    """The kubeconfig under the names of the cluster, with a server that answers from here."""
    own = _fetched(cluster)
    place = dict(own["clusters"][0]["cluster"])
    chosen = server or await _answering(cluster.about.servers)
    known_as = urlsplit(place["server"]).hostname
    place["server"] = chosen
    if urlsplit(chosen).hostname != known_as:
        place["tls-server-name"] = known_as  # which its certificate has, whatever else
    name, user = cluster.name, user_of(cluster.name)
    return {
        **EMPTY,
        "clusters": [{"name": name, "cluster": place}],
        "users": [{"name": user, "user": own["users"][0]["user"]}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }


def user_of(name: str) -> str:
    """What the administrator of a cluster is called."""
    return f"{name}-admin"


def text(config: Config) -> str:
    """A kubeconfig as it is written."""
    return writing.dumped(config)


def _fetched(cluster: KnownCluster) -> Config:
    path = Path(cluster.about.kubeconfig)
    if cluster.world is not None:
        message = f"the cluster `{cluster.name}` is simulated: there is no API to be let in to"
        raise InvalidInput(message, hint="make it on real hosts, without `--simulate`")
    if not path.exists():
        message = f"the kubeconfig of `{cluster.name}` was not fetched, or is gone: `{path}`"
        hint = "`kubexm create cluster -f FILE` fetches it, and changes nothing that is right"
        raise InvalidInput(message, hint=hint)
    found: Config = source.read(path).data
    return found


async def _answering(servers: Sequence[str]) -> str:
    """The first of these that takes connections from here, or the first if none does."""
    answers = await asyncio.gather(*map(_takes_connections, servers))
    return next((one for one, takes in zip(servers, answers, strict=True) if takes), servers[0])


async def _takes_connections(server: str) -> bool:
    parts = urlsplit(server)
    try:
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
