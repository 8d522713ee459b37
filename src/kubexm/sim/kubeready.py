"""How a simulated cluster stands at one moment: which nodes are ready, and which pods can run.

Nothing happens in a world between two commands, so there is nothing to wait for: whether a pod
runs follows from what is there when somebody asks. Where things are to take time, as they do in
a real cluster, whatever could be ready is not yet when somebody asks for the first time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from kubexm.common import layout
from kubexm.sim import kubenames, kubenodes, kubepods, kubeproxy
from kubexm.sim.apiserver import Api
from kubexm.sim.kubedocs import Object, entries, part, section
from kubexm.sim.kubekinds import (
    BY_NAME,
    CONFIG_MAP,
    CRD,
    DAEMON_SET,
    NODE,
    SECRET,
    SERVICE_ACCOUNT,
    Kind,
)
from kubexm.sim.kubescheduling import fits
from kubexm.sim.kubestore import Ref
from kubexm.sim.shell import Shell

_SEEN = "seen:"
_CILIUM = "cilium"
_FLANNEL, _CALICO = "flannel", "calico"
_CONFIGS = {_FLANNEL: "10-flannel", _CALICO: "10-calico", _CILIUM: "05-cilium"}
"""What the pods of a network call their configuration, by a word in the name of their set."""
_PROGRAMS = {
    _FLANNEL: ("flannel", "portmap"),
    _CALICO: ("calico", "portmap"),
    _CILIUM: ("cilium-cni",),
}
"""The plugins that it names."""
_BROUGHT = frozenset(("flannel", "calico", "calico-ipam", "cilium-cni", "loopback"))
"""Plugins that such pods bring with them."""
_NO_SERVICES = "dial tcp: i/o timeout: there is no kube-proxy that leads to the API server"
_KINDS = {"File": "file", "Directory": "directory"}
_CILIUM_CONFIG = Ref(CONFIG_MAP, "kube-system", "cilium-config")
_PRIORITIES = BY_NAME["priorityclasses.scheduling.k8s.io"]
_CLAIMS = BY_NAME["persistentvolumeclaims"]


def obstacle(api: Api, node: str) -> str:
    """Why a node is not ready; nothing if it is."""
    return Standing(api).node_obstacle(node)


class Standing:
    """A cluster at one moment; each thing is looked at once."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._kubelets: dict[str, str] = {}
        self._networks: dict[str, str] = {}
        self._services: dict[str, str] = {}
        self._nodes: dict[str, Object] | None = None
        self._daemons: list[tuple[Ref, Object]] | None = None
        self._controllers: str | None = None

    @property
    def nodes(self) -> dict[str, Object]:
        """All nodes by name."""
        if self._nodes is None:
            self._nodes = {ref.name: found for ref, found in self.api.cluster.all(NODE)}
        return self._nodes

    def controllers_obstacle(self) -> str:
        """Why nobody makes pods of deployments and schedules them; nothing if somebody does."""
        if self._controllers is None:
            self._controllers = self._find_controllers()
        return self._controllers

    def node_obstacle(self, name: str) -> str:
        """Why a node is not ready."""
        return self.kubelet_obstacle(name) or self.network_obstacle(name)

    def kubelet_obstacle(self, name: str) -> str:
        """Why a kubelet does nothing for the cluster."""
        if name not in self._kubelets:
            self._kubelets[name] = kubenodes.kubelet_obstacle(self.api, name)
        return self._kubelets[name]

    def network_obstacle(self, name: str) -> str:
        """Why pods of a node get no address."""
        if name not in self._networks:
            there = kubenodes.host(self.api, name)
            assert there is not None, "its kubelet runs"
            self._lay_network(there, name)
            self._networks[name] = kubenodes.network_obstacle(there)
        return self._networks[name]

    def services_obstacle(self, name: str) -> str:
        """Why pods of a node reach no service, and so no API server."""
        if name not in self._services:
            self._services[name] = self._find_services(name)
        return self._services[name]

    def hesitation(self, about: str) -> str:
        """Why something is not ready that nothing keeps from it: nobody has looked at it before."""
        key = f"{_SEEN}{about}"
        if not self.api.shell.around.hesitates or self.api.cluster.note(key):
            return ""
        self.api.cluster.set_note(key, "once")
        return "it has only just begun"

    def pod_obstacle(self, node: str, namespace: str, pod: Object) -> str:
        """Why a pod does not become ready on a node; nothing if it does."""
        why = next(self._pod_obstacles(node, namespace, pod), "")
        if not why and not pod.get("hostNetwork"):
            self._note_address(node)
        return why

    def _note_address(self, node: str) -> None:
        """Have the node remember that a pod was given an address, as its runtime does."""
        there = kubenodes.host(self.api, node)
        if there is not None:
            there.files.make_directory(f"{layout.CNI_DATA}/results", 0o700, parents=True)

    def _pod_obstacles(self, node: str, namespace: str, pod: Object) -> Iterator[str]:
        if why := self.kubelet_obstacle(node):
            yield why
            return
        there = kubenodes.host(self.api, node)
        assert there is not None, "its kubelet runs"
        yield from self._missing(namespace, pod)
        yield from _missing_paths(there, pod)
        containers = (*entries(pod, "initContainers"), *entries(pod, "containers"))
        yield from filter(None, (kubepods.image_obstacle(there, *_images(containers)),))
        yield from kubenames.obstacles(self.api.cluster, namespace, pod)
        if not pod.get("hostNetwork") and (why := self.network_obstacle(node)):
            yield f"Failed to create pod sandbox: {why}"
        if not _knows_the_server(containers) and (why := self.services_obstacle(node)):
            yield why

    def _missing(self, namespace: str, pod: Object) -> Iterator[str]:
        """What a pod refers to and the cluster does not have."""
        for kind, name in _needs(pod):
            within = namespace if kind.namespaced else ""
            if self.api.cluster.get(Ref(kind, within, name)) is None:
                yield f'{kind.kind.lower()} "{name}" not found'

    def _find_services(self, node: str) -> str:
        proxy = self.api.cluster.get(kubeproxy.POD)
        if proxy is not None:
            return self._proxy_obstacle(node, proxy)
        self._services[node] = _NO_SERVICES  # unless what brings them runs without any
        found = self.api.cluster.get(_CILIUM_CONFIG)
        if part(found, "data", "kube-proxy-replacement") == "true":
            for ref, daemon in self._network_daemons():
                if ref.name == _CILIUM:
                    return self._daemon_obstacle(node, ref, daemon)
        return _NO_SERVICES

    def _proxy_obstacle(self, node: str, proxy: Object) -> str:
        pod = section(proxy, "spec", "template", "spec")
        self._services[node] = ""  # it needs no service itself
        if why := self.pod_obstacle(node, kubeproxy.POD.namespace, pod):
            return f"kube-proxy does not run: {why}"
        there = kubenodes.host(self.api, node)
        mode = kubeproxy.mode(self.api.cluster)
        if mode == "ipvs" and there is not None and there.files.lookup("/sys/module/ip_vs") is None:
            return "kube-proxy does not run: the kernel has no module ip_vs loaded"
        return ""

    def _find_controllers(self) -> str:
        for name, node in self.nodes.items():
            if kubenodes.CONTROL_PLANE not in section(node, "metadata", "labels"):
                continue
            there = kubenodes.host(self.api, name)
            programs = ("kube-controller-manager", "kube-scheduler")
            if there is not None and all(kubepods.is_running(there, one) for one in programs):
                return ""
        return "no control plane has a controller manager and a scheduler that run"

    def _network_daemons(self) -> list[tuple[Ref, Object]]:
        """What lays the network of nodes: pods that write there how pods are connected."""
        if self._daemons is None:
            found = self.api.cluster.all(DAEMON_SET)
            self._daemons = [(ref, one) for ref, one in found if _lays_network(one)]
        return self._daemons

    def _lay_network(self, there: Shell, node: str) -> None:
        """Have the pods of a network that run on a node write their configuration."""
        self._networks[node] = "cni plugin not initialized"
        for ref, daemon in self._network_daemons():
            if not self._daemon_obstacle(node, ref, daemon):
                _write_network(there, _plugin(ref.name))

    def _daemon_obstacle(self, node: str, ref: Ref, daemon: Object) -> str:
        """Why the pod of a network does not run on a node."""
        pod = section(daemon, "spec", "template", "spec")
        if not fits(self.nodes[node], pod, daemon=True):
            return "it is not meant for this node"
        if why := self.pod_obstacle(node, ref.namespace, pod):
            return why
        if _plugin(ref.name) == _CALICO:
            wanted = Ref(CRD, "", "ippools.crd.projectcalico.org")
            return "" if self.api.cluster.get(wanted) else "it finds no kind IPPool"
        if _plugin(ref.name) == _FLANNEL and not part(self.nodes[node], "spec", "podCIDR"):
            return f'node "{node}" pod cidr not assigned'
        return ""


