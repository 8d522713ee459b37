"""What is made of the words of programs: each row of the table, by messages of theirs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kubexm.runner import symptoms

SAID = {
    cause: said.splitlines()
    for part in (Path(__file__).parent / "messages.txt").read_text().rstrip().split("\n\n")
    for cause, _, said in [part.removeprefix("# ").partition("\n")]
}
"""What programs say when something is wrong, in their words, by what it is."""
MESSAGES = [(cause, text) for cause, texts in SAID.items() for text in texts]


@pytest.mark.parametrize(("cause", "text"), MESSAGES)
def test_a_message_is_known_by_its_cause(cause: str, text: str) -> None:
    said = symptoms.told([text])

    assert said[0].partition(": ")[2].startswith(cause)
    assert said[1].startswith("remedy: ")
    assert len(said) == 2


def test_every_cause_has_a_message_that_shows_it() -> None:
    assert [symptom.cause for symptom in symptoms.TABLE] == [*SAID]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (SAID["an image can't be had"][0], "an image can't be had: registry.k8s.io/etcd:3.6.8-0"),
        ("Port 10250 is in use", "a port is in use: 10250"),
        ("listen tcp [::]:2379: bind: address already in use", "a port is in use: 2379"),
        (
            "[ERROR DirAvailable--data-etcd]: /data/etcd is not empty",
            "something of an earlier cluster is left: /data/etcd",
        ),
    ],
)
def test_what_a_message_is_about_is_named(text: str, named: str) -> None:
    assert symptoms.told([text])[0] == f"cause: {named}"


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("cidr 10.9.1.0/24 is out the range of cluster cidr 10.8.0.0/18", ""),
        (
            'subnet "10.9.0.0/16" specified in the flannel net config doesn\'t contain "10.8.0.0"',
            ' PodCIDR of the "w1" node',
        ),
    ],
)
def test_networks_that_do_not_fit_are_told_as_the_program_has_them(text: str, more: str) -> None:
    cause = "the networks of pods, services and hosts don't fit each other"

    assert symptoms.told([f"{text}{more}"])[0] == f"cause: {cause}: {text}"


def test_what_several_messages_are_about_is_named_once_and_not_at_any_length() -> None:
    ports = [f"Port {number} is in use" for number in (1, 2, 1, 3, 4, 5)]

    assert symptoms.told(ports)[0] == "cause: a port is in use: 1, 2, 3 and 2 more"


def test_what_follows_from_something_else_is_told_only_alone() -> None:
    waiting = SAID["pods of the host have no network yet"][0]
    refused = SAID["the API server, or what stands in front of it, can't be reached"][0]

    assert len(symptoms.told([refused, waiting])) == 4
    assert symptoms.told([refused, waiting, "Port 10250 is in use"])[0::2] == [
        "cause: a port is in use: 10250"
    ]


def test_only_the_most_telling_causes_are_told() -> None:
    said = symptoms.told(texts[0] for texts in SAID.values())

    assert len(said) == 2 * symptoms.MOST_CAUSES
    assert said[0].startswith("cause: clocks disagree")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I1118 08:04:05.1    1 kubelet.go:1] all is well",
        "w1: KubeletHasNoDiskPressure: kubelet has no disk pressure",
        "write /proc/1816/oom_score_adj: permission denied",
        "open /run/containerd/io.containerd.runtime.v2.task/1/init.pid: no such file or directory",
        "Error: resource Deployment/web not ready: context deadline exceeded",
        '{"level":"warn","msg":"apply request took too long","error":"context deadline exceeded"}',
        (
            "kube-scheduler check failed at https://127.0.0.1:10259/livez:"
            ' Get "https://127.0.0.1:10259/livez": context deadline exceeded'
        ),
        "KubeletHasSufficientMemory: kubelet has sufficient memory available",
        (
            "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future"
            " release. Please migrate to cgroup v2."
        ),
        "	[WARNING Swap]: running with swap on is not supported. Please disable swap",
        "mkdir /sys/fs/cgroup/memory/kubepods/burstable/pod1: no space left on device",
        "listen unix /run/containerd/containerd.sock: bind: address already in use",
        (
            'Unhealthy: Readiness probe failed: Get "http://10.233.64.5:8080/ready": dial tcp'
            " 10.233.64.5:8080: connect: connection refused"
        ),
        (
            'looks like "https://charts.example.org" is not a valid chart repository or cannot be'
            ' reached: Get "https://charts.example.org/index.yaml": dial tcp 192.0.2.1:443: i/o'
            " timeout"
        ),
        (
            "failed to load kubelet config file, path: /etc/kubernetes/kubelet.yaml, error: open"
            " /etc/kubernetes/kubelet.yaml: no such file or directory"
        ),
        (
            "unable to load bootstrap kubeconfig: stat /etc/kubernetes/bootstrap-kubelet.conf: no"
            " such file or directory"
        ),
        "dial tcp: lookup web.shop.svc.cluster.local on 10.233.0.10:53: no such host",
        *(
            f'Get "{address}": tls: failed to verify certificate: x509: certificate signed by'
            " unknown authority"
            for address in (
                "https://10.0.0.1:10250/metrics/resource",
                "https://charts.example.org/index.yaml",
                "https://login.example.org/.well-known/openid-configuration",
                "https://storage.example.org/api/v1/query?query=up",
            )
        ),
    ],
)
def test_what_is_no_trouble_has_no_cause(text: str) -> None:
    assert symptoms.told([text]) == []
    assert symptoms.hint(text) == ""


def test_only_what_is_left_of_another_cluster_is_to_be_taken_away() -> None:
    destroying = re.compile(r"kubeadm reset|delete (the|that) cluster|delete cluster NAME")

    found = [one.cause for one in symptoms.TABLE if destroying.search(one.remedy)]

    assert found == ["something of an earlier cluster is left"]


def test_a_hint_has_the_cause_and_what_to_do() -> None:
    said = symptoms.hint("first\nPort 10250 is in use\ndial tcp 10.0.0.1:6443: i/o timeout")

    assert said.startswith("a port is in use: `ss -lntup` on the host says who has it")
