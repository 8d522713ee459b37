"""From a cluster file to the cluster that it declares, with all that is wrong at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kubexm.config import hosts, sound, ways
from kubexm.config.members import members
from kubexm.config.model.cluster import ClusterFile
from kubexm.config.rules import (
    addons,
    directories,
    effects,
    endpoint,
    etcd,
    in_use,
    kernel,
    marks,
    names,
    network,
    overrides,
    ports,
    preflight,
    programs,
    settings,
)
from kubexm.config.rules import hosts as of_hosts
from kubexm.config.rules.rule import Declared, Rule
from kubexm.document import literals, problems, source
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath, Document
from kubexm.errors import InvalidCluster

RULES: tuple[Rule, ...] = (
    *of_hosts.RULES,
    *marks.RULES,
    *endpoint.RULES,
    *etcd.RULES,
    *network.RULES,
    *ports.RULES,
    *preflight.RULES,
    *kernel.RULES,
    *settings.RULES,
    *names.RULES,
    *directories.RULES,
    *overrides.RULES,
    *in_use.RULES,
    *programs.RULES,
    *effects.RULES,
    *addons.RULES,
)
_SEE = "see docs/reference/cluster-file.md, which describes every key"
_INVALID = "is not a valid cluster"
_OTHERS = {"Pipeline": "run it with `kubexm run -f FILE`, or name a cluster file"}
_NO_GAPS: frozenset[DataPath] = frozenset()


class Cluster(msgspec.Struct, frozen=True):
    """A cluster as declared, and the document it was written in."""

    declared: Declared
    document: Document


def parse_cluster(
    text: str | bytes, file: str = "<text>", *, allow_literal_secrets: bool = False
) -> Cluster:
    """The cluster in a text; `InvalidCluster` with all that is wrong with it."""
    return checked(source.parse(text, file), allow_literal_secrets=allow_literal_secrets)


def checked(
    document: Document, *, allow_literal_secrets: bool = False, rules: Sequence[Rule] = RULES
) -> Cluster:
    """The cluster in a document; `InvalidCluster` with all that is wrong with it."""
    if other := problems.other_kind(document, "Cluster", _OTHERS):
        listed = problems.placed([other], document, _SEE)
        raise problems.refusal(InvalidCluster, document, _INVALID, listed, is_all=True)
    file, mistakes = ClusterFile.read(document.data)
    found = [problems.finding_of(mistake, ClusterFile) for mistake in mistakes]
    found += _of_hosts(document)
    if not allow_literal_secrets:
        told = {finding.path for finding in found}
        found += (one for one in literals.findings(document.data) if one.path not in told)
    part = (file, _NO_GAPS) if file else sound.sound_part(document.data, mistakes)
    declared = None
    if part is not None and not any(finding.path[:2] == ("spec", "hosts") for finding in found):
        declared = _declared(part[0])
        found += _broken(declared, part[1], rules)
        found += ways.ways(declared.spec, declared.members, document.directory)[1]
    if found or document.notes or declared is None:
        listed = problems.placed(found, document, _SEE)
        is_all = declared is not None and not mistakes
        raise problems.refusal(InvalidCluster, document, _INVALID, listed, is_all=is_all)
    return Cluster(declared, document)


def _declared(file: ClusterFile) -> Declared:
    return Declared(file.metadata.name, file.spec, members(file.spec), file.metadata.labels)


def _broken(
    cluster: Declared, gaps: frozenset[DataPath], rules: Sequence[Rule]
) -> Iterator[Finding]:
    for rule in rules:
        if rule.applies(gaps):
            yield from rule.judge(cluster)


def _of_hosts(document: Document) -> Iterator[Finding]:
    """What is wrong with names and addresses of hosts as they are written."""
    body = document.data.get("spec") if isinstance(document.data, dict) else None
    if not isinstance(body, dict):
        return
    entries = [*hosts.entries(body)]
    yield from (finding.under("spec") for finding in hosts.names(entries))
    for number, entry in entries:
        for finding in (*hosts.addresses(entry), *hosts.local(entry)):
            yield finding.under("spec", "hosts", number)
