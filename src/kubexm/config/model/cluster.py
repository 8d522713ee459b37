"""The cluster file as a whole."""

from __future__ import annotations

from typing import Annotated, Literal

from kubexm.config.fields import DirectoryPath, KubeName, LabelKey, LabelValue
from kubexm.config.model.addons import AddonSpec
from kubexm.config.model.container_runtime import ContainerRuntimeSpec
from kubexm.config.model.dns import DnsSpec
from kubexm.config.model.endpoint import EndpointSpec
from kubexm.config.model.etcd import EtcdSpec
from kubexm.config.model.hooks import Hooks
from kubexm.config.model.hosts import HostSpec, RoleGroups
from kubexm.config.model.kubernetes import KubernetesSpec
from kubexm.config.model.network import NetworkSpec
from kubexm.config.model.preflight import PreflightSpec
from kubexm.config.model.registry import RegistrySpec
from kubexm.config.model.storage import StorageSpec
from kubexm.config.model.system import SystemSpec
from kubexm.config.ssh import SshSpec
from kubexm.document.forms import Filled, Form, empty
from kubexm.plan.policy import OnFailure


class Metadata(Form):
    """What the cluster is called."""

    name: KubeName
    """What later commands call the cluster by, and what the run lock is held for."""
    labels: dict[LabelKey, LabelValue] = empty(dict)
    """Words about it, for lists."""


class ClusterSpec(Form):
    """The cluster itself."""

    hosts: Annotated[tuple[HostSpec, ...], Filled()]
    """The machines."""
    role_groups: RoleGroups = RoleGroups()
    """What each of them is for."""
    ssh: SshSpec | None = None
    """How they are reached, unless a host says otherwise."""
    sudo: bool = False
    """Whether who logs in becomes root."""
    endpoint: EndpointSpec = EndpointSpec()
    """Where the API server is reached."""
    kubernetes: KubernetesSpec
    """Kubernetes itself."""
    etcd: EtcdSpec = EtcdSpec()
    """Where the state of the cluster lies."""
    container_runtime: ContainerRuntimeSpec = ContainerRuntimeSpec()
    """What runs containers."""
    network: NetworkSpec = NetworkSpec()
    """How pods and services reach each other."""
    dns: DnsSpec = DnsSpec()
    """Names inside the cluster."""
    storage: StorageSpec = StorageSpec()
    """Where pods keep what they write."""
    registry: RegistrySpec = RegistrySpec()
    """A registry in place of those that the names of images say."""
    addons: tuple[AddonSpec, ...] = ()
    """What else is put into the cluster, in this order."""
    system: SystemSpec = SystemSpec()
    """What the operating system of every host has to be like."""
    preflight: PreflightSpec = PreflightSpec()
    """What hosts must be like before anything is changed on them."""
    on_failure: OnFailure = "isolate"
    """What a failure leads to: skip what depends on it, start nothing new, or undo the run. A
    deletion only ever skips what depends on it."""
    templates: DirectoryPath | None = None
    """A directory with templates of yours in place of those of kubexm."""
    hooks: Hooks = empty(dict)
    """Steps around a module, by its name and the moment, as in a pipeline file. Modules are
    `preflight`, `assets`, `system`, `container-runtime`, `pki`, `registry`, `etcd`,
    `load-balancer`, `control-plane`, `network`, `workers`, `dns`, `storage` and `add-ons`; moments
    are `pre`, `post`, `onFailure` and `always`. Hooks of a module of which the cluster has nothing
    are run in its place."""


class ClusterFile(Form):
    """A cluster file."""

    api_version: Literal["kubexm.io/v1alpha1"]
    """The version of this format."""
    kind: Literal["Cluster"]
    """What the file describes."""
    metadata: Metadata
    """What the cluster is called."""
    spec: ClusterSpec
    """The cluster itself."""
