"""The table: every certificate of a cluster, who issues it, for whom, and on which hosts it lies.

Paths are relative to the PKI directory, as kubeadm lays them out; etcd has members of its own,
which no kubelet runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from kubexm.common.roles import CONTROL_PLANE, ETCD, REGISTRY, WORKER
from kubexm.pki import names as alternative
from kubexm.pki.names import AlternativeNames, Names

Usage = Literal["client", "server"]
CLUSTER = "ca"
FRONT_PROXY = "front-proxy-ca"
OF_ETCD = "etcd/ca"
_CLIENT: tuple[Usage, ...] = ("client",)
_SERVER: tuple[Usage, ...] = ("server",)
_BOTH: tuple[Usage, ...] = ("client", "server")
_NODES = (CONTROL_PLANE, WORKER)
_ADMINS = "kubeadm:cluster-admins"


class Row(msgspec.Struct, frozen=True):
    """Something with a key; its name is its path."""

    name: str

    @property
    def path(self) -> str:
        return f"{self.name}.crt"

    @property
    def key_path(self) -> str:
        return f"{self.name}.key"


class AuthorityRow(Row, frozen=True):
    """An authority, who trusts it and who issues with it."""

    common_name: str
    certificate_on: tuple[str, ...]
    key_on: tuple[str, ...] = ()


class KeyRow(Row, frozen=True):
    """A key without a certificate."""

    roles: tuple[str, ...]

    @property
    def path(self) -> str:
        return f"{self.name}.pub"


class CertificateRow(Row, frozen=True):
    """A certificate; its name may be the path of the kubeconfig that it lies in."""

    authority: str
    common_name: str
    """`{host}` stands for the name of the node."""
    roles: tuple[str, ...]
    usages: tuple[Usage, ...]
    organisations: tuple[str, ...] = ()
    names: Literal["apiserver", "etcd", "registry"] | None = None
    """What its alternative names are made of."""
    kubeconfig: Literal["endpoint", "own"] | None = None
    """The API server that the kubeconfig names: the cluster's endpoint, or the host's own."""

    @property
    def kubeconfig_path(self) -> str:
        """In the directory above: it is no part of the PKI directory."""
        return f"{self.name}.conf"


class Subject(msgspec.Struct, frozen=True):
    """What a certificate says: of whom it is, and what it may be used for."""

    common_name: str
    usages: tuple[Usage, ...]
    organisations: tuple[str, ...] = ()
    names: AlternativeNames = AlternativeNames()


AUTHORITIES = (
    # With these two keys a control plane signs what kubelets and aggregated servers ask for.
    AuthorityRow(CLUSTER, "kubernetes", (*_NODES, REGISTRY), (CONTROL_PLANE,)),
    AuthorityRow(FRONT_PROXY, "front-proxy-ca", (CONTROL_PLANE,), (CONTROL_PLANE,)),
    # No host issues for etcd by itself; but whichever control plane is left has what it takes.
    AuthorityRow(OF_ETCD, "etcd-ca", (CONTROL_PLANE, ETCD), (CONTROL_PLANE,)),
)

SERVICE_ACCOUNT = KeyRow("sa", (CONTROL_PLANE,))

CERTIFICATES = (
    CertificateRow(
        "apiserver", CLUSTER, "kube-apiserver", (CONTROL_PLANE,), _SERVER, names="apiserver"
    ),
    CertificateRow(
        "apiserver-kubelet-client",
        CLUSTER,
        "kube-apiserver-kubelet-client",
        (CONTROL_PLANE,),
        _CLIENT,
        (_ADMINS,),
    ),
    CertificateRow(
        "front-proxy-client", FRONT_PROXY, "front-proxy-client", (CONTROL_PLANE,), _CLIENT
    ),
    CertificateRow(
        "apiserver-etcd-client", OF_ETCD, "kube-apiserver-etcd-client", (CONTROL_PLANE,), _CLIENT
    ),
    # A member calls itself with its server certificate, to serve its own gateway.
    CertificateRow("etcd/server", OF_ETCD, "{host}", (ETCD,), _BOTH, names="etcd"),
    CertificateRow("etcd/peer", OF_ETCD, "{host}", (ETCD,), _BOTH, names="etcd"),
    CertificateRow(
        "etcd/healthcheck-client", OF_ETCD, "kube-etcd-healthcheck-client", (ETCD,), _CLIENT
    ),
    CertificateRow("registry", CLUSTER, "{host}", (REGISTRY,), _SERVER, names="registry"),
    CertificateRow(
        "admin",
        CLUSTER,
        "kubernetes-admin",
        (CONTROL_PLANE,),
        _CLIENT,
        (_ADMINS,),
        kubeconfig="endpoint",
    ),
    # It passes every check of rights. kubeadm leaves it on the first control plane only.
    CertificateRow(
        "super-admin",
        CLUSTER,
        "kubernetes-super-admin",
        (CONTROL_PLANE,),
        _CLIENT,
        ("system:masters",),
        kubeconfig="endpoint",
    ),
    # These two stay with the API server of their host, which has the same version as they have.
    CertificateRow(
        "controller-manager",
        CLUSTER,
        "system:kube-controller-manager",
        (CONTROL_PLANE,),
        _CLIENT,
        kubeconfig="own",
    ),
    CertificateRow(
        "scheduler",
        CLUSTER,
        "system:kube-scheduler",
        (CONTROL_PLANE,),
        _CLIENT,
        kubeconfig="own",
    ),
    CertificateRow(
        "kubelet",
        CLUSTER,
        "system:node:{host}",
        _NODES,
        _CLIENT,
        ("system:nodes",),
        kubeconfig="endpoint",
    ),
)


def of_roles(
    roles: Iterable[str], rows: Iterable[CertificateRow] = CERTIFICATES
) -> tuple[CertificateRow, ...]:
    """The certificates that a host of these roles has."""
    held = frozenset(roles)
    return tuple(row for row in rows if not held.isdisjoint(row.roles))


def subject(row: CertificateRow, names: Names) -> Subject:
    """What the certificate of a host says."""
    # Nodes are named in lower case, whatever the host calls itself.
    common_name = row.common_name.format(host=names.host.lower())
    return Subject(common_name, row.usages, row.organisations, _alternative(row, names))


def _alternative(row: CertificateRow, names: Names) -> AlternativeNames:
    match row.names:
        case "apiserver":
            return alternative.apiserver(names)
        case "etcd":
            return alternative.etcd(names)
        case "registry":
            return alternative.registry(names)
    return AlternativeNames()
