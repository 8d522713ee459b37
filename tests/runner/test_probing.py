"""What hosts are asked before they become part of a cluster, and what their answers mean."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.runner.apart import work_apart
from tests.runner.hosts import on_this_machine, said

from kubexm.connector.local import LocalConnector
from kubexm.runner import probing
from kubexm.runner.host import Host
from kubexm.runner.probed import Probed, Route, probed_of
from kubexm.runner.probing import Knock, Questions

NOTHING = Questions()
QUESTIONS = Questions("demo", "/tmp")


async def ask(host: Host, questions: Questions = NOTHING) -> Probed:
    (answer,) = await host.batch((probing.command(host, questions),))
    assert answer.ok
    return probed_of(answer)


def test_this_machine_answers_and_nothing_of_the_writes_is_left(tmp_path: Path) -> None:
    there = tmp_path / "disk"
    there.mkdir()

    found = on_this_machine(lambda host: ask(host, Questions(etcd=f"{there}/not/yet")))

    assert found.uid == os.geteuid()
    assert not found.is_ours
    assert "lo" in found.links
    assert found.tools is not None
    assert found.place == str(there)
    assert 0 < len(found.writes) <= probing.WRITES
    assert all(0 < took < 60 for took in found.writes)
    assert [*there.iterdir()] == []


def test_writes_that_are_ended_leave_nothing(tmp_path: Path) -> None:
    async def command(host: Host) -> tuple[str, ...]:
        return probing.command(host, Questions(etcd=str(tmp_path))).argv

    argv = on_this_machine(command)
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        while not (made := [*tmp_path.iterdir()]) and process.poll() is None:
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
    deadline = time.monotonic() + 5
    while [*tmp_path.iterdir()] and time.monotonic() < deadline:
        time.sleep(0.01)  # the process that wrote may be a moment behind

    assert [path.name.startswith(".kubexm-writes.") for path in made] == [True]
    assert [*tmp_path.iterdir()] == []


def test_those_who_answer_for_names_are_told_whatever_they_say() -> None:
    with ExitStack() as stack:
        refuses = stack.enter_context(name_server("127.0.0.1", 0, looks_around=True))
        port = refuses.getsockname()[1]
        stack.enter_context(name_server("127.0.0.2", port, looks_around=False))

        async def ask_there(host: Host) -> Probed:
            servers = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
            argv = probing.command(host, Questions(servers=servers)).argv
            script = argv[2].replace("$0/53", f"$0/{port}")
            return probed_of(await host.ask("sh", "-c", script, *argv[3:]))

        found = on_this_machine(ask_there)

    assert found.answering == frozenset(("127.0.0.1", "127.0.0.2"))


@contextmanager
def name_server(address: str, port: int, *, looks_around: bool) -> Iterator[socket.socket]:
    """Somebody who refuses what is asked; else who answers only what asks for what it knows."""

    def serve(server: socket.socket) -> None:
        while (received := server.recvfrom(512))[0]:
            question, asker = received
            wanted, recursion = question[2:3], b"\x01"
            assert question[4:] == b"\0\1" + bytes(6) + b"\0" + b"\0\2" + b"\0\1"
            if looks_around or wanted != recursion:
                server.sendto(question[:2] + b"\x80\x05" + question[4:], asker)

    with socket.socket(type=socket.SOCK_DGRAM) as server:
        server.bind((address, port))
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        try:
            yield server
        finally:
            server.sendto(b"", server.getsockname())
            thread.join()


@pytest.mark.parametrize(
    ("file", "content", "ours"),
    [
        ("records/kubeadm.json", '{"state":"done","cluster":"demo"}', True),
        ("records/kubeadm.json", '{"state":"done","cluster":"demo2"}', False),
        ("records/kubeadm.json", '{"state":"done"}', False),
        ("ledger/a.json", json.dumps({"name": "demo", "prior": {}, "resource": "x"}), True),
        ("ledger/a.json", json.dumps({"name": "demo2", "prior": {}, "resource": "x"}), False),
        ("ledger/a.json", json.dumps({"name": "x", "prior": {"name": "demo"}}), False),
        ("other", "demo", False),
    ],
)
def test_a_host_is_known_by_what_was_left_on_it_for_this_cluster(
    file: str, content: str, ours: bool, tmp_path: Path
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(content)

    async def look() -> Probed:
        connector = LocalConnector()
        try:
            return await ask(Host("here", connector, state_dir=str(tmp_path)), QUESTIONS)
        finally:
            await connector.close()

    found = asyncio.run(look())

    assert found.is_ours is ours
    is_member = "kubeadm" in file
    assert bool(found.writes) is not (ours or is_member), "who is beside a cluster leaves it alone"
    named = json.loads(content).get("cluster", "") if is_member else None
    assert found.member == named


def test_ports_of_others_are_open_closed_or_beyond_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        knocks = (
            Knock("a", "127.0.0.1", server.getsockname()[1]),
            Knock("b", "127.0.0.1", closed.getsockname()[1]),
        )
        questions = Questions(endpoint=f"127.0.0.1 {knocks[0].port}", knocks=knocks)
        found = on_this_machine(lambda host: ask(host, questions))

    assert found.knocks == {knocks[0]: "open", knocks[1]: "closed"}
    assert found.endpoint == "open"


def test_what_a_cluster_has_left_is_found(apart: int) -> None:
    etc = Path(f"/proc/{apart}/root/etc")
    shutil.rmtree(etc / "kubernetes", ignore_errors=True)
    shutil.rmtree(etc / "cni", ignore_errors=True)
    (etc / "kubernetes/manifests").mkdir(parents=True)
    (etc / "kubernetes/pki").mkdir()
    (etc / "cni/net.d").mkdir(parents=True)
    empty = work_apart(apart, ask)
    (etc / "kubernetes/manifests/etcd.yaml").touch()
    (etc / "kubernetes/admin.conf").touch()
    (etc / "cni/net.d/10-x.conflist").touch()
    (etc / "cni/net.d/87-podman-bridge.conflist").touch()

    found = work_apart(apart, ask)

    assert empty.files == (), "what only a package has made is nothing"
    assert found.files == (
        "/etc/kubernetes/manifests",
        "/etc/kubernetes/admin.conf",
        "/etc/cni/net.d/10-x.conflist",
    )


@pytest.mark.slow
def test_links_routes_and_who_is_beyond_reach_are_told(apart: int) -> None:
    async def look(host: Host) -> Probed:
        made = await host.ask("ip", "link", "add", "cni0", "type", "veth", "peer", "cni1")
        if not made.ok:
            pytest.skip("this kernel makes no links")
        await host.run("ip", "addr", "add", "10.9.0.1/24", "dev", "cni0")
        await host.run("ip", "link", "set", "cni0", "up")
        await host.run("ip", "link", "set", "cni1", "up")
        await host.run("ip", "route", "add", "default", "via", "10.9.0.254")
        await host.run("ip", "route", "add", "blackhole", "10.8.0.0/26")
        by_v6 = ("-6", "route", "add", "default", "dev", "cni0")
        if (await host.ask("ip", *by_v6, changes=True)).ok:
            expected.append(Route("default", "cni0", family=6))
        return await ask(host, Questions(endpoint="10.9.0.77 6443", knocks=(far,)))

    far = Knock("far", "10.9.0.99", 6443)
    expected = [
        Route("default", "cni0", "10.9.0.254"),
        Route("10.9.0.0/24", "cni0"),
        Route("10.8.0.0/26"),
    ]
    found = work_apart(apart, look)

    assert {"cni0", "cni1", "lo"} <= set(found.links)
    assert found.routes is not None
    assert {*expected} <= {*found.routes}
    assert found.knocks is not None
    assert found.knocks[far] in ("unroutable", "silent")
    assert found.pinged == frozenset()
    assert (found.endpoint in ("unroutable", "silent"), found.endpoint_hardware) == (True, "")


def test_packet_filters_of_a_cluster_are_found(apart: int) -> None:
    async def look(host: Host) -> Probed:
        made = await host.ask("iptables", "-t", "nat", "-N", "KUBE-SERVICES", changes=True)
        if not made.ok:
            pytest.skip("this machine has no packet filter")
        return await ask(host)

    assert work_apart(apart, look).rules == ("KUBE-SERVICES",)


def test_the_question_works_without_its_tools(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")

    async def bare(host: Host) -> Probed:
        argv = probing.command(host, Questions("demo", "/tmp", "10.0.0.1 1")).argv
        script = argv[2].replace(":/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin", "")
        answer = await host.ask("sh", "-c", script, *argv[3:], env={"PATH": str(tmp_path)})
        assert answer.ok
        return probed_of(answer)

    found = on_this_machine(bare)

    assert (found.uid, found.routes, found.clock, found.knocks) == (None, None, None, None)
    assert (found.tools, found.writes, found.firewall) == (frozenset(), (), None)


def test_answers_are_read_of_what_hosts_say() -> None:
    found = probed_of(said(ANSWER))

    assert (found.uid, found.is_ours) == (0, True)
    assert found.units == ("kubelet", "containerd")
    assert found.mounts == ("/var/lib/kubelet/pods/1/volumes/x",)
    assert found.rules == ("KUBE-SERVICES", "table ip kube-proxy")
    assert found.virtual_servers == 2
    assert found.resolvers == ("10.0.0.53", "fd00::53")
    assert found.firewall == "firewalld"
    assert found.clock is not None
    assert (found.clock.synchronised, found.clock.keeper) == (False, "chronyd")
    assert found.routes == (
        Route("default", "eth0", "10.0.0.1"),
        Route("fd00::/64", "eth0", family=6),
        Route("default", "eth0", "fe80::1", 6),
        Route("default", "lo", family=6),
    )
    assert found.knocks == {
        Knock("cp1", "10.0.0.1", 6443): "silent",
        Knock("cp2", "fd00::2", 6443): "unroutable",
    }
    assert found.pinged == {"10.0.0.1"}
    assert found.answering == frozenset(("10.0.0.53",))
    assert (found.endpoint, found.endpoint_hardware) == ("silent", "52:54:00:ab:cd:ef")
    assert found.writes == (0.00123, 9.1e-05)


ANSWER = """\
uid:0
ours:ledger
/run/systemd/resolve/resolv.conf:nameserver 10.0.0.53
/run/systemd/resolve/resolv.conf:nameserver fd00::53
/run/systemd/resolve/resolv.conf:nameserver
told:tools
mount:/var/lib/kubelet/pods/1/volumes/x
virtual:TCP
virtual:UDP
rule:KUBE-SERVICES
rule:KUBE-SERVICES
rule:table ip kube-proxy
@units
activating
inactive
inactive
inactive
inactive
unknown
inactive
inactive
inactive
inactive
failed
active
inactive
@routes
default via 10.0.0.1 dev eth0 proto dhcp metric 100
@routes6
fd00::/64 dev eth0 proto kernel metric 256 pref medium
default via fe80::1 dev eth0 proto ra metric 1024 expires 1700sec hoplimit 64 pref medium
unreachable default dev lo metric 4294967295 error -101
@
told:routes
@ufw
Status: inactive
@firewalld
running
@iptables
@nftables
@clock
Timezone=Europe/Berlin
NTP=yes
NTPSynchronized=no
@keepers
active
inactive
@
knock:cp1 10.0.0.1 6443 silent
ping:10.0.0.1
knock:cp2 fd00::2 6443 unroutable
knock:- 10.0.0.100 6443 silent
answers:10.0.0.53
told:knocks
neighbour:10.0.0.100 dev eth0 lladdr 52:54:00:AB:CD:EF REACHABLE
place:/var/lib
@writes
2300 bytes (2.3 kB, 2.2 KiB) copied, 0.00123 s, 1.9 MB/s
2300 bytes (2.3 kB) copied, 9.1e-05 s, 25.3 MB/s
"""
