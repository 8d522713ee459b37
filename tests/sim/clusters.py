"""A small cluster in a simulated world, built by direct commands and with the product's files.

Every part that a host needs is laid by a function of its own, so that a test can leave one out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from tests.sim.site import PAUSE, Site

from kubexm.common import layout
from kubexm.common.roles import CONTROL_PLANE, ETCD, WORKER
from kubexm.connector.base import Command, Completed
from kubexm.document import source
from kubexm.pki import cluster as pki
from kubexm.pki import keys, reading
from kubexm.pki.cluster import HostFiles
from kubexm.pki.names import Names
from kubexm.pki.request import Host, Issuing
from kubexm.templates import render
from kubexm.templates.contexts.etcd import INITIAL, EtcdEnvironment, EtcdInitial, EtcdUnit
from kubexm.templates.contexts.kubeadm import (
    ApiEndpoint,
    ExternalEtcd,
    InitConfig,
    JoinConfig,
    Node,
    StackedEtcd,
)
from kubexm.templates.contexts.kubernetes import KubeletConfig
from kubexm.templates.contexts.routed import RoutedCni
from kubexm.templates.contexts.systemd import (
    KUBELET_DROPIN,
    KUBELET_UNIT,
    KubeletDropin,
    KubeletUnit,
)

VERSION = "v1.36.3"
ENDPOINT = "api.demo.kubexm.internal"
ADDRESSES = {
    "cp1": ("10.0.0.11",),
    "cp2": ("10.0.0.12",),
    "cp3": ("10.0.0.13",),
    "w1": ("10.0.0.21",),
    "w2": ("10.0.0.22",),
    "e1": ("10.0.0.31",),
    "e2": ("10.0.0.32",),
    "e3": ("10.0.0.33",),
}
CONTROL_PLANES, ETCDS = ("cp1", "cp2", "cp3"), ("e1", "e2", "e3")
PROXY = f"registry.k8s.io/kube-proxy:{VERSION}"
IMAGES = (
    PAUSE,
    "registry.k8s.io/etcd:3.6.8-0",
    "registry.k8s.io/coredns/coredns:v1.14.2",
    *(
        f"registry.k8s.io/kube-{name}:{VERSION}"
        for name in ("apiserver", "controller-manager", "scheduler", "proxy")
    ),
)
KUBECTL = (f"{layout.BINARIES}/kubectl", "--kubeconfig", layout.ADMIN_CONFIG)
KUBEADM = f"{layout.BINARIES}/kubeadm"
JOIN = f"{layout.SECRETS_IN_MEMORY}/kubeadm-join.yaml"
OWN_AUTHORITY = "FileAvailable--etc-kubernetes-pki-ca.crt"
PLUGINS = ("bridge", "host-local", "loopback", "portmap")
TOOLS = ("conntrack", "ethtool", "iptables", "socat")


@cache
def certificates(stacked: bool) -> dict[str, HostFiles]:
    """The files of all hosts, made once for all tests."""
    now = datetime.now(UTC)
    made = pki.new_authorities(now=now, algorithm="ECDSA-P256")
    account = keys.private_pem(keys.make("ECDSA-P256"))
    issuing = Issuing(made, account, "demo", timedelta(days=30), "ECDSA-P256")
    hosts = {name: _certified(name, stacked) for name in ADDRESSES}
    return pki.issue_all(hosts, issuing, now=now)


def _certified(name: str, stacked: bool) -> Host:
    roles = {WORKER} if name.startswith("w") else {ETCD}
    if name in CONTROL_PLANES:
        roles = {CONTROL_PLANE, ETCD} if stacked else {CONTROL_PLANE}
    names = Names(name, ADDRESSES[name], ("10.233.0.0/18",), endpoints=(ENDPOINT, "10.0.0.10"))
    return Host(
        names,
        frozenset(roles),
        endpoint=f"https://{ENDPOINT}:6443",
        own=f"https://{ADDRESSES[name][0]}:6443",
        without=frozenset({"kubelet"}),
    )


class ClusterSite(Site):
    """A world with the hosts of a cluster; it has no way outside, so all has to be laid."""

    def __init__(self, directory: Path, *, stacked: bool = True, **settings: Any) -> None:
        super().__init__(directory, addresses=ADDRESSES, **{"outside": False, **settings})
        self.stacked = stacked

    # What a host needs.

    def lay(self, host: str, *, without: Collection[str] = ()) -> None:
        """Everything but the certificates that a host needs to become a node."""
        for name, part in (
            ("tools", self.lay_tools),
            ("kernel", self.lay_kernel),
            ("containerd", self.run_containerd),
            ("images", self.lay_images),
            ("kubernetes", self.lay_kubernetes),
            ("kubelet.yaml", self.lay_kubelet_config),
            ("units", self.lay_units),
            ("hosts", self.lay_hosts),
            ("certificates", self.lay_certificates),
        ):
            if name not in without:
                part(host)

    def lay_tools(self, host: str) -> None:
        for name in TOOLS:
            self.bring(name, "1.0", host=host)

    def lay_kernel(self, host: str) -> None:
        self.do("modprobe", "overlay", host=host)
        self.do("modprobe", "br_netfilter", host=host)
        self.do("sysctl", "-q", "-w", "net.ipv4.ip_forward=1", host=host)

    def lay_images(self, host: str, images: Sequence[str] = IMAGES) -> None:
        from kubexm.sim import containers

        shell = self.world.host(host).shell()
        for image in images:
            containers.keep(shell, image)

    def lay_kubernetes(self, host: str) -> None:
        for program in ("kubeadm", "kubectl", "kubelet"):
            self.bring(program, VERSION, host=host)

    def lay_kubelet_config(self, host: str, **changes: Any) -> None:
        said = source.parse(render.render("kubernetes/kubelet", KUBELET.data())).data
        self.put(layout.KUBELET_CONFIG, json.dumps({**said, **changes}), host=host)

    def lay_units(self, host: str) -> None:
        self.write("systemd/kubelet", KubeletUnit(), KUBELET_UNIT, host)
        self.write("kubelet/dropin", KubeletDropin(), KUBELET_DROPIN, host)
        self.do("systemctl", "enable", "kubelet", host=host)

    def lay_hosts(self, host: str) -> None:
        own = [ADDRESSES[host][0]] if host in CONTROL_PLANES else []
        behind = dict.fromkeys([*own, *(ADDRESSES[name][0] for name in CONTROL_PLANES)])
        self.put("/etc/hosts", "".join(f"{address} {ENDPOINT}\n" for address in behind), host=host)

    def lay_certificates(self, host: str) -> None:
        made = certificates(self.stacked)[host]
        for path, file in made.pki.items():
            self.put(f"{layout.PKI}/{path}", file.content.decode(), file.mode, host)
        for path, file in made.kubeconfigs.items():
            self.put(f"{layout.KUBERNETES}/{path}", file.content.decode(), file.mode, host)

    def lay_network(self, host: str, network: str) -> None:
        for name in PLUGINS:
            self.put(f"{layout.CNI_PLUGINS}/{name}", "plugin\n", 0o755, host)
        config = RoutedCni(node=host, networks={host: (network,)})
        self.write("routed/cni", config, f"{layout.CNI_CONFIG}/10-kubexm.conflist", host)

    def lay_file(self, path: str, data: bytes, host: str) -> None:
        """Lay a file that is no text."""
        asyncio.run(self.world.connector(host).put(path, data))

    # kubeadm.

    def init_config(self, host: str = "cp1", **changes: Any) -> InitConfig:
        external = ExternalEtcd(
            endpoints=tuple(f"https://{ADDRESSES[name][0]}:2379" for name in ETCDS),
            ca=f"{layout.ETCD_PKI}/ca.crt",
            certificate=f"{layout.PKI}/apiserver-etcd-client.crt",
            key=f"{layout.PKI}/apiserver-etcd-client.key",
        )
        said = {
            "version": VERSION,
            "cluster_name": "demo",
            "endpoint": f"{ENDPOINT}:6443",
            "api": ApiEndpoint(address=ADDRESSES[host][0]),
            "node": Node(name=host, addresses=ADDRESSES[host]),
            "pod_cidrs": ("10.233.64.0/18",),
            "service_cidrs": ("10.233.0.0/18",),
            "dns_domain": "cluster.local",
            "kubelet": source.parse(render.render("kubernetes/kubelet", KUBELET.data())).data,
            "node_mask": 24,
            "stacked_etcd": StackedEtcd() if self.stacked else None,
            "external_etcd": None if self.stacked else external,
        }
        return InitConfig(**{**said, **changes})

    def init(self, host: str = "cp1", *options: str, **changes: Any) -> Completed:
        """Begin the cluster with a host."""
        config = self.init_config(host, **changes)
        self.write("kubeadm/init", config, layout.KUBEADM_CONFIG, host)
        return self.ask(KUBEADM, "init", "--config", layout.KUBEADM_CONFIG, *options, host=host)

    def token(self, host: str = "cp1") -> str:
        words = ("token", "create", "--ttl", "7200s", "--kubeconfig", layout.ADMIN_CONFIG)
        return self.do(KUBEADM, *words, host=host)

    def lay_join(self, host: str, token: str = "", **changes: Any) -> None:
        """Lay what a host needs to join."""
        authority = certificates(self.stacked)["cp1"].pki["ca.crt"].content
        said = {
            "endpoint": f"{ENDPOINT}:6443",
            "node": Node(name=host, addresses=ADDRESSES[host]),
            "api": ApiEndpoint(address=ADDRESSES[host][0]) if host in CONTROL_PLANES else None,
            "token": token or self.token(),
            "ca_hashes": (reading.public_key_hash(authority),),
        }
        self.write("kubeadm/join", JoinConfig(**{**said, **changes}), JOIN, host)

    async def joining(self, host: str, *options: str) -> Completed:
        """Add a host to the cluster, while others do something."""
        return await self.world.connector(host).exec(
            Command((KUBEADM, "join", "--config", JOIN, *options))
        )

    def join(self, host: str, *options: str, token: str = "", **changes: Any) -> Completed:
        """Add a host to the cluster."""
        self.lay_join(host, token, **changes)
        if host not in CONTROL_PLANES:
            options = (*options, "--ignore-preflight-errors", OWN_AUTHORITY)
        return asyncio.run(self.joining(host, *options))

    def begin(self, *hosts: str) -> None:
        """A whole cluster: the first host begins it, the others join."""
        first, *others = hosts
        for host in hosts:
            self.lay(host)
        assert self.init(first).ok
        for host in others:
            assert self.join(host).ok, host
        for number, host in enumerate(hosts):
            self.lay_network(host, f"10.233.{64 + number}.0/24")

    # The API.

    def kubectl(self, *words: str, host: str = "cp1", stdin: Any = b"") -> Completed:
        return self.ask(*KUBECTL, *words, host=host, stdin=manifests(stdin))

    def apply(self, *objects: dict[str, Any], host: str = "cp1") -> Completed:
        return self.kubectl("apply", *OURS, host=host, stdin=objects)

    def diff(self, *objects: dict[str, Any], host: str = "cp1") -> Completed:
        return self.kubectl("diff", *OURS, host=host, stdin=objects)

    def get(self, *words: str, host: str = "cp1") -> Any:
        done = self.kubectl("get", "--ignore-not-found", "-o", "json", *words, host=host)
        assert done.ok, done
        return json.loads(done.stdout or b"null")

    def is_ready(self, node: str, host: str = "cp1") -> bool:
        (ready,) = self.get("node", node, host=host)["status"]["conditions"]
        return bool(ready["status"] == "True")

    # etcd as a service.

    def lay_etcd(self, host: str, *, without: Collection[str] = (), **initial: Any) -> None:
        """A member that is ready to start."""
        address = ADDRESSES[host][0]
        for program in ("etcd", "etcdctl"):
            self.bring(program, "v3.6.14", host=host)
        listen = (f"https://{address}:2379", "https://127.0.0.1:2379")
        environment = EtcdEnvironment(
            name=host,
            data_dir="/var/lib/etcd",
            listen_client=listen,
            advertise_client=listen[:1],
            listen_peer=(f"https://{address}:2380",),
            heartbeat_ms=250,
            election_ms=5000,
            snapshot_count=10_000,
            compaction_s=28_800,
            quota_bytes=2**31,
            max_request_bytes=2**20,
        )
        members = {name: f"https://{ADDRESSES[name][0]}:2380" for name in ETCDS}
        said = {"name": host, "cluster": members, "state": "new", "identity": "demo", **initial}
        if "environment" not in without:
            self.write("etcd/environment", environment, layout.ETCD_ENVIRONMENT, host)
        self.write("etcd/initial", EtcdInitial(**said), INITIAL, host)
        self.write("systemd/etcd", EtcdUnit(), f"{layout.UNITS}/etcd.service", host)
        if "data" not in without:
            self.do("mkdir", "-p", "-m", "0700", "/var/lib/etcd", host=host)
        if "certificates" not in without:
            self.lay_certificates(host)

    def health(self, host: str = "e1", *at: str) -> Completed:
        """What etcdctl says of members, asked on a host."""
        urls = ",".join(f"https://{ADDRESSES[name][0]}:2379" for name in at or (host,))
        names = (("--cacert", "ca.crt"), ("--cert", "healthcheck-client.crt"))
        files = [word for flag, name in names for word in (flag, f"{layout.ETCD_PKI}/{name}")]
        files += ["--key", f"{layout.ETCD_PKI}/healthcheck-client.key"]
        program = f"{layout.BINARIES}/etcdctl"
        return self.ask(program, "--endpoints", urls, *files, "endpoint", "health", host=host)


KUBELET = KubeletConfig(cluster_dns=("10.233.0.10",), cluster_domain="cluster.local")
OURS = ("--server-side", "--force-conflicts", "--field-manager", "kubexm", "-f", "-")


def manifests(given: Any) -> bytes:
    """Objects as kubectl reads them."""
    if isinstance(given, bytes):
        return given
    return "\n---\n".join(json.dumps(one) for one in given).encode()


def config_map(name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def workload(kind: str, name: str, pod: dict[str, Any], **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def container(image: str, **more: Any) -> dict[str, Any]:
    return {"name": "main", "image": image, **more}
