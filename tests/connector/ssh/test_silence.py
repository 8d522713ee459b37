"""A host is asked whether it is there after a silence, however much was heard before."""

import asyncio
from typing import Any

import asyncssh
import pytest
from tests import virtual

from kubexm.connector.ssh import silence

INTERVAL = 5.0


class Line:
    """A connection as far as silences are concerned; notes when the host is asked."""

    _keepalive_interval = INTERVAL
    _keepalive_count_max = 3
    _server = False

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._auth_complete = True
        self._keepalive_count = 0
        self._keepalive_timer: asyncio.TimerHandle | None = None
        self.asked: list[float] = []

    @property
    def timer(self) -> asyncio.TimerHandle | None:
        return self._keepalive_timer

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncssh.connection.SSHConnection, name).__get__(self)

    def create_task(self, work: Any) -> None:
        work.close()
        self.asked.append(self._loop.time())

    def connection_lost(self, error: Exception) -> None:
        self.asked.append(-self._loop.time())


def asked(*heard: float, until: float) -> list[float]:
    """When a host is asked that is heard at these times; below zero when it is given up."""

    async def scenario() -> list[float]:
        line = Line()
        start = line._loop.time()
        line._set_keepalive_timer()
        for moment in heard:
            await asyncio.sleep(start + moment - line._loop.time())
            line._reset_keepalive_timer()
        await asyncio.sleep(start + until - line._loop.time())
        return [moment + start if moment < 0 else moment - start for moment in line.asked]

    return virtual.run(scenario())


@pytest.fixture(autouse=True)
def _noted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in silence._PARTS:
        usual = getattr(asyncssh.connection.SSHConnection, name)
        monkeypatch.setattr(asyncssh.connection.SSHConnection, name, usual)
    silence.note_only()


def test_who_is_heard_is_not_asked() -> None:
    assert asked(*(0.5 * turn for turn in range(1, 40)), until=20) == []


def test_no_timer_is_set_for_what_is_heard() -> None:
    async def scenario() -> set[asyncio.TimerHandle | None]:
        line = Line()
        line._set_keepalive_timer()
        timers = {line.timer}
        for _ in range(10):
            await asyncio.sleep(0.1)
            line._reset_keepalive_timer()
            timers.add(line.timer)
        return timers

    assert len(virtual.run(scenario())) == 1


def test_who_falls_silent_is_asked_as_long_after_as_ever() -> None:
    assert asked(1, 2, 3.5, until=9) == [pytest.approx(3.5 + INTERVAL)]


def test_who_stays_silent_is_given_up() -> None:
    found = asked(1, until=40)

    assert found[:3] == [pytest.approx(1 + turn * INTERVAL) for turn in (1, 2, 3)]
    assert len(found) == 4
    assert found[3] < 0


def test_an_asyncssh_without_those_parts_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "_due", None)
    before = asyncssh.connection.SSHConnection._reset_keepalive_timer

    silence.note_only()

    assert asyncssh.connection.SSHConnection._reset_keepalive_timer is before
