"""A host, names and authorities that the tests of certificates share."""

from datetime import UTC, datetime
from functools import cache

from kubexm.pki import issue
from kubexm.pki.authorities import Authority
from kubexm.pki.certificates import CERTIFICATES, CertificateRow, Subject
from kubexm.pki.names import Names

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
NAMES = Names(
    host="cp1",
    addresses=("10.0.0.11", "fd00::11"),
    services=("10.96.0.0/12", "fd00:1::/108"),
    endpoints=("lb.example", "10.0.0.100"),
    extra=("api.example.org", "192.0.2.7"),
)
CLIENT = Subject("somebody", ("client",))


@cache
def authority(name: str = "kubernetes", now: datetime = NOW) -> Authority:
    """An authority, the same one for the same name."""
    return issue.authority(name, now=now, algorithm="ECDSA-P256")


def row(name: str) -> CertificateRow:
    return next(row for row in CERTIFICATES if row.name == name)
