"""A cluster begins if all that kubeadm needs is there, and names what is missing if not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.sim.clusters import (
    ADDRESSES,
    ENDPOINT,
    IMAGES,
    KUBEADM,
    VERSION,
    ClusterSite,
    certificates,
)

from kubexm.common import layout
from kubexm.errors import Refused
from kubexm.sim import Machine
from kubexm.templates.contexts.kubeadm import Audit, Image, Node, StackedEtcd

CONFIG = layout.KUBEADM_CONFIG


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ClusterSite]:
    made = ClusterSite(tmp_path)
    yield made
    made.close()


def test_the_first_host_becomes_a_control_plane_with_all_that_kubeadm_leaves(
    site: ClusterSite,
) -> None:
    site.lay("cp1")

    done = site.init()

    assert done.ok, done
    assert site.state("kubelet", "cp1") == "active"
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"):
        assert site.ask("test", "-f", f"{layout.MANIFESTS}/{name}.yaml", host="cp1").ok
    for name in ("kubelet.conf", "super-admin.conf"):
        assert site.ask("test", "-f", f"{layout.KUBERNETES}/{name}", host="cp1").ok
    for path in ("config.yaml", "kubeadm-flags.env"):
        assert site.ask("test", "-f", f"{layout.KUBELET_DATA}/{path}", host="cp1").ok
    node = site.get("node", "cp1")
    assert node["spec"]["podCIDRs"] == ["10.233.64.0/24"]
    assert "node-role.kubernetes.io/control-plane" in node["metadata"]["labels"]
    names = [one["metadata"]["name"] for one in site.get("configmaps", "-A")["items"]]
    assert {"cluster-info", "kubeadm-config", "kubelet-config", "kube-proxy"} <= set(names)
    assert site.get("-n", "kube-system", "daemonset/kube-proxy")


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("tools", "conntrack not found"),
        ("kernel", "/proc/sys/net/ipv4/ip_forward contents are not set to 1"),
        ("containerd", "could not connect to the container runtime"),
        ("images", "failed to pull image registry.k8s.io/kube-apiserver"),
        ("kubelet.yaml", f"open {layout.KUBELET_CONFIG}: no such file"),
        ("units", "kubelet.service is not started"),
        ("hosts", f"lookup {ENDPOINT}: no such host"),
    ],
)
def test_what_a_host_lacks_is_named(site: ClusterSite, missing: str, named: str) -> None:
    site.lay("cp1", without={missing, *(("images",) if missing == "containerd" else ())})

    done = site.init()

    assert done.exit == 1
    assert named in done.error_text


@pytest.mark.parametrize("program", ["kubeadm", "kubelet"])
def test_a_program_that_is_not_there_is_named(site: ClusterSite, program: str) -> None:
    site.lay("cp1")
    site.do("rm", f"{layout.BINARIES}/{program}", host="cp1")

    done = site.init()

    assert done.exit
    assert program in done.error_text


@pytest.mark.parametrize("image", [image for image in IMAGES if "coredns" not in image])
def test_every_image_of_a_control_plane_has_to_be_there(site: ClusterSite, image: str) -> None:
    site.lay("cp1", without={"images"})
    site.lay_images("cp1", [one for one in IMAGES if one != image])

    done = site.init()

    assert done.exit == 1
    assert image.rpartition(":")[0] in done.error_text


def test_images_are_pulled_where_the_outside_answers(tmp_path: Path) -> None:
    site = ClusterSite(tmp_path, outside=True)
    site.lay("cp1", without={"images"})

    assert site.init().ok
    site.close()


@pytest.mark.parametrize(
    ("machine", "check"),
    [(Machine(cpus=1), "NumCPU"), (Machine(memory_mib=1024), "Mem")],
)
def test_checks_are_passed_over_by_their_exact_names(
    tmp_path: Path, machine: Machine, check: str
) -> None:
    site = ClusterSite(tmp_path, machine=machine)
    site.lay("cp1")

    assert f"[ERROR {check}]" in site.init().error_text
    assert f"[ERROR {check}]" in site.init("cp1", "--ignore-preflight-errors", "Num").error_text
    assert site.init("cp1", "--ignore-preflight-errors", check).ok
    site.close()


def test_all_checks_are_not_passed_over_by_a_file(site: ClusterSite) -> None:
    site.lay("cp1")
    node = site.init_config().node

    assert "'all' cannot be used in configuration file" in (
        site.init(node=replace(node, ignored_errors=("All",))).error_text
    )
    assert site.init(node=replace(node, ignored_errors=("NumCPU",))).ok


def test_swap_keeps_the_kubelet_from_running_unless_its_settings_allow_it(tmp_path: Path) -> None:
    site = ClusterSite(tmp_path, machine=Machine(swap_mib=1024))
    site.lay("cp1")

    assert "swap" in site.init().error_text
    assert site.state("kubelet", "cp1") == "activating"

    site.lay_kubelet_config("cp1", failSwapOn=False)
    assert site.state("kubelet", "cp1") == "active"
    site.close()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"cgroupDriver": "cgroupfs"}, "cgroup driver is 'cgroupfs'"),
        ({"staticPodPath": "/etc/elsewhere"}, "there is no pod of etcd"),
        ({"containerRuntimeEndpoint": "unix:///run/other.sock"}, "unix:///run/other.sock"),
        ({"kind": "KubeletSettings"}, "no kind 'KubeletSettings'"),
        ({"maxPodz": 110}, 'unknown field "maxPodz"'),
        ({"authentication": {"x509": {"clientCAFile": "/etc/no.crt"}}}, "/etc/no.crt"),
    ],
)
def test_what_is_wrong_with_the_settings_of_the_kubelet_is_named(
    site: ClusterSite, changes: dict[str, object], named: str
) -> None:
    site.lay("cp1")
    site.lay_kubelet_config("cp1", **changes)

    assert named in site.init().error_text


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("kind: InitConfiguration", "kind: InitSettings", "no kind 'InitSettings'"),
        ("kubeadm.k8s.io/v1beta4", "kubeadm.k8s.io/v1beta9", "kubeadm.k8s.io/v1beta9"),
        ("clusterName:", "clusterNames:", "unknown field `clusterNames`"),
        ("bindPort: 6443", "bindPort: six", "bindPort"),
        (f'kubernetesVersion: "{VERSION}"', 'kubernetesVersion: "v1.35.0"', "v1.35.0"),
        ("kind: ClusterConfiguration", "kind: InitConfiguration", "there twice"),
    ],
)
def test_what_is_wrong_with_the_configuration_is_named(
    site: ClusterSite, old: str, new: str, named: str
) -> None:
    site.lay("cp1")
    site.write("kubeadm/init", site.init_config(), CONFIG, "cp1")
    text = site.do("cat", CONFIG, host="cp1")
    assert old in text
    site.put(CONFIG, text.replace(old, new), host="cp1")

    done = site.ask(KUBEADM, "init", "--config", CONFIG, host="cp1")

    assert done.exit == 1
    assert named in done.error_text


def test_what_an_earlier_attempt_left_is_named_check_by_check(site: ClusterSite) -> None:
    site.lay("cp1")
    assert site.init().ok

    done = site.init()

    for name in ("Port-6443", "Port-10250", "Port-2379"):
        assert f"[ERROR {name}]" in done.error_text
    assert "[ERROR FileAvailable--etc-kubernetes-manifests-kube-apiserver.yaml]" in done.error_text
    assert "[ERROR DirAvailable--var-lib-etcd]" in done.error_text


@pytest.mark.parametrize("path", [layout.AUDIT_POLICY, layout.ENCRYPTION_CONFIG])
def test_a_file_that_the_api_server_is_told_of_has_to_be_there(
    site: ClusterSite, path: str
) -> None:
    site.lay("cp1")
    files = {layout.AUDIT_POLICY, layout.ENCRYPTION_CONFIG} - {path}
    for other in files:
        site.put(other, "policy\n", host="cp1")

    done = site.init(audit=Audit(), encryption=layout.ENCRYPTION_CONFIG)

    assert done.exit == 1
    assert path in done.error_text


def test_a_flag_has_to_have_a_name(site: ClusterSite) -> None:
    site.lay("cp1")

    done = site.init(api_server_args={"": "x"})

    assert done.exit != 0
    assert "extraArgs[0].name" in done.error_text


def test_the_directory_of_patches_has_to_be_there(site: ClusterSite) -> None:
    site.lay("cp1")

    assert layout.PATCHES in site.init(patches=layout.PATCHES).error_text


def test_a_pod_with_a_container_without_an_image_does_not_run(site: ClusterSite) -> None:
    site.lay("cp1")
    patch = "spec: {containers: [{name: kube-scheduler, tty: true}]}\n"
    site.put(f"{layout.PATCHES}/kube-apiserver.yaml", patch, host="cp1")

    done = site.init(patches=layout.PATCHES)

    assert done.exit == 1
    assert "kube-apiserver" in done.error_text


def test_a_missing_authority_is_made_and_does_not_fit_what_was_issued(site: ClusterSite) -> None:
    site.lay("cp1")
    for name in ("ca.crt", "ca.key"):
        site.do("rm", f"{layout.PKI}/{name}", host="cp1")

    done = site.init()

    assert done.exit == 1
    assert "wrong CA cert" in done.error_text


def test_without_any_certificate_kubeadm_makes_all_of_them(site: ClusterSite) -> None:
    site.lay("cp1", without={"certificates"})

    assert site.init().ok
    assert site.kubectl("get", "nodes", "-o", "name").text == "node/cp1"


def test_a_certificate_by_another_authority_is_refused(site: ClusterSite) -> None:
    site.lay("cp1")
    file = certificates(False)["cp1"].pki["apiserver.crt"]
    site.put(f"{layout.PKI}/apiserver.crt", file.content.decode(), host="cp1")

    assert "apiserver is not signed by CA" in site.init().error_text


def test_the_endpoint_has_to_lead_to_an_api_server(site: ClusterSite) -> None:
    site.lay("cp1", without={"hosts"})
    site.put("/etc/hosts", f"10.0.0.99 {ENDPOINT}\n", host="cp1")

    assert f"{ENDPOINT}:6443 was refused" in site.init().error_text


def test_the_certificate_of_the_api_server_has_to_be_for_the_endpoint(site: ClusterSite) -> None:
    site.lay("cp1")
    site.put("/etc/hosts", "10.0.0.11 api.other.example\n", host="cp1")
    for name in ("admin", "super-admin"):
        site.do("rm", f"{layout.KUBERNETES}/{name}.conf", host="cp1")

    done = site.init(endpoint="api.other.example:6443")

    assert "not valid for api.other.example" in done.error_text


@pytest.mark.parametrize("phase", ["addon/kube-proxy", "addon"])
def test_what_is_skipped_is_not_there(site: ClusterSite, phase: str) -> None:
    site.lay("cp1")

    assert site.init("cp1", "--skip-phases", phase).ok
    assert site.get("-n", "kube-system", "daemonset/kube-proxy") is None


def test_a_phase_that_there_is_not_is_refused(site: ClusterSite) -> None:
    site.lay("cp1")

    assert "invalid phase name" in site.init("cp1", "--skip-phases", "addon/dns").error_text


def test_dns_is_added_if_its_image_is_given(site: ClusterSite) -> None:
    site.lay("cp1")
    image = Image(repository="registry.k8s.io/coredns", tag="v1.14.2")

    assert site.init(dns=image, node=Node(name="cp1", addresses=ADDRESSES["cp1"], taints=())).ok
    site.lay_network("cp1", "10.233.64.0/24")

    found = site.get("-n", "kube-system", "deployment/coredns")
    assert found["status"]["availableReplicas"] == found["spec"]["replicas"] == 2
    assert "taints" not in site.get("node", "cp1")["spec"]


def test_settings_that_changed_are_written_anew_phase_by_phase(site: ClusterSite) -> None:
    site.lay("cp1")
    assert site.init().ok
    changed = site.init_config(api_server_args={"event-ttl": "2h"})
    site.write("kubeadm/init", changed, CONFIG, "cp1")

    for words in (("control-plane", "apiserver"), ("upload-config", "kubeadm")):
        site.do(KUBEADM, "init", "phase", *words, "--config", CONFIG, host="cp1")

    manifest = site.do("cat", f"{layout.MANIFESTS}/kube-apiserver.yaml", host="cp1")
    assert "--event-ttl=2h" in manifest
    stored = site.get("-n", "kube-system", "configmap/kubeadm-config")
    assert "event-ttl" in stored["data"]["ClusterConfiguration"]


@pytest.mark.parametrize("unit", ["kubelet", "containerd"])
def test_an_api_server_whose_kubelet_or_runtime_is_stopped_does_not_answer(
    site: ClusterSite, unit: str
) -> None:
    site.lay("cp1")
    assert site.init().ok
    site.do("systemctl", "stop", unit, host="cp1")

    assert "was refused" in site.kubectl("get", "nodes", "-o", "name").error_text

    site.do("systemctl", "start", unit, host="cp1")
    assert site.kubectl("get", "nodes", "-o", "name").text == "node/cp1"


def test_the_name_of_the_node_is_that_of_its_registration(site: ClusterSite) -> None:
    site.lay("cp1")

    assert site.init(node=Node(name="first", addresses=ADDRESSES["cp1"])).ok
    assert site.kubectl("get", "nodes", "-o", "name").text == "node/first"


def test_stacked_members_lie_where_they_are_told(site: ClusterSite) -> None:
    site.lay("cp1")

    assert site.init(stacked_etcd=StackedEtcd(data_dir="/data/etcd")).ok
    assert site.ask("test", "-d", "/data/etcd/member", host="cp1").ok


def test_a_node_of_two_families_gets_addresses_of_both(site: ClusterSite) -> None:
    site.lay("cp1")
    site.do("sysctl", "-q", "-w", "net.ipv6.conf.all.forwarding=0", host="cp1")
    families: dict[str, Any] = {
        "pod_cidrs": ("10.233.64.0/18", "fd00:64::/56"),
        "service_cidrs": ("10.233.0.0/18", "fd00:233::/112"),
        "node_mask_ipv6": 64,
    }

    refused = site.init(**families)
    site.do("sysctl", "-q", "-w", "net.ipv6.conf.all.forwarding=1", host="cp1")
    done = site.init(**families)

    name = "FileContent--proc-sys-net-ipv6-conf-default-forwarding"
    assert f"[ERROR {name}]" in refused.error_text
    assert done.ok, done
    assert site.get("node", "cp1")["spec"]["podCIDRs"] == ["10.233.64.0/24", "fd00:64::/64"]


def test_kubeadm_tells_its_version_its_images_and_what_it_thinks_of_a_file(
    site: ClusterSite,
) -> None:
    site.lay("cp1")
    site.write("kubeadm/init", site.init_config(), CONFIG, "cp1")

    assert site.do(KUBEADM, "version", "-o", "short", host="cp1") == VERSION
    assert site.do(KUBEADM, "config", "validate", "--config", CONFIG, host="cp1") == "ok"
    images = site.do(KUBEADM, "config", "images", "list", "--config", CONFIG, host="cp1")
    assert set(images.split()) == {image for image in IMAGES if "coredns" not in image}


def test_what_nobody_taught_kubeadm_fails_loudly(site: ClusterSite) -> None:
    site.lay("cp1")

    for words in (("upgrade", "plan"), ("init", "--dry-run"), ("reset",)):
        with pytest.raises(Refused, match="does not know"):
            site.ask(KUBEADM, *words, host="cp1")