def _lays_network(daemon: Object) -> bool:
    volumes = entries(daemon, "spec", "template", "spec", "volumes")
    return any(
        str(part(one, "hostPath", "path") or "").rstrip("/") == layout.CNI_CONFIG for one in volumes
    )


def _plugin(daemon: str) -> str:
    """Which network the pods of a set lay."""
    return next((word for word in _CONFIGS if word in daemon), daemon)


def _write_network(there: Shell, name: str) -> None:
    path = f"{layout.CNI_CONFIG}/{_CONFIGS.get(name, f'10-{name}')}.conflist"
    programs = _PROGRAMS.get(name, ())
    if there.files.lookup(path) is None:
        plugins = [{"type": program} for program in programs]
        said = json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": plugins})
        there.files.make_directory(layout.CNI_CONFIG, parents=True)
        there.files.write(path, said.encode(), mode=0o600)
    for program in _BROUGHT.intersection((*programs, "loopback")):
        place = f"{layout.CNI_PLUGINS}/{program}"
        if there.files.lookup(place) is None:
            there.files.make_directory(layout.CNI_PLUGINS, parents=True)
            there.files.write(place, f"{program} by {name}\n".encode(), mode=0o755)


def _missing_paths(there: Shell, pod: Object) -> Iterator[str]:
    for volume in entries(pod, "volumes"):
        path, kind = (part(volume, "hostPath", name) for name in ("path", "type"))
        wanted = _KINDS.get(kind or "", "")
        found = there.files.lookup(there.files.resolve(path)) if path else None
        if wanted and (found is None or found.kind != wanted):
            yield f"hostPath type check failed: {path} is not a {wanted}"


