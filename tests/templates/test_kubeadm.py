"""What kubeadm is told is what it understands, and what it makes of it is what was meant."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace
from tests.templates import programs

from kubexm.resource import catalog
from kubexm.resource.kubeadm_images import kubeadm_images
from kubexm.resource.materials import bill
from kubexm.resource.needs import Needs
from kubexm.templates import formats, render
from kubexm.templates.contexts import kubeadm, kubernetes
from kubexm.templates.contexts.kubeadm import Image, InitConfig, Node, StackedEtcd, Taint

PLAIN, FULL, WITHOUT = cast("tuple[InitConfig, ...]", kubeadm.TEMPLATES[0].samples)
WORKER, CONTROL_PLANE = kubeadm.TEMPLATES[2].samples
SAMPLES = [(each.name, sample) for each in kubeadm.TEMPLATES for sample in each.samples]
BOTH = ("kubeadm/init", "kubeadm/init-v1beta3")


KUBEADMS = programs.every("kubeadm")
needs_kubeadm = pytest.mark.skipif(not KUBEADMS, reason="no kubeadm is at hand")
each_kubeadm = pytest.mark.parametrize("program", KUBEADMS)


ONE_FLAG = {
    "ClusterConfiguration": {
        "apiServer": {
            "extraArgs": [
                {"name": "profiling", "value": "false"},
                {"name": "event-ttl", "value": "3h"},
            ],
            "extraVolumes": [{"name": "mine", "hostPath": "/a", "mountPath": "/a"}],
        }
    }
}
"""What an operator says who wants one flag more and one other."""


def documents(name: str, sample: Any, overrides: dict[str, Any] | None = None) -> dict[str, Any]:
    text = render.merged(render.source(name), sample.data(), overrides or {}, "manifests")
    return {document["kind"]: document for document in formats.parsed(text, "manifests")}


def args_of(component: dict[str, Any]) -> dict[str, str]:
    """Flags as a mapping: a list in v1beta4, a mapping before."""
    found = component.get("extraArgs", {})
    return found if isinstance(found, dict) else {each["name"]: each["value"] for each in found}


def asked(
    program: str, text: str, folder: Path, *args: str, **env: str
) -> subprocess.CompletedProcess[str]:
    file = folder / "kubeadm.yaml"
    file.write_text(text, encoding="utf-8")
    return subprocess.run(
        [program, *args, "--config", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )


@needs_kubeadm
class TestTheRealOne:
    @each_kubeadm
    @pytest.mark.parametrize(("name", "sample"), SAMPLES)
    def test_it_takes_every_sample(
        self, program: str, name: str, sample: Any, tmp_path: Path
    ) -> None:
        text = render.render(name, sample.data())

        found = asked(program, text, tmp_path, "config", "validate")

        assert (found.returncode, found.stdout) == (0, "ok\n"), found.stderr

    @each_kubeadm
    def test_it_would_refuse_a_key_that_it_does_not_know(
        self, program: str, tmp_path: Path
    ) -> None:
        text = render.render("kubeadm/init", PLAIN.data())

        found = asked(program, text.replace("dataDir", "datadir"), tmp_path, "config", "validate")

        assert found.returncode != 0
        assert "datadir" in found.stderr

    @each_kubeadm
    @pytest.mark.parametrize("sample", kubernetes.TEMPLATES[0].samples)
    def test_it_takes_the_settings_of_the_kubelet(
        self, program: str, sample: Any, tmp_path: Path
    ) -> None:
        kubelet = formats.parsed(render.render("kubernetes/kubelet", sample.data()), "yaml")
        text = render.render("kubeadm/init", replace(PLAIN, kubelet=kubelet).data())

        found = asked(program, text, tmp_path, "config", "validate")

        assert (found.returncode, found.stdout) == (0, "ok\n"), found.stderr
        assert "unknown field" not in found.stderr

    @each_kubeadm
    def test_it_runs_the_images_of_the_bill_of_materials(
        self, program: str, tmp_path: Path
    ) -> None:
        needs = Needs(kubernetes="v1.36.3", registry="registry.internal:5000/kube")
        images = kubeadm_images(bill(catalog.load(), needs))
        etcd = Image(repository=images.etcd_repository, tag=images.etcd_tag)
        sample = replace(
            PLAIN,
            image_repository=images.repository,
            dns=Image(repository=images.dns_repository, tag=images.dns_tag),
            stacked_etcd=StackedEtcd(image=etcd),
        )
        text = render.render("kubeadm/init", sample.data())

        found = asked(program, text, tmp_path, "config", "images", "list")

        ours = {name for name in images.names if "pause" not in name}
        assert {name for name in found.stdout.split() if "pause" not in name} == ours

    @each_kubeadm
    @pytest.mark.parametrize("name", BOTH)
    def test_it_gives_the_flags_to_the_control_plane(
        self, program: str, name: str, tmp_path: Path
    ) -> None:
        pods = tmp_path / "pods"
        pods.mkdir()
        text = render.render(name, replace(FULL, patches="").data())

        words = ("init", "phase", "control-plane", "all", "--dry-run")
        found = asked(program, text, tmp_path, *words, KUBEADM_INIT_DRYRUN_DIR=str(pods))

        assert found.returncode == 0, found.stderr
        api = (pods / "kube-apiserver.yaml").read_text(encoding="utf-8")
        manager = (pods / "kube-controller-manager.yaml").read_text(encoding="utf-8")
        assert "- --audit-log-maxage=7\n" in api
        assert "- --encryption-provider-config=/etc/kubernetes/kubexm/encryption.yaml\n" in api
        assert "path: /var/log/kubernetes/audit\n" in api
        assert "- --node-cidr-mask-size-ipv6=64\n" in manager
        assert "- --cluster-name=1e3\n" in manager

    @each_kubeadm
    def test_a_flag_of_the_operator_is_one_more(self, program: str, tmp_path: Path) -> None:
        pods = tmp_path / "pods"
        pods.mkdir()
        text = render.merged(
            render.source("kubeadm/init"), replace(FULL, patches="").data(), ONE_FLAG, "manifests"
        )

        words = ("init", "phase", "control-plane", "apiserver", "--dry-run")
        valid = asked(program, text, tmp_path, "config", "validate")
        found = asked(program, text, tmp_path, *words, KUBEADM_INIT_DRYRUN_DIR=str(pods))

        assert (valid.returncode, found.returncode) == (0, 0), valid.stderr + found.stderr
        api = (pods / "kube-apiserver.yaml").read_text(encoding="utf-8")
        assert "- --profiling=false\n" in api
        assert "- --encryption-provider-config=/etc/kubernetes/kubexm/encryption.yaml\n" in api


class TestMeaning:
    @pytest.mark.parametrize("name", BOTH)
    def test_only_a_control_plane_that_is_a_worker_says_that_it_has_no_taints(
        self, name: str
    ) -> None:
        found = [
            documents(name, replace(PLAIN, node=Node(name="cp1", taints=taints)))
            for taints in (None, (), (Taint(key="a"),))
        ]

        nodes = [each["InitConfiguration"]["nodeRegistration"] for each in found]
        assert "taints" not in nodes[0]
        assert nodes[1]["taints"] == []
        assert nodes[2]["taints"] == [{"key": "a", "value": "", "effect": "NoSchedule"}]

    @pytest.mark.parametrize("name", BOTH)
    def test_what_the_operator_asks_for_wins_and_stands_once(self, name: str) -> None:
        cluster = documents(name, FULL)["ClusterConfiguration"]

        assert args_of(cluster["apiServer"])["audit-log-maxage"] == "7"
        assert args_of(cluster["etcd"]["local"])["heartbeat-interval"] == "100"
        assert args_of(cluster["etcd"]["local"])["election-timeout"] == "5000"

    @pytest.mark.parametrize("name", BOTH)
    def test_feature_gates_reach_every_component_and_are_none_of_kubeadms(self, name: str) -> None:
        found = documents(name, FULL)

        cluster, gates = (
            found["ClusterConfiguration"],
            "ContextualLogging=true,HPAScaleToZero=false",
        )
        for component in ("apiServer", "controllerManager", "scheduler"):
            assert args_of(cluster[component])["feature-gates"] == gates
        assert found["KubeProxyConfiguration"]["featureGates"] == FULL.feature_gates
        assert "featureGates" not in cluster

    @pytest.mark.parametrize("name", BOTH)
    def test_addresses_of_pods_are_handed_out_by_whom_they_should(self, name: str) -> None:
        flags = [
            args_of(documents(name, each)["ClusterConfiguration"]["controllerManager"])
            for each in (PLAIN, WITHOUT)
        ]

        assert flags == [{"node-cidr-mask-size-ipv4": "24"}, {"allocate-node-cidrs": "false"}]

    def test_what_somebody_else_installs_is_switched_off(self) -> None:
        found = documents("kubeadm/init", WITHOUT)

        assert found["ClusterConfiguration"]["dns"] == {"disabled": True}
        assert found["ClusterConfiguration"]["proxy"] == {"disabled": True}
        assert "KubeProxyConfiguration" not in found

    @pytest.mark.parametrize("name", BOTH)
    def test_there_is_one_etcd(self, name: str) -> None:
        kinds = [
            set(documents(name, each)["ClusterConfiguration"]["etcd"]) for each in (PLAIN, WITHOUT)
        ]

        assert kinds == [{"local"}, {"external"}]

    def test_words_that_look_like_numbers_stay_words(self) -> None:
        join = documents("kubeadm/join", CONTROL_PLANE)["JoinConfiguration"]
        cluster = documents("kubeadm/init", FULL)["ClusterConfiguration"]

        assert join["discovery"]["bootstrapToken"]["token"] == "012345.0123456789012345"
        assert cluster["clusterName"] == "1e3"

    @pytest.mark.parametrize("name", ["kubeadm/join", "kubeadm/join-v1beta3"])
    def test_only_a_control_plane_joins_with_an_api_server(self, name: str) -> None:
        worker = documents(name, WORKER)["JoinConfiguration"]
        other = documents(name, CONTROL_PLANE)["JoinConfiguration"]

        assert "controlPlane" not in worker
        assert other["controlPlane"]["localAPIEndpoint"]["bindPort"] == 8443

    def test_fields_of_the_operator_win_in_the_document_of_their_kind(self) -> None:
        overrides = {
            "ClusterConfiguration": {"networking": {"dnsDomain": "other"}, "scheduler": {"a": 1}},
            "KubeProxyConfiguration": {"conntrack": {"min": 0}},
        }

        found = documents("kubeadm/init", PLAIN, overrides)

        networking = found["ClusterConfiguration"]["networking"]
        assert networking["dnsDomain"] == "other"
        assert networking["podSubnet"] == "10.233.64.0/18"
        assert found["KubeProxyConfiguration"]["conntrack"] == {"min": 0}
        assert found["KubeProxyConfiguration"]["mode"] == "iptables"

    def test_a_flag_of_the_operator_takes_no_other_away(self) -> None:
        before = documents("kubeadm/init", FULL)["ClusterConfiguration"]["apiServer"]

        found = documents("kubeadm/init", FULL, ONE_FLAG)["ClusterConfiguration"]["apiServer"]

        said = {"profiling": "false", "event-ttl": "3h"}
        assert args_of(found) == {**args_of(before), **said}
        assert len(found["extraArgs"]) == len(args_of(found))
        volumes = [volume["name"] for volume in found["extraVolumes"]]
        assert volumes == ["audit-policy", "audit-logs", "encryption", "mine"]

    def test_both_versions_of_the_format_say_the_same(self) -> None:
        for sample in (PLAIN, FULL, WITHOUT):
            new, old = (documents(name, sample) for name in BOTH)
            for component in ("apiServer", "controllerManager", "scheduler"):
                one, other = (
                    each["ClusterConfiguration"].get(component, {}) for each in (new, old)
                )
                assert args_of(one) == args_of(other)
                assert one.get("extraVolumes") == other.get("extraVolumes")
            assert new["KubeletConfiguration"] == old["KubeletConfiguration"]
            assert new.get("KubeProxyConfiguration") == old.get("KubeProxyConfiguration")
