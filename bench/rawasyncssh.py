"""The floor of the library: asyncssh and nothing else, one connection and one shell per host.

`python bench/rawasyncssh.py WORK BED COUNT`; host keys are checked, nothing is planned or kept.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import asyncssh

PIECE = 128 << 10
CHECKS = Path(__file__).parent / "sshwork" / "checks.sh"


async def main(work: str, bed: Path, count: int) -> None:
    addresses = (bed / "addresses").read_text().split()[:count]
    options = asyncssh.SSHClientConnectionOptions(
        username="root",
        client_keys=[asyncssh.read_private_key(bed.parent / "keys" / "plain")],
        known_hosts=asyncssh.read_known_hosts(str(bed / "known_hosts")),
        agent_path=None,
        config=None,
        kex_algs=["curve25519-sha256"],
        encryption_algs=["aes128-gcm@openssh.com"],
    )
    async with asyncio.TaskGroup() as group:
        for number, address in enumerate(addresses, 1):
            group.create_task(_visit(work, bed, address, f"h{number:03}", options))


async def _visit(
    work: str, bed: Path, address: str, name: str, options: asyncssh.SSHClientConnectionOptions
) -> None:
    async with asyncssh.connect(address, options=options) as connection:
        if work in {"w3", "w3b"}:
            payload = bed / ("small.bin" if work == "w3" else "large.bin")
            await _send(connection, payload, f"/srv/bench/{name}/payload")
            return
        process = await connection.create_process("/bin/sh", encoding=None)
        process.stdin.write(f"base=/srv/bench/{name}\n".encode())
        for request in _requests(work):
            await _ask(process, request)


def _requests(work: str) -> list[bytes]:
    if work == "w1":
        return [b"/bin/true"]
    if work == "w2":
        return [b"/bin/true"] * 20
    lines = [line for line in CHECKS.read_bytes().splitlines() if not line.startswith(b"#")]
    return lines if work == "w5-one-by-one" else [b"\n".join(lines)]


async def _ask(process: asyncssh.SSHClientProcess[bytes], request: bytes) -> None:
    process.stdin.write(b"{ %s\n} </dev/null; printf 'ended %%d.' $?\n" % request)
    answer = await process.stdout.readuntil(b".")
    if not answer.endswith(b"ended 0."):
        raise SystemExit(f"{request!r} gave {answer!r}")


async def _send(connection: asyncssh.SSHClientConnection, payload: Path, path: str) -> None:
    async with connection.create_process(f"cat >{path}", encoding=None) as process:
        with payload.open("rb") as file:
            while piece := file.read(PIECE):
                process.stdin.write(piece)
                await process.stdin.drain()
        process.stdin.write_eof()
        await process.wait(check=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
