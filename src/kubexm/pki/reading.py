"""Certificates as they are found: PEM in, what they say out."""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubexm.errors import InvalidInput
from kubexm.pki.certificates import Usage
from kubexm.pki.names import AlternativeNames, settled

# What is damaged shows in many ways, and some of it only when it is asked for.
_DAMAGED = (
    ValueError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
_USAGES: dict[x509.ObjectIdentifier, tuple[Usage, ...]] = {
    ExtendedKeyUsageOID.CLIENT_AUTH: ("client",),
    ExtendedKeyUsageOID.SERVER_AUTH: ("server",),
    ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE: ("client", "server"),
}


class Reading(msgspec.Struct, frozen=True):
    """What a certificate says."""

    subject: str
    issuer: str
    serial: str
    """In hexadecimal digits, as openssl shows it."""
    common_name: str
    organisations: tuple[str, ...]
    usages: tuple[Usage, ...]
    names: AlternativeNames
    not_before: datetime
    not_after: datetime
    is_authority: bool

    def days_left(self, now: datetime) -> int:
        """Whole days until it expires; below zero if it has."""
        return (self.not_after - now) // timedelta(days=1)


def read(pem: bytes) -> Reading:
    """The certificate, the first one if there are several; `InvalidInput` if there is none."""
    return said_by(parsed(pem)[0])


def parsed(pem: bytes) -> list[x509.Certificate]:
    """All certificates of a text, sound as far as can be read; at least one."""
    try:
        found = x509.load_pem_x509_certificates(pem)
        for one in found:
            _ = one.extensions, one.public_key(), one.subject, one.issuer
    except _DAMAGED:
        raise InvalidInput(
            "the certificate can't be read",
            hint="give certificates as PEM: `-----BEGIN CERTIFICATE-----`",
        ) from None
    return found


def said_by(found: x509.Certificate) -> Reading:
    """What a parsed certificate says."""
    return Reading(
        subject=found.subject.rfc4514_string(),
        issuer=found.issuer.rfc4514_string(),
        serial=f"{found.serial_number:X}",
        common_name=", ".join(_values(found, NameOID.COMMON_NAME)),
        organisations=tuple(_values(found, NameOID.ORGANIZATION_NAME)),
        usages=usages(found),
        names=_names(found),
        not_before=found.not_valid_before_utc,
        not_after=found.not_valid_after_utc,
        is_authority=is_authority(found),
    )


def public_key_hash(certificate_pem: bytes) -> str:
    """By what `kubeadm join` knows an authority again: `sha256:…` of its public key.

    The first certificate of the text counts, as it is the one that issues.
    """
    public = parsed(certificate_pem)[0].public_key()
    written = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{sha256(written).hexdigest()}"


def requested_name(request_pem: bytes) -> str:
    """For whom a certificate is asked: the common name of a request."""
    subject = x509.load_pem_x509_csr(request_pem).subject
    return ", ".join(str(one.value) for one in subject.get_attributes_for_oid(NameOID.COMMON_NAME))


def is_authority(found: x509.Certificate) -> bool:
    """Whether it says that it may issue others."""
    try:
        return found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def may_sign(found: x509.Certificate) -> bool:
    """Whether its key may sign certificates; who says nothing of usages restricts none."""
    try:
        return found.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        return True


def usages(found: x509.Certificate) -> tuple[Usage, ...]:
    """What it may be used for; who says nothing of it restricts nothing."""
    try:
        given = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return ("client", "server")
    return tuple(sorted({usage for one in given for usage in _USAGES.get(one, ())}))


def is_constrained(found: x509.Certificate) -> bool:
    """Whether it may issue for some names only."""
    return any(isinstance(one.value, x509.NameConstraints) for one in found.extensions)


def issued(found: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether one was signed by the other, which may be itself."""
    try:
        found.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature):
        return False
    return True


def _values(found: x509.Certificate, kind: x509.ObjectIdentifier) -> list[str]:
    return [str(part.value) for part in found.subject.get_attributes_for_oid(kind)]


def _names(found: x509.Certificate) -> AlternativeNames:
    try:
        given = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return AlternativeNames()
    dns = sorted({name.lower() for name in given.get_values_for_type(x509.DNSName)})
    addresses = map(str, given.get_values_for_type(x509.IPAddress))
    return AlternativeNames(tuple(dns), settled(addresses).addresses)
