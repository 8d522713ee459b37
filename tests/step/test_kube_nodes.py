"""Kube nodes that are to take pods."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from tests.step.listening import kubectl, shown
from tests.step.test_kube import Make

from kubexm.sim import Script
from kubexm.step.contract import NotYet, Outcome
from kubexm.step.kube import PodNetworks
from kubexm.step.kube_nodes import NodesReady

_GET = ("get", "--ignore-not-found", "-o", "json")
_STEP = NodesReady(("a", "b"))


def nodes(**ready: bool) -> Script:
    found: list[Any] = [
        {
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": str(is_ready)}]},
        }
        for name, is_ready in ready.items()
    ]
    return kubectl(*_GET, "nodes", stdout=shown({"kind": "List", "items": found}))


def requests(*names: str, seconds_ago: float = 0.0, granted: bool = True) -> Script:
    """What kubelets have asked for."""
    made = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    found: list[Any] = [
        {
            "metadata": {"name": f"csr-{name}", "creationTimestamp": f"{made:%Y-%m-%dT%H:%M:%SZ}"},
            "spec": {
                "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
                "request": base64.b64encode(_request(f"system:node:{name}")).decode(),
            },
            "status": {"certificate": "LS0t"} if granted else {},
        }
        for name in names
    ]
    what = "certificatesigningrequests.certificates.k8s.io"
    return kubectl(*_GET, what, stdout=shown({"kind": "List", "items": found}))


def _request(name: str) -> bytes:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    key = ec.generate_private_key(ec.SECP256R1())
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, SHA256())
    return made.public_bytes(Encoding.PEM)


def test_it_holds_when_every_node_takes_pods(cluster: Make) -> None:
    assert cluster(nodes(a=True, b=True)).verdict(_STEP).satisfied


def test_a_node_that_is_late_is_named(cluster: Make) -> None:
    verdict = cluster(nodes(a=True, b=False)).verdict(_STEP)
    assert (verdict.satisfied, verdict.reason) == (False, "not ready: `b`")


def test_a_node_that_has_not_joined_is_told_and_not_waited_for(cluster: Make) -> None:
    verdict = cluster(nodes(a=True), requests("a")).verdict(_STEP)
    assert (verdict.satisfied, verdict.reason) == (True, "without `b`, which did not join")


def test_a_kubelet_that_was_let_in_a_moment_ago_is_waited_for(cluster: Make) -> None:
    place = cluster(nodes(a=True), requests("b", seconds_ago=30))

    assert place.verdict(_STEP).reason == "not ready: `b`"
    outcome = place.run(PodNetworks(("a", "b")))
    assert outcome == NotYet(2.0, "no addresses for pods yet: a, b")


def test_a_kubelet_that_was_let_in_long_ago_or_not_at_all_is_not(cluster: Make) -> None:
    long_ago = cluster(nodes(a=True), requests("b", seconds_ago=90))
    refused = cluster(nodes(a=True), requests("b", granted=False))

    assert long_ago.verdict(_STEP).satisfied
    assert refused.verdict(_STEP).satisfied


def test_a_node_of_a_lost_host_is_told_and_not_waited_for(cluster: Make) -> None:
    place = cluster(nodes(a=True, b=False))

    verdict = place.wait(_STEP.precheck(place.context(lost={"b"})))
    outcome = place.run(_STEP, lost={"b"})

    assert (verdict.satisfied, verdict.reason) == (True, "without `b`, lost in this run")
    assert outcome == Outcome(changed=False, message="without `b`, lost in this run")


def test_beside_a_node_of_a_lost_host_others_are_waited_for(cluster: Make) -> None:
    place = cluster(nodes(a=False, b=False))

    assert place.run(_STEP, lost={"b"}) == NotYet(2.0, "not ready: `a`")


def test_what_a_lost_host_was_let_in_for_does_not_come_any_more(cluster: Make) -> None:
    place = cluster(nodes(a=True), requests("b", seconds_ago=30))

    outcome = place.run(_STEP, lost={"b"})

    assert outcome == Outcome(changed=False, message="without `b`, lost in this run")


def test_addresses_for_pods_of_a_lost_host_are_not_waited_for(cluster: Make) -> None:
    place = cluster(nodes(a=True, b=True), requests())

    waiting = place.run(PodNetworks(("a", "b")), lost={"a"})
    outcome = place.run(PodNetworks(("a", "b")), lost={"a", "b"})

    assert waiting == NotYet(2.0, "no addresses for pods yet: b")
    assert isinstance(outcome, Outcome)
    assert outcome.values == {"pod_networks": {"a": [], "b": []}}


def test_where_nobody_has_joined_there_is_nothing_to_rely_on(cluster: Make) -> None:
    verdict = cluster(nodes(), requests()).verdict(_STEP)
    assert (verdict.satisfied, verdict.reason) == (False, "none of them has joined")
