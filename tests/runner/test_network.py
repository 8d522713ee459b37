"""Who listens and who answers, and the firewalls in between."""

from __future__ import annotations

import os
import shutil
import socket

import pytest
from tests.runner.apart import work_apart
from tests.runner.hosts import OK, complained, on_this_machine, said, scripted

from kubexm.connector.base import Completed
from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner import firewall, network
from kubexm.runner.host import Host


def test_a_port_is_taken_and_answers_while_somebody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        async def look(host: Host) -> tuple[network.Listener | None, bool]:
            reached = await network.reaches(host, "127.0.0.1", port, seconds=2)
            found = await network.listeners(host)
            at = (one for one in found if (one.protocol, one.port) == ("tcp", port))
            return next(at, None), reached

        taken, open_ = on_this_machine(look)
    free, closed = on_this_machine(look)

    assert taken is not None
    assert (taken.protocol, taken.address, taken.port) == ("tcp", "127.0.0.1", port)
    assert taken.pid == os.getpid()
    assert (open_, free, closed) == (True, None, False)


LISTENING = """\
udp   UNCONN 0      0            0.0.0.0:68        0.0.0.0:*    users:(("dhclient",pid=612,fd=7))
tcp   LISTEN 0      128             [::]:22           [::]:*    users:(("sshd",pid=701,fd=4))
tcp   LISTEN 0      4096  127.0.0.53%lo:53        0.0.0.0:*
"""


def test_listeners_are_read_of_what_ss_says() -> None:
    assert network.listeners_of(said(LISTENING)) == (
        network.Listener("udp", "0.0.0.0", 68, "dhclient", 612),
        network.Listener("tcp", "::", 22, "sshd", 701),
        network.Listener("tcp", "127.0.0.53%lo", 53),
    )


@pytest.mark.parametrize("tool", ["ss", "bash"])
def test_a_host_without_the_tool_is_told_so(tool: str) -> None:
    gone = {"": complained("not found", 127)}

    async def work(host: Host) -> object:
        if tool == "ss":
            return await network.listeners(host)
        return await network.reaches(host, "10.0.0.1", 80)

    with pytest.raises(CommandFailed) as caught:
        scripted(work, gone)

    assert caught.value.hint == f"install {tool} on the host"


GATES = {
    "iptables": (("iptables", "-P", "INPUT", "DROP"),),
    "nftables": (
        ("nft", "add", "table", "inet", "gate"),
        (
            *("nft", "add", "chain", "inet", "gate", "in"),
            "{ type filter hook input priority 0; policy drop; }",
        ),
    ),
}


@pytest.mark.parametrize("wall", GATES)
def test_a_real_firewall_opens_a_port_once_and_closes_it(apart: int, wall: str) -> None:
    if shutil.which(GATES[wall][0][0]) is None:
        pytest.skip(f"there is no {wall} here")

    async def work(host: Host) -> None:
        assert await firewall.active(host) is None
        assert await firewall.is_open(host, 8080)
        await firewall.open_port(host, 8080)
        for argv in GATES[wall]:
            await host.run(*argv)
        assert await firewall.active(host) == wall
        before = await _rules(host)
        assert not await firewall.is_open(host, 8080)
        await firewall.open_port(host, 8080)
        opened = await _rules(host)
        await firewall.open_port(host, 8080)
        assert await firewall.is_open(host, 8080)
        assert not await firewall.is_open(host, 8080, "udp")
        assert before != opened == await _rules(host)
        await firewall.close_port(host, 8080)
        await firewall.close_port(host, 8080)
        assert await _rules(host) == before

    work_apart(apart, work)


async def _rules(host: Host) -> str:
    return (await host.ask("nft", "list", "ruleset")).text


UFW = """\
Status: active

To                         Action      From
--                         ------      ----
22/tcp                     ALLOW       Anywhere
"""


def test_ufw_is_told_in_its_own_words() -> None:
    async def work(host: Host) -> bool:
        await firewall.open_port(host, 6443)
        await firewall.open_port(host, 22)
        await firewall.close_port(host, 22)
        return await firewall.is_open(host, 22)

    found, connector = scripted(work, {"ufw status": said(UFW)})

    assert found
    assert connector.changes == ["ufw allow 6443/tcp", "ufw delete allow 22/tcp"]


def test_firewalld_is_told_for_good_and_at_once() -> None:
    answers: dict[str, Completed | list[Completed]] = {
        "ufw": complained("not found", 127),
        "firewall-cmd --state": said("running\n"),
        "firewall-cmd --query-port=53/udp": [complained(""), OK],
    }

    async def work(host: Host) -> None:
        await firewall.open_port(host, 53, "udp")
        await firewall.close_port(host, 53, "udp")

    _, connector = scripted(work, answers)

    assert connector.changes == [
        "firewall-cmd --quiet --permanent --add-port=53/udp",
        "firewall-cmd --quiet --add-port=53/udp",
        "firewall-cmd --quiet --permanent --remove-port=53/udp",
        "firewall-cmd --quiet --remove-port=53/udp",
    ]


def test_rules_that_can_not_be_read_are_no_open_door() -> None:
    answers = (complained(""), complained(""), said("-P INPUT ACCEPT\n"), said("Error: no json"))

    with pytest.raises(StepFailed, match="can't read what nft says"):
        firewall.active_of(answers)
