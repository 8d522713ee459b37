"""What looks at the health of a cluster make of what hosts answer."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.runner.hosts import Scripted, complained, on_this_machine, said, scripted
from tests.sim.clusters import certificates as made

from kubexm.common import layout
from kubexm.connector.base import Command, Completed, LineSink
from kubexm.errors import StepFailed
from kubexm.runner.host import Host
from kubexm.step import health_look, health_names, health_objects
from kubexm.step.health_certificates import certificates
from kubexm.step.health_look import Told
from kubexm.step.health_names import Way

KUBELET = b"clusterDNS: [10.233.0.10]\nclusterDomain: cluster.local\n"
KUBELET_V6 = b'clusterDNS: ["fd00:233::a"]\nclusterDomain: cluster.local\n'
PODS = said("cni-1\ncni-2\nother\n")
UDP, TCP = (
    f"timeout 2 nsenter --net=/run/netns/cni-1 bash -c exec 3<>{part}"
    for part in ('"/dev/udp', '"/dev/tcp')
)
SECOND_UDP = UDP.replace("cni-1", "cni-2")
ENDPOINT = "https://api.demo.kubexm.internal:6443"
COREDNS = "kube-system/deployment/coredns"
KUBECTL = f"{layout.BINARIES}/kubectl --kubeconfig {layout.ADMIN_CONFIG} get"


def replied(answers: int = 1, code: int = 0, *, length: bool = False) -> Completed:
    """The head of an answer to a question for a name, as `od` writes it."""
    head = struct.pack("!HHHHHH", 7, 0x8180 | code, 1, answers, 0, 0)
    whole = struct.pack("!H", 90) + head if length else head
    return said(" " + whole.hex(" ") + "\n")


def names(answers: dict[str, Any], kubelet: bytes | None = KUBELET) -> list[Told]:
    files = {} if kubelet is None else {layout.KUBELET_CONFIG: kubelet}
    by_tcp = {TCP: replied(length=True)}
    found, _ = scripted(health_names.names, {"ls": PODS, **by_tcp, **answers}, files)
    return found


def test_a_name_that_a_pod_finds_is_well() -> None:
    (told,) = names({UDP: replied()})

    assert (told.grade, told.check) == ("well", "dns")
    assert told.what == "a pod finds kubernetes.default.svc.cluster.local by 10.233.0.10"


def test_a_service_of_the_other_family_alone_is_found_too() -> None:
    for kubelet in (KUBELET, KUBELET_V6):
        (told,) = names({UDP: [replied(0), replied(1)]}, kubelet)
        assert told.grade == "well"


class Hearing(Scripted):
    """Remembers the questions too."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.heard: list[bytes] = []

    async def exec(self, command: Command, sink: LineSink | None = None) -> Completed:
        self.heard += [command.stdin] if command.stdin else []
        return await super().exec(command, sink)


@pytest.mark.parametrize(("kubelet", "kind"), [(KUBELET, 1), (KUBELET_V6, 28)])
def test_the_family_of_the_server_is_asked_for_first(kubelet: bytes, kind: int) -> None:
    answers = {"ls": PODS, UDP: replied(), TCP: replied(length=True)}
    hearing = Hearing(answers, {layout.KUBELET_CONFIG: kubelet})

    (told,) = asyncio.run(health_names.names(Host("there", hearing)))

    assert told.grade == "well"
    by_udp, by_tcp = hearing.heard
    assert by_udp.endswith(b"\5local\0" + struct.pack("!HH", kind, 1))
    assert by_tcp[:2] == struct.pack("!H", len(by_tcp) - 2)
    assert by_tcp[4:] == by_udp[2:]


def test_a_name_without_any_address_is_ill() -> None:
    (told,) = names({UDP: replied(0)})
    assert (told.grade, "knows no address" in told.what) == ("ill", True)


def test_a_server_that_does_not_know_the_name_is_ill() -> None:
    (told,) = names({UDP: replied(0, code=3)})
    assert (told.grade, "(code 3, by UDP)" in told.what) == ("ill", True)


def test_a_packet_that_got_lost_is_sent_again_from_another_pod() -> None:
    assert names({UDP: Completed(124), SECOND_UDP: replied()})[0].grade == "well"


