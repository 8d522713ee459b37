"""Control planes: the first begins the cluster, the others join it one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import PurePath
from typing import Any

from msgspec.structs import replace

from kubexm.common import layout
from kubexm.plan import ExecutionFragment, chain, node, one_of, parallel, per_host
from kubexm.plan.policy import RetryPolicy
from kubexm.plan.scope import task
from kubexm.step.control_plane import JoinToken, PhasesDone
from kubexm.step.data import DataDirectory
from kubexm.step.files import FilePresent
from kubexm.step.kube_proxy import ProxyConfigured
from kubexm.step.kubeadm import Initialised, Joined
from kubexm.step.transfers import Fetched
from kubexm.task import kubelet
from kubexm.task.context import API_PORT, ClusterContext, bracketed
from kubexm.task.etcd import client_url
from kubexm.task.writing import (
    as_data,
    as_documents,
    data_directories,
    directories,
    of_host,
    parent,
    referring,
    rendered,
    template,
)
from kubexm.templates import formats
from kubexm.templates.contexts.kubeadm import (
    ApiEndpoint,
    Audit,
    Certificates,
    EtcdTuning,
    ExternalEtcd,
    Image,
    InitConfig,
    JoinConfig,
    Node,
    StackedEtcd,
)
from kubexm.templates.contexts.kubernetes import AuditPolicy

RECORD = "control-plane"
"""What the host calls the settings that its control plane was made with."""
SECONDS = 900.0
AGAIN = RetryPolicy(attempts=3, delay=5.0)
_PHASES = (("control-plane", "all"), ("upload-config", "kubeadm"))
_ETCD_PHASE = ("etcd", "local")
# It comes behind patches that say how they are laid on, of which one may replace all annotations.
_OUR_PATCH = f"{layout.PATCHES}/kube-apiserver-kubexm+merge.yaml"
_PATCH = re.compile(r"\+(strategic|merge|json)\b")


@task("prepare")
def prepare(ctx: ClusterContext) -> ExecutionFragment | None:
    """All that a control plane needs before it can begin or join."""
    hosts = ctx.control_planes
    name = _versioned(ctx, "kubeadm/init")
    config = rendered(
        ctx, name, init_config(ctx), layout.KUBEADM_CONFIG, overrides=_init_overrides(ctx)
    )
    return parallel(
        kubelet.places(ctx, hosts),
        _places(ctx),
        kubelet.programs(ctx, hosts),
        kubelet.settings(ctx, hosts),
        node("kubeadm-config", config, on=hosts),
        *_audit(ctx),
        *_patches(ctx),
        *_stacked_data(ctx),
    )


def _stacked_data(ctx: ClusterContext) -> Iterator[ExecutionFragment | None]:
    """Where a member of etcd that kubeadm runs keeps its data."""
    if ctx.declared.etcd_kind == "stacked":
        step = DataDirectory(ctx.spec.etcd.data_dir, mode="0700")
        yield node("etcd-data", step, on=ctx.control_planes)


def _places(ctx: ClusterContext) -> ExecutionFragment | None:
    """Where settings of the control plane go, and what the API server writes."""
    spec = ctx.spec.kubernetes
    audit = (parent(layout.AUDIT_LOG),) if spec.api_server.audit.enabled else ()
    return parallel(
        directories(ctx.control_planes, layout.OURS, *filter(None, (_patches_place(ctx),))),
        data_directories(ctx.control_planes, *audit),
    )


@task("init")
def init(ctx: ClusterContext) -> ExecutionFragment | None:
    """The cluster begins with the first control plane."""
    step = Initialised(
        skip_phases=skipped(ctx), proxy_settings=_proxy_settings(ctx), **_common(ctx)
    )
    return per_host(
        # kubeadm waits for minutes by itself: what it gives up is not better at once, and a person
        # wants to know the cause now.
        node("cluster", step, on=(ctx.first,), timeout=SECONDS),
        node("kubelet", kubelet.step(ctx), on=(ctx.first,)),
    )


@task("token")
def token(ctx: ClusterContext) -> ExecutionFragment | None:
    """What lets other hosts in, once one of them turns out to need it."""
    if len(ctx.kube_nodes) < 2:
        return None
    return node("token", JoinToken(), on=one_of(ctx.control_planes), retry=AGAIN)


@task("join")
def join(ctx: ClusterContext) -> ExecutionFragment | None:
    """The other control planes join, each when the one before is through."""
    # Members of etcd come one at a time: each has to catch up before the next may.
    return chain(*(_joined(ctx, host) for host in ctx.control_planes[1:]))


def _joined(ctx: ClusterContext, host: str) -> ExecutionFragment | None:
    config = JoinConfig(
        endpoint=endpoint(ctx),
        node=of_host("node"),
        api=ApiEndpoint(address=of_host("address"), port=API_PORT),
        patches=_patches_place(ctx),
    )
    step = Joined(**_joining(ctx, config), **_common(ctx), control_plane=True)
    return per_host(
        node(host, referring(step), on=(host,), timeout=SECONDS, retry=AGAIN),
        node(f"{host}-kubelet", kubelet.step(ctx), on=(host,)),
    )


@task("settings")
def settings(ctx: ClusterContext) -> ExecutionFragment | None:
    """The control planes run with their settings as they are, also where these were changed."""
    is_stacked = ctx.declared.etcd_kind == "stacked"
    phases = (_ETCD_PHASE, *_PHASES) if is_stacked else _PHASES
    step = PhasesDone(record=RECORD, phases=phases, files=_recorded(ctx))
    return chain(*(node(host, step, on=(host,), timeout=SECONDS) for host in ctx.control_planes))


@task("kube-proxy")
def kube_proxy(ctx: ClusterContext) -> ExecutionFragment | None:
    """kube-proxy runs with its settings as they are, also where these were changed."""
    if not (settings := _proxy_settings(ctx)):
        return None
    step = ProxyConfigured(settings)
    return node("settings", step, on=one_of(ctx.control_planes), timeout=SECONDS)


def _proxy_settings(ctx: ClusterContext) -> str:
    """All that kubeadm goes by when it brings kube-proxy; nothing if there is none."""
    if ctx.spec.kubernetes.kube_proxy.mode == "none":
        return ""
    # It is the same on all control planes, so any will do.
    config = replace(init_config(ctx), node=Node(name="any"), api=ApiEndpoint(address="192.0.2.1"))
    found = as_documents(ctx, _versioned(ctx, "kubeadm/init"), config, _init_overrides(ctx))
    repository = found.get("ClusterConfiguration", {}).get("imageRepository")
    settings = {"image": repository, **found.get("KubeProxyConfiguration", {})}
    return json.dumps(settings, sort_keys=True)


@task("access")
def access(ctx: ClusterContext) -> ExecutionFragment | None:
    """This machine has what lets people into the cluster."""
    step = Fetched(path=layout.ADMIN_CONFIG, to=ctx.kubeconfig_here)
    return node("kubeconfig", step, on=(ctx.first,))


def worker_join(ctx: ClusterContext) -> Joined:
    """How a worker joins."""
    # All that may be patched is a pod of a control plane.
    config = JoinConfig(endpoint=endpoint(ctx), node=of_host("node"))
    return Joined(
        **_joining(ctx, config),
        control_plane=False,
        cluster=ctx.name,
        ignore_errors=of_host("ignored_errors"),
        records={"kubelet": kubelet.files(ctx)},
    )


def endpoint(ctx: ClusterContext) -> str:
    """Where the API servers are reached, as kubeadm wants it written."""
    return f"{bracketed(ctx.declared.endpoint_host)}:{ctx.spec.endpoint.port}"


def skipped(ctx: ClusterContext) -> tuple[str, ...]:
    """What kubeadm leaves to others: names are answered by a CoreDNS of ours."""
    proxy = ctx.spec.kubernetes.kube_proxy.mode
    return ("addon/coredns", *(("addon/kube-proxy",) if proxy == "none" else ()))


def _common(ctx: ClusterContext) -> dict[str, Any]:
    """What all control planes have in common when they begin or join."""
    return {
        "ignore_errors": _ignored(ctx),
        "records": {"kubelet": kubelet.files(ctx), RECORD: _recorded(ctx)},
        "port": API_PORT,
        "etcd_data": ctx.spec.etcd.data_dir,
        "cluster": ctx.name,
    }


def _ignored(ctx: ClusterContext) -> tuple[str, ...]:
    return ctx.spec.kubernetes.kubeadm.ignore_preflight_errors


def _joining(ctx: ClusterContext, config: JoinConfig) -> dict[str, Any]:
    overrides = ctx.spec.kubernetes.kubeadm.join_configuration
    named = {"JoinConfiguration": overrides} if overrides else {}
    fields = template(ctx, _versioned(ctx, "kubeadm/join"), config, named)
    # Both come from whoever makes the token, when a host joins.
    del fields["data"]["token"], fields["data"]["ca_hashes"]
    return fields


def _versioned(ctx: ClusterContext, name: str) -> str:
    """The template in the form that this kubeadm reads."""
    form = ctx.trait("kubernetes", "kubeadm-api")
    return f"{name}-{form}" if form == "v1beta3" else name


def _recorded(ctx: ClusterContext) -> tuple[str, ...]:
    """The files that a control plane is made by."""
    spec = ctx.spec.kubernetes
    audit = (layout.AUDIT_POLICY,) if spec.api_server.audit.enabled else ()
    encryption = (layout.ENCRYPTION_CONFIG,) if spec.api_server.encryption.enabled else ()
    patches = tuple(path for path, _ in _patch_files(ctx))
    return (layout.KUBEADM_CONFIG, *audit, *encryption, *patches)


def _audit(ctx: ClusterContext) -> Iterator[ExecutionFragment | None]:
    spec = ctx.spec.kubernetes.api_server.audit
    if not spec.enabled:
        return
    if spec.policy is None:
        step: Any = rendered(ctx, "kubernetes/audit-policy", AuditPolicy(), layout.AUDIT_POLICY)
    else:
        step = FilePresent(layout.AUDIT_POLICY, content=_policy(ctx), mode="0600")
    yield node("audit-policy", step, on=ctx.control_planes)


def _policy(ctx: ClusterContext) -> str:
    """What the API server writes down of requests, as it is told."""
    written = ctx.spec.kubernetes.api_server.audit.policy
    if written is not None:
        return ctx.files.text(written, ("spec", "kubernetes", "apiServer", "audit", "policy"))
    return json.dumps(as_data(ctx, "kubernetes/audit-policy", AuditPolicy()))


def _patches(ctx: ClusterContext) -> Iterator[ExecutionFragment | None]:
    """What is changed of what kubeadm writes."""
    for number, (path, text) in enumerate(_patch_files(ctx), 1):
        step = FilePresent(path, content=text, mode="0600")
        yield node(f"patch-{number}", step, on=ctx.control_planes)


def _patch_files(ctx: ClusterContext) -> Iterator[tuple[str, str]]:
    """Patches, under the names by which kubeadm knows what they are for."""
    for target, written in ctx.spec.kubernetes.kubeadm.patches.items():
        text = ctx.files.text(written, ("spec", "kubernetes", "kubeadm", "patches", target))
        suffix = ".json" if written.endswith(".json") else ".yaml"
        yield f"{layout.PATCHES}/{target}{patch_kind(written)}{suffix}", text
    if read := _read_at_start(ctx):
        marks = {f"kubexm.io/{name}": _digest(said) for name, said in read.items()}
        yield _OUR_PATCH, formats.written({"metadata": {"annotations": marks}}, "yaml")


def _read_at_start(ctx: ClusterContext) -> dict[str, str]:
    """What stands for the files that an API server reads only then.

    With it in the file of its pod that is another one once they are others, and so begins anew.
    """
    spec, found = ctx.spec.kubernetes.api_server, dict[str, str]()
    if spec.audit.enabled:
        found["audit-policy"] = _policy(ctx)
    if spec.encryption.enabled:
        # Its keys stay, and nobody has to know what they come to.
        found["encryption"] = json.dumps([spec.encryption.provider, *spec.encryption.resources])
    return found


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def patch_kind(written: str) -> str:
    """How a patch is laid over a pod, by the name of its file; nothing if that says nothing."""
    found = _PATCH.search(PurePath(written).name)
    return found[0] if found else ""


def _patches_place(ctx: ClusterContext) -> str:
    """The directory with patches; nothing if there are none."""
    patched = ctx.spec.kubernetes.kubeadm.patches or _read_at_start(ctx)
    return layout.PATCHES if patched else ""


def init_config(ctx: ClusterContext) -> InitConfig:
    """How the cluster begins, and what its control planes have in common."""
    spec, kubernetes, network = ctx.spec, ctx.spec.kubernetes, ctx.spec.network
    certificates = kubernetes.certificates
    return InitConfig(
        version=ctx.version("kubernetes"),
        cluster_name=kubernetes.cluster_name or ctx.name,
        endpoint=endpoint(ctx),
        api=ApiEndpoint(address=of_host("address"), port=API_PORT),
        node=of_host("node"),
        pod_cidrs=network.pod_cidr,
        service_cidrs=network.service_cidr,
        dns_domain=spec.dns.domain,
        kubelet=kubelet.document(ctx),
        **_masks(ctx),
        proxy_mode=kubernetes.kube_proxy.mode,
        image_repository=ctx.kubeadm_images.repository,
        **_etcd(ctx),
        cert_sans=kubernetes.api_server.cert_sans,
        certificates=Certificates(
            seconds=int(certificates.duration),
            authority_seconds=int(certificates.authority_duration),
            algorithm=certificates.algorithm,
        ),
        audit=_audited(ctx),
        encryption=layout.ENCRYPTION_CONFIG if kubernetes.api_server.encryption.enabled else "",
        feature_gates=dict(kubernetes.feature_gates),
        api_server_args=dict(kubernetes.api_server.extra_args),
        controller_manager_args=dict(kubernetes.controller_manager.extra_args),
        scheduler_args=dict(kubernetes.scheduler.extra_args),
        patches=_patches_place(ctx),
    )


def _init_overrides(ctx: ClusterContext) -> dict[str, Any]:
    """What the operator says of each document; nothing of those that are not there."""
    spec = ctx.spec.kubernetes
    found = {
        "InitConfiguration": spec.kubeadm.init_configuration,
        "ClusterConfiguration": spec.kubeadm.cluster_configuration,
        "KubeProxyConfiguration": spec.kube_proxy.config if spec.kube_proxy.mode != "none" else {},
    }
    return {kind: dict(values) for kind, values in found.items() if values}


def _masks(ctx: ClusterContext) -> dict[str, Any]:
    """The addresses of one host, where Kubernetes hands them out and not the pod network."""
    network = ctx.spec.network
    if network.plugin in ("calico", "cilium"):
        return {}
    masks = {4: ("node_mask", network.node_mask), 6: ("node_mask_ipv6", network.node_mask_ipv6)}
    return dict(masks[pods.version] for pods in ctx.declared.pods)


def _etcd(ctx: ClusterContext) -> dict[str, Any]:
    if ctx.declared.etcd_kind == "stacked":
        return {"stacked_etcd": _stacked(ctx)}
    given = ctx.spec.etcd.external
    members = given.endpoints if given else [client_url(ctx.address(host)) for host in ctx.etcd]
    client = f"{layout.PKI}/apiserver-etcd-client"
    return {
        "external_etcd": ExternalEtcd(
            endpoints=tuple(members),
            ca=f"{layout.ETCD_PKI}/ca.crt",
            certificate=f"{client}.crt",
            key=f"{client}.key",
        )
    }


def _stacked(ctx: ClusterContext) -> StackedEtcd:
    spec, images = ctx.spec.etcd, ctx.kubeadm_images
    expected = ctx.catalog.expected(ctx.version("kubernetes")).etcd
    # One that is named is left alone when kubeadm upgrades the cluster.
    usual = Image(repository=images.repository, tag=expected)
    image = Image(repository=images.etcd_repository, tag=images.etcd_tag)
    return StackedEtcd(
        data_dir=spec.data_dir,
        image=image if image != usual else None,
        tuning=EtcdTuning(
            heartbeat_ms=round(spec.tuning.heartbeat * 1000),
            election_ms=round(spec.tuning.election * 1000),
            snapshot_count=spec.tuning.snapshot_count,
            compaction_seconds=int(spec.tuning.compaction),
            quota_bytes=spec.tuning.quota_mib << 20,
            max_request_bytes=spec.tuning.max_request_kib << 10,
        ),
        args=dict(spec.extra_args),
    )


def _audited(ctx: ClusterContext) -> Audit | None:
    spec = ctx.spec.kubernetes.api_server.audit
    if not spec.enabled:
        return None
    return Audit(
        max_age_days=spec.max_age_days,
        max_backups=spec.max_backups,
        max_size_mib=spec.max_size_mib,
    )
