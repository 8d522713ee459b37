"""`kubexm catalog`: what there is, and what goes with what."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.answers import Kubexm


def test_every_component_is_listed_with_its_versions(kubexm: Kubexm, home: Path) -> None:
    answer = kubexm("catalog", "list")

    lines = {line.split()[0]: line for line in answer.out.splitlines()}
    assert answer.code == 0
    assert " v1.36.3 " in lines["kubernetes"]
    assert {"etcd", "containerd", "runc", "calico", "cilium", "coredns"} <= lines.keys()
    assert not home.exists()


def test_a_version_is_shown_with_where_it_comes_from_and_what_goes_with_it(kubexm: Kubexm) -> None:
    shown = json.loads(kubexm("catalog", "show", "kubernetes", "v1.36.3", "-o", "json").out)

    assert shown["version"] == "v1.36.3"
    assert {one["name"] for one in shown["downloads"]} == {"kubeadm", "kubectl", "kubelet"}
    assert {one["arch"] for one in shown["downloads"]} == {"amd64", "arm64"}
    assert "registry.k8s.io/kube-apiserver:v1.36.3" in shown["images"]
    assert shown["goesWith"]["containerd"].startswith("v2.")


def test_the_etcd_of_kubeadm_is_told_beside_that_of_a_service(kubexm: Kubexm) -> None:
    told = kubexm("catalog", "show", "kubernetes", "v1.37.0").out
    shown = json.loads(kubexm("catalog", "show", "kubernetes", "v1.37.0", "-o", "json").out)

    assert "  with etcd v3.7.1 as a service, v3.7.0 stacked\n" in told
    assert (shown["goesWith"]["etcd"], shown["stackedEtcd"]) == ("v3.7.1", "v3.7.0")


def test_a_version_is_shown_with_the_kubernetes_that_it_fits(kubexm: Kubexm) -> None:
    told = kubexm("catalog", "show", "etcd", "v3.7.1").out

    assert told.endswith("  fits Kubernetes v1.34, v1.35, v1.36, v1.37\n")
    assert (
        "fits Kubernetes v1.35, v1.36, v1.37\n"
        in kubexm("catalog", "show", "calico", "v3.33.0").out
    )
    assert "fits" not in kubexm("catalog", "show", "runc").out


def test_a_version_is_shown_with_its_charts_and_with_nothing_twice(kubexm: Kubexm) -> None:
    cilium = kubexm("catalog", "show", "cilium", "v1.20.1").out
    calico = kubexm("catalog", "show", "calico", "v3.33.0").out.splitlines()

    assert "  chart cilium 1.20.1: https://helm.cilium.io/\n" in cilium
    images = [line for line in calico if line.startswith("  image ")]
    assert len(images) == len(set(images)) > 1
    assert len([line for line in calico if line.startswith("  manifest any: ")]) == 1


def test_a_catalog_of_ones_own_wins(kubexm: Kubexm, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(f'[components.runc.versions."v9.9.9"]\nsha256.runc.amd64 = "{"a" * 64}"\n')

    answer = kubexm("catalog", "show", "runc", "v9.9.9", "--catalog", own)

    assert answer.code == 0, answer.err
    assert answer.out.startswith("runc v9.9.9\n")


def test_what_is_not_there_is_told_with_the_nearest(kubexm: Kubexm) -> None:
    answer = kubexm("catalog", "show", "kubernets")

    assert answer.code == 2
    assert "did you mean `kubernetes`?" in answer.err


def test_unless_a_version_is_named_it_is_the_one_that_goes_with_the_usual_kubernetes(
    kubexm: Kubexm,
) -> None:
    usual = json.loads(kubexm("catalog", "show", "kubernetes", "-o", "json").out)

    for name, version in usual["goesWith"].items():
        assert kubexm("catalog", "show", name).out.startswith(f"{name} {version}\n")