def test_who_answers_by_one_protocol_alone_is_ill() -> None:
    (by_tcp,) = names({UDP: Completed(124), SECOND_UDP: Completed(124)})
    silent = {TCP: Completed(124), TCP.replace("cni-1", "cni-2"): Completed(124)}
    (by_udp,) = names({UDP: replied(), **silent})

    assert (by_tcp.grade, by_udp.grade) == ("ill", "ill")
    assert by_tcp.what == "a pod gets no answer from 10.233.0.10 by UDP"
    assert by_udp.what == "a pod gets no answer from 10.233.0.10 by TCP"


def test_a_host_without_pods_tells_nothing_of_names() -> None:
    assert names({"ls": complained("ls: cannot access", 2)}) == []


@pytest.mark.parametrize("kubelet", [None, b"clusterDomain: a\n", b"clusterDNS: []\n"])
def test_a_kubelet_that_does_not_say_whom_pods_ask_is_told(kubelet: bytes | None) -> None:
    with pytest.raises(StepFailed, match="does not say whom pods ask"):
        names({}, kubelet)


@pytest.mark.parametrize("way", ["UDP", "TCP"])
def test_a_real_shell_asks_a_real_server_for_a_name(way: Way) -> None:
    asked = health_names.question("kubernetes.default.svc.cluster.local", 28, way)
    with _server(way) as (port, received):
        words = ["timeout", "5", "bash", "-c", health_names.ASK[way], "127.0.0.1", str(port)]
        done = subprocess.run(words, input=asked, capture_output=True, check=True)

    assert received == [asked]
    head = bytes.fromhex("".join(done.stdout.decode().split()))
    assert head[-12:] == struct.pack("!HHHHHH", 7, 0x8180, 1, 1, 0, 0)


@contextmanager
def _server(way: Way) -> Iterator[tuple[int, list[bytes]]]:
    """Somebody who answers one question."""
    received: list[bytes] = []
    kind = socket.SOCK_DGRAM if way == "UDP" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as own:
        own.bind(("127.0.0.1", 0))
        own.settimeout(10)
        if way == "TCP":
            own.listen()
        answering = threading.Thread(target=_answer, args=(own, way, received))
        answering.start()
        yield own.getsockname()[1], received
        answering.join()


def _answer(own: socket.socket, way: Way, received: list[bytes]) -> None:
    answer = struct.pack("!HHHHHH", 7, 0x8180, 1, 1, 0, 0) + bytes(40)
    if way == "UDP":
        asked, where = own.recvfrom(512)
        own.sendto(answer, where)
    else:
        there, _ = own.accept()
        with there:
            asked = there.recv(512)
            there.sendall(struct.pack("!H", len(answer)) + answer)
    received.append(asked)


# The endpoint.


def greeted(answer: Completed, kind: str = "haproxy") -> Told:
    look = partial(health_look.endpoint_of_worker, server=ENDPOINT, kind=kind)
    ((told,), _) = scripted(look, {"timeout 5 bash": answer})
    return told


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (complained("bash: connect: Connection refused"), "bash: connect: Connection refused"),
        (Completed(124), "no answer within 5 s"),
        (said(""), "takes connections, but nobody behind it answers"),
        (said(" 48\n"), "somebody answers who does not go on by TLS"),
    ],
)
def test_an_endpoint_that_leads_nowhere_is_ill(answer: Completed, why: str) -> None:
    told = greeted(answer)

    assert (told.check, told.grade, told.what) == ("endpoint", "ill", f"{ENDPOINT}: {why}")
    assert "kubexm-haproxy" in told.hint
    assert "keepalived" in greeted(answer, "keepalived").hint


def test_an_endpoint_where_somebody_answers_is_well() -> None:
    assert greeted(said(" 16\n")).grade == "well"


def test_a_real_host_greets_a_real_server(tmp_path: Path) -> None:
    files = made(stacked=True)["cp1"].pki
    for name in ("apiserver.crt", "apiserver.key"):
        (tmp_path / name).write_bytes(files[name].content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "apiserver.crt", tmp_path / "apiserver.key")
    with socket.create_server(("127.0.0.1", 0)) as own:
        own.settimeout(10)
        answering = threading.Thread(target=_shaken, args=(own, context))
        answering.start()
        url = f"https://localhost:{own.getsockname()[1]}"
        look = partial(health_look.endpoint_of_worker, server=url, kind="single")
        (told,) = on_this_machine(look)
        answering.join()

    assert (told.grade, told.what) == ("well", f"{url} answers")


