"""What a login and a command cost on one host, through the connector and nothing above it.

`python bench/onehost.py BED [ADDRESS]`
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from kubexm.connector.base import Command
from kubexm.connector.ssh.connector import SshConnector
from kubexm.connector.ssh.dial import Dialer
from kubexm.connector.ssh.target import Credentials, HostKeys, Target

LOGINS = 25
COMMANDS = 500


async def main(bed: Path, address: str) -> None:
    target = Target(
        address or (bed / "addresses").read_text().split()[0],
        user="root",
        credentials=Credentials(keys=(bed.parent / "keys" / "plain",)),
        host_keys=HostKeys((bed / "known_hosts", bed.parent / "known_hosts")),
    )
    dialer = Dialer()
    warm = SshConnector(target, dialer)
    await warm.open()
    others = [SshConnector(target, dialer) for _ in range(LOGINS)]
    logins = await _timed([other.open for other in others])
    for other in others:
        await other.close()
    true = Command(("/bin/true",))
    await warm.exec(true)
    commands = await _timed([lambda: warm.exec(true)] * COMMANDS)
    await warm.close()
    dialer.close()
    names = ("login_ms", "login_cpu_ms", "command_ms", "command_cpu_ms")
    print(json.dumps(dict(zip(names, (*logins, *commands), strict=True))))


async def _timed(acts: list[Callable[[], Awaitable[object]]]) -> tuple[float, float]:
    """The median of the milliseconds that each took, and the mean of its CPU."""
    took = []
    cpu = time.process_time()
    for act in acts:
        began = time.perf_counter()
        await act()
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e3, (time.process_time() - cpu) / len(acts) * 1e3


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), "".join(sys.argv[2:])))
