"""What is done off the loop, at once: hashing files, or unlocking keys, on one core or on all.

`python bench/oncores.py hash|unlock LAB one|all`
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from tempfile import TemporaryDirectory

from kubexm.connector.source import Source
from kubexm.connector.ssh.dial import Dialer
from kubexm.connector.ssh.target import Credentials

FILES = 4
KEYS = 8


async def main(what: str, lab: Path) -> None:
    with TemporaryDirectory() as directory:
        work = _hashed(lab) if what == "hash" else _unlocked(lab, Path(directory))
        began = time.perf_counter()
        await asyncio.gather(*work)
        print(json.dumps({"seconds": time.perf_counter() - began}))


def _hashed(lab: Path) -> list[Awaitable[object]]:
    return [Source(lab / "bed" / "large.bin").digest() for _ in range(FILES)]


def _unlocked(lab: Path, directory: Path) -> list[Awaitable[object]]:
    """One key after the other in files of their own: the same file is read only once."""
    passphrase = (lab / "passwords" / "passphrase").read_text()
    dialer = Dialer()
    files = [directory / f"key{number}" for number in range(KEYS)]
    for file in files:
        shutil.copy(lab / "keys" / "locked", file)
    return [dialer._loaded(Credentials(keys=(file,), passphrase=passphrase)) for file in files]


if __name__ == "__main__":
    if sys.argv[3] == "one":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
