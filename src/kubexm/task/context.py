"""What tasks, modules and pipelines of a cluster decide by; read-only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from kubexm.common.roles import CONTROL_PLANE, LOADBALANCER, REGISTRY, WORKER
from kubexm.config.members import Member
from kubexm.config.model.cluster import ClusterSpec
from kubexm.config.rules.rule import Declared
from kubexm.resource.catalog import Catalog
from kubexm.resource.entries import Arch
from kubexm.resource.kubeadm_images import KubeadmImages, kubeadm_images
from kubexm.resource.materials import BillOfMaterials, Binary
from kubexm.task.operator_files import OperatorFiles
from kubexm.templates.overlays import Overlays

API_PORT = 6443
"""Where every API server itself listens, whatever stands in front of them."""


class ClusterContext(msgspec.Struct, frozen=True, dict=True):
    """A declared cluster, and what there is to make it of."""

    declared: Declared
    catalog: Catalog
    bill: BillOfMaterials
    arch: Mapping[str, Arch]
    """The architecture of each host."""
    files: OperatorFiles
    """What the cluster file names beside itself."""
    overlays: Overlays = Overlays()
    """Templates of the operator."""
    is_bundled: bool = False
    """Whether everything comes out of a bundle, so that nobody outside is asked."""
    here: str = "/var/lib/kubexm"
    """The directory of the machine that runs kubexm for what it keeps of the cluster."""

    @property
    def authority_here(self) -> str:
        """Where this machine has the certificate of the cluster's authority."""
        return f"{self.here}/ca.crt"

    @property
    def kubeconfig_here(self) -> str:
        """Where this machine has what lets people into the cluster."""
        return f"{self.here}/admin.conf"

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def spec(self) -> ClusterSpec:
        return self.declared.spec

    @cached_property
    def members(self) -> Mapping[str, Member]:
        """Hosts by name."""
        return {member.name: member for member in self.declared.members}

    def having(self, *roles: str) -> tuple[str, ...]:
        """The hosts that have one of these roles, in the order of the file."""
        wanted = frozenset(roles)
        return tuple(name for name, one in self.members.items() if not wanted.isdisjoint(one.roles))

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Every host of the cluster."""
        return tuple(self.members)

    @cached_property
    def control_planes(self) -> tuple[str, ...]:
        return self.having(CONTROL_PLANE)

    @property
    def first(self) -> str:
        """The control plane that the cluster begins with."""
        return self.control_planes[0]

    @cached_property
    def workers(self) -> tuple[str, ...]:
        """The kube nodes that are no control plane."""
        planes = frozenset(self.control_planes)
        return tuple(name for name in self.having(WORKER) if name not in planes)

    @cached_property
    def kube_nodes(self) -> tuple[str, ...]:
        return self.having(CONTROL_PLANE, WORKER)

    @cached_property
    def etcd(self) -> tuple[str, ...]:
        """The hosts with a member of etcd that kubexm itself runs as a service."""
        if self.declared.etcd_kind != "systemd":
            return ()
        return tuple(member.name for member in self.declared.etcd_members)

    @cached_property
    def balancers(self) -> tuple[str, ...]:
        """The hosts that stand in front of the control planes."""
        return self.having(LOADBALANCER) if self.declared.endpoint_kind == "keepalived" else ()

    @cached_property
    def registries(self) -> tuple[str, ...]:
        return self.having(REGISTRY)

    @property
    def has_registry(self) -> bool:
        """Whether images come from a registry of the operator's or of the cluster itself."""
        return self.spec.registry.host is not None or bool(self.registries)

    @cached_property
    def containerd_hosts(self) -> tuple[str, ...]:
        """Those that run containers: kube nodes, and the registry, which is one."""
        wanted = frozenset((*self.kube_nodes, *self.registries))
        return tuple(name for name in self.hosts if name in wanted)

    def address(self, host: str) -> str:
        """The first address that others of the cluster know a host by."""
        return self.members[host].internal[0]

    @property
    def endpoint(self) -> str:
        """The URL of the API for those who have no API server of their own."""
        return url(self.declared.endpoint_host, self.spec.endpoint.port)

    @cached_property
    def kubeadm_images(self) -> KubeadmImages:
        return kubeadm_images(self.bill)

    def version(self, component: str) -> str:
        """The version of a component that the cluster gets."""
        if component in self._versions:
            return self._versions[component]
        return self.catalog.default(component, self.spec.kubernetes.version)

    @cached_property
    def _versions(self) -> Mapping[str, str]:
        images = {image.component: image.version for image in self.bill.images}
        return images | {file.component: file.version for file in self.bill.binaries}

    def trait(self, component: str, name: str) -> str | None:
        """What is so in the version that the cluster gets."""
        return self.catalog.trait(component, self.version(component), name)

    def binaries(self, component: str, name: str) -> Sequence[Binary]:
        """A file of a component, one for each architecture."""
        return [
            file for file in self.bill.binaries if (file.component, file.name) == (component, name)
        ]

    def image(self, component: str, name: str = "") -> str:
        """What hosts pull for an image of a component; `name` if it has several."""
        known = self.catalog.images(component, self.version(component))
        wanted = _last(known[name] if name else next(iter(known.values())))
        own = (image for image in self.bill.images if image.component == component)
        return next(image.pulled_as for image in own if _last(image.name) == wanted)

    @cached_property
    def image_titles(self) -> Mapping[str, str]:
        """The last word of the name of each image; of several that are alike with a number."""
        seen: Counter[str] = Counter()
        found = {}
        for image in self.bill.images:
            word = _last(image.name).partition(":")[0].partition("@")[0]
            seen[word] += 1
            found[image.name] = word if seen[word] == 1 else f"{word}-{seen[word]}"
        return found

    def of_arch(self, hosts: Sequence[str], arch: str) -> tuple[str, ...]:
        """Of some hosts those of an architecture; `any` is that of all."""
        return tuple(host for host in hosts if arch in ("any", self.arch[host]))


def _last(name: str) -> str:
    """An image without the registry and folders that it lies in."""
    return name.rpartition("/")[2]


def bracketed(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def url(host: str, port: int) -> str:
    """The address of an API server."""
    return f"https://{bracketed(host)}:{port}"
