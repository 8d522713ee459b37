"""Hosts that hold no shell: wrappers around commands, odd login shells, and none at all."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.lab.test_ssh import connected, on, refused, to, who

from kubexm import logger
from kubexm.connector.base import Claim, Command, Completed
from kubexm.connector.source import Source
from kubexm.connector.ssh import shell
from kubexm.connector.ssh.become import Become
from kubexm.connector.ssh.connector import SshConnector
from kubexm.connector.ssh.transfer import SMALL
from kubexm.errors import ConnectionLost, KubexmError, Refused, TimedOut
from lab.testing import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(60)]

FORCED = {
    "forced": 'exec sh -c "$SSH_ORIGINAL_COMMAND" </dev/null',
    "few": 'exec sh -c "$SSH_ORIGINAL_COMMAND" </dev/null',
    "cut": "exec $SSH_ORIGINAL_COMMAND </dev/null",
    "silent": 'exec sh -c "$SSH_ORIGINAL_COMMAND" <>/run/never',
}
"""What sshd runs for these users, whatever it is asked to."""
PICKY = """#!/bin/sh
[ "$1" = -c ] || exit 2
case $2 in exec*) echo "picky: what is exec?" >&2; exit 127 ;; esac
exec sh -c "$2"
"""
LOGIN = {
    "restricted": "/bin/rbash",
    "picky": "/usr/local/bin/picky",
    "closed": "/usr/sbin/nologin",
    "false": "/bin/false",
}
"""The login shells of these users."""
USERS = ["forced", "cut", "restricted", "picky"]


@pytest.fixture(scope="module", autouse=True)
def _users(lab_of_session: Lab) -> Iterator[None]:
    """On node1, each may use sudo without a password."""
    lab, root = lab_of_session, lab_of_session.root("node1")
    settings = "".join(
        f"Match User {user}\n  ForceCommand /usr/local/bin/{user}\n" for user in FORCED
    )
    few = "Match User few\n  MaxSessions 2\n"
    (root / "etc/ssh/sshd_config.d/forced.conf").write_text(settings + few)
    programs = {"picky": PICKY, **{user: f"#!/bin/sh\n{line}\n" for user, line in FORCED.items()}}
    for name, text in programs.items():
        (root / "usr/local/bin" / name).write_text(text)
    made = "mkfifo -m 666 /run/never\n"
    for user in (*FORCED, *LOGIN):
        made += f"useradd -m -s {LOGIN.get(user, '/bin/bash')} {user}\n"
        made += f"cp -r ~/.ssh /home/{user}; chown -R {user} /home/{user}\n"
        made += f"echo '{user} ALL=(ALL:ALL) NOPASSWD: ALL' >/etc/sudoers.d/{user}\n"
    lab.ssh("root@node1", f"chmod 755 /usr/local/bin/*\n{made}systemctl restart ssh")
    yield
    users = " ".join((*FORCED, *LOGIN))
    lab.ssh(
        "root@node1",
        f"for user in {users}; do pkill -KILL -u $user; userdel -rf $user;"
        " rm -f /etc/sudoers.d/$user /usr/local/bin/$user; done;"
        " rm -f /etc/ssh/sshd_config.d/forced.conf /run/never; systemctl restart ssh",
    )


@pytest.fixture(params=USERS)
def user(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestCommands:
    def test_streams_exit_code_and_lines_are_what_a_shell_gives(
        self, lab_network: Lab, user: str
    ) -> None:
        lines: list[tuple[str, str]] = []
        script = r"printf 'a\0b\nc'; echo e >&2; cat; exit 3"

        async def run(host: SshConnector) -> Any:
            command = Command(("sh", "-c", script), stdin=b"in")
            return await host.exec(command, lambda *line: lines.append(line))

        done = on(to(lab_network, "node1", user), run)

        assert (done.exit, done.stdout, done.stderr) == (3, b"a\0b\ncin", b"e\n")
        assert sorted(lines) == [("stderr", "e"), ("stdout", "a\0b"), ("stdout", "cin")]

    def test_as_root_and_as_others(self, lab_network: Lab, user: str) -> None:
        target = to(lab_network, "node1", user)

        async def ask(host: SshConnector) -> list[str]:
            asked = [Command(("id", "-un"), user=name) for name in (None, "root", "nobody")]
            return [answer.text for answer in await host.batch(asked)]

        assert on(target, ask, sudo=True) == [user, "root", "nobody"]

    def test_output_comes_while_the_command_runs(self, lab_network: Lab) -> None:
        async def run(host: SshConnector) -> bool:
            said = asyncio.Event()
            waits = "echo begun; while [ ! -e /run/go ]; do sleep 0.05; done; rm /run/go"
            command = Command(("sh", "-c", waits), sudo=True)
            running = asyncio.create_task(host.exec(command, lambda *_: said.set()))
            await said.wait()
            await host.exec(Command(("touch", "/run/go"), sudo=True))
            return (await running).ok

        assert on(to(lab_network, "node1", "forced"), run)

    def test_a_large_batch_is_asked_in_portions(self, lab_network: Lab, user: str) -> None:
        words = [f"{n}{'x' * 5000}" for n in range(60)]

        async def ask(host: SshConnector) -> list[str]:
            answers = await host.batch([Command(("echo", word)) for word in words])
            return [answer.text for answer in answers]

        assert on(to(lab_network, "node1", user), ask) == words

    def test_one_that_is_too_long_is_refused(self, lab_network: Lab) -> None:
        async def run(host: SshConnector) -> Completed:
            return await host.exec(Command(("echo", "x" * 100_000)))

        with pytest.raises(KubexmError, match=r"of 1000\d\d bytes is too long") as caught:
            on(to(lab_network, "node1", "forced"), run)

        assert "to a file" in caught.value.hint

    def test_one_that_runs_out_of_time_is_ended_with_its_children(
        self, lab_network: Lab, user: str
    ) -> None:
        async def run(host: SshConnector) -> str:
            stubborn = "trap '' TERM; (sleep 4712; :) & sleep 4712; :"
            with pytest.raises(TimedOut):
                await host.exec(Command(("sh", "-c", stubborn), sudo=True, timeout=1.0))
            return (await host.exec(Command(("pgrep", "-f", "[s]leep 4712")))).text

        assert on(to(lab_network, "node1", user), run, sudo=True, grace=0.5) == ""

    def test_one_that_leaves_something_in_the_background_has_ended(self, lab_network: Lab) -> None:
        async def run(host: SshConnector) -> tuple[str, int]:
            done = await host.exec(Command(("sh", "-c", "sleep 4713 & echo done")))
            return done.text, (await host.exec(Command(("pkill", "-f", "sleep 4713")))).exit

        assert on(to(lab_network, "node1", "forced"), run) == ("done", 0)

    def test_much_output_keeps_its_beginning_and_its_end(self, lab_network: Lab) -> None:
        async def run(host: SshConnector) -> bytes:
            return (await host.exec(Command(("seq", "1000000")))).stdout

        output = on(to(lab_network, "node1", "forced"), run, output_limit=1000)

        assert output.startswith(b"1\n2\n")
        assert output.endswith(b"999999\n1000000\n")
        assert b"bytes left out" in output

    def test_many_at_once_wait_where_the_host_opens_few_sessions(self, lab_network: Lab) -> None:
        async def run(host: SshConnector) -> set[int]:
            commands = [Command(("sh", "-c", f"exit {n}")) for n in range(12)]
            return {done.exit for done in await asyncio.gather(*map(host.exec, commands))}

        assert on(to(lab_network, "node1", "few"), run) == set(range(12))


class TestFiles:
    @pytest.mark.parametrize("size", [0, 40_000, 200_000])
    def test_are_written_whole_with_mode_and_owner(
        self, lab_network: Lab, user: str, size: int
    ) -> None:
        data, path = os.urandom(size), f"/var/tmp/single-{user}-{size}"

        async def run(host: SshConnector) -> Any:
            await host.put(path, data, mode=0o644, owner="ops", group="adm", sudo=True)
            return await host.stat(path, sudo=True), await host.get(path, sudo=True)

        found, content = on(to(lab_network, "node1", user), run, sudo=True)

        assert (found.mode, found.owner, found.group) == (0o644, "ops", "adm")
        assert content == data

    def test_are_uploaded(self, lab_network: Lab, tmp_path: Path, user: str) -> None:
        source, path = tmp_path / "source", f"/var/tmp/single-{user}"
        source.write_bytes(os.urandom(SMALL + 1))

        async def run(host: SshConnector) -> tuple[bool, bool]:
            with closing(Source(source)) as file:
                first = await host.upload(file, path, sudo=True)
                return first, await host.upload(file, path, sudo=True)

        assert on(to(lab_network, "node1", user), run, sudo=True) == (True, False)
        root = lab_network.root("node1")
        assert (root / path.lstrip("/")).read_bytes() == source.read_bytes()
        assert list((root / "tmp").glob("kubexm.*")) == []

    @pytest.mark.parametrize("way", ["forced", "cut"])
    def test_what_is_private_is_refused_where_it_would_stand_in_a_command_line(
        self, lab_network: Lab, way: str
    ) -> None:
        async def run(host: SshConnector) -> None:
            with pytest.raises(Refused, match="the host hands on no input"):
                await host.put("/var/tmp/private", b"secret", mode=0o600)

        on(to(lab_network, "node1", way), run)

    def test_input_that_was_laid_down_is_removed_when_it_fails(self, lab_network: Lab) -> None:
        async def run(host: SshConnector) -> None:
            async def pieces() -> Any:
                yield b"secret"
                raise asyncio.CancelledError

            with pytest.raises(asyncio.CancelledError):
                await host.hand(Command(("cat",)), pieces(), 6)

        on(to(lab_network, "node1", "forced"), run)

        assert list((lab_network.root("node1") / "tmp").glob("kubexm.*")) == []


class TestRoot:
    @pytest.fixture(autouse=True)
    def _password(self, lab_network: Lab) -> Iterator[None]:
        """Both need a password for sudo."""
        change = "sed -i s/{}// /etc/sudoers.d/forced /etc/sudoers.d/picky"
        lab_network.ssh("root@node1", change.format("NOPASSWD:"))
        lab_network.ssh("root@node1", "chpasswd", stdin="forced:secret\npicky:secret\n")
        yield
        lab_network.ssh("root@node1", "sed -i 's/) /) NOPASSWD:/' /etc/sudoers.d/{forced,picky}")

    @pytest.mark.parametrize("way", ["sudo", "su"])
    def test_a_password_is_given_where_there_is_input(self, lab_network: Lab, way: Any) -> None:
        lab_network.ssh("root@node1", "chpasswd", stdin="root:secret\n")

        target = to(lab_network, "node1", "picky", become=Become(way, "secret"))

        assert who(target, sudo=True) == "root"

    def test_a_wrong_one_is_told(self, lab_network: Lab) -> None:
        target = to(lab_network, "node1", "picky", become=Become("sudo", "wrong"))

        assert refused(target, sudo=True).message == "the password for sudo is wrong"

    @pytest.mark.parametrize("way", ["sudo", "su"])
    def test_where_there_is_none_it_is_told_so(self, lab_network: Lab, way: Any) -> None:
        target = to(lab_network, "node1", "forced", become=Become(way, "secret"))

        error = refused(target, sudo=True)

        said = f"{way} asks for a password, and the host hands no input to its commands"
        assert (error.message, "let sshd hand on input" in error.hint) == (said, True)


class TestLock:
    PLACE = "/var/lib/kubexm/locks/single"

    def claim(self, token: int) -> dict[str, Any]:
        return {"claim": Claim("single", token, f"task{token}", "somebody"), "sudo": True}

    @pytest.fixture(autouse=True)
    def _unlocked(self, lab_network: Lab) -> Iterator[None]:
        yield
        lab_network.ssh("root@node1", f"rm -rf {self.PLACE}; pkill -f 'sleep 4714'")

    def test_a_command_is_recorded_while_it_runs(self, lab_network: Lab, user: str) -> None:
        async def run(host: SshConnector) -> list[str]:
            await host.exec(Command(("true",)))
            shown = Command(("sh", "-c", f"cat {self.PLACE}/groups.*"), sudo=True)
            done = await host.exec(shown)
            return done.text.split()

        recorded = on(to(lab_network, "node1", user), run, **self.claim(5))

        assert [word for word in recorded if word in "+-"] == ["+", "-", "+"]
        left = lab_network.ssh("root@node1", f"find {self.PLACE} -type f -not -empty").stdout
        assert left == f"{self.PLACE}/holder\n"

    def test_a_later_run_ends_what_an_earlier_one_runs_and_that_is_refused(
        self, lab_network: Lab, user: str
    ) -> None:
        target = to(lab_network, "node1", user)

        async def main() -> tuple[str, bool, str]:
            async with (
                connected(target, **self.claim(5)) as first,
                connected(target, **self.claim(6)) as second,
            ):
                begun = asyncio.Event()
                slow = Command(("sh", "-c", "echo begun; sleep 4714"))
                running = asyncio.create_task(first.exec(slow, lambda *_: begun.set()))
                await begun.wait()
                await second.exec(Command(("true",)))
                left = await second.exec(Command(("pgrep", "-f", "[s]leep 4714"), changes=False))
                with pytest.raises(ConnectionLost):
                    await running
                with pytest.raises(Refused) as caught:
                    await first.exec(Command(("touch", "/run/never-made")))
                looks = await first.exec(Command(("true",), changes=False))
                return left.text, looks.ok, caught.value.message

        left, looks, message = asyncio.run(main())

        assert (left, looks) == ("", True)
        assert "the host obeys token 6" in message
        assert not (lab_network.root("node1") / "run/never-made").exists()

    @pytest.mark.parametrize("size", [0, 200_000])
    def test_input_is_laid_down_only_where_the_host_obeys(
        self, lab_network: Lab, user: str, size: int
    ) -> None:
        target = to(lab_network, "node1", user)

        async def main() -> str:
            async with (
                connected(target, **self.claim(5)) as first,
                connected(target, **self.claim(6)) as second,
            ):
                await first.put("/var/tmp/locked", b"x" * size)
                await second.exec(Command(("rm", "/var/tmp/locked")))
                with pytest.raises(Refused) as caught:
                    await first.put("/var/tmp/locked", b"x" * size)
                return caught.value.message

        assert "the host obeys token 6" in asyncio.run(main())
        root = lab_network.root("node1")
        assert not (root / "var/tmp/locked").exists()
        assert list((root / "tmp").glob("kubexm.*")) == []


@contextmanager
def logged() -> Iterator[Callable[[], list[str]]]:
    """What is logged meanwhile."""
    written = io.StringIO()
    logger.configure("json", "warning", stream=written)
    try:
        yield lambda: written.getvalue().splitlines()
    finally:
        logger.configure("text", "warning")


class TestDecision:
    def test_it_is_made_once_and_told_once(self, lab_network: Lab) -> None:
        async def run(host: SshConnector) -> None:
            commands = [Command(("id", "-un"), sudo=n % 2 == 0) for n in range(8)]
            await asyncio.gather(*map(host.exec, commands))

        with logged() as lines:
            on(to(lab_network, "node1", "forced"), run, name="node1")

        (line,) = map(json.loads, lines())
        assert (line["level"], line["hostname"], line["input"]) == ("warning", "node1", False)
        assert "no shell stays" in line["event"]

    def test_trouble_with_sudo_is_none_with_the_shell(self, lab_network: Lab) -> None:
        target = to(lab_network, "node1", "ops", become=Become("sudo", "wrong"))

        with logged() as lines:
            error = refused(target, sudo=True)

        assert (error.message, lines()) == ("the password for sudo is wrong", [])

    def test_a_shell_that_never_answers_is_done_without(
        self, lab_network: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shell, "START_SECONDS", 2.0)

        assert who(to(lab_network, "node1", "silent"), sudo=True) == "root"

    def test_a_shell_that_dies_between_requests_is_replaced(self, lab_network: Lab) -> None:
        claim = Claim("dies", 1, "task", "somebody")

        async def asked(host: SshConnector) -> str:
            while True:
                # Who asks before anybody knows of its death is told; a unit would try again.
                with suppress(ConnectionLost):
                    return (await host.exec(Command(("sh", "-c", "echo $PPID")))).text

        async def run(host: SshConnector) -> bool:
            shells = {await asked(host)}
            for _ in range(3):
                (shell,) = shells
                lab_network.ssh("root@node1", f"kill -KILL {shell}")
                shells = {await asked(host)}
                assert shell not in shells
            return True

        assert on(to(lab_network, "node1"), run, claim=claim)
        lab_network.ssh("root@node1", "rm -r /var/lib/kubexm/locks/dies")

    @pytest.mark.parametrize(
        ("user", "said"), [("closed", "This account is currently not"), ("false", "exit code 1")]
    )
    def test_no_shell_at_all_is_refused_with_all_that_was_tried(
        self, lab_network: Lab, user: str, said: str
    ) -> None:
        for sudo in (False, True):
            error = refused(to(lab_network, "node1", user), sudo=sudo)

            assert isinstance(error, Refused)
            for way in ("`/bin/sh` did not start on the host", "by `sh -c`"):
                assert f"{way}: {said}" in error.message
            assert "login shell" in error.hint
