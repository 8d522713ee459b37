"""What a cluster keeps to issue certificates by: its authorities, and keys that all share.

It lies on every control plane, so that any of them that is left can tell it.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

import msgspec

from kubexm.common.secrets import Discreet
from kubexm.errors import Refused
from kubexm.pki import authorities, encryption, issue, keys
from kubexm.pki.authorities import Authority
from kubexm.pki.certificates import AUTHORITIES, OF_ETCD, SERVICE_ACCOUNT, AuthorityRow
from kubexm.pki.cluster import PUBLIC, SECRET, File
from kubexm.pki.keys import Algorithm

ENCRYPTION = "encryption.key"
"""The path of the key for what lies in etcd, beside those of the authorities."""


class Kept(Discreet, frozen=True):
    """All of it, with the keys themselves."""

    hidden: ClassVar[frozenset[str]] = frozenset({"service_account", "encryption"})

    authorities: dict[str, Authority]
    """By the names of the table."""
    service_account: bytes
    """PEM of the private key that signs the tokens of service accounts."""
    encryption: str = ""
    """The key for what lies in etcd, in base64; empty if nothing is encrypted there."""

    def value(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "authorities": {name: _written(one) for name, one in self.authorities.items()},
            "serviceAccount": self.service_account.decode(),
            "encryptionKey": self.encryption,
        }


class Making(msgspec.Struct, frozen=True):
    """How what is missing is made."""

    now: datetime
    lifetime: timedelta = issue.AUTHORITY_LIFETIME
    algorithm: Algorithm = keys.DEFAULT
    etcd: bool = True
    """Whether there is an authority for etcd."""
    encryption: bool = False
    """Whether there is a key for what lies in etcd."""

    def rows(self) -> Iterator[AuthorityRow]:
        """The authorities that there are."""
        return (row for row in AUTHORITIES if self.etcd or row.name != OF_ETCD)


def of_value(value: Mapping[str, Any]) -> Kept:
    """What `Kept.value` has written."""
    return Kept(
        {name: _read(one) for name, one in value["authorities"].items()},
        value["serviceAccount"].encode(),
        value["encryptionKey"],
    )


def paths(making: Making) -> tuple[str, ...]:
    """Where it lies, relative to the PKI directory; of a pair the key comes first.

    Who is ended between the two leaves a key, for which a certificate can be made; the other way
    round, nobody could ever issue with it.
    """
    pairs = [(row.key_path, row.path) for row in (*making.rows(), SERVICE_ACCOUNT)]
    more = [(ENCRYPTION,)] if making.encryption else []
    return tuple(path for pair in (*pairs, *more) for path in pair)


def completed(
    found: Mapping[str, bytes],
    supplied: Mapping[str, Authority],
    making: Making,
    config: bytes | None = None,
) -> Kept:
    """What a host has, with what it lacks supplied by people, or else made.

    `found`: its files by path; `config`: what its API server goes by to encrypt.
    """
    known = {row.name: _authority(row, found, supplied, making) for row in making.rows()}
    return Kept(
        known,
        _service_account(found, making),
        _encryption(found, config) if making.encryption else "",
    )


def files(kept: Kept) -> dict[str, File]:
    """What lies on a control plane of it, by path."""
    public = keys.public_pem(keys.public_of(kept.service_account))
    held = {
        SERVICE_ACCOUNT.key_path: File(kept.service_account, SECRET),
        SERVICE_ACCOUNT.path: File(public, PUBLIC),
    }
    for row in AUTHORITIES:
        if (one := kept.authorities.get(row.name)) is not None:
            held[row.path] = File(one.certificate, PUBLIC)
            if one.key is not None:
                held[row.key_path] = File(one.key, SECRET)
    if kept.encryption:
        held[ENCRYPTION] = File(f"{kept.encryption}\n".encode(), SECRET)
    return held


def _authority(
    row: AuthorityRow,
    found: Mapping[str, bytes],
    supplied: Mapping[str, Authority],
    making: Making,
) -> Authority:
    certificate, key = found.get(row.path), found.get(row.key_path)
    given = supplied.get(row.name)
    if certificate is not None:
        return _found(row, Authority(certificate, key), given, making)
    if given is not None:
        if key not in (None, given.key):
            raise _another(row.key_path)
        return given
    return issue.authority(
        row.common_name,
        now=making.now,
        lifetime=making.lifetime,
        algorithm=making.algorithm,
        key=None if key is None else keys.read(key),
    )


def _found(
    row: AuthorityRow, there: Authority, given: Authority | None, making: Making
) -> Authority:
    """An authority that a host has, if it can be used; whoever supplies one has to mean it."""
    key = there.key or (given.key if given is not None else None)
    authorities.supplied(there.certificate, key, now=making.now, where=row.path)
    if given is not None and not _same(there, given):
        raise _another(row.path)
    return Authority(there.certificate, key)


def _same(one: Authority, other: Authority) -> bool:
    issuing = authorities.issuing_certificate
    return issuing(one).public_key() == issuing(other).public_key()


def _service_account(found: Mapping[str, bytes], making: Making) -> bytes:
    if (key := found.get(SERVICE_ACCOUNT.key_path)) is not None:
        keys.read(key)
        return key
    return keys.private_pem(keys.make(making.algorithm))


def _encryption(found: Mapping[str, bytes], config: bytes | None) -> str:
    if (key := found.get(ENCRYPTION)) is not None:
        return key.decode().strip()
    if config is not None and (used := encryption.read(config)).key:
        return used.key
    return base64.b64encode(secrets.token_bytes(encryption.KEY_BYTES)).decode()


def _another(path: str) -> Refused:
    return Refused(
        "the host has another one than the one that is supplied",
        where=path,
        hint="supply the one that the cluster has, or remove what is left of another cluster",
    )


def _written(one: Authority) -> dict[str, str | None]:
    key = None if one.key is None else one.key.decode()
    return {"certificate": one.certificate.decode(), "key": key}


def _read(one: Mapping[str, str | None]) -> Authority:
    certificate, key = one["certificate"] or "", one["key"]
    return Authority(certificate.encode(), None if key is None else key.encode())
