"""Stand-ins for the files of a catalog: small, the same each time, and packed as the real ones."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from functools import lru_cache

from kubexm.sim import standins

CHART = "chart/"
"""How the keys of charts begin."""
_ANY = "all"
_CNI = (
    *("bandwidth", "bridge", "dhcp", "dummy", "firewall", "host-device", "host-local", "ipvlan"),
    *("loopback", "macvlan", "portmap", "ptp", "sbr", "static", "tap", "tuning", "vlan", "vrf"),
)
_CONTAINERD = ("containerd", "containerd-shim-runc-v2", "containerd-stress", "ctr")
_ARCHIVES: Mapping[str, tuple[str, ...]] = {
    "containerd": tuple(f"bin/{name}" for name in _CONTAINERD),
    "cni-plugins": ("./LICENSE", "./README.md", *(f"./{name}" for name in _CNI)),
    "crictl": ("crictl",),
    "etcd": tuple(
        f"etcd-{{version}}-linux-{{arch}}/{name}"
        for name in ("README.md", "etcd", "etcdctl", "etcdutl")
    ),
    "helm": tuple(f"linux-{{arch}}/{name}" for name in ("LICENSE", "README.md", "helm")),
}
"""What is in the archives of components."""
_CALICO = """# Stand-in for the manifest of Calico {version}.
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ippools.crd.projectcalico.org
spec:
  group: crd.projectcalico.org
  names: {{kind: IPPool, listKind: IPPoolList, plural: ippools, singular: ippool}}
  scope: Cluster
  versions:
    - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: felixconfigurations.crd.projectcalico.org
spec:
  group: crd.projectcalico.org
  names:
    kind: FelixConfiguration
    listKind: FelixConfigurationList
    plural: felixconfigurations
    singular: felixconfiguration
  scope: Cluster
  versions:
    - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: calico-config
  namespace: kube-system
data:
  typha_service_name: none
  calico_backend: bird
  veth_mtu: "0"
  cni_network_config: "{{}}"
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: calico-node
  namespace: kube-system
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: calico-kube-controllers
  namespace: kube-system
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: calico-cni-plugin
  namespace: kube-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: calico-node
rules:
  - {{apiGroups: [""], resources: [pods, nodes, namespaces], verbs: [get]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: calico-node
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: calico-node}}
subjects:
  - {{kind: ServiceAccount, name: calico-node, namespace: kube-system}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: calico-node
  namespace: kube-system
  labels: {{k8s-app: calico-node}}
spec:
  selector:
    matchLabels: {{k8s-app: calico-node}}
  template:
    metadata:
      labels: {{k8s-app: calico-node}}
    spec:
      serviceAccountName: calico-node
      hostNetwork: true
      tolerations:
        - operator: Exists
      initContainers:
        - name: install-cni
          image: {cni}
          command: [/opt/cni/bin/install]
      containers:
        - name: calico-node
          image: quay.io/calico/node:{version}
          env:
            - {{name: CALICO_NETWORKING_BACKEND, value: bird}}
            - {{name: CALICO_IPV4POOL_IPIP, value: Always}}
            - {{name: CALICO_IPV4POOL_VXLAN, value: Never}}
            - {{name: FELIX_HEALTHENABLED, value: "true"}}
          livenessProbe:
            exec:
              command: [/bin/calico-node, {dash}felix-live, {dash}bird-live]
          readinessProbe:
            exec:
              command: [/bin/calico-node, {dash}felix-ready, {dash}bird-ready]
      volumes:
        - {{name: cni-bin-dir, hostPath: {{path: /opt/cni/bin, type: DirectoryOrCreate}}}}
        - {{name: cni-net-dir, hostPath: {{path: /etc/cni/net.d}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: calico-kube-controllers
  namespace: kube-system
  labels: {{k8s-app: calico-kube-controllers}}
spec:
  replicas: 1
  selector:
    matchLabels: {{k8s-app: calico-kube-controllers}}
  template:
    metadata:
      labels: {{k8s-app: calico-kube-controllers}}
    spec:
      serviceAccountName: calico-kube-controllers
      tolerations:
        - operator: Exists
      containers:
        - name: calico-kube-controllers
          image: {controllers}
"""


@lru_cache(maxsize=256)
def content(key: str) -> bytes:
    """What stands for the file of this key: `containerd/v2.2.7/archive/amd64`."""
    if key.startswith(CHART):
        name, version = key.split("/")[-2:]
        return _packed({f"{name}/Chart.yaml": _chart(name, version)}, 0o644)
    component, version, name, arch = (*key.split("/"), _ANY)[:4]
    if name == "archive" and component in _ARCHIVES:
        members = (member.format(version=version, arch=arch) for member in _ARCHIVES[component])
        return _packed({member: _member(member, version, arch) for member in members}, 0o755)
    if (component, name) == ("calico", "manifest"):
        return _calico(version).encode()
    return standins.text(name, version, arch).encode()


def _member(path: str, version: str, arch: str) -> str:
    return standins.text(path.rpartition("/")[2], version, arch)


def _chart(name: str, version: str) -> str:
    return f"apiVersion: v2\nname: {name}\nversion: {version}\nappVersion: {version}\n"


def _calico(version: str) -> str:
    # From v3.33 on one image has the plugin and the controllers, and flags have two dashes.
    joined = tuple(map(int, version.removeprefix("v").split(".")[:2])) >= (3, 33)
    names = ("calico", "calico") if joined else ("cni", "kube-controllers")
    cni, controllers = (f"quay.io/calico/{name}:{version}" for name in names)
    dash = "--" if joined else "-"
    return _CALICO.format(version=version, cni=cni, controllers=controllers, dash=dash)


def _packed(members: Mapping[str, str], mode: int) -> bytes:
    """A packed archive that is the same whenever it is made."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w") as archive,
    ):
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text), mode
            archive.addfile(info, io.BytesIO(text.encode()))
    return packed.getvalue()
