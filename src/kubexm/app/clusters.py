"""Use cases of the cluster file by itself: no host is touched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec

from kubexm.app import shapes, versions
from kubexm.app.named import Named
from kubexm.app.params import ClusterParams
from kubexm.config import sound, ways
from kubexm.config.cluster import RULES, Cluster, checked
from kubexm.config.members import GROUPS, members
from kubexm.config.model.cluster import ClusterFile
from kubexm.config.reference import Explained, explained
from kubexm.config.rules.rule import Declared, Rule
from kubexm.document import literals, problems, source
from kubexm.document.schema import Schema, json_schema
from kubexm.document.source import DataPath, Document
from kubexm.errors import InvalidCluster, Problem
from kubexm.resource import catalog
from kubexm.runtime.secrets import HIDDEN

_SEE = "see docs/reference/cluster-file.md, which describes every key"
_OF_HOSTS = "spec.hosts"
_HOSTS: frozenset[DataPath] = frozenset({("spec", "hosts"), ("spec", "roleGroups")})
_STAND_IN = {"name": "host", "address": "host.invalid"}
"""In place of hosts that can't be read; no rule that goes by hosts sees it."""
_PLACE = re.compile(r"(.*):(\d+):(\d+)")


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
    warnings: Sequence[Problem] = ()
    """What is probably not meant as it is written."""


def validate(params: ClusterParams) -> Summary:
    """What a file declares; `InvalidCluster` with all that is wrong with it, and what it names."""
    return summary(read_whole(params).declared)


def summary(declared: Declared, warnings: Sequence[Problem] = ()) -> Summary:
    """The same of a file that was read."""
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
        warnings,
    )


def show(params: ClusterParams, *, defaults: bool) -> dict[str, Any]:
    """The file as it is understood; with `defaults`, also what follows from what is not said."""
    cluster = read(params)
    data: dict[str, Any] = in_full(cluster) if defaults else deepcopy(cluster.document.data)
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
    return _checked(source.read(params.file), params, versions.rules(known))


def read_whole(
    params: ClusterParams, known: catalog.Catalog | None = None, templates: Path | None = None
) -> Cluster:
    """The same with all that the file names beside itself; all that is wrong comes at once.

    `templates`: where those of the operator lie, if that is not for the file to say.
    """
    known = known or catalog.load(params.catalogs)
    document = source.read(params.file)
    allow = params.allow_literal_secrets
    beside = Named(document, templates, allow_literal_secrets=allow)
    try:
        rules = (*versions.rules(known), *shapes.rules(), *beside.rules())
        cluster = _checked(document, params, rules)
    except InvalidCluster as error:
        raise told_together(error, beside.problems) from None
    if beside.problems:
        said = "is not a valid cluster"
        raise problems.refusal(InvalidCluster, document, said, beside.problems, is_all=True)
    return cluster


def told_together(error: InvalidCluster, more: Iterable[Problem]) -> InvalidCluster:
    """The same error with more problems, each once, in the order of the file."""
    found = sorted(dict.fromkeys((*error.problems, *more)), key=_place)
    return InvalidCluster(error.message, problems=found, where=error.where, hint=error.hint)


def _place(problem: Problem) -> tuple[str, int, int]:
    place = _PLACE.fullmatch(problem.where)
    return (place[1], int(place[2]), int(place[3])) if place else (problem.where, 0, 0)


def _checked(document: Document, params: ClusterParams, more: Sequence[Rule]) -> Cluster:
    rules = (*RULES, *more)
    try:
        return checked(document, allow_literal_secrets=params.allow_literal_secrets, rules=rules)
    except InvalidCluster as error:
        if not _lacks_hosts(document, error):
            raise
        raise told_together(error, _without_hosts(document, rules)) from None


def _lacks_hosts(document: Document, error: InvalidCluster) -> bool:
    """Whether a file is all there but for its hosts, which are wrong or missing."""
    body = document.data.get("spec") if isinstance(document.data, dict) else None
    is_wrong = any(problem.message.startswith(_OF_HOSTS) for problem in error.problems)
    return isinstance(body, dict) and (is_wrong or "hosts" not in body)


def _without_hosts(document: Document, rules: Sequence[Rule]) -> list[Problem]:
    """What is wrong with a file whose hosts can't be read, by all that does not go by hosts."""
    data = deepcopy(document.data)
    data["spec"]["hosts"] = [_STAND_IN]
    data["spec"].pop("roleGroups", None)
    file, mistakes = ClusterFile.read(data)
    part = (file, frozenset[DataPath]()) if file else sound.sound_part(data, mistakes)
    if part is None:
        return []
    spec, gaps = part[0].spec, part[1] | _HOSTS
    stand_in = Declared(part[0].metadata.name, spec, members(spec))
    found = [one for rule in rules if rule.applies(gaps) for one in rule.judge(stand_in)]
    _, of_ways = ways.ways(spec, stand_in.members, document.directory)
    found += [one for one in of_ways if one.path[:2] == ("spec", "ssh")]
    return problems.placed(found, document, _SEE)


def in_full(cluster: Cluster) -> dict[str, Any]:
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
