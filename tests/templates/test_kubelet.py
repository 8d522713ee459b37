"""How kubelets run, and what the API server writes down."""

from __future__ import annotations

from typing import Any

from kubexm.templates import formats, render
from kubexm.templates.contexts import kubernetes
from kubexm.templates.contexts.kubernetes import AuditPolicy, KubeletConfig

USUAL, OTHER = kubernetes.TEMPLATES[0].samples


def settings(sample: Any) -> dict[str, Any]:
    found: dict[str, Any] = formats.parsed(
        render.render("kubernetes/kubelet", sample.data()), "yaml"
    )
    return found


def test_a_kubelet_answers_nobody_whom_the_cluster_does_not_know() -> None:
    found = settings(USUAL)

    assert found["authentication"] == {
        "anonymous": {"enabled": False},
        "webhook": {"enabled": True},
        "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
    }
    assert found["authorization"] == {"mode": "Webhook"}
    assert found["readOnlyPort"] == 0


def test_pods_that_others_stand_on_get_a_third_of_the_time_to_end() -> None:
    sample = KubeletConfig(cluster_dns=("10.0.0.1",), cluster_domain="x", shutdown_seconds=90)

    found = settings(sample)

    assert found["shutdownGracePeriod"] == "90s"
    assert found["shutdownGracePeriodCriticalPods"] == "30s"


def test_what_is_not_asked_for_is_left_to_the_kubelet() -> None:
    assert not {"resolvConf", "featureGates"} & set(settings(USUAL))
    assert not {"systemReserved", "shutdownGracePeriod"} & set(settings(OTHER))


def level(verb: str, resource: str, group: str = "") -> str:
    """What is written down of a request, by the first rule that fits."""
    policy = formats.parsed(render.render("kubernetes/audit-policy", AuditPolicy().data()), "yaml")
    for rule in policy["rules"]:
        fits = not rule.get("resources") or any(
            each["group"] == group and resource in each["resources"] for each in rule["resources"]
        )
        if fits and verb in rule.get("verbs", [verb]):
            return str(rule["level"])
    raise AssertionError("no rule fits")


def test_changes_are_written_down_and_looks_are_not() -> None:
    assert level("create", "deployments", "apps") == "Request"
    assert level("deletecollection", "pods") == "Request"
    assert level("list", "pods") == "None"


def test_secrets_are_written_down_without_what_is_in_them() -> None:
    verbs = ("get", "create", "update", "patch", "delete")

    assert {level(verb, "secrets") for verb in verbs} == {"Metadata"}
    assert level("create", "serviceaccounts/token") == "Metadata"


def test_who_went_into_a_pod_is_written_down() -> None:
    assert {level(verb, "pods/exec") for verb in ("get", "create")} == {"Metadata"}


def test_what_the_parts_of_the_cluster_tell_each_other_is_not() -> None:
    assert level("update", "leases", "coordination.k8s.io") == "None"
    assert level("patch", "nodes/status") == "None"
