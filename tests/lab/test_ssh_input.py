"""Files and much input on their way to real hosts: whole or not at all, and gone on with."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.lab.test_ssh import NODES, on, to

from kubexm.connector.base import Claim, Command, script
from kubexm.connector.scripts import HANDED, INLINE, WRITE
from kubexm.connector.source import PIECE, Source
from kubexm.connector.ssh.connector import SshConnector
from kubexm.connector.ssh.transfer import SMALL
from kubexm.errors import ConnectionLost, StepFailed
from lab.testing import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(60)]


class TestUploads:
    PATH = "/var/tmp/upload"
    PART = "/var/tmp/.upload.kubexm-part"

    def uploaded(self, lab: Lab, data: bytes, place: Path, path: str = PATH) -> tuple[bool, int]:
        """Whether the file had to be sent, and from which byte on."""
        source = place / "source"
        source.write_bytes(data)
        steps: list[int] = []

        async def run(host: SshConnector) -> bool:
            with closing(Source(source)) as file:
                return await host.upload(
                    file, path, mode=0o640, sudo=True, progress=lambda done, _: steps.append(done)
                )

        sent = on(to(lab, "node1", "admin"), run, sudo=True)
        return sent, steps[0] - PIECE if steps else len(data)

    @pytest.fixture(autouse=True)
    def _clean(self, lab_network: Lab) -> Iterator[None]:
        yield
        lab_network.ssh("root@node1", "rm", "-f", self.PATH, self.PART)

    def test_a_file_is_sent_once_and_skipped_when_it_is_there(
        self, lab_network: Lab, tmp_path: Path
    ) -> None:
        data = os.urandom(3_000_000)

        assert self.uploaded(lab_network, data, tmp_path) == (True, 0)
        assert self.uploaded(lab_network, data, tmp_path) == (False, len(data))
        there = lab_network.root("node1") / self.PATH.lstrip("/")
        assert there.read_bytes() == data
        assert there.stat().st_mode & 0o777 == 0o640

    @pytest.mark.parametrize("before", ["nothing", "a file", "a link", "a dangling link"])
    def test_a_small_file_gets_the_mode_of_the_file_before_or_the_usual(
        self, lab_network: Lab, tmp_path: Path, before: str
    ) -> None:
        there = lab_network.root("node1") / self.PATH.lstrip("/")
        make = {
            "a file": ("install", "-m", "0604", "/dev/null", self.PATH),
            "a link": ("ln", "-s", "/etc/shadow", self.PATH),
            "a dangling link": ("ln", "-s", "/nowhere", self.PATH),
        }
        if before in make:
            lab_network.ssh("root@node1", *make[before])
        source = tmp_path / "source"
        source.write_bytes(b"some data")

        async def run(host: SshConnector) -> bool:
            with closing(Source(source)) as file:
                return await host.upload(file, self.PATH, sudo=True)

        assert on(to(lab_network, "node1", "admin"), run, sudo=True)
        assert not there.is_symlink()
        assert there.read_bytes() == b"some data"
        assert there.stat().st_mode & 0o777 == (0o604 if before == "a file" else 0o644)

    def test_a_transfer_that_was_cut_off_goes_on(self, lab_network: Lab, tmp_path: Path) -> None:
        data = os.urandom(3_000_000)
        part = lab_network.root("node1") / self.PART.lstrip("/")
        part.write_bytes(data[:2_000_000])

        assert self.uploaded(lab_network, data, tmp_path) == (True, 2_000_000)
        assert (lab_network.root("node1") / self.PATH.lstrip("/")).read_bytes() == data
        assert not part.exists()

    def test_what_is_left_of_another_file_is_not_gone_on_with(
        self, lab_network: Lab, tmp_path: Path
    ) -> None:
        data = os.urandom(2_000_000)
        (lab_network.root("node1") / self.PART.lstrip("/")).write_bytes(b"other" * 1000)

        assert self.uploaded(lab_network, data, tmp_path) == (True, 0)
        assert (lab_network.root("node1") / self.PATH.lstrip("/")).read_bytes() == data

    def test_a_full_disk_is_told_and_leaves_no_file(self, lab_network: Lab, tmp_path: Path) -> None:
        with pytest.raises(StepFailed, match="No space left on device"):
            self.uploaded(lab_network, os.urandom(4 << 20), tmp_path, "/var/lib/small/big")

        left = lab_network.ssh("root@node1", "ls /var/lib/small/big; rm -f /var/lib/small/.big*")
        assert left.stdout == ""


class TestInput:
    PATH = "/var/tmp/handed"

    @pytest.fixture(autouse=True)
    def _clean(self, lab_network: Lab) -> Iterator[None]:
        yield
        for host in NODES:
            lab_network.ssh(f"root@{host}", "rm", "-f", self.PATH)

    @pytest.mark.parametrize("host", NODES)
    @pytest.mark.parametrize("sudo", [True, False])
    @pytest.mark.parametrize("size", [INLINE + 1, SMALL, SMALL + 1, 3_000_000])
    def test_a_file_arrives_whoever_writes_it_and_the_shell_goes_on(
        self, lab_network: Lab, tmp_path: Path, host: str, sudo: bool, size: int
    ) -> None:
        source = tmp_path / "source"
        source.write_bytes(os.urandom(size))

        async def run(connector: SshConnector) -> list[str]:
            with closing(Source(source)) as file:
                await connector.upload(file, self.PATH, sudo=sudo)
            await connector.put(self.PATH + ".2", source.read_bytes(), sudo=sudo)
            shown = Command(("stat", "-c", "%U %s", self.PATH, self.PATH + ".2"), sudo=True)
            compared = Command(("cmp", self.PATH, self.PATH + ".2"), sudo=True)
            removed = Command(("rm", self.PATH + ".2"), sudo=True)
            done = [await connector.exec(one) for one in (shown, compared, removed)]
            assert all(one.ok for one in done)
            return done[0].text.splitlines()

        owner = "root" if sudo else "admin"
        claim = Claim("input", 1, "task", who="me")
        found = on(to(lab_network, host, "admin"), run, sudo=True, claim=claim)
        lab_network.ssh(f"root@{host}", "rm -r /var/lib/kubexm/locks/input")

        assert found == [f"{owner} {size}"] * 2
        there = lab_network.root(host) / self.PATH.lstrip("/")
        assert there.read_bytes() == source.read_bytes()

    @pytest.mark.parametrize("host", NODES)
    @pytest.mark.parametrize("user", [None, "ops", "root"])
    def test_a_command_gets_much_input_whole_and_need_not_read_it(
        self, lab_network: Lab, host: str, user: str | None
    ) -> None:
        data = os.urandom(300_000)

        async def run(connector: SshConnector) -> list[tuple[int, str]]:
            wanted = (
                ("sha256sum",),
                ("sh", "-c", "head -c 10 | wc -c; exit 3"),
                ("true",),
                ("id", "-un"),
            )
            done = [await connector.exec(Command(argv, stdin=data, user=user)) for argv in wanted]
            return [(one.exit, one.text) for one in done]

        assert on(to(lab_network, host, "admin"), run, sudo=True) == [
            (0, f"{hashlib.sha256(data).hexdigest()}  -"),
            (3, "10"),
            (0, ""),
            (0, user or "admin"),
        ]
        assert list((lab_network.root(host) / "tmp").glob("tmp.*")) == []

    @pytest.mark.parametrize("after", [1, 3])
    def test_what_is_cut_off_on_its_way_is_no_file(self, lab_network: Lab, after: int) -> None:
        async def run(connector: SshConnector) -> None:
            async def pieces() -> AsyncIterator[bytes]:
                for _ in range(after):
                    yield b"x" * 100_000
                    await asyncio.sleep(0.05)
                assert connector._connection is not None
                connector._connection.abort()
                yield b"x"

            command = script(WRITE, self.PATH, "", "", "", "300000", HANDED)
            with pytest.raises(ConnectionLost):
                await connector.hand(command, pieces(), 300_000)

        on(to(lab_network, "node1"), run)

        place = (lab_network.root("node1") / self.PATH.lstrip("/")).parent
        deadline = time.monotonic() + 20
        while left := [path.name for path in place.glob("*handed*")]:
            assert time.monotonic() < deadline, left
            assert "handed" not in left
            time.sleep(0.1)

    def test_a_source_that_can_not_be_read_any_more_leaves_no_command_waiting(
        self, lab_network: Lab
    ) -> None:
        async def run(connector: SshConnector) -> str:
            async def pieces() -> AsyncIterator[bytes]:
                yield b"x"
                raise OSError(5, "Input/output error")

            with pytest.raises(OSError, match="Input/output"):
                await connector.hand(Command(("head", "-c", "10")), pieces(), 10)
            return (await connector.exec(Command(("echo", "next")))).text

        assert on(to(lab_network, "node1"), run) == "next"

    def test_commands_that_fail_with_their_input_take_no_session_each(
        self, lab_network: Lab
    ) -> None:
        """sshd allows ten, and the directory is in the way only after all has come."""

        async def run(connector: SshConnector) -> str:
            for _ in range(12):
                with pytest.raises(StepFailed, match="cannot overwrite directory"):
                    await connector.put("/var/tmp", b"x" * (INLINE + 1))
            return (await connector.exec(Command(("echo", "next")))).text

        assert on(to(lab_network, "node1"), run) == "next"
