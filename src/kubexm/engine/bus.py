"""The event stream: one publisher, any number of listeners that never slow it down."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator

from kubexm.plan.events import AnyEvent, ListenerLagged


class Subscription:
    """A bounded buffer of events; when it overflows the oldest go and their number is told."""

    def __init__(self, size: int) -> None:
        self._events: deque[AnyEvent] = deque()
        self._size = size
        self._dropped = 0
        self._closed = False
        self._arrived = asyncio.Event()

    def offer(self, event: AnyEvent) -> None:
        if len(self._events) >= self._size:
            self._events.popleft()
            self._dropped += 1
        self._events.append(event)
        self._arrived.set()

    def close(self) -> None:
        self._closed = True
        self._arrived.set()

    async def __aiter__(self) -> AsyncIterator[AnyEvent]:
        while True:
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                yield ListenerLagged(at=time.time(), dropped=dropped)
            if self._events:
                yield self._events.popleft()
                continue
            if self._closed:
                return
            self._arrived.clear()
            await self._arrived.wait()


class Bus:
    """Publishes events to whoever subscribed; with no one there it costs nothing."""

    def __init__(self) -> None:
        self.heard = False
        """Whether anyone listens."""
        self._subscriptions: list[Subscription] = []

    def subscribe(self, size: int = 10_000) -> Subscription:
        subscription = Subscription(size)
        self._subscriptions.append(subscription)
        self.heard = True
        return subscription

    def publish(self, event: AnyEvent) -> None:
        for subscription in self._subscriptions:
            subscription.offer(event)

    def close(self) -> None:
        """Tell all listeners that nothing more will come."""
        for subscription in self._subscriptions:
            subscription.close()
