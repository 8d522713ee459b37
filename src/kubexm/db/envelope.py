"""Secrets at rest: each sealed with a key of its own, which the key in a file seals in turn.

Sealed bytes name the key of the file, so that a wrong one is told from damaged data, and are
bound to a context (whose secret it is), so that they can't be moved to another place.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kubexm.db import keyfile
from kubexm.errors import StoreUnusable

_NONCE = 12
_WRAPPED = keyfile.SIZE + 16
_FORMAT = b"\x01"
_HEAD = len(_FORMAT) + 8
_PAYLOAD = _HEAD + _NONCE + _WRAPPED
# The inner key is used once, so its nonce may be the same every time.
_ONCE = bytes(_NONCE)


class Envelope:
    """Seals and opens with the key in one file; the file is made with the first secret."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: bytes | None = None

    def seal(self, plain: bytes, context: bytes) -> bytes:
        """The secret, readable only with the key file and the same context."""
        key = self._key(create=True)
        inner, nonce = secrets.token_bytes(keyfile.SIZE), secrets.token_bytes(_NONCE)
        wrapped = AESGCM(key).encrypt(nonce, inner, context)
        return _head(key) + nonce + wrapped + AESGCM(inner).encrypt(_ONCE, plain, context)

    def unseal(self, sealed: bytes, context: bytes) -> bytes:
        """The secret again; `StoreUnusable` if the key is another or a byte has changed."""
        key = self._key(create=False)
        if sealed[:_HEAD] != _head(key):
            raise self._unusable("is not the one that the secrets were sealed with")
        nonce, wrapped = sealed[_HEAD : _HEAD + _NONCE], sealed[_HEAD + _NONCE : _PAYLOAD]
        try:
            inner = AESGCM(key).decrypt(nonce, wrapped, context)
            return AESGCM(inner).decrypt(_ONCE, sealed[_PAYLOAD:], context)
        except InvalidTag:
            raise StoreUnusable(
                "a sealed secret was changed after it had been written",
                hint="restore the database from a backup",
            ) from None

    def _key(self, *, create: bool) -> bytes:
        if self._known is None:
            self._known = keyfile.read(self._path)
        if self._known is None and create:
            keyfile.create(self._path)
            self._known = keyfile.read(self._path)
        if self._known is None:
            raise self._unusable("is missing")
        return self._known

    def _unusable(self, problem: str) -> StoreUnusable:
        hint = "restore the key file that belongs to this database"
        return keyfile.unusable(self._path, problem, hint)


def _head(key: bytes) -> bytes:
    return _FORMAT + hashlib.sha256(b"kubexm key id" + key).digest()[:8]
