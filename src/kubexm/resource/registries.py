"""Which registries give an image: the mirrors of its own one first, then that itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
from msgspec.structs import replace

from kubexm.common.secrets import Discreet
from kubexm.resource import http
from kubexm.resource.http import Login, Settings
from kubexm.resource.images import DOCKER_HUB, Reference
from kubexm.resource.registry import Endpoint, Registry, endpoint


class Way(Discreet, frozen=True, kw_only=True):
    """How a registry is reached, and what is asked before it."""

    hidden = frozenset()

    mirrors: tuple[str, ...] = ()
    """Addresses such as `https://mirror.lan:5000`."""
    ca_file: Path | None = None
    plain_http: bool = False
    login: Login | None = None


Giving = Callable[[Reference], list[Registry]]
"""Those that may give an image, the best first."""
USUAL = Way()


@asynccontextmanager
async def reached(ways: Mapping[str, Way], settings: Settings) -> AsyncIterator[Giving]:
    """Registries by the names that images call them by; those not named are reached as usual."""
    own = replace(settings, logins={**settings.logins, **_logins(ways)})
    async with AsyncExitStack() as clients:
        opened: dict[Path | None, tuple[httpx.AsyncClient, Settings]] = {}
        for ca_file in {None, *(way.ca_file for way in ways.values())}:
            trusting = own if ca_file is None else replace(own, ca_file=ca_file)
            opened[ca_file] = await clients.enter_async_context(http.client(trusting)), trusting
        known: dict[str, list[Registry]] = {}

        def giving(name: Reference) -> list[Registry]:
            way = ways.get(name.registry, USUAL)
            if name.registry not in known:
                client, trusting = opened[way.ca_file]
                known[name.registry] = [
                    Registry(client, trusting, place) for place in _places(name.registry, way)
                ]
            return known[name.registry]

        yield giving


def _places(registry: str, way: Way) -> list[Endpoint]:
    own = endpoint(registry, encrypted=not way.plain_http)
    return [*map(Endpoint, way.mirrors), own]


def _logins(ways: Mapping[str, Way]) -> dict[str, Login]:
    """Who we are, by the host that is spoken to; in the clear only where that was asked for."""
    return {_host(name, way): way.login for name, way in ways.items() if way.login is not None}


def _host(registry: str, way: Way) -> str:
    if registry == DOCKER_HUB:
        return httpx.URL(endpoint(registry).url).host
    return f"http://{registry}" if way.plain_http else registry
