"""Values computed once per key, even when many ask at the same time, and dropped by scope.

A scope is a path: `run`, `run/host/node1`, `run/etcd/install`. Dropping one drops all below it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Cache:
    """In memory, for one run."""

    def __init__(self) -> None:
        self._scopes: dict[str, dict[str, asyncio.Future[Any]]] = {}

    async def once(self, scope: str, key: str, compute: Callable[[], Awaitable[T]]) -> T:
        """The value of this key; the first to ask computes it, a failure is not kept."""
        entries = self._scopes.setdefault(scope, {})
        if (known := entries.get(key)) is not None:
            value: T = await asyncio.shield(known)
            return value
        future = entries[key] = asyncio.get_running_loop().create_future()
        try:
            value = await compute()
        except BaseException as error:
            entries.pop(key, None)
            _fail(future, error)
            raise
        future.set_result(value)
        return value

    def drop(self, scope: str) -> None:
        """Forget a scope and everything below it."""
        below = f"{scope}/"
        for name in [name for name in self._scopes if name == scope or name.startswith(below)]:
            del self._scopes[name]


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    """Tell those who waited; a cancelled computation is a failure for them, not a cancel."""
    if isinstance(error, asyncio.CancelledError):
        error = RuntimeError("the computation this waited for was cancelled")
    future.set_exception(error)
    future.exception()  # nobody may be waiting, and that is fine
