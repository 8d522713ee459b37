"""What a host lacks of its certificates, and what of them is faulty or due, made anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from kubexm.errors import InvalidInput
from kubexm.pki import cluster, found, kept, keys, reading
from kubexm.pki.certificates import SERVICE_ACCOUNT, CertificateRow
from kubexm.pki.cluster import HostFiles
from kubexm.pki.found import Found
from kubexm.pki.kept import Kept
from kubexm.pki.keys import PublicKey
from kubexm.pki.request import Host, Issuing


def strangers(there: Mapping[str, bytes], held: Kept) -> Iterator[str]:
    """The paths at which a host has an authority, or a key, of another cluster."""
    for path, file in kept.files(held).items():
        compared = path not in (SERVICE_ACCOUNT.path, kept.ENCRYPTION)
        if compared and path in there and _public(there[path]) != _public(file.content):
            yield path


def renewed(
    host: Host, there: Found, rows: Sequence[CertificateRow], issuing: Issuing, *, now: datetime
) -> HostFiles:
    """Only what has to be written; what is sound stays as it is."""
    # Where the host lacks an authority, its certificates are judged by the one that it gets.
    given = {f"{name}.crt": one.certificate for name, one in issuing.authorities.items()}
    complete = Found({**given, **there.pki}, there.kubeconfigs)
    wrong = found.faults(host, complete, rows, now=now, lifetime=issuing.lifetime)
    due = [row for row in rows if row.name in wrong]
    name = host.names.host
    made = cluster.issue_all({name: host}, issuing, now=now, rows=due)[name]
    left = frozenset(there.pki) - frozenset(_anew(due, wrong))
    pki = {path: file for path, file in made.pki.items() if path not in left}
    return HostFiles(pki, made.kubeconfigs)


def _anew(due: Iterable[CertificateRow], wrong: Mapping[str, object]) -> Iterator[str]:
    """The paths of what is written though it is there."""
    for row in due:
        yield from (row.path, row.key_path)
    if SERVICE_ACCOUNT.name in wrong:
        yield SERVICE_ACCOUNT.path


def _public(pem: bytes) -> PublicKey | None:
    """The key that a certificate or a private key is of; None if it can't be read."""
    try:
        if b"-----BEGIN CERTIFICATE-----" not in pem:
            return keys.public_of(pem)
        public = reading.parsed(pem)[0].public_key()
    except InvalidInput:
        return None
    return public if isinstance(public, PublicKey) else None
