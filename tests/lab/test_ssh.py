"""Real hosts by SSH: every way in, commands and files as root and as others, clear refusals."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kubexm.connector.base import BOOT, Claim, Command, Completed
from kubexm.connector.ssh.become import Become
from kubexm.connector.ssh.connector import SshConnector
from kubexm.connector.ssh.dial import Dialer
from kubexm.connector.ssh.target import Credentials, HostKeys, Target
from kubexm.errors import (
    HostUnreachable,
    KubexmError,
    Refused,
    StepFailed,
    TimedOut,
)
from lab.testing import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(60)]
NODES = ["node1", "trixie1"]


def to(lab: Lab, host: str, user: str = "root", **settings: Any) -> Target:
    """A host of the lab, with the plain key unless something else is said."""
    given = {
        "credentials": Credentials(keys=(lab.key(),)),
        "host_keys": HostKeys((lab.site.known_hosts,)),
        **settings,
    }
    return Target(lab.address(host), user=user, **given)


@asynccontextmanager
async def connected(target: Target, **settings: Any) -> AsyncIterator[SshConnector]:
    dialer = Dialer()
    connector = SshConnector(target, dialer, **settings)
    try:
        await connector.open()
        yield connector
    finally:
        await connector.close()
        dialer.close()


def on(target: Target, work: Callable[[SshConnector], Awaitable[Any]], **settings: Any) -> Any:
    async def main() -> Any:
        async with connected(target, **settings) as host:
            return await work(host)

    return asyncio.run(main())


def who(target: Target, **settings: Any) -> str:
    async def ask(host: SshConnector) -> str:
        return (await host.exec(Command(("id", "-un"), **settings))).text

    return str(on(target, ask, sudo=settings.get("sudo", False)))


def refused(target: Target, **settings: Any) -> KubexmError:
    with pytest.raises(KubexmError) as caught:
        who(target, **settings)
    return caught.value


class TestWaysIn:
    @pytest.mark.parametrize("host", NODES)
    def test_a_key(self, lab_network: Lab, host: str) -> None:
        assert who(to(lab_network, host, "admin")) == "admin"

    def test_a_key_with_a_passphrase(self, lab_network: Lab) -> None:
        locked = Credentials(keys=(lab_network.key("locked"),), passphrase=lab_network.passphrase)

        assert who(to(lab_network, "node1", credentials=locked)) == "root"

    @pytest.mark.parametrize("passphrase", [None, "wrong"])
    def test_a_key_that_stays_locked_is_named(
        self, lab_network: Lab, passphrase: str | None
    ) -> None:
        locked = Credentials(keys=(lab_network.key("locked"),), passphrase=passphrase)

        error = refused(to(lab_network, "node1", credentials=locked))

        assert str(lab_network.key("locked")) in error.message
        assert "passphrase" in error.message
        assert error.hint

    def test_a_certificate_beside_its_key(self, lab_network: Lab) -> None:
        signed = Credentials(keys=(lab_network.key("signed"),))

        assert who(to(lab_network, "node1", credentials=signed)) == "root"

    def test_a_password(self, lab_network: Lab) -> None:
        password = Credentials(password=lab_network.password("admin"))

        assert who(to(lab_network, "gate", "admin", credentials=password)) == "admin"

    def test_an_agent(self, lab_network: Lab, tmp_path: Path) -> None:
        socket = tmp_path / "agent"
        environment = {**os.environ, "SSH_AUTH_SOCK": str(socket)}
        with subprocess.Popen(
            ["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL
        ) as agent:
            while not socket.exists():
                time.sleep(0.02)
            add = ("ssh-add", "-q", str(lab_network.key()))
            subprocess.run(add, env=environment, check=True)
            held = Credentials(agent=str(socket))
            try:
                assert who(to(lab_network, "node1", "admin", credentials=held)) == "admin"
            finally:
                agent.kill()

    def test_what_was_tried_is_named_when_it_is_refused(self, lab_network: Lab) -> None:
        wrong = Credentials(keys=(lab_network.key(),), password="wrong")

        error = refused(to(lab_network, "gate", "admin", credentials=wrong))

        assert isinstance(error, HostUnreachable)
        assert f"tried: the key `{lab_network.key()}`, a password" in error.message

    def test_through_a_bastion(self, lab_network: Lab) -> None:
        bastion = to(lab_network, "bastion")

        assert who(to(lab_network, "hidden", jump=bastion)) == "root"
        assert isinstance(refused(to(lab_network, "hidden")), HostUnreachable)

    def test_through_several_hosts(self, lab_network: Lab) -> None:
        bastion = to(lab_network, "bastion", jump=to(lab_network, "node1"))

        assert who(to(lab_network, "hidden", jump=bastion)) == "root"


class TestClientConfiguration:
    """`~/.ssh/config`, read as `ssh` itself reads it."""

    def target(self, lab: Lab, place: Path, name: str, lines: str, **settings: Any) -> Target:
        config = place / "config"
        key = f"Host *\n  IdentityFile {lab.key()}\n"
        config.write_text(f"{lines}\n{key}")
        known = HostKeys((lab.site.known_hosts,))
        return Target(name, host_keys=known, config=config, **settings)

    def test_names_users_and_patterns(self, lab_network: Lab, tmp_path: Path) -> None:
        address = lab_network.address("node1")
        lines = (
            f"Host *.lab !long.lab\n  HostName {address}\n  User ops\n"
            "Host *.lab\n  HostName nowhere.invalid\n  User admin"
        )

        assert who(self.target(lab_network, tmp_path, "short.lab", lines)) == "ops"
        assert who(self.target(lab_network, tmp_path, "short.lab", lines, user="root")) == "root"
        other = self.target(lab_network, tmp_path, "long.lab", lines)
        assert "`long.lab` is no name that is known" in refused(other).message

    def test_what_is_said_nearer_wins_over_the_port(self, lab_network: Lab, tmp_path: Path) -> None:
        address = lab_network.address("node1")
        lines = f"Host short\n  HostName {address}\n  User ops\n  Port 2222"

        error = refused(self.target(lab_network, tmp_path, "short", lines))

        assert "refused the connection" in error.message
        assert who(self.target(lab_network, tmp_path, "short", lines, port=22)) == "ops"

    def test_included_files_and_matches(self, lab_network: Lab, tmp_path: Path) -> None:
        (tmp_path / "more").write_text(
            f"Match host short user ops\n  HostName {lab_network.address('node1')}\n"
            f"Match host short\n  HostName {lab_network.address('node2')}\n"
        )
        lines = f"Include {tmp_path}/more\nMatch all\n  User root"

        async def name(host: SshConnector) -> str:
            return (await host.exec(Command(("hostname",)))).text

        other = self.target(lab_network, tmp_path, "short", lines)
        ops = self.target(lab_network, tmp_path, "short", lines, user="ops")
        assert (on(ops, name), on(other, name)) == ("node1", "node2")

    @pytest.mark.parametrize("jumps", ["bastion", "root@{node1},ops@{bastion}:22"])
    def test_jump_hosts(self, lab_network: Lab, tmp_path: Path, jumps: str) -> None:
        address = lab_network.address
        lines = (
            f"Host bastion\n  HostName {address('bastion')}\n  User admin\n"
            f"Host {address('hidden')}\n"
            f"  ProxyJump {jumps.format(node1=address('node1'), bastion=address('bastion'))}"
        )

        assert (
            who(self.target(lab_network, tmp_path, address("hidden"), lines, user="ops")) == "ops"
        )

    def test_a_jump_host_that_is_said_of_all_hosts(self, lab_network: Lab, tmp_path: Path) -> None:
        bastion = lab_network.address("bastion")
        lines = f"Host *\n  ProxyJump root@{bastion}"

        for host in ("bastion", "hidden"):
            address = lab_network.address(host)
            assert who(self.target(lab_network, tmp_path, address, lines, user="ops")) == "ops"

    def test_what_the_file_of_hosts_says_wins(self, lab_network: Lab, tmp_path: Path) -> None:
        hidden = lab_network.address("hidden")
        lines = f"Host {hidden}\n  ProxyJump nowhere.invalid"
        jump = to(lab_network, "bastion")

        target = self.target(lab_network, tmp_path, hidden, lines, user="ops", jump=jump)

        assert who(target) == "ops"

    @pytest.mark.parametrize(
        "program",
        [
            "ssh -F {config} -W %h:%p root@bastion",
            "ssh -v -F {config} -W '%h:%p' root@bastion | cat",
            "ssh -F {config} root@bastion exec socat - TCP:%h:%p",
        ],
    )
    def test_a_program_that_speaks_to_the_host(
        self, lab_network: Lab, tmp_path: Path, program: str
    ) -> None:
        hidden = lab_network.address("hidden")
        line = program.format(config=lab_network.site.ssh_config)
        lines = f"Host short\n  HostName {hidden}\n  ProxyCommand {line}"
        target = self.target(lab_network, tmp_path, "short", lines, user="admin")

        async def work(host: SshConnector) -> tuple[str, bytes]:
            await host.put("/var/tmp/proxied", b"x" * 3_000_000, sudo=True)
            size = await host.exec(Command(("stat", "-c", "%s", "/var/tmp/proxied")))
            return size.text, await host.get("/var/tmp/proxied")

        assert on(target, work, sudo=True) == ("3000000", b"x" * 3_000_000)

    def test_a_program_that_fails_is_named(self, lab_network: Lab, tmp_path: Path) -> None:
        lines = "Host short\n  ProxyCommand echo no way >&2; false"

        error = refused(self.target(lab_network, tmp_path, "short", lines))

        assert error.message == "short can't be reached by `echo no way >&2; false`"
        assert "run this `ProxyCommand`" in error.hint


class TestHostKeys:
    def test_an_unknown_one_is_refused_with_its_fingerprint_and_how_to_accept_it(
        self, lab_network: Lab, tmp_path: Path
    ) -> None:
        empty = tmp_path / "known hosts"

        error = refused(to(lab_network, "node1", host_keys=HostKeys((empty,))))

        assert f"the host key of {lab_network.address('node1')} is not known" in error.message
        assert "SHA256:" in error.message
        accept = error.hint.partition("the same: ")[2]
        assert lab_network.run("sh", "-c", accept).returncode == 0
        assert who(to(lab_network, "node1", host_keys=HostKeys((empty,)))) == "root"

    def test_a_changed_one_is_refused_also_on_first_use(
        self, lab_network: Lab, tmp_path: Path
    ) -> None:
        known = tmp_path / "known"
        line = next(
            line
            for line in lab_network.site.known_hosts.read_text().splitlines()
            if lab_network.address("node2") in line
        )
        known.write_text(f"{lab_network.address('node1')} {line.split(' ', 1)[1]}\n")

        error = refused(to(lab_network, "node1", host_keys=HostKeys((known,), "first-use")))

        assert "is not the one that is known" in error.message
        assert "ssh-keygen -R" in error.hint

    def test_first_use_is_remembered(self, lab_network: Lab, tmp_path: Path) -> None:
        known = tmp_path / "new" / "known"

        assert who(to(lab_network, "node1", host_keys=HostKeys((known,), "first-use"))) == "root"
        assert who(to(lab_network, "node1", host_keys=HostKeys((known,)))) == "root"


class TestRoot:
    @pytest.mark.parametrize("host", NODES)
    @pytest.mark.parametrize("way", ["sudo", "su"])
    def test_with_a_password(self, lab_network: Lab, host: str, way: Any) -> None:
        password = lab_network.password("ops")
        lab_network.ssh(f"root@{host}", "chpasswd", stdin=f"root:{password}\n")

        assert who(to(lab_network, host, "ops", become=Become(way, password)), sudo=True) == "root"

    @pytest.mark.parametrize("host", NODES)
    def test_without_a_password(self, lab_network: Lab, host: str) -> None:
        assert who(to(lab_network, host, "admin"), sudo=True) == "root"

    @pytest.mark.parametrize(
        ("password", "said"),
        [(None, "sudo asks for a password"), ("wrong", "the password for sudo is wrong")],
    )
    def test_a_wrong_password_is_told(
        self, lab_network: Lab, password: str | None, said: str
    ) -> None:
        target = to(lab_network, "node1", "ops", become=Become("sudo", password))

        assert refused(target, sudo=True).message == said

    def test_as_somebody_else(self, lab_network: Lab) -> None:
        assert who(to(lab_network, "node1", "admin"), sudo=True, user="nobody") == "nobody"
        assert who(to(lab_network, "node1"), user="nobody") == "nobody"

    def test_each_of_a_batch_is_asked_as_whom_it_is_meant_for(self, lab_network: Lab) -> None:
        target = to(lab_network, "node1", "ops", become=Become("sudo", lab_network.password("ops")))

        async def ask(host: SshConnector) -> list[str]:
            asked = [
                Command(("id", "-un")),
                Command(("id", "-un"), sudo=True),
                Command(("id", "-un"), user="nobody"),
                Command(("id", "-un"), user="ops"),
            ]
            return [answer.text for answer in await host.batch(asked)]

        for sudo in (False, True):
            assert on(target, ask, sudo=sudo) == ["ops", "root", "nobody", "ops"]

    def test_a_user_without_a_way_to_root_locks_the_host_at_home(self, lab_network: Lab) -> None:
        claim = Claim("site", 1, "task", "somebody")
        state = ".local/state/kubexm"

        async def change(host: SshConnector) -> int:
            return (await host.exec(Command(("touch", "made")))).exit

        code = on(to(lab_network, "node1", "ops"), change, claim=claim, state_dir=state)

        assert code == 0
        look = f"find {state}/locks/site -type f -not -empty -printf '%f '"
        held = lab_network.ssh("ops@node1", f"{look}; rm -r made .local")
        assert held.stdout.split() == ["holder"]

    def test_a_password_is_in_no_command_line_on_the_host(self, lab_network: Lab) -> None:
        password = lab_network.password("ops")

        async def look(host: SshConnector) -> str:
            everyone = ("sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ")
            return (await host.exec(Command(everyone, sudo=True))).text

        shown = on(to(lab_network, "node1", "ops", become=Become("sudo", password)), look)

        assert "sudo" in shown
        assert password not in shown


class TestCommands:
    @pytest.mark.parametrize("host", NODES)
    def test_streams_and_exit_code_stay_apart(self, lab_network: Lab, host: str) -> None:
        lines: list[tuple[str, str]] = []
        script = r"printf 'a\0b\nc'; echo e >&2; exit 3"

        async def run(connector: SshConnector) -> Any:
            return await connector.exec(
                Command(("sh", "-c", script)), lambda *line: lines.append(line)
            )

        done = on(to(lab_network, host), run)

        assert (done.exit, done.stdout, done.stderr) == (3, b"a\0b\nc", b"e\n")
        assert sorted(lines) == [("stderr", "e"), ("stdout", "a\0b"), ("stdout", "c")]

    @pytest.mark.parametrize("user", ["root", "admin"])
    @pytest.mark.parametrize("host", NODES)
    def test_one_that_runs_out_of_time_is_ended_with_its_children(
        self, lab_network: Lab, host: str, user: str
    ) -> None:
        async def run(connector: SshConnector) -> str:
            stubborn = "trap '' TERM; (sleep 4711; :) & sleep 4711; :"
            with pytest.raises(TimedOut, match=r"did not end within 0\.5 s"):
                await connector.exec(Command(("sh", "-c", stubborn), sudo=True, timeout=0.5))
            return (await connector.exec(Command(("pgrep", "-f", "[s]leep 4711")))).text

        assert on(to(lab_network, host, user), run, sudo=True, grace=0.5) == ""

    def test_what_is_said_before_input_is_read_arrives(self, lab_network: Lab) -> None:
        async def run(connector: SshConnector) -> bytes:
            command = Command(("sh", "-c", "echo first; wc -c"), stdin=b"x" * 100_000)
            return (await connector.exec(command)).stdout

        assert on(to(lab_network, "node1"), run) == b"first\n100000\n"

    def test_much_output_keeps_its_beginning_and_its_end(self, lab_network: Lab) -> None:
        async def run(connector: SshConnector) -> bytes:
            return (await connector.exec(Command(("seq", "1000000")))).stdout

        output = on(to(lab_network, "node1"), run, output_limit=1000)

        assert output.startswith(b"1\n2\n")
        assert output.endswith(b"999999\n1000000\n")
        assert b"bytes left out" in output

    def test_many_at_once_wait_for_each_other(self, lab_network: Lab) -> None:
        async def run(connector: SshConnector) -> set[int]:
            commands = [Command(("sh", "-c", f"exit {n}")) for n in range(40)]
            return {done.exit for done in await asyncio.gather(*map(connector.exec, commands))}

        assert on(to(lab_network, "node1"), run) == set(range(40))


class TestFiles:
    @pytest.mark.parametrize("user", ["root", "admin"])
    @pytest.mark.parametrize("size", [0, 1, 100_000, 3_000_000])
    def test_are_written_whole_with_mode_and_owner(
        self, lab_network: Lab, user: str, size: int
    ) -> None:
        data = bytes(range(256)) * (size // 256 + 1)
        data, path = data[:size], f"/var/tmp/put-{user}-{size}"

        async def run(host: SshConnector) -> Any:
            await host.put(path, data, mode=0o640, owner="ops", group="adm", sudo=True)
            return await host.stat(path, sudo=True), await host.get(path, sudo=True)

        found, content = on(to(lab_network, "node1", user), run, sudo=True)

        assert (found.mode, found.owner, found.group) == (0o640, "ops", "adm")
        assert content == data

    def test_errors_of_the_disk_are_told(self, lab_network: Lab) -> None:
        async def run(host: SshConnector) -> str:
            with pytest.raises(StepFailed) as caught:
                await host.put("/var/lib/small/big", b"x" * (4 << 20))
            return caught.value.message

        assert "No space left on device" in on(to(lab_network, "node1"), run)


def test_the_boot_of_a_host_is_known_without_a_process(lab_network: Lab) -> None:
    async def run(host: SshConnector) -> tuple[Completed, Completed]:
        return await host.exec(Command(BOOT)), await host.exec(Command(("env", *BOOT)))

    known, asked = on(to(lab_network, "node1", "admin"), run)

    assert known == asked
    assert known.text


class TestTrouble:
    def test_nobody_listens(self, lab_network: Lab) -> None:
        error = refused(Target(lab_network.address("node1"), 2222))

        assert error.message == f"{lab_network.address('node1')}:2222 refused the connection"
        assert error.hint

    def test_no_shell(self, lab_network: Lab) -> None:
        lab_network.ssh("root@node1", "useradd -m -s /usr/sbin/nologin closed")
        lab_network.ssh("root@node1", "cp -r ~/.ssh ~closed && chown -R closed ~closed")

        error = refused(to(lab_network, "node1", "closed"))

        assert isinstance(error, Refused)
        assert "`/bin/sh` did not start on the host: This account" in error.message
