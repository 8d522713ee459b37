"""Private keys: made, written as PEM, and read again."""

from __future__ import annotations

from typing import Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from kubexm.errors import InvalidInput

Algorithm = Literal["RSA-2048", "RSA-3072", "RSA-4096", "ECDSA-P256", "ECDSA-P384"]
"""Kinds of keys, by the names that kubeadm gives them."""
DEFAULT: Algorithm = "RSA-2048"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
_RSA_BITS: dict[Algorithm, int] = {"RSA-2048": 2048, "RSA-3072": 3072, "RSA-4096": 4096}
_LOCKED = "take the passphrase away, such as with `openssl pkey -in LOCKED -out PLAIN`"


def make(algorithm: Algorithm = DEFAULT) -> PrivateKey:
    """A new key."""
    if (bits := _RSA_BITS.get(algorithm)) is not None:
        return rsa.generate_private_key(public_exponent=65537, key_size=bits)
    return ec.generate_private_key(ec.SECP384R1() if algorithm == "ECDSA-P384" else ec.SECP256R1())


def private_pem(key: PrivateKey) -> bytes:
    """The key as kubeadm writes it, `RSA PRIVATE KEY` or `EC PRIVATE KEY`.

    All of Kubernetes reads PKCS#8 too; but so a cluster looks the same, whoever made its keys.
    """
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def public_pem(key: PrivateKey | PublicKey) -> bytes:
    """The public half of a key."""
    public = key if isinstance(key, PublicKey) else key.public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def public_of(pem: bytes) -> PublicKey:
    """The public half of a key, as it says; whether its numbers fit takes long to find out."""
    return _read(pem, checked=False).public_key()


def read(pem: bytes) -> PrivateKey:
    """A key in any form of PEM; `InvalidInput` if there is none to use, and why."""
    return _read(pem, checked=True)


def signature_hash(key: PrivateKey) -> hashes.SHA256 | hashes.SHA384 | hashes.SHA512:
    """The digest that is as strong as the key that signs it."""
    bits = key.key_size if isinstance(key, ec.EllipticCurvePrivateKey) else 0
    if bits > 384:
        return hashes.SHA512()
    return hashes.SHA384() if bits > 256 else hashes.SHA256()


def _read(pem: bytes, *, checked: bool) -> PrivateKey:
    try:
        key = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=not checked)
    except TypeError:
        raise InvalidInput("the key is locked by a passphrase", hint=_LOCKED) from None
    except (ValueError, UnsupportedAlgorithm):
        # What the library found is not repeated: it stood in a key.
        raise InvalidInput(
            "the key can't be read", hint="give a private key as PEM: `-----BEGIN … PRIVATE KEY`"
        ) from None
    if not isinstance(key, PrivateKey):
        kind = type(key).__name__.removesuffix("PrivateKey")
        raise InvalidInput(f"the key is one of {kind}, want RSA or ECDSA", hint="give such a key")
    return key
