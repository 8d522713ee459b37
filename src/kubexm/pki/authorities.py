"""Authorities: one that signs, or one that others sign with; and the check of what people give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import ClassVar

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding

from kubexm.common.secrets import Discreet
from kubexm.errors import InvalidInput, Problem
from kubexm.pki import keys, reading
from kubexm.pki.certificates import Usage
from kubexm.pki.keys import PrivateKey

FEWEST_BITS = 2048
"""Of RSA; fewer are refused by many clients."""
_OTHER = "give the certificate of an authority: one with `CA:TRUE`"


class Authority(Discreet, frozen=True):
    """Who issues certificates."""

    hidden: ClassVar[frozenset[str]] = frozenset({"key"})

    certificate: bytes
    """PEM: the certificate that issues comes first, then what else its users are to trust."""
    key: bytes | None = None
    """PEM; None where somebody else issues."""
    notes: tuple[str, ...] = ()
    """What its owner may want to know."""


def supplied(
    certificate: bytes,
    key: bytes | None = None,
    *,
    now: datetime,
    usages: Sequence[Usage] = ("client", "server"),
    where: str = "",
) -> Authority:
    """An authority that people give, with its chain if it has one; all problems at once.

    Of several certificates the one that the key belongs to issues; without a key, the first one
    of an authority. The others stay in the bundle, and are trusted by whoever trusts it.
    `usages`: what it is to issue for.
    """
    problems: list[Problem] = []
    given = _certificates(certificate, problems)
    own = None if key is None else _key(key, problems)
    issuing = _issuing(given, own, problems)
    if issuing is not None:
        problems.extend((*_unfit(issuing, usages), *_out_of_time(issuing, now)))
        problems.extend(_forged(issuing, given))
    if issuing is None or problems:
        raise InvalidInput("the authority can't be used", problems=problems, where=where)
    written = None if own is None else keys.private_pem(own)
    return Authority(_bundle(given, issuing), written, tuple(_notes(given, issuing, now)))


def issuing_certificate(authority: Authority) -> x509.Certificate:
    """The one that signs: the first of the bundle."""
    return x509.load_pem_x509_certificate(authority.certificate)


def _certificates(pem: bytes, problems: list[Problem]) -> list[x509.Certificate]:
    try:
        return list(dict.fromkeys(reading.parsed(pem)))
    except InvalidInput as error:
        problems.append(Problem(error.message, hint=error.hint))
        return []


def _key(pem: bytes, problems: list[Problem]) -> PrivateKey | None:
    try:
        return keys.read(pem)
    except InvalidInput as error:
        problems.append(Problem(error.message, hint=error.hint))
        return None


def _issuing(
    given: Sequence[x509.Certificate], key: PrivateKey | None, problems: list[Problem]
) -> x509.Certificate | None:
    if not given:
        return None
    first = next(filter(reading.is_authority, given), given[0])
    if key is None:
        return first
    for one in given:
        if one.public_key() == key.public_key():
            return one
    shown = _shown(first) if len(given) == 1 else f"any of the {len(given)} certificates"
    hint = "give the key that the certificate was made with"
    problems.append(Problem(f"the key does not belong to {shown}", hint=hint))
    return first


def _unfit(one: x509.Certificate, usages: Sequence[Usage]) -> Iterator[Problem]:
    shown = _shown(one)
    if not reading.is_authority(one):
        yield Problem(f"{shown} is not of an authority", hint=_OTHER)
        return  # and what else it lacks for one is not worth a word
    if not reading.may_sign(one):
        hint = "give one with the usage `keyCertSign`"
        yield Problem(f"{shown} may not sign certificates", hint=hint)
    for usage in sorted(set(usages) - set(reading.usages(one))):
        # Whoever looks at the whole chain wants the usage all the way up.
        hint = "give one without extended usages, or with this one too"
        yield Problem(f"{shown} may not issue for a {usage}", hint=hint)
    public = one.public_key()
    if not isinstance(public, keys.PublicKey):
        yield Problem(f"{shown} has a key of another kind than RSA and ECDSA", hint=_OTHER)
    elif isinstance(public, RSAPublicKey) and public.key_size < FEWEST_BITS:
        message = f"{shown} has a key of {public.key_size} bits, want {FEWEST_BITS} or more"
        yield Problem(message, hint="give an authority with a stronger key")


def _out_of_time(one: x509.Certificate, now: datetime) -> Iterator[Problem]:
    shown = _shown(one)
    if now >= (end := one.not_valid_after_utc):
        yield Problem(f"{shown} expired on {end:%Y-%m-%d}", hint="renew it first")
    if now < (start := one.not_valid_before_utc):
        hint = "look at the clock of this machine, or wait"
        yield Problem(f"{shown} is not valid before {start:%Y-%m-%d %H:%M} UTC", hint=hint)


def _forged(one: x509.Certificate, given: Sequence[x509.Certificate]) -> Iterator[Problem]:
    """Whether it says that it signed itself, and did not; a former self may be in the bundle."""
    if one.issuer == one.subject and not any(reading.issued(one, other) for other in given):
        hint = "take the file from its source again"
        yield Problem(f"{_shown(one)} is damaged: its signature does not fit", hint=hint)


def _bundle(given: Sequence[x509.Certificate], issuing: x509.Certificate) -> bytes:
    """Written anew: whatever else stood in the text, such as a key, is not for everybody."""
    ordered = (issuing, *(one for one in given if one != issuing))
    return b"".join(one.public_bytes(Encoding.PEM) for one in ordered)


def _notes(
    given: Sequence[x509.Certificate], issuing: x509.Certificate, now: datetime
) -> Iterator[str]:
    if len(given) > 1:
        place = f"number {given.index(issuing) + 1} of {len(given)}"
        yield f"{_shown(issuing)} issues, {place}; the others are trusted too"
    for one in given:
        if one != issuing and now >= (end := one.not_valid_after_utc):
            yield f"{_shown(one)} beside it expired on {end:%Y-%m-%d}"
    if reading.is_constrained(issuing):
        yield f"{_shown(issuing)} may issue for some names only, and nobody takes any other"
    if not any(reading.issued(issuing, other) for other in given):
        issuer = issuing.issuer.rfc4514_string()
        yield f"`{issuer}`, who issued it, is missing, and some clients want the whole chain"


def _shown(one: x509.Certificate) -> str:
    return f"`{one.subject.rfc4514_string()}`"
