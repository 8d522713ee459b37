"""What can be told of a certificate without cryptography: who issued it, and for which names.

Certificates that a simulated program makes are texts of its own; nothing can be told of them.
"""

from __future__ import annotations

import ipaddress
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256

import msgspec

_HEAD, _FOOT = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
_SEQUENCE, _VERSION, _EXTENSIONS, _OCTETS = 0x30, 0xA0, 0xA3, 0x04
_KEY, _NAME, _ADDRESS = 0x80, 0x82, 0x87
_SUBJECT_KEY, _NAMES, _AUTHORITY_KEY = b"\x55\x1d\x0e", b"\x55\x1d\x11", b"\x55\x1d\x23"


class Certificate(msgspec.Struct, frozen=True):
    """What a certificate says; all empty if it is a text of a simulated program."""

    hash: str
    """What `kubeadm join` compares: the sha256 of the public key."""
    key: bytes = b""
    """By what its own key is known."""
    issuer: bytes = b""
    """By what the key is known that signed it."""
    names: frozenset[str] = frozenset()
    """Names and addresses that it is for."""

    def is_by(self, authority: Certificate) -> bool:
        """Whether an authority has issued it, as far as can be told."""
        return not (self.issuer and authority.key) or self.issuer == authority.key

    def is_for(self, name: str) -> bool:
        """Whether a server may show it under a name or an address, as far as can be told."""
        return not self.issuer or name in self.names


def made_up(about: str) -> bytes:
    """A certificate that a simulated program makes."""
    body = b64encode(about.encode())
    lines = (body[start : start + 64] for start in range(0, len(body), 64))
    return b"\n".join((_HEAD, *lines, _FOOT, b""))


@lru_cache(maxsize=4096)
def read(pem: bytes) -> Certificate:
    """The first certificate of a file."""
    _, _, rest = pem.partition(_HEAD)
    try:
        der = b64decode(b"".join(rest.partition(_FOOT)[0].split()), validate=True)
        return _read(der)
    except (Error, IndexError, ValueError):
        return Certificate(sha256(pem).hexdigest())


def _read(der: bytes) -> Certificate:
    ((_, whole),) = _parts(der)
    tag, inner = next(_parts(whole))
    parts = [*_parts(inner)]
    if tag != _SEQUENCE or len(parts) < 7:
        raise ValueError("no certificate")
    key = _encoded(inner)[6 if parts[0][0] == _VERSION else 5]
    found = next((content for tag, content in parts if tag == _EXTENSIONS), b"")
    extensions = dict(_extensions(found))
    return Certificate(
        sha256(key).hexdigest(),
        _first(extensions.get(_SUBJECT_KEY, b"")),
        _authority(extensions.get(_AUTHORITY_KEY, b"")),
        frozenset(_names(extensions.get(_NAMES, b""))),
    )


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The values one after the other in some DER, each with its tag."""
    at = 0
    while at < len(data):
        tag, start, end = _bounds(data, at)
        yield tag, data[start:end]
        at = end


def _encoded(data: bytes) -> list[bytes]:
    """The same values with their heads."""
    found, at = [], 0
    while at < len(data):
        end = _bounds(data, at)[2]
        found.append(data[at:end])
        at = end
    return found


def _bounds(data: bytes, at: int) -> tuple[int, int, int]:
    """The tag of a value, and where its content begins and ends."""
    tag, length, start = data[at], data[at + 1], at + 2
    if length & 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(data[start : start + size]), start + size
    if start + length > len(data):
        raise ValueError("cut short")
    return tag, start, start + length


def _extensions(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    for _, listed in _parts(data):
        for _, extension in _parts(listed):
            parts = [*_parts(extension)]
            yield parts[0][1], next(content for tag, content in parts if tag == _OCTETS)


def _first(data: bytes) -> bytes:
    return next((content for _, content in _parts(data)), b"")


def _authority(data: bytes) -> bytes:
    return next((content for tag, content in _parts(_first(data)) if tag == _KEY), b"")


def _names(data: bytes) -> Iterator[str]:
    for tag, content in _parts(_first(data)):
        if tag == _NAME:
            yield content.decode(errors="replace")
        elif tag == _ADDRESS:
            yield str(ipaddress.ip_address(content))