def _shaken(own: socket.socket, context: ssl.SSLContext) -> None:
    there, _ = own.accept()
    with there, pytest.raises(OSError):  # noqa: PT011  # it goes away in the middle
        context.wrap_socket(there, server_side=True)


def test_a_control_plane_asks_the_endpoint_whether_it_is_ready() -> None:
    look = partial(health_look.endpoint, server=ENDPOINT, kind="kube-vip")
    ((well,), asked) = scripted(look, {KUBECTL: said("ok")})
    refused = complained("Unable to connect to the server: no route to host")
    ((ill,), _) = scripted(look, {KUBECTL: refused})

    assert f"--raw /readyz --server {ENDPOINT}" in asked.asked[0]
    assert (well.grade, ill.grade) == ("well", "ill")
    assert "kube-vip" in ill.hint


# Workloads and pods.


def workload(kind: str, name: str, status: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "kube-system", "generation": 1}
    shown = {"observedGeneration": 1, **status}
    return {"kind": kind, "metadata": metadata, "spec": spec, "status": shown}


def deployment(wanted: int, there: int) -> dict[str, Any]:
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), there)
    return workload("Deployment", "coredns", counts, replicas=wanted)


def daemons(wanted: int, there: int) -> dict[str, Any]:
    counts = dict.fromkeys(("updatedNumberScheduled", "numberAvailable"), there)
    status = {"desiredNumberScheduled": wanted, **counts}
    return workload("DaemonSet", "kube-proxy", status)


def listed(*objects: dict[str, Any]) -> Completed:
    return said(json.dumps({"items": objects}))


def laid(deployments: Completed, daemon_sets: Completed) -> list[Told]:
    wanted = (COREDNS, "kube-system/daemonset/kube-proxy")
    get = f"{KUBECTL} --ignore-not-found -o json"
    answers = {f"{get} deployments": deployments, f"{get} daemonsets": daemon_sets}
    found, _ = scripted(partial(health_objects.laid, wanted=wanted), answers)
    return found


def test_workloads_that_are_rolled_out_are_well() -> None:
    (told,) = laid(listed(deployment(2, 2)), listed(daemons(3, 3)))
    assert (told.check, told.grade, told.what) == ("workloads", "well", "all 2 of the system run")


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ((), "is not there"),
        ((deployment(0, 0),), "is scaled to no pods"),
        ((deployment(2, 1),), "1 of 2 pods"),
    ],
)
def test_a_workload_that_is_missing_idle_or_unfinished_is_ill(
    found: tuple[dict[str, Any], ...], why: str
) -> None:
    (told,) = laid(listed(*found), listed(daemons(3, 3)))

    assert told.grade == "ill"
    assert COREDNS in told.what
    assert why in told.what
    assert told.hint


def test_a_daemon_that_no_node_takes_is_ill() -> None:
    (told,) = laid(listed(deployment(2, 2)), listed(daemons(0, 0)))
    assert "there is no node that it is for" in told.what


def pod(name: str, phase: str, **metadata: Any) -> dict[str, Any]:
    said_of_it = {"name": name, "namespace": "kube-system", **metadata}
    return {"metadata": said_of_it, "spec": {"nodeName": "c1"}, "status": {"phase": phase}}


def pods(*found: dict[str, Any]) -> list[Told]:
    told, _ = scripted(health_objects.pods, {KUBECTL: listed(*found)})
    return told


def test_a_cluster_without_pods_of_the_system_is_ill() -> None:
    (told,) = pods()
    assert (told.grade, told.what) == ("ill", "there are no pods of the system")


def test_a_pod_that_another_has_taken_the_place_of_is_no_trouble() -> None:
    owner = [{"kind": "ReplicaSet", "name": "coredns-1"}]
    given_up = pod("coredns-a", "Failed", ownerReferences=owner)
    going = pod("coredns-b", "Pending", deletionTimestamp="2026-11-18T00:00:00Z")
    (well,) = pods(pod("etcd-c1", "Running"), given_up, going)
    (ill,) = pods(pod("etcd-c1", "Running"), pod("alone", "Failed"))

    assert (well.grade, well.what) == ("well", "all 1 pods of the system run")
    assert (ill.grade, ill.where) == ("ill", "c1")


