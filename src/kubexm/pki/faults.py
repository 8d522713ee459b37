"""What is wrong with a certificate that was found: reasons, in words, to issue it again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from cryptography import x509

from kubexm.common.counting import counted
from kubexm.errors import InvalidInput
from kubexm.pki import authorities, keys, reading
from kubexm.pki.authorities import Authority
from kubexm.pki.certificates import Subject
from kubexm.pki.reading import Reading

DAYS = 30
"""A certificate that has fewer left is due."""


def faults(
    found: bytes,
    wanted: Subject,
    authority: Authority,
    *,
    now: datetime,
    days: int = DAYS,
    key: bytes | None = None,
) -> tuple[str, ...]:
    """Why a certificate is not the one that is wanted; nothing if it is.

    Names that it has beyond those that are wanted do no harm. `key`: the key that lies beside it.
    """
    try:
        certificate = reading.parsed(found)[0]
    except InvalidInput:
        return ("can't be read",)
    reasons: list[str] = []
    if not reading.issued(certificate, authorities.issuing_certificate(authority)):
        reasons.append("is of another authority")
    if key is not None and not _belongs(key, certificate):
        reasons.append("does not belong to its key")
    said = reading.said_by(certificate)
    return (*reasons, *_other(said, wanted), *_out_of_time(said, now, days))


def _belongs(key: bytes, certificate: x509.Certificate) -> bool:
    try:
        return keys.public_of(key) == certificate.public_key()
    except InvalidInput:
        return False


def _other(said: Reading, wanted: Subject) -> Iterator[str]:
    if said.common_name != wanted.common_name:
        yield f"is of `{said.common_name}`, want `{wanted.common_name}`"
    if sorted(said.organisations) != sorted(wanted.organisations):
        yield f"has {_groups(said.organisations)}, want {_groups(wanted.organisations)}"
    for usage in sorted(set(wanted.usages) - set(said.usages)):
        yield f"is not for use by a {usage}"
    for name in sorted(set(wanted.names.dns) - set(said.names.dns)):
        yield f"lacks DNS name `{name}`"
    for address in wanted.names.addresses:
        if address not in said.names.addresses:
            yield f"lacks address `{address}`"


def _groups(organisations: tuple[str, ...]) -> str:
    if not organisations:
        return "no organisation"
    return "organisation " + ", ".join(f"`{one}`" for one in sorted(organisations))


def _out_of_time(said: Reading, now: datetime, days: int) -> Iterator[str]:
    if now < said.not_before:
        yield f"is not valid before {said.not_before:%Y-%m-%d %H:%M} UTC"
    left = said.days_left(now)
    if now >= said.not_after:
        yield f"expired on {said.not_after:%Y-%m-%d}"
    elif left < days:
        yield f"expires in {counted(left, 'day')}, want {days}"
