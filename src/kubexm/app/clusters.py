"""Use cases of the cluster file by itself: no host is touched."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import msgspec

from kubexm.app import versions
from kubexm.app.params import ClusterParams
from kubexm.config.cluster import RULES, Cluster, read_cluster
from kubexm.config.members import GROUPS
from kubexm.config.model.cluster import ClusterFile
from kubexm.config.reference import Explained, explained
from kubexm.config.rules.rule import Declared
from kubexm.document import literals
from kubexm.document.schema import Schema, json_schema
from kubexm.document.source import DataPath
from kubexm.resource import catalog
from kubexm.runtime.secrets import HIDDEN


class Roles(msgspec.Struct, frozen=True):
    """A role and its hosts."""

    role: str
    hosts: Sequence[str]


class Summary(msgspec.Struct, frozen=True, rename="camel"):
    """What a file declares, in short."""

    name: str
    version: str
    roles: Sequence[Roles]
    endpoint: str
    etcd: str
    network: str


def validate(params: ClusterParams) -> Summary:
    """What a file declares; `InvalidCluster` with all that is wrong with it."""
    declared = read(params).declared
    return Summary(
        declared.name,
        declared.spec.kubernetes.version,
        [
            Roles(role, [member.name for member in declared.having(role)])
            for role in GROUPS
            if declared.having(role)
        ],
        declared.endpoint_kind,
        declared.etcd_kind,
        declared.spec.network.plugin,
    )


def show(params: ClusterParams, *, defaults: bool) -> dict[str, Any]:
    """The file as it is understood; with `defaults`, also what follows from what is not said."""
    cluster = read(params)
    data: dict[str, Any] = _in_full(cluster) if defaults else deepcopy(cluster.document.data)
    for finding in [*literals.findings(data)]:
        _conceal(data, finding.path)
    return data


def explain(path: str) -> Explained:
    """What may be said under a key."""
    return explained(path)


def schema() -> Schema:
    """The cluster file as JSON Schema."""
    return json_schema(ClusterFile)


def read(params: ClusterParams, known: catalog.Catalog | None = None) -> Cluster:
    """The cluster of a file, held against the catalog too."""
    known = known or catalog.load(params.catalogs)
    rules = (*RULES, *versions.rules(known))
    allow = params.allow_literal_secrets
    return read_cluster(params.file, allow_literal_secrets=allow, rules=rules)


def _in_full(cluster: Cluster) -> dict[str, Any]:
    """All keys of the file; those that follow from others have what follows."""
    declared = cluster.declared
    head = {key: value for key, value in cluster.document.data.items() if key != "spec"}
    spec: dict[str, Any] = declared.spec.in_full()
    spec["roleGroups"] = _groups(declared)
    spec["endpoint"]["kind"] = declared.endpoint_kind
    spec["etcd"]["kind"] = declared.etcd_kind
    spec["kubernetes"]["clusterName"] = declared.spec.kubernetes.cluster_name or declared.name
    return {**head, "spec": spec}


def _conceal(data: Any, path: DataPath) -> None:
    for part in path[:-1]:
        data = data[part]
    data[path[-1]] = HIDDEN


def _groups(declared: Declared) -> dict[str, list[str]]:
    return {
        role: [member.name for member in declared.having(role)]
        for role in GROUPS
        if declared.having(role)
    }
