"""Files of hosts say what the programs that read them have to know."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from kubexm.templates import render
from kubexm.templates.context import Context
from kubexm.templates.contexts.balancer import KeepalivedConfig
from kubexm.templates.contexts.containerd import (
    ContainerdConfig,
    ContainerdHosts,
    RegistryEndpoint,
    RegistryLogin,
    server_of,
)
from kubexm.templates.contexts.etcd import EtcdEnvironment, EtcdInitial
from kubexm.templates.contexts.routed import RoutedCni
from kubexm.templates.contexts.systemd import ContainedUnit, KubeletDropin, Mount
from kubexm.templates.registry import TEMPLATES

C = TypeVar("C", bound=Context)
MIRROR = "https://mirror.internal:5000"


def filled(name: str, context: Context) -> str:
    return render.render(name, context.data())


def sample(cls: type[C]) -> C:
    found = next(one for one in TEMPLATES.values() if one.context is cls).samples[0]
    assert isinstance(found, cls)
    return found


@pytest.mark.parametrize(
    ("version", "runtime", "images", "sandbox"),
    [
        (2, "io.containerd.grpc.v1.cri", "io.containerd.grpc.v1.cri", ("sandbox_image",)),
        (
            3,
            "io.containerd.cri.v1.runtime",
            "io.containerd.cri.v1.images",
            ("pinned_images", "sandbox"),
        ),
    ],
)
def test_containerd_is_told_the_same_in_both_forms(
    version: Any, runtime: str, images: str, sandbox: tuple[str, ...]
) -> None:
    config = ContainerdConfig(
        version=version, root="/data", systemd_cgroup=True, sandbox_image="pause:3.10"
    )

    found = tomllib.loads(filled("containerd/config", config))

    runc = found["plugins"][runtime]["containerd"]["runtimes"]["runc"]
    assert (found["version"], found["root"]) == (version, "/data")
    assert runc["options"] == {"SystemdCgroup": True}
    assert found["plugins"][images]["registry"] == {"config_path": "/etc/containerd/certs.d"}
    place = found["plugins"][images]
    for key in sandbox:
        place = place[key]
    assert place == "pause:3.10"


@pytest.mark.parametrize("version", [2, 3])
def test_containerd_knows_who_we_are_to_each_registry(version: Any) -> None:
    config = replace(
        sample(ContainerdConfig),
        version=version,
        logins=(
            RegistryLogin(host="registry-1.docker.io", username="me"),
            RegistryLogin(host="mirror.internal:5000", username="you"),
        ),
        passwords={"registry-1.docker.io": "mine", "mirror.internal:5000": 'yo"urs'},
    )

    found = tomllib.loads(filled("containerd/config", config))["plugins"]

    plugin = "io.containerd.grpc.v1.cri" if version == 2 else "io.containerd.cri.v1.images"
    assert found[plugin]["registry"]["configs"] == {
        "registry-1.docker.io": {"auth": {"username": "me", "password": "mine"}},
        "mirror.internal:5000": {"auth": {"username": "you", "password": 'yo"urs'}},
    }


def test_mirrors_are_asked_in_their_order_each_in_its_own_way() -> None:
    hosts = ContainerdHosts(
        server=RegistryEndpoint(url=server_of("docker.io")),
        mirrors=(
            RegistryEndpoint(url=MIRROR, ca="/ca.crt"),
            RegistryEndpoint(url="http://10.0.0.5:5000", skip_verify=True),
        ),
    )

    found = tomllib.loads(filled("containerd/hosts", hosts))

    assert found["server"] == "https://registry-1.docker.io"
    assert [*found["host"]] == [MIRROR, "http://10.0.0.5:5000"]
    assert found["host"][MIRROR]["ca"] == "/ca.crt"
    assert found["host"]["http://10.0.0.5:5000"] == {
        "capabilities": ["pull", "resolve"],
        "skip_verify": True,
    }


def test_a_registry_without_mirrors_says_so_for_old_containerds() -> None:
    hosts = ContainerdHosts(server=RegistryEndpoint(url="https://registry.internal", ca="/ca.crt"))

    found = tomllib.loads(filled("containerd/hosts", hosts))

    assert found["host"] == {}
    assert found["ca"] == "/ca.crt"


def test_a_registry_is_where_its_name_says() -> None:
    assert server_of("registry.internal:5000") == "https://registry.internal:5000"
    assert server_of("registry.internal:5000", plain_http=True) == "http://registry.internal:5000"


def test_flags_of_the_kubelet_come_after_those_of_kubeadm_so_that_they_win() -> None:
    text = filled(
        "kubelet/dropin",
        KubeletDropin(
            node_ips=("10.0.0.1", "fd00::1"), hostname="n1", extra_args={"v": "2", "x": "a b"}
        ),
    )

    first, second = re.findall(r"^ExecStart=((?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert first == ""
    assert shlex.split(second.replace("\\\n", "")) == [
        "/usr/local/bin/kubelet",
        "$KUBELET_KUBEADM_ARGS",
        "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        "--config=/etc/kubernetes/kubelet.yaml",
        "--node-ip=10.0.0.1,fd00::1",
        "--hostname-override=n1",
        "--v=2",
        "--x=a b",
    ]


def test_what_is_left_of_a_container_is_removed_before_it_starts() -> None:
    unit = ContainedUnit(
        description="x",
        name="proxy",
        image="example/proxy:1",
        arguments=("proxy", "-c", "/etc/a b"),
        mounts=(
            Mount(source="/etc/a b", target="/etc/a b"),
            Mount(source="/d", target="/d", writable=True),
        ),
        environment={"A": "$1"},
    )

    text = filled("systemd/contained", unit)

    ctr = "/usr/local/bin/ctr --address /run/containerd/containerd.sock --namespace kubexm"
    assert re.findall(r"^ExecStartPre=-(.*)$", text, re.MULTILINE) == [
        f"{ctr} tasks delete --force proxy",
        f"{ctr} containers delete proxy",
        f"{ctr} snapshots delete proxy",
    ]
    (start,) = re.findall(r"^ExecStart=((?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert shlex.split(start.replace("\\\n", "").removeprefix(ctr)) == [
        *("run", "--rm", "--net-host"),
        *("--mount", "type=bind,src=/etc/a b,dst=/etc/a b,options=rbind:ro"),
        *("--mount", "type=bind,src=/d,dst=/d,options=rbind:rw"),
        *("--env", "A=$$1", "example/proxy:1", "proxy"),
        *("proxy", "-c", "/etc/a b"),
    ]


@pytest.mark.parametrize("name", ["containerd", "kubelet", "etcd", "contained"])
def test_services_start_again_whatever_ends_them(name: str) -> None:
    template = TEMPLATES[f"systemd/{name}"]

    assert "\nRestart=always\n" in filled(template.name, template.samples[0])


def test_flags_of_etcd_are_variables_and_those_of_the_operator_come_last() -> None:
    member = replace(sample(EtcdEnvironment), extra_args={"snapshot-count": "5"})

    found = variables(filled("etcd/environment", member))

    assert found["ETCD_SNAPSHOT_COUNT"] == "5"
    assert found["ETCD_CLIENT_CERT_AUTH"] == found["ETCD_PEER_CLIENT_CERT_AUTH"] == "true"
    assert found["ETCD_LISTEN_CLIENT_URLS"] == "https://10.0.0.11:2379,https://127.0.0.1:2379"
    assert not [name for name in found if "INITIAL" in name]


@pytest.mark.parametrize("has_gates", [True, False])
def test_etcd_looks_for_damage_and_tells_how_far_it_is_as_members_of_kubeadm_do(
    has_gates: bool,
) -> None:
    member = replace(sample(EtcdEnvironment), has_gates=has_gates)

    found = variables(filled("etcd/environment", member))

    old = "" if has_gates else "EXPERIMENTAL_"
    assert found[f"ETCD_{old}WATCH_PROGRESS_NOTIFY_INTERVAL"] == "5s"
    assert (found.get("ETCD_FEATURE_GATES") == "InitialCorruptCheck=true") == has_gates
    assert (found.get("ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK") == "true") != has_gates


def test_a_member_of_etcd_finds_itself_among_the_others() -> None:
    found = variables(filled("etcd/initial", sample(EtcdInitial)))

    assert found == {
        "ETCD_INITIAL_ADVERTISE_PEER_URLS": "https://10.0.0.11:2380",
        "ETCD_INITIAL_CLUSTER": "node1=https://10.0.0.11:2380,node2=https://[fd00::12]:2380",
        "ETCD_INITIAL_CLUSTER_STATE": "new",
        "ETCD_INITIAL_CLUSTER_TOKEN": "prod",
    }


def variables(text: str) -> dict[str, str]:
    """As systemd takes them: the last one wins."""
    pairs = (line.split("=", 1) for line in text.splitlines())
    return {name: shlex.split(value)[0] for name, value in pairs}


@pytest.mark.parametrize(("address", "prefix"), [("10.0.0.100", 32), ("fd00::100", 128)])
def test_the_first_host_that_is_well_holds_the_address(address: str, prefix: int) -> None:
    hosts = [
        filled(
            "keepalived/config",
            replace(sample(KeepalivedConfig), order=order, virtual_address=address),
        )
        for order in (0, 1)
    ]

    first, second = (int(re.findall(r"priority (\d+)", text)[0]) for text in hosts)
    weight = int(re.findall(r"weight (-\d+)", hosts[0])[0])
    assert first > second > first + weight > 0
    assert f"{address}/{prefix}\n" in hosts[0]
    assert "auth_pass" not in hosts[0]


def test_pods_get_addresses_of_the_networks_of_their_own_host() -> None:
    cni = RoutedCni(node="b", networks={"a": ("10.1.1.0/24",), "b": ("10.1.2.0/24", "fd01::/64")})

    bridge, portmap = json.loads(filled("routed/cni", cni))["plugins"]

    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd01::/64"}]]
    assert bridge["ipam"]["routes"] == [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]
    assert "mtu" not in bridge
    assert portmap["capabilities"] == {"portMappings": True}
