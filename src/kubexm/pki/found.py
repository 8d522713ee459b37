"""What a host has of its certificates, and why some of it has to be made again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import ClassVar

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kubexm.common.secrets import Discreet
from kubexm.document import source
from kubexm.errors import InvalidFile, InvalidInput
from kubexm.pki import certificates, keys, kubeconfig, reading
from kubexm.pki import faults as certificate_faults
from kubexm.pki.authorities import Authority
from kubexm.pki.certificates import (
    CERTIFICATES,
    SERVICE_ACCOUNT,
    AuthorityRow,
    CertificateRow,
)
from kubexm.pki.kubeconfig import Used
from kubexm.pki.request import Host

MISSING = "is missing"
"""What is said of something that is not there at all."""
_NO_KEY = "lacks its key"
_UNREADABLE = "can't be read"
SHARE = 3
"""A certificate is due when it has less than one part in so many left, of a short lifetime."""


class Found(Discreet, frozen=True):
    """The files of a host, by their paths; what is not there is left out."""

    hidden: ClassVar[frozenset[str]] = frozenset({"pki", "kubeconfigs"})

    pki: Mapping[str, bytes]
    """Relative to the PKI directory."""
    kubeconfigs: Mapping[str, bytes]
    """Relative to the directory of kubeconfigs."""


def rows_of(host: Host, only: Iterable[str] = ()) -> tuple[CertificateRow, ...]:
    """The certificates that a host has, of all, or of those that are named."""
    names = frozenset(only)
    own = certificates.of_roles(host.roles, CERTIFICATES)
    return tuple(
        row for row in own if row.name not in host.without and (not names or row.name in names)
    )


def pki_paths(host: Host, rows: Iterable[CertificateRow]) -> tuple[str, ...]:
    """The files of a host relative to the PKI directory; of a pair the key comes first."""
    pairs = [(row.key_path, row.path) for row in rows if row.kubeconfig is None]
    trusted = [*host.trusts()]
    issuing = [(row.key_path,) for row in trusted if host.has(row.key_on)]
    shared = [(SERVICE_ACCOUNT.key_path, SERVICE_ACCOUNT.path)] * host.has(SERVICE_ACCOUNT.roles)
    public = [(row.path,) for row in trusted]
    return tuple(path for some in (*pairs, *issuing, *shared, *public) for path in some)


def kubeconfig_paths(rows: Iterable[CertificateRow]) -> tuple[str, ...]:
    """The kubeconfigs of a host relative to their directory."""
    return tuple(row.kubeconfig_path for row in rows if row.kubeconfig is not None)


def faults(
    host: Host,
    found: Found,
    rows: Iterable[CertificateRow],
    *,
    now: datetime,
    lifetime: timedelta,
) -> dict[str, tuple[str, ...]]:
    """What is wrong with what a host has, by the names of the table; nothing if all is well.

    A certificate is judged by the authority that the host has; where that is missing, only by
    whether it is there.
    """
    days = min(certificate_faults.DAYS, lifetime // timedelta(days=SHARE))
    judge = _Judge(host, found, now, days)
    told = {row.name: tuple(judge.authority(row)) for row in host.trusts()}
    if host.has(SERVICE_ACCOUNT.roles):
        told[SERVICE_ACCOUNT.name] = tuple(judge.service_account())
    for row in rows:
        told[row.name] = tuple(judge.kubeconfig(row) if row.kubeconfig else judge.certificate(row))
    return {name: reasons for name, reasons in told.items() if reasons}


class _Judge(msgspec.Struct, frozen=True):
    """One look at the files of one host."""

    host: Host
    found: Found
    now: datetime
    days: int

    def authority(self, row: AuthorityRow) -> Iterator[str]:
        if row.path not in self.found.pki:
            yield MISSING
        elif self._issuer(row.name) is None:
            yield _UNREADABLE
        if self.host.has(row.key_on) and row.key_path not in self.found.pki:
            yield _NO_KEY

    def service_account(self) -> Iterator[str]:
        files = self.found.pki
        key, public = files.get(SERVICE_ACCOUNT.key_path), files.get(SERVICE_ACCOUNT.path)
        if key is None or public is None:
            yield MISSING
            return
        try:
            if keys.public_pem(keys.public_of(key)).strip() != public.strip():
                yield "is of another key than its public half"
        except InvalidInput:
            yield _UNREADABLE

    def certificate(self, row: CertificateRow) -> Iterator[str]:
        certificate, key = self.found.pki.get(row.path), self.found.pki.get(row.key_path)
        if certificate is None:
            yield MISSING
        elif key is None:
            yield _NO_KEY
        else:
            yield from self._faults(row, certificate, key)

    def kubeconfig(self, row: CertificateRow) -> Iterator[str]:
        text = self.found.kubeconfigs.get(row.kubeconfig_path)
        if text is None:
            yield MISSING
        elif (used := _used(text)) is None:
            yield _UNREADABLE
        else:
            yield from self._cluster(row, used)
            # A kubelet that renews its certificate by itself keeps it in a file of its own.
            if used.certificate is not None:
                yield from self._faults(row, used.certificate, used.key)

    def _cluster(self, row: CertificateRow, used: Used) -> Iterator[str]:
        """How a kubeconfig names another cluster, or this one by another way."""
        if used.server != (wanted := self.host.server(row)):
            yield f"names `{used.server}`, want `{wanted}`"
        issuer = self._issuer(row.authority)
        if issuer is not None and used.authority is not None:
            keys_trusted = [one.public_key() for one in _parsed(used.authority)]
            if issuer.public_key() not in keys_trusted:
                yield "trusts another authority"

    def _faults(self, row: CertificateRow, certificate: bytes, key: bytes | None) -> Iterator[str]:
        issuer = self._issuer(row.authority)
        if issuer is None:
            return
        # One that ends with its authority would be no better if it were made again.
        days = min(self.days, reading.said_by(issuer).days_left(self.now))
        yield from certificate_faults.faults(
            certificate,
            certificates.subject(row, self.host.names),
            Authority(issuer.public_bytes(Encoding.PEM)),
            now=self.now,
            days=days,
            key=key,
        )

    def _issuer(self, authority: str) -> x509.Certificate | None:
        return next(iter(_parsed(self.found.pki.get(f"{authority}.crt", b""))), None)


def _parsed(pem: bytes) -> list[x509.Certificate]:
    try:
        return reading.parsed(pem)
    except InvalidInput:
        return []


def _used(text: bytes) -> Used | None:
    try:
        data = source.parse(text).data
        return kubeconfig.used(data) if isinstance(data, dict) else None
    except (InvalidFile, InvalidInput):
        return None
