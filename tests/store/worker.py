"""A process of its own that works on a run, for tests that kill, freeze or starve it.

Called with a database, a run id and a role; it talks in lines.
"""

import asyncio
import resource
import sys
import threading
from pathlib import Path

from tests.store.scenario import done, started

from kubexm.errors import KubexmError
from kubexm.store import Lease, Store


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def stream(store: Store, lease: Lease) -> None:
    """Append without end, and say what was reported durable, until something is wrong."""
    kept = store.journal(lease)
    listener = started(kept)
    say("ready", lease.token)
    number = 0
    while await listener.until_known(number - 20):
        for item in range(number % 7 + 1):
            number = kept.append(done(f"h{item}", node="demo/" + "x" * 500), urgent=True)
        if number % 2:
            kept.settle()
        say("durable", listener.durable[-1] if listener.durable else 0)
    error = listener.broken[0]
    assert isinstance(error, KubexmError)
    say("broken", error.code, error, "hint:", error.hint)
    await kept.close()


async def starve(store: Store, lease: Lease) -> None:
    """Like `stream`, but no file may grow by more than a little."""
    room = 1 << 18
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    await stream(store, lease)


async def obey(store: Store, lease: Lease) -> None:
    """Append a record for every line of input, and say whether it became durable."""
    lost = threading.Event()
    lease.keep(lambda error: lost.set(), lambda: say("cancelled"))
    kept = store.journal(lease)
    listener = started(kept)
    say("ready", lease.token)
    while await asyncio.to_thread(sys.stdin.readline):
        if await listener.until_known(kept.append(done("obeyed"), urgent=True)):
            say("durable")
        else:
            say("broken", getattr(listener.broken[0], "code", ""))
            say("lost", await asyncio.to_thread(lost.wait, 10))
    await kept.close()


ROLES = {"stream": stream, "starve": starve, "obey": obey}

if __name__ == "__main__":
    path, run, role = sys.argv[1:]
    with Store.open(Path(path)) as store, store.acquire(run) as lease:
        asyncio.run(ROLES[role](store, lease))
