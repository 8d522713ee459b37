"""What is asked for when a cluster gets its certificates, and what is in the way of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

import msgspec

from kubexm.common.counting import few
from kubexm.common.secrets import Discreet
from kubexm.errors import InvalidInput, Problem, Refused
from kubexm.pki import authorities, certificates, issue, keys
from kubexm.pki.authorities import Authority
from kubexm.pki.certificates import (
    AUTHORITIES,
    SERVICE_ACCOUNT,
    AuthorityRow,
    CertificateRow,
    Subject,
)
from kubexm.pki.keys import Algorithm
from kubexm.pki.names import Names


class Host(msgspec.Struct, frozen=True):
    """A host as its certificates see it."""

    names: Names
    roles: frozenset[str]
    endpoint: str = ""
    """The URL by which it reaches the cluster's API; wanted where it has kubeconfigs."""
    own: str = ""
    """The URL of its own API server; the endpoint if nothing is said."""
    without: frozenset[str] = frozenset()
    """Names of certificates and authorities that it does not get, although others of its roles
    do."""

    def has(self, roles: Iterable[str]) -> bool:
        """Whether it has one of these roles."""
        return not self.roles.isdisjoint(roles)

    def server(self, row: CertificateRow) -> str:
        """The URL of the API server that a kubeconfig of it names."""
        return (self.own or self.endpoint) if row.kubeconfig == "own" else self.endpoint

    def trusts(self) -> Iterator[AuthorityRow]:
        """The authorities whose certificates lie on it."""
        known = (row for row in AUTHORITIES if row.name not in self.without)
        return (row for row in known if self.has(row.certificate_on))


class Issuing(Discreet, frozen=True):
    """What all hosts of a cluster share when certificates are made."""

    hidden: ClassVar[frozenset[str]] = frozenset({"service_account"})

    authorities: Mapping[str, Authority]
    """By the names of the table."""
    service_account: bytes | None = None
    """PEM of the private key that signs the tokens of service accounts, for control planes."""
    cluster: str = "kubernetes"
    """What kubeconfigs call it."""
    lifetime: timedelta = issue.LIFETIME
    algorithm: Algorithm = keys.DEFAULT


class Wanted(msgspec.Struct, frozen=True):
    """A certificate that is to be made."""

    host: str
    row: CertificateRow
    subject: Subject


def of_host(name: str, host: Host, rows: Sequence[CertificateRow]) -> Iterator[Wanted | Problem]:
    """The certificates of a host, and what is wrong with its names instead."""
    for row in certificates.of_roles(host.roles, rows):
        if row.name in host.without:
            continue
        try:
            subject = certificates.subject(row, host.names)
            issue.require_name(subject.common_name)
            yield Wanted(name, row, subject)
        except InvalidInput as error:
            for one in error.problems or (Problem(error.message, hint=error.hint),):
                yield Problem(one.message, where=f"host `{name}`", hint=one.hint)


def obstacles(
    hosts: Mapping[str, Host], wanted: Sequence[Wanted], issuing: Issuing, now: datetime
) -> Iterator[Problem]:
    """Why what is wanted can't be made."""
    trusted = {row.name for host in hosts.values() for row in host.trusts()}
    for name in sorted(trusted.union(one.row.authority for one in wanted)):
        rows = dict.fromkeys(one.row.name for one in wanted if one.row.authority == name)
        yield from _unusable(name, [*rows], issuing.authorities.get(name), now)
    for host in dict.fromkeys(one.host for one in wanted if one.row.kubeconfig):
        if not hosts[host].endpoint:
            hint = "say by which URL it reaches the API"
            yield Problem("there is no endpoint", where=f"host `{host}`", hint=hint)
    if any(host.has(SERVICE_ACCOUNT.roles) for host in hosts.values()):
        yield from _unreadable(issuing.service_account)


def _unusable(
    name: str, rows: Sequence[str], authority: Authority | None, now: datetime
) -> Iterator[Problem]:
    """What keeps an authority from issuing these."""
    if authority is None:
        yield Problem(f"there is no authority `{name}`", hint="make it, or give one")
    elif rows and authority.key is None:
        yield Problem(
            f"the key of authority `{name}` is not here, so it can't issue {few(rows)}",
            hint="give its key, or leave these out and bring them from where they are issued",
        )
    elif rows:
        try:
            issue.require_valid(authorities.issuing_certificate(authority), now)
        except Refused as error:
            yield Problem(error.message, hint=error.hint)


def _unreadable(key: bytes | None) -> Iterator[Problem]:
    where = "service accounts"
    if key is None:
        yield Problem("there is no key", where=where, hint="make one, or give that of the cluster")
        return
    try:
        keys.read(key)
    except InvalidInput as error:
        yield Problem(error.message, where=where, hint=error.hint)
