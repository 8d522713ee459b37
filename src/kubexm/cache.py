"""Values computed once per key, even when many ask at the same time, and dropped by scope.

A scope is a path: `run`, `run/@host/node1`, `run/create/etcd/install`. Dropping one drops all
below it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Cache:
    """In memory, for one run."""

    def __init__(self) -> None:
        self._scopes: dict[str, dict[str, Future[Any]]] = {}

    async def once(self, scope: str, key: str, compute: Callable[[], Awaitable[T]]) -> T:
        """The value of this key; the first to ask computes it, a failure is not kept."""
        entries = self._scopes.setdefault(scope, {})
        if (known := entries.get(key)) is not None:
            value: T = await asyncio.shield(asyncio.wrap_future(known))
            return value
        future = entries[key] = Future()
        try:
            value = await compute()
        except BaseException as error:
            entries.pop(key, None)
            future.set_exception(_told(error))
            raise
        future.set_result(value)
        return value

    def at_once(self, scope: str, key: str, compute: Callable[[], T]) -> T:
        """The same for who can't wait, such as a planner; what is being computed is refused."""
        entries = self._scopes.setdefault(scope, {})
        if (known := entries.get(key)) is not None:
            if not known.done():
                raise RuntimeError(f"`{key}` is being computed already")
            value: T = known.result()
            return value
        future = entries[key] = Future()
        try:
            value = compute()
        except BaseException:
            entries.pop(key, None)
            raise
        future.set_result(value)
        return value

    def drop(self, scope: str) -> None:
        """Forget a scope and everything below it."""
        below = f"{scope}/"
        for name in [name for name in self._scopes if name == scope or name.startswith(below)]:
            del self._scopes[name]


def _told(error: BaseException) -> BaseException:
    """What those are told who waited: a cancelled computation is a failure, not a cancel."""
    if isinstance(error, asyncio.CancelledError):
        return RuntimeError("the computation this waited for was cancelled")
    return error
