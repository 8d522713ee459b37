"""Certificates: who issues them, and those that each host has."""

from __future__ import annotations

from kubexm.common import layout
from kubexm.config.model.kubernetes import AuthoritySpec
from kubexm.plan import ExecutionFragment, node, one_of, parallel
from kubexm.plan.scope import task
from kubexm.step.files import FilePresent
from kubexm.step.pki import VALUE, Authorities, Certificates, EncryptionConfig
from kubexm.step.secrets import SecretFile
from kubexm.task.context import ClusterContext
from kubexm.task.writing import directories, of_host, unresolved

_SUPPLIED = {"kubernetes": "ca", "etcd": "etcd/ca", "front_proxy": "front-proxy-ca"}
_EXTERNAL = ("spec", "etcd", "external")


@task("authorities")
def authorities(ctx: ClusterContext) -> ExecutionFragment | None:
    """The authorities of the cluster, once some certificate turns out to be missing."""
    spec = ctx.spec.kubernetes
    given = _supplied(ctx)
    step = Authorities(
        algorithm=spec.certificates.algorithm,
        lifetime=spec.certificates.authority_duration,
        supplied={
            name: ctx.files.text(
                one.certificate,
                ("spec", "kubernetes", "certificates", "authorities", key, "certificate"),
            )
            for key, (name, one) in given.items()
        },
        supplied_keys={name: one.key for name, one in given.values()},
        etcd=ctx.declared.etcd_kind != "external",
        encryption=spec.api_server.encryption.enabled,
    )
    return node("authorities", step, on=one_of(ctx.control_planes))


def _supplied(ctx: ClusterContext) -> dict[str, tuple[str, AuthoritySpec]]:
    """Authorities of the operator's by their keys in the file, with their names in the table."""
    found = ctx.spec.kubernetes.certificates.authorities
    return {
        found.fields()[key].alias: (name, one)
        for key, name in _SUPPLIED.items()
        if (one := getattr(found, key)) is not None
    }


@task("certificates")
def certificates(ctx: ClusterContext) -> ExecutionFragment | None:
    """What lets hosts know each other, on each host what its roles need."""
    settings = ctx.spec.kubernetes.certificates
    step = unresolved(
        Certificates,
        needs=(VALUE,),
        host=of_host("certificates"),
        cluster=ctx.spec.kubernetes.cluster_name or ctx.name,
        lifetime=settings.duration,
        algorithm=settings.algorithm,
    )
    return node("host", step, on=certified_hosts(ctx))


def certified_hosts(ctx: ClusterContext) -> tuple[str, ...]:
    """Those that get certificates from us, and with them the authorities that they trust."""
    # A worker gets the authority from kubeadm, too late if it has to pull images before.
    workers = ctx.workers if ctx.registries else ()
    wanted = frozenset((*ctx.control_planes, *workers, *ctx.etcd, *ctx.registries))
    return tuple(host for host in ctx.hosts if host in wanted)


def places(ctx: ClusterContext) -> ExecutionFragment | None:
    """Where files of the operator go; certificates of ours make their own places."""
    if ctx.spec.etcd.external is None:
        return None
    return directories(ctx.control_planes, layout.ETCD_PKI)


@task("encryption")
def encryption(ctx: ClusterContext) -> ExecutionFragment | None:
    """What lies in etcd is encrypted with a key that only control planes have."""
    spec = ctx.spec.kubernetes.api_server.encryption
    if not spec.enabled:
        return None
    step = EncryptionConfig(provider=spec.provider, encrypts=spec.resources)
    return node("config", step, on=ctx.control_planes)


@task("external-etcd")
def external_etcd(ctx: ClusterContext) -> ExecutionFragment | None:
    """What lets the API servers into an etcd that is there already."""
    if (given := ctx.spec.etcd.external) is None:
        return None
    authority = ctx.files.text(given.ca, (*_EXTERNAL, "ca"))
    certificate = ctx.files.text(given.certificate, (*_EXTERNAL, "certificate"))
    client = f"{layout.PKI}/apiserver-etcd-client"
    steps = {
        "ca": FilePresent(f"{layout.ETCD_PKI}/ca.crt", content=authority, mode="0644"),
        "certificate": FilePresent(f"{client}.crt", content=certificate, mode="0644"),
        "key": SecretFile(f"{client}.key", content=given.key),
    }
    return parallel(*(node(name, step, on=ctx.control_planes) for name, step in steps.items()))
