"""Certificates are made here: authorities that sign themselves, and what they issue."""

from __future__ import annotations

from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import ClassVar

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubexm.common.secrets import Discreet
from kubexm.errors import InvalidInput, Refused
from kubexm.pki import authorities, keys
from kubexm.pki.authorities import Authority
from kubexm.pki.certificates import Subject, Usage
from kubexm.pki.keys import Algorithm, PrivateKey
from kubexm.pki.names import AlternativeNames

LIFETIME = timedelta(days=365)
AUTHORITY_LIFETIME = timedelta(days=3650)
SKEW = timedelta(hours=1)
"""So far back validity begins: the clock of a host may be behind ours."""
LONGEST_NAME = 64
"""Letters that X.509 allows a common name."""
_PURPOSES: dict[Usage, x509.ObjectIdentifier] = {
    "client": ExtendedKeyUsageOID.CLIENT_AUTH,
    "server": ExtendedKeyUsageOID.SERVER_AUTH,
}


class Pair(Discreet, frozen=True):
    """A certificate and its key, as PEM."""

    hidden: ClassVar[frozenset[str]] = frozenset({"key"})

    certificate: bytes
    key: bytes
    not_after: datetime
    cut_short: bool = False
    """Whether it ends sooner than was asked for, because its authority does."""


class Signer(Discreet, frozen=True):
    """An authority that was opened, once for many: to check its key takes as long as a new one."""

    hidden: ClassVar[frozenset[str]] = frozenset({"key"})

    certificate: x509.Certificate
    key: PrivateKey


def authority(
    common_name: str,
    *,
    now: datetime,
    lifetime: timedelta = AUTHORITY_LIFETIME,
    algorithm: Algorithm = keys.DEFAULT,
    path_length: int | None = 0,
    key: PrivateKey | None = None,
) -> Authority:
    """A new authority, which has signed itself; by default it issues no other authorities.

    `key`: the one that it has already; a new one otherwise.
    """
    key = keys.make(algorithm) if key is None else key
    name = _name(common_name)
    builder = (
        _builder(name, name, key, now - SKEW, now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Authority(_signed(builder, key), keys.private_pem(key))


def opened(issuer: Authority) -> Signer:
    """An authority ready to sign; `Refused` if it has no key."""
    certificate = authorities.issuing_certificate(issuer)
    if issuer.key is None:
        name = certificate.subject.rfc4514_string()
        raise Refused(
            f"the key of the authority `{name}` is not here, so it can't issue",
            hint="give its key, or certificates that were issued elsewhere",
        )
    return Signer(certificate, keys.read(issuer.key))


def leaf(
    signer: Signer,
    subject: Subject,
    *,
    now: datetime,
    lifetime: timedelta = LIFETIME,
    algorithm: Algorithm = keys.DEFAULT,
) -> Pair:
    """A new key and a certificate for it, which ends no later than its authority does."""
    issuer = signer.certificate
    require_valid(issuer, now)
    key = keys.make(algorithm)
    start = max(now - SKEW, issuer.not_valid_before_utc)
    wanted = (now + lifetime).replace(microsecond=0)
    end = min(wanted, issuer.not_valid_after_utc)
    name = _name(subject.common_name, subject.organisations)
    builder = _described(_builder(name, issuer.subject, key, start, end), subject, issuer, key)
    pem = _signed(builder, signer.key)
    return Pair(pem, keys.private_pem(key), end, cut_short=end < wanted)


def require_name(common_name: str) -> None:
    """Raise `InvalidInput` if no certificate can be of this name."""
    if not 0 < (length := len(common_name.encode())) <= LONGEST_NAME:
        raise InvalidInput(
            f"a certificate can't be of `{common_name}`: it has {length} letters, "
            f"want 1 to {LONGEST_NAME}",
            hint="give the host a shorter name",
        )


def require_valid(issuer: x509.Certificate, now: datetime) -> None:
    """Raise `Refused` if an authority can't issue at this time."""
    if issuer.not_valid_before_utc <= now < issuer.not_valid_after_utc:
        return
    start, end = issuer.not_valid_before_utc, issuer.not_valid_after_utc
    raise Refused(
        f"the authority `{issuer.subject.rfc4514_string()}` can't issue at {now:%Y-%m-%d %H:%M}: "
        f"it is valid from {start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}",
        hint="renew the authority first; if it should be valid, look at the clock",
    )


def _described(
    builder: x509.CertificateBuilder, subject: Subject, issuer: x509.Certificate, key: PrivateKey
) -> x509.CertificateBuilder:
    """What it may be used for, by which names, and whose it is."""
    purposes = x509.ExtendedKeyUsage([_PURPOSES[usage] for usage in sorted(subject.usages)])
    usage = _key_usage(enciphers=isinstance(key, rsa.RSAPrivateKey))
    builder = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(purposes, critical=False)
        .add_extension(_authority_id(issuer), critical=False)
    )
    found = _alternative(subject.names)
    return builder.add_extension(found, critical=False) if found else builder


def _authority_id(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        known = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        public = issuer.public_key()
        assert isinstance(public, keys.PublicKey), "an authority was checked when it came"
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(public)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known)


def _alternative(names: AlternativeNames) -> x509.SubjectAlternativeName | None:
    dns = [x509.DNSName(name) for name in names.dns]
    addresses = [x509.IPAddress(ip_address(text)) for text in names.addresses]
    found: list[x509.GeneralName] = [*dns, *addresses]
    return x509.SubjectAlternativeName(found) if found else None


def _builder(
    subject: x509.Name, issuer: x509.Name, key: PrivateKey, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start.replace(microsecond=0))
        .not_valid_after(end.replace(microsecond=0))
    )


def _signed(builder: x509.CertificateBuilder, key: PrivateKey) -> bytes:
    return builder.sign(key, keys.signature_hash(key)).public_bytes(Encoding.PEM)


def _name(common_name: str, organisations: tuple[str, ...] = ()) -> x509.Name:
    require_name(common_name)
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organisations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, signs_certificates: bool = False, enciphers: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=enciphers,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
