"""A simulation that is killed at any instant has done whole commands, and goes on from there."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from kubexm.connector.base import Command
from kubexm.sim import World

HOSTS = 5
FILES = 200
KILLS = 15
# Writes files in order, small and large, on several hosts, skipping what is there already.
PROGRAM = """
import asyncio, sys
from pathlib import Path
from kubexm.connector.base import Command
from kubexm.sim import World

async def main(world, count, files):
    hosts = [World.open(world).connector(f"n{number}") for number in range(count)]
    print("ready", flush=True)
    for number in range(files):
        for host in hosts:
            path = f"/srv/{number}"
            if (await host.exec(Command(("test", "-e", path)))).ok:
                continue
            await host.put(path, str(number).encode() * (1 if number % 7 else 3000), mode=0o600)
            await host.exec(Command(("chmod", "0644", path)))

asyncio.run(main(Path(sys.argv[1]), *map(int, sys.argv[2:])))
"""


def run_until_killed(world: Path, seconds: float) -> bool:
    """Whether it ended by itself before the kill."""
    command = [sys.executable, "-c", PROGRAM, str(world), str(HOSTS), str(FILES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_resumes_to_what_an_undisturbed_one_ends_with(tmp_path: Path) -> None:
    undisturbed = World.create(tmp_path / "undisturbed")
    disturbed = World.create(tmp_path / "disturbed")
    assert run_until_killed(undisturbed.path, 60.0)
    chance = random.Random(5)

    for _ in range(KILLS):
        run_until_killed(disturbed.path, chance.uniform(0.0, 0.02))
        for host, found in World.open(disturbed.path).snapshot().items():
            written = sorted(int(path.rpartition("/")[2]) for path in found)
            assert written == list(range(len(written))), f"{host} lost something"

    assert run_until_killed(disturbed.path, 60.0)
    end = World.open(disturbed.path)
    assert {path.split("/")[2] for path in end.snapshot()["n0"]} == set(map(str, range(FILES)))
    # A kill between the two commands leaves one file as the first command made it.
    asyncio.run(settle(end))
    assert end.snapshot() == World.open(undisturbed.path).snapshot()
    counts = [times for host in end.mutations().values() for times in host.values()]
    assert sum(times > 3 for times in counts) == 0, "nothing was written twice"


async def settle(world: World) -> None:
    for host in range(HOSTS):
        connector = world.connector(f"n{host}")
        for number in range(FILES):
            await connector.exec(Command(("chmod", "0644", f"/srv/{number}")))
