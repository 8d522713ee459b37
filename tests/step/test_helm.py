"""Releases of charts: installed, changed, interrupted, taken back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.step.listening import Cluster, answering, shown

from kubexm.errors import CommandFailed, StepFailed
from kubexm.runtime.assets import NoAssets
from kubexm.sim import Script
from kubexm.step.helm import Released

Make = Callable[..., Cluster]
FILE = "/var/lib/kubexm/charts/cilium-1.18.2.tgz"
STEP = Released("cilium", "cilium/v1/chart/", "1.18.2", values={"a": {"b": 1}}, value="artifact_1")
UPGRADE = (
    f"helm upgrade cilium {FILE} --install --create-namespace --reset-values -f -"
    " --wait --timeout 300s -n kube-system"
)
NO_RELEASE = answering("helm", "get", "**", exit=1, stderr="Error: release: not found\n")


class Charts(NoAssets):
    """A store with one chart."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "chart.tgz"
        self._file.write_bytes(b"a chart")

    def digest(self, key: str) -> str | None:
        known = key == "cilium/v1/chart/"
        return sha256(self._file.read_bytes()).hexdigest() if known else None

    def path(self, digest: str) -> Path:
        return self._file


def listed(*releases: Any) -> Script:
    return answering("helm", "list", "**", stdout=shown(releases))


def release(status: str = "deployed", chart: str = "cilium-1.18.2", revision: int = 1) -> Any:
    known = {"name": "cilium", "namespace": "kube-system", "updated": "2026-01-01"}
    return {**known, "revision": str(revision), "status": status, "chart": chart}


def given(values: Any) -> Script:
    return answering("helm", "get", "values", "**", stdout=shown(values))


CHANGES = [answering("helm", verb, "**") for verb in ("upgrade", "uninstall", "rollback")]


@pytest.mark.parametrize(
    ("scripts", "reason"),
    [
        ((listed(release()), given({"a": {"b": 1}})), ""),
        ((listed(), NO_RELEASE), "is not installed"),
        (
            (listed(release(chart="cilium-1.18.1")), given({"a": {"b": 1}})),
            "is cilium-1.18.1, want version 1.18.2",
        ),
        ((listed(release()), given({"a": {"b": 2}})), "values differ"),
        ((listed(release()), given(None)), "values differ"),
        ((listed(release("failed")), given({"a": {"b": 1}})), "is failed, want deployed"),
    ],
)
def test_a_release_is_compared_with_the_chart_and_its_values(
    cluster: Make, scripts: Sequence[Script], reason: str
) -> None:
    place = cluster(*scripts)

    verdict = place.verdict(STEP)

    assert (verdict.satisfied, verdict.reason) == (not reason, reason)
    states = "--deployed --failed --pending"
    assert place.told == [
        f"helm list -o json {states} --filter ^cilium$ -n kube-system",
        "helm get values cilium -o json -n kube-system",
    ]


def test_a_chart_is_installed_with_values_by_standard_input_and_leaves_no_file(
    cluster: Make, tmp_path: Path
) -> None:
    place = cluster(listed(), NO_RELEASE, *CHANGES)
    seen = place.watch(FILE)

    place.run(STEP, assets=Charts(tmp_path))

    assert place.told[-1] == UPGRADE
    assert [json.loads(text) for text in place.heard] == [{"a": {"b": 1}}]
    assert [content for content, _ in seen] == ["a chart"]
    assert place.ask("ls", "/var/lib/kubexm/charts") == ""
    assert STEP.needs() == ("artifact_1",)


@pytest.mark.parametrize(
    ("status", "freed"),
    [
        ("pending-install", ["helm uninstall cilium --wait -n kube-system"]),
        ("pending-upgrade", ["helm rollback cilium --wait -n kube-system"]),
        ("pending-rollback", ["helm rollback cilium --wait -n kube-system"]),
        ("failed", []),
    ],
)
def test_what_an_interrupted_run_has_left_is_given_up_first(
    cluster: Make, tmp_path: Path, status: str, freed: list[str]
) -> None:
    place = cluster(listed(release(status)), given({}), *CHANGES)

    place.run(STEP, assets=Charts(tmp_path))

    assert place.told[2:] == [*freed, UPGRADE]


def test_a_failure_leaves_no_file_either(cluster: Make, tmp_path: Path) -> None:
    fails = answering("helm", "upgrade", "**", exit=1, stderr="Error: timed out\n")
    place = cluster(listed(), NO_RELEASE, fails)

    with pytest.raises(CommandFailed, match="timed out"):
        place.run(STEP, assets=Charts(tmp_path))

    assert place.ask("ls", "/var/lib/kubexm/charts") == ""


def test_a_chart_that_is_not_in_the_store_is_named(cluster: Make, tmp_path: Path) -> None:
    place = cluster(listed(), NO_RELEASE, *CHANGES)
    other = Released("cilium", "cilium/v2/chart/", "1.19.0")

    with pytest.raises(StepFailed, match="`cilium/v2/chart/` is not in the store"):
        place.run(other, assets=Charts(tmp_path))


@pytest.mark.parametrize(
    ("before", "undone"),
    [
        ((), "helm uninstall cilium --wait -n kube-system"),
        ((release("pending-install"),), "helm uninstall cilium --wait -n kube-system"),
        ((release(revision=3),), "helm rollback cilium 3 --wait -n kube-system"),
    ],
)
def test_a_rollback_goes_to_the_revision_before_or_to_none(
    cluster: Make, tmp_path: Path, before: Sequence[Any], undone: str
) -> None:
    first = answering("helm", "list", "**", stdout=shown(before), times=1)
    place = cluster(first, listed(release(revision=4)), given({}), *CHANGES)
    place.run(STEP, assets=Charts(tmp_path))

    place.undo(STEP)

    assert place.told[-1] == undone


def test_a_rollback_without_a_server_leaves_the_release(cluster: Make, tmp_path: Path) -> None:
    refused = "Error: Kubernetes cluster unreachable: dial tcp 10.0.0.1:6443: connect: was refused"
    first = answering("helm", "list", "**", stdout="[]", times=1)
    silent = answering("helm", "list", "**", exit=1, stderr=refused)
    place = cluster(first, silent, NO_RELEASE, *CHANGES)
    place.run(STEP, assets=Charts(tmp_path))

    left = place.wait(STEP.rollback(place.context()))

    assert left == "the API server does not answer"
