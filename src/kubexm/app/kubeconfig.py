"""What lets people into a cluster: the kubeconfig of its administrator, made usable from here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import urlsplit

from kubexm.app.known import KnownCluster
from kubexm.document import source, writing
from kubexm.errors import InvalidInput

Config = dict[str, Any]
_SECONDS = 2.0
_MODE = 0o600
_LISTS = ("clusters", "users", "contexts")
_EMPTY: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    **{name: [] for name in _LISTS},
    "current-context": "",
}


async def usable(cluster: KnownCluster, server: str | None = None) -> Config:
    """The kubeconfig under the names of the cluster, with a server that answers from here."""
    own = _fetched(cluster)
    place = dict(own["clusters"][0]["cluster"])
    chosen = server or await _answering(cluster.about.servers)
    known_as = urlsplit(place["server"]).hostname
    place["server"] = chosen
    if urlsplit(chosen).hostname != known_as:
        place["tls-server-name"] = known_as  # which its certificate has, whatever else
    name, user = cluster.name, f"{cluster.name}-admin"
    return {
        **_EMPTY,
        "clusters": [{"name": name, "cluster": place}],
        "users": [{"name": user, "user": own["users"][0]["user"]}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }


def text(config: Config) -> str:
    """A kubeconfig as it is written."""
    return writing.dumped(config)


def merge(config: Config, path: Path) -> None:
    """Bring what a kubeconfig has into another file; what else that has stays."""
    before = there(path)
    lists = {name: _joined(before.get(name) or (), config[name]) for name in _LISTS}
    current = before.get("current-context") or config["current-context"]
    _write(path, text({**_EMPTY, **before, **lists, "current-context": current}))


def there(path: Path) -> Mapping[str, Any]:
    """What another file has so far; `InvalidInput` if nothing can be brought into it."""
    found = source.read(path).data if path.exists() else _EMPTY
    if not isinstance(found, Mapping):
        raise InvalidInput(f"`{path}` is no kubeconfig", hint="name another by KUBECONFIG")
    return found


def usual_place(environment: Mapping[str, str]) -> Path:
    """Where kubectl looks first."""
    given = environment.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(given) if given else Path.home() / ".kube" / "config"


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


def _joined(there: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """Entries that were there and are not named anew, and the new ones."""
    names = {entry["name"] for entry in new}
    return [*(entry for entry in there if entry.get("name") not in names), *new]


def _write(path: Path, content: str) -> None:
    """At once or not at all, and for nobody else to read."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    target = path.resolve()
    with NamedTemporaryFile("w", dir=target.parent, prefix=".kubexm-", delete=False) as file:
        file.write(content)
    half = Path(file.name)
    half.chmod(_MODE)
    half.replace(target)
