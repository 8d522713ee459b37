"""Firewalls and clocks of real hosts, by what their own tools and a caller from outside say.

SELinux can't be tried here: it is a part of the kernel, and that of the machine has it not.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.lab.test_ssh import connected, to

from kubexm.errors import StepFailed
from kubexm.runner import clock, firewall
from kubexm.runner.host import Host
from lab.testing import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(90)]
LOGINS = {"node3": "root", "trixie1": "admin"}
PORT = 7171


@pytest.fixture(params=LOGINS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def on_host(lab: Lab, name: str, work: Callable[[Host], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with connected(to(lab, name, LOGINS[name]), sudo=True) as connector:
            return await work(Host(name, connector, sudo=True))

    return asyncio.run(main())


class TestFirewall:
    @pytest.fixture(autouse=True)
    def _listening(self, lab_network: Lab, name: str) -> Iterator[None]:
        """Somebody answers at the port; afterwards no firewall is left, and no rule of one."""
        lab_network.ssh(
            f"root@{name}",
            f"systemd-run --quiet --collect --unit=answers"
            f" socat TCP-LISTEN:{PORT},fork,reuseaddr EXEC:'echo hello'",
        )
        yield
        lab_network.ssh(
            f"root@{name}",
            "systemctl stop answers; ufw --force reset >/dev/null; rm -f /etc/ufw/*.rules.*;"
            " systemctl stop firewalld; rm -f /etc/firewalld/zones/*;"
            " iptables -P INPUT ACCEPT; iptables -F; ip6tables -P INPUT ACCEPT; ip6tables -F",
        )

    def answers(self, lab: Lab, name: str) -> bool:
        """Whether somebody from outside gets through to the port."""
        try:
            with socket.create_connection((lab.address(name), PORT), timeout=2) as caller:
                return caller.recv(10) == b"hello\n"
        except OSError:
            return False

    def start(self, lab: Lab, name: str, kind: str) -> None:
        """Activate a firewall that lets in ssh and nothing else."""
        script = {
            "ufw": "ufw allow 22/tcp && ufw --force enable",
            "firewalld": "systemctl start firewalld",
            "iptables": "iptables -A INPUT -p tcp --dport 22 -j ACCEPT && iptables -A INPUT -m"
            " conntrack --ctstate ESTABLISHED -j ACCEPT && iptables -P INPUT DROP",
        }[kind]
        done = lab.ssh(f"root@{name}", script)
        assert done.returncode == 0, done.stderr

    def test_a_host_without_one_lets_everything_in(self, lab_network: Lab, name: str) -> None:
        async def look(host: Host) -> tuple[Any, bool]:
            return await firewall.active(host), await firewall.is_open(host, PORT)

        assert on_host(lab_network, name, look) == (None, True)
        assert self.answers(lab_network, name)

    @pytest.mark.parametrize("kind", ["ufw", "firewalld", "iptables"])
    def test_a_port_is_opened_and_closed_again(
        self, lab_network: Lab, name: str, kind: str
    ) -> None:
        lab = lab_network
        self.start(lab, name, kind)
        seen: list[bool] = []

        async def work(host: Host) -> list[bool]:
            assert await firewall.active(host) == kind
            said = [await firewall.is_open(host, PORT)]
            seen.append(self.answers(lab, name))
            for change in (firewall.open_port, firewall.close_port):
                await change(host, PORT)
                await change(host, PORT)  # a second time there is nothing to do
                said.append(await firewall.is_open(host, PORT))
                seen.append(self.answers(lab, name))
            return said

        assert on_host(lab, name, work) == [False, True, False]
        assert seen == [False, True, False]

    def test_firewalld_keeps_a_port_open_over_a_restart(self, lab_network: Lab, name: str) -> None:
        self.start(lab_network, name, "firewalld")

        async def work(host: Host) -> bool:
            await firewall.open_port(host, PORT, "udp")
            await host.run("systemctl", "restart", "firewalld")
            return await firewall.is_open(host, PORT, "udp")

        assert on_host(lab_network, name, work)


class TestClock:
    @pytest.fixture(autouse=True)
    def _as_before(self, lab_network: Lab, name: str) -> Iterator[None]:
        # Who keeps the time of a machine does not start in a container, unless it is told to.
        unit = lab_network.root(name) / "etc/systemd/system/systemd-timesyncd.service.d/here.conf"
        unit.parent.mkdir()
        unit.write_text(
            "[Unit]\nConditionCapability=\nConditionVirtualization=\n"
            "[Service]\nExecStart=\nExecStart=/bin/sleep infinity\nType=exec\nUser=root\n"
            "CapabilityBoundingSet=~\nAmbientCapabilities=\n"
        )
        lab_network.ssh(f"root@{name}", "systemctl daemon-reload")
        yield
        unit.unlink()
        unit.parent.rmdir()
        lab_network.ssh(
            f"root@{name}",
            "systemctl disable --now systemd-timesyncd; systemctl daemon-reload;"
            " timedatectl set-timezone Etc/UTC",
        )

    async def kept_by(self, host: Host, keeper: str) -> None:
        """Return when it is so: Debian 12 does not wait until the unit has started."""
        while True:
            if (await clock.state(host)).keeper == keeper:
                return
            await asyncio.sleep(0.1)

    def test_the_zone_is_set(self, lab_network: Lab, name: str) -> None:
        async def work(host: Host) -> str:
            await clock.set_zone(host, "Europe/Berlin")
            return (await clock.state(host)).zone

        assert on_host(lab_network, name, work) == "Europe/Berlin"
        assert lab_network.ssh(f"root@{name}", "date +%Z").stdout.strip() in ("CET", "CEST")

    def test_a_zone_that_there_is_not_is_refused(self, lab_network: Lab, name: str) -> None:
        async def work(host: Host) -> None:
            await clock.set_zone(host, "Europe/Atlantis")

        with pytest.raises(StepFailed, match="knows no time zone `Europe/Atlantis`"):
            on_host(lab_network, name, work)

    def test_who_keeps_the_clock_right_is_told(self, lab_network: Lab, name: str) -> None:
        async def work(host: Host) -> str:
            before = (await clock.state(host)).keeper
            for on, keeper in (("true", "systemd-timesyncd"), ("false", "")):
                await host.run("timedatectl", "set-ntp", on)
                await self.kept_by(host, keeper)
            return before

        assert on_host(lab_network, name, work) == ""