def _needs(pod: Object) -> Iterator[tuple[Kind, str]]:
    """The objects that a pod can't go without."""
    yield from ((_PRIORITIES, name) for name in (pod.get("priorityClassName"),) if name)
    account = pod.get("serviceAccountName") or "default"
    if account != "default":
        yield SERVICE_ACCOUNT, account
    for volume in entries(pod, "volumes"):
        for kind, source, key in _SOURCES:
            found = section(volume, source)
            if found.get(key) and not found.get("optional"):
                yield kind, str(found[key])
    for container in (*entries(pod, "initContainers"), *entries(pod, "containers")):
        yield from _environment_needs(container)


_SOURCES = (
    (CONFIG_MAP, "configMap", "name"),
    (SECRET, "secret", "secretName"),
    (_CLAIMS, "persistentVolumeClaim", "claimName"),
)


def _environment_needs(container: Object) -> Iterator[tuple[Kind, str]]:
    given = [section(one, "valueFrom") for one in entries(container, "env")]
    for source in (*given, *entries(container, "envFrom")):
        for kind, keys in (
            (CONFIG_MAP, ("configMapKeyRef", "configMapRef")),
            (SECRET, ("secretKeyRef", "secretRef")),
        ):
            for found in (section(source, key) for key in keys):
                if found.get("name") and not found.get("optional"):
                    yield kind, str(found["name"])


def _images(containers: tuple[Object, ...]) -> list[str]:
    return [str(one.get("image")) for one in containers]


def _knows_the_server(containers: tuple[Object, ...]) -> bool:
    """Whether a pod is told where the API server is, and needs no service for that."""
    names = {part(one, "name") for container in containers for one in entries(container, "env")}
    return "KUBERNETES_SERVICE_HOST" in names