# Certificates.


def looked(days: float, *only: str, etcd: str = "stacked", host: str = "cp1") -> list[Told]:
    """What is told of certificates of 30 days so many days after they were made."""
    there = {f"{layout.PKI}/{path}": one.content for path, one in made(True)[host].pki.items()}
    there |= {
        f"{layout.KUBERNETES}/{path}": one.content
        for path, one in made(True)[host].kubeconfigs.items()
    }
    chosen = {path: data for path, data in there.items() if not only or path.endswith(only)}
    return told_of(chosen, days, etcd)


def told_of(there: dict[str, bytes], days: float, etcd: str = "stacked") -> list[Told]:
    answers = {f"dd if={path}": Completed(0, data) for path, data in there.items()}
    now = datetime.now(UTC) + timedelta(days=days)
    absent = {"dd": complained("dd: failed to open 'x': No such file or directory")}
    look = partial(certificates, etcd=etcd, now=now)
    found, _ = scripted(look, absent | answers)
    return found


def test_certificates_with_time_left_are_one_line() -> None:
    (told,) = looked(1)
    assert told.grade == "well"
    assert "28 days left, of " in told.what


def test_each_certificate_that_is_due_is_told_also_those_in_kubeconfigs() -> None:
    names = {told.what.rpartition(" of ")[2] for told in looked(25)}

    assert {"apiserver.crt", "etcd/server.crt", "front-proxy-client.crt"} < names
    assert {"admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf"} < names
    assert "ca.crt" not in names


def test_what_has_expired_is_ill_and_what_will_is_not_yet() -> None:
    assert {told.grade for told in looked(25)} == {"warning"}
    assert {told.grade for told in looked(31)} == {"ill"}


@pytest.mark.parametrize(
    ("name", "etcd", "remedy"),
    [
        ("pki/ca.crt", "stacked", "Manual Rotation of CA"),
        ("pki/etcd/ca.crt", "stacked", "Manual Rotation of CA"),
        ("pki/apiserver.crt", "stacked", "kubexm create cluster -f FILE` makes it anew"),
        ("pki/etcd/peer.crt", "systemd", "kubexm create cluster -f FILE` makes it anew"),
        ("/scheduler.conf", "stacked", "--name kube-scheduler"),
        ("apiserver-etcd-client.crt", "external", "spec.etcd.external"),
        ("apiserver-etcd-client.crt", "systemd", "makes it anew"),
    ],
)
def test_each_has_its_own_remedy(name: str, etcd: str, remedy: str) -> None:
    (told,) = looked(4000, name, etcd=etcd)

    assert told.grade == "ill"
    assert remedy in told.hint
    assert "kubeadm certs renew" not in told.hint


def test_the_certificate_of_a_kubelet_is_renewed_by_itself_until_it_is_too_late() -> None:
    pem = made(True)["cp1"].pki["apiserver.crt"].content
    there = {f"{layout.KUBELET_DATA}/pki/kubelet-client-current.pem": pem}

    ((well,), (warned,), (ill,)) = (told_of(there, days) for days in (25, 28, 31))

    assert (well.grade, warned.grade, ill.grade) == ("well", "warning", "ill")
    assert "journalctl -u kubelet" in warned.hint
    assert "kubeadm kubeconfig user" in ill.hint


def test_a_kubelet_that_keeps_its_certificate_in_its_kubeconfig_is_told_of() -> None:
    config = made(True)["cp1"].kubeconfigs["admin.conf"].content
    (told,) = told_of({f"{layout.KUBERNETES}/kubelet.conf": config}, 25)
    assert "let kubelet.conf name" in told.hint


@pytest.mark.parametrize("name", ["pki/apiserver.crt", "admin.conf"])
def test_a_certificate_that_can_not_be_read_is_ill(name: str) -> None:
    (told,) = told_of({f"{layout.KUBERNETES}/{name}": b"no certificate\n"}, 0)
    assert (told.grade, "can be read" in told.what) == ("ill", True)


def test_a_host_without_certificates_tells_nothing() -> None:
    assert told_of({}, 0) == []
