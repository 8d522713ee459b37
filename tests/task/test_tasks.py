"""What tasks make of a cluster file, where that is decided by more than one key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from tests.task.planned import content, made, planned, step, world, written

from kubexm.common import layout
from kubexm.pki import reading
from kubexm.step.kernel import KernelSettings
from kubexm.step.kubeadm import Joined
from kubexm.step.manifests import Applied
from kubexm.templates import formats
from kubexm.templates.contexts.balancer import HAPROXY_CONFIG, KEEPALIVED_CONFIG
from kubexm.templates.registry import TEMPLATES

DUAL = {"podCIDR": ["10.1.0.0/16", "fd00:1::/48"], "serviceCIDR": ["10.2.0.0/16", "fd00:2::/112"]}


def balanced(address: str, *, v6: bool) -> dict[str, Any]:
    """A cluster with two load-balancer hosts, with `v6` of both families."""
    last = {"cp1": 11, "lb1": 21, "lb2": 22}
    hosts: list[dict[str, Any]] = [
        {
            "name": name,
            "address": f"10.0.0.{number}",
            "internalAddresses": [f"10.0.0.{number}", *([f"fd00::{number}"] * v6)],
        }
        for name, number in last.items()
    ]
    return {
        "hosts": hosts,
        "roleGroups": {"control-plane": ["cp1"], "worker": ["cp1"], "loadbalancer": ["lb[1:2]"]},
        "endpoint": {"kind": "keepalived", "address": address},
        "network": {"plugin": "flannel", **(DUAL if v6 else {})},
    }


@pytest.mark.parametrize(
    ("address", "v6", "bind"),
    [
        # A kernel without IPv6 would open nothing at all.
        ("10.0.0.100", False, "*:6443"),
        ("10.0.0.100", True, "[::]:6443 v4v6"),
        ("fd00::100", True, "[::]:6443 v4v6"),
    ],
)
def test_a_load_balancer_listens_at_the_families_that_it_has(
    address: str, v6: bool, bind: str, tmp_path: Path
) -> None:
    plan = planned(written(tmp_path, **balanced(address, v6=v6)))

    assert f"    bind {bind}\n" in content(plan, HAPROXY_CONFIG, "lb2")


@pytest.mark.parametrize(
    ("said", "reserved"),
    [
        (None, "30000-32767"),
        ("20000-22767", "20000-22767"),
        (" 20000+99", "20000-20099"),
        ("65000+1000", "65000-65535"),
        ("31000", "31000"),
    ],
)
def test_the_kernel_leaves_the_ports_of_services_to_them(
    said: str | None, reserved: str, tmp_path: Path
) -> None:
    args = {} if said is None else {"service-node-port-range": said}
    plan = planned(written(tmp_path, kubernetes={"apiServer": {"extraArgs": args}}))

    for host in ("cp1", "w1"):
        settings = step(plan, "kernel/settings", host)
        assert isinstance(settings, KernelSettings)
        assert settings.settings["net.ipv4.ip_local_reserved_ports"] == reserved


@pytest.mark.parametrize(
    ("said", "facts", "interface"),
    [
        ({}, {"interface": "eth0", "others": {}}, "eth0"),
        ({}, {"interface": "eth0", "others": {"10.0.0.21": "eth1"}}, "eth1"),
        ({"interface": "eth2"}, {"interface": "eth0", "others": {"10.0.0.21": "eth1"}}, "eth2"),
    ],
)
def test_the_virtual_address_lies_beside_the_hosts_own(
    said: dict[str, str], facts: dict[str, Any], interface: str, tmp_path: Path
) -> None:
    spec = balanced("10.0.0.100", v6=False)
    spec["endpoint"]["keepalived"] = said
    plan = planned(written(tmp_path, **spec))

    assert f"    interface {interface}\n" in content(
        plan, KEEPALIVED_CONFIG, "lb1", {"network": facts}
    )


def test_kube_vip_takes_the_interface_of_the_hosts_own_address(tmp_path: Path) -> None:
    vip = {"kind": "kube-vip", "address": "10.0.0.100"}
    plan = planned(written(tmp_path, endpoint=vip))
    told = {"network": {"others": {"10.0.0.12": "eth1"}}}

    text = content(plan, f"{layout.MANIFESTS}/kube-vip.yaml", "cp2", told)

    assert '{name: vip_interface, value: "eth1"}' in text


@pytest.mark.parametrize(
    ("internal", "network", "is_by_address"),
    [
        (["10.9.0.11"], {}, True),
        (["10.9.0.11", "fd01::11"], DUAL, False),
        (["fd01::11"], {"podCIDR": ["fd00:64::/56"], "serviceCIDR": ["fd00:96::/108"]}, True),
    ],
)
def test_flannel_goes_by_the_addresses_of_hosts_where_one_says_it_all(
    internal: list[str], network: dict[str, Any], is_by_address: bool, tmp_path: Path
) -> None:
    host = {"name": "cp1", "address": "192.0.2.11", "internalAddresses": internal}
    spec = {"hosts": [host], "roleGroups": {"control-plane": ["cp1"], "worker": ["cp1"]}}
    plan = planned(written(tmp_path, **spec, network={"plugin": "flannel", **network}))

    (manifest,) = (node for node in plan.graph if node.id.endswith("network/plugin/flannel"))

    assert manifest.step.params["data"]["by_host_address"] == is_by_address


@pytest.mark.parametrize(("version", "is_said"), [("v3.5.27", False), ("v3.6.8", True)])
def test_etcd_has_gates_from_the_version_on_that_knows_them(
    version: str, is_said: bool, tmp_path: Path
) -> None:
    hosts = [{"name": name, "address": f"10.0.0.{n}"} for n, name in enumerate(("cp1", "e1"), 11)]
    groups = {"control-plane": ["cp1"], "etcd": ["e1"]}

    plan = planned(written(tmp_path, hosts=hosts, roleGroups=groups, etcd={"version": version}))

    said = content(plan, layout.ETCD_ENVIRONMENT, "e1")
    assert ("InitialCorruptCheck=true" in said) == is_said
    assert ("EXPERIMENTAL_INITIAL_CORRUPT_CHECK" in said) != is_said


@pytest.mark.slow
def test_a_virtual_address_of_ipv6_leads_to_the_api(tmp_path: Path) -> None:
    outcome = made(written(tmp_path, **balanced("fd00::100", v6=True)))

    assert outcome.result.status == "Success"
    with world(outcome) as hosts:
        assert hosts.host("cp1").reached("fd00::100", 6443) == ("cp1",)


def test_the_api_is_certified_for_all_names_of_a_domain(tmp_path: Path) -> None:
    sans = ["*.example.com", "fd00:0::7"]
    hosts = [{"name": "cp1", "address": "10.0.0.11"}]
    file = written(
        tmp_path,
        hosts=hosts,
        roleGroups={},
        kubernetes={"apiServer": {"certSans": sans}},
        network={"plugin": "routed"},
    )

    outcome = made(file)

    assert outcome.result.status == "Success"
    with world(outcome) as hosts_made:
        host = hosts_made.host("cp1")
        (certificate,) = reading.parsed(host.read(f"{layout.PKI}/apiserver.crt"))
        config = formats.documents(host.read(layout.KUBEADM_CONFIG).decode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "*.example.com" in names.get_values_for_type(x509.DNSName)
    assert config[1]["apiServer"]["certSANs"] == ["*.example.com", "fd00::7"]


def test_metrics_of_etcd_are_where_the_file_says(tmp_path: Path) -> None:
    etcd = {"kind": "systemd", "extraArgs": {"listen-metrics-urls": "http://0.0.0.0:2381"}}
    found = content(planned(written(tmp_path, etcd=etcd)), layout.ETCD_ENVIRONMENT, "cp1")

    assert [line for line in found.splitlines() if "METRICS_URLS" in line] == [
        'ETCD_LISTEN_METRICS_URLS="http://0.0.0.0:2381"'
    ]
    assert 'ETCD_LISTEN_PEER_URLS="https://10.0.0.11:2380"\nETCD_CERT_FILE=' in found


@pytest.mark.parametrize("roles", [{}, {"etcd": ["w1"]}])
def test_times_of_etcd_are_those_that_were_written(
    roles: dict[str, list[str]], tmp_path: Path
) -> None:
    tuning = {"heartbeat": "4007ms", "election": "30.001s"}
    plan = planned(
        written(
            tmp_path, etcd={"tuning": tuning}, roleGroups={"control-plane": ["cp[1:3]"], **roles}
        )
    )

    path, host = (layout.ETCD_ENVIRONMENT, "w1") if roles else (layout.KUBEADM_CONFIG, "cp1")

    assert {'"4007"', '"30001"'} <= {*re.findall(r'"\d+"', content(plan, path, host))}


def test_patches_are_where_something_of_kubeadms_is_patched(tmp_path: Path) -> None:
    (tmp_path / "patch.yaml").write_text("metadata: {labels: {a: b}}\n")
    patches = {"kube-apiserver": "patch.yaml", "etcd": "patch.yaml"}
    plan = planned(written(tmp_path, kubernetes={"kubeadm": {"patches": patches}}))

    worker, plane = step(plan, "join/node", "w1"), step(plan, "control-plane/join/cp2", "cp2")

    written_to = {
        host: {node.step.params.get("path") for node in plan.graph if host in node.hosts}
        for host in ("cp1", "cp2", "w1")
    }
    files = {f"{layout.PATCHES}/{name}.yaml" for name in patches}
    assert files <= written_to["cp1"]
    assert files <= written_to["cp2"]
    assert not files & written_to["w1"]
    assert layout.PATCHES not in written_to["w1"]
    assert isinstance(worker, Joined)
    assert isinstance(plane, Joined)
    assert (worker.data["patches"], plane.data["patches"]) == ("", layout.PATCHES)


def test_without_crictl_in_the_catalog_hosts_get_none(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('[kubernetes."v1.36".defaults]\ncrictl = ""\n')
    file = written(tmp_path)

    usual, without = planned(file), planned(file, mine)

    assert any("crictl" in node.id for node in usual.graph)
    assert not any("crictl" in node.id for node in without.graph)
    assert {node.id for node in usual.graph if "crictl" not in node.id} == {
        node.id for node in without.graph
    }


def test_kubeadm_is_told_of_an_etcd_that_it_does_not_expect(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('[kubernetes."v1.36".defaults]\netcd = "v3.6.14"\n')
    file = written(tmp_path)

    found = [
        {one["kind"]: one for one in formats.parsed(text, "manifests")}["ClusterConfiguration"]
        for plan in (planned(file), planned(file, mine))
        for text in [content(plan, layout.KUBEADM_CONFIG, "cp1")]
    ]

    usual, other = (each["etcd"]["local"] for each in found)
    assert "imageTag" not in usual
    assert (other["imageRepository"], other["imageTag"]) == ("registry.k8s.io", "3.6.14-0")


@pytest.mark.slow
def test_a_cluster_by_such_a_catalog_is_made(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('[kubernetes."v1.36".defaults]\netcd = "v3.6.14"\ncrictl = ""\n')

    outcome = made(written(tmp_path), mine)

    assert outcome.result.status == "Success"
    with world(outcome) as hosts:
        pod = hosts.host("cp2").read(f"{layout.MANIFESTS}/etcd.yaml").decode()
    assert "registry.k8s.io/etcd:3.6.14-0" in pod


def test_the_way_out_is_where_the_template_says_that_it_is(tmp_path: Path) -> None:
    proxy = {"proxy": {"https": "http://proxy.lan:3128"}}
    plan = planned(written(tmp_path, system=proxy))

    for unit in ("kubelet", "containerd"):
        path = TEMPLATES["proxy/environment"].path.format(unit=unit)
        assert "proxy.lan" in content(plan, path, "w1")


def test_a_worker_may_have_the_authority_before_it_joins_where_we_lay_it(tmp_path: Path) -> None:
    groups = {"control-plane": ["cp1"], "worker": ["cp2", "w[1:2]"], "etcd": ["cp2", "cp3", "w1"]}
    kubeadm = {"kubeadm": {"ignorePreflightErrors": ["NumCPU"]}}
    file = written(tmp_path, roleGroups=groups, etcd={"kind": "systemd"}, kubernetes=kubeadm)
    plan = planned(file)

    member, other = (step(plan, "workers/join/node", host) for host in ("w1", "w2"))

    assert isinstance(member, Joined)
    assert isinstance(other, Joined)
    assert member.ignore_errors == ("NumCPU", "FileAvailable--etc-kubernetes-pki-ca.crt")
    assert other.ignore_errors == ("NumCPU",)


def test_a_control_plane_with_a_taint_of_its_own_keeps_the_usual_one(tmp_path: Path) -> None:
    own = {"key": "example.com/rack", "value": "a", "effect": "PreferNoSchedule"}
    hosts = [
        {"name": "cp1", "address": "10.0.0.11", "taints": [own]},
        {"name": "cp2", "address": "10.0.0.12"},
        {"name": "both", "address": "10.0.0.13", "taints": [own]},
    ]
    groups = {"control-plane": ["cp1", "cp2", "both"], "worker": ["both"]}

    plan = planned(written(tmp_path, hosts=hosts, roleGroups=groups))

    usual = {"key": "node-role.kubernetes.io/control-plane", "value": "", "effect": "NoSchedule"}
    taints = {host.name: host.vars["node"]["taints"] for host in plan.hosts if "node" in host.vars}
    assert taints == {"cp1": (own, usual), "cp2": None, "both": (own,)}


@pytest.mark.parametrize(
    ("dns", "workers", "replicas"),
    [({}, 0, 1), ({}, 3, 2), ({"replicas": 1}, 3, 1), ({"replicas": 50}, 1, 50)],
)
def test_as_many_core_dns_are_there_as_are_written_or_two_where_there_is_room(
    dns: dict[str, int], workers: int, replicas: int, tmp_path: Path
) -> None:
    hosts = [{"name": f"n{number}", "address": f"10.0.0.{number}"} for number in range(1, 5)]
    groups = {"control-plane": ["n1"]}
    plan = planned(written(tmp_path, hosts=hosts[: 1 + workers], roleGroups=groups, dns=dns))

    found = step(plan, "dns/coredns/coredns", "n1")

    assert isinstance(found, Applied)
    assert found.data["replicas"] == replicas
