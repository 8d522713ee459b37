"""Whether the pods of a control plane run as their files say, by what an API server tells."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kubexm.step.static_pods import Before, trouble

OLD = "runs with its old settings"
PROBE = {"httpGet": {"path": "/livez"}}
WRITTEN: dict[str, Any] = {
    "metadata": {"name": "etcd"},
    "spec": {
        "containers": [
            {"name": "etcd", "image": "etcd:3.6.8", "command": ["etcd"], "livenessProbe": PROBE}
        ]
    },
}


def changed(**container: Any) -> dict[str, Any]:
    found = deepcopy(WRITTEN)
    found["spec"]["containers"][0].update(container)
    return found


def runs(written: dict[str, Any], file: str) -> dict[str, Any]:
    """The pod as the API server tells of it."""
    marks = {"kubernetes.io/config.hash": file} if file else {}
    condition = {"type": "Ready", "status": "True"}
    return {
        **written,
        "metadata": {"name": "etcd-cp1", "annotations": marks},
        "status": {"phase": "Running", "conditions": [condition], "containerStatuses": []},
    }


@pytest.mark.parametrize(
    "other",
    [
        {"env": [{"name": "GOGC", "value": "50"}]},
        {"resources": {"requests": {"cpu": "200m"}}},
        {"livenessProbe": {"httpGet": {"path": "/healthz"}}},
        {"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_pod_runs_by_its_old_file_until_its_kubelet_has_read_the_new_one(
    other: dict[str, Any],
) -> None:
    new = changed(**other)
    before = Before(WRITTEN, "a1")

    assert OLD in trouble("etcd", new, runs(WRITTEN, "a1"), before)
    assert trouble("etcd", new, runs(new, "b2"), before) == ""


def test_a_file_that_was_not_changed_needs_no_other_pod() -> None:
    assert trouble("etcd", WRITTEN, runs(WRITTEN, "a1"), Before(WRITTEN, "a1")) == ""


def test_where_nothing_is_known_of_before_the_program_tells() -> None:
    new = changed(command=["etcd", "--heartbeat-interval=200"])

    for before in (None, Before(WRITTEN, "")):
        assert OLD in trouble("etcd", new, runs(WRITTEN, ""), before)
        assert trouble("etcd", new, runs(new, ""), before) == ""


def test_a_pod_that_is_not_there_is_missed() -> None:
    assert trouble("etcd", WRITTEN, None, None) == "there is no pod of etcd"
