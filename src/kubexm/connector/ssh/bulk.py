"""Much data on its way to a host, in packets that are put together with few copies.

asyncssh copies what is sent a dozen times on its way into a packet, which takes longer than to
encrypt it. Here a packet of data is put together at once. There is no public way to that, so parts
of asyncssh are used that it keeps for itself. Where they are not as expected, and whenever anything
but more of the same is due, as other keys are after so many bytes, it goes its usual way.
"""

from __future__ import annotations

import os
import time
from typing import Any

import asyncssh
from asyncssh import encryption
from asyncssh.crypto import cipher

_DATA = b"\x5e"
"""The number of packets that hold data for a channel."""
_BLOCK = 16
_LEAST_PADDING = 4
_Gcm: Any = getattr(cipher, "AESGCM", None)
_ByGcm: Any = getattr(encryption, "GCMEncryption", ())
_OF_CHANNEL = ("_conn", "_send_buf", "_send_chan", "_send_pktsize", "_send_state", "_send_window")
_OF_CONNECTION = (
    "_auth_complete", "_compressor", "_kex_complete", "_rekey_bytes", "_rekey_bytes_sent",
    "_rekey_seconds", "_rekey_time", "_send", "_send_encryption", "_send_seq",
)  # fmt: skip
_OF_CIPHER = ("_iv", "_key", "_update_iv")


def write(channel: asyncssh.SSHClientChannel[bytes], data: bytes) -> None:
    """Send data over a channel, or have it sent when the host can take more."""
    sent = _send(channel, memoryview(data)) if _is_known(channel) and _is_idle(channel) else 0
    if sent < len(data):
        channel.write(data[sent:])


def _is_known(channel: Any) -> bool:
    """Whether asyncssh has the parts that this needs, and encrypts as it is done here."""
    if _Gcm is None or not _has(channel, _OF_CHANNEL):
        return False
    line = channel._conn
    if not _has(line, _OF_CONNECTION) or not isinstance(line._send_encryption, _ByGcm):
        return False
    return _has(getattr(line._send_encryption, "_cipher", None), _OF_CIPHER)


def _has(part: Any, names: tuple[str, ...]) -> bool:
    return all(hasattr(part, name) for name in names)


def _is_idle(channel: Any) -> bool:
    """Whether there is nothing to do but to send packets, one after the other."""
    line = channel._conn
    if channel._send_buf or channel._send_state != "open":
        return False
    if line._compressor or not line._auth_complete or not line._kex_complete:
        return False
    return not line._rekey_seconds or time.monotonic() < line._rekey_time


def _send(channel: Any, data: memoryview) -> int:
    """Send as many packets as the host takes and the keys are good for; the bytes that went."""
    line, sent = channel._conn, 0
    encrypted = _Gcm(line._send_encryption._cipher._key).encrypt
    while sent < len(data) and line._rekey_bytes_sent < line._rekey_bytes:
        part = data[sent : sent + channel._send_pktsize]
        if len(part) > channel._send_window:
            break
        _send_one(line, channel._send_chan, part, encrypted)
        channel._send_window -= len(part)
        sent += len(part)
    return sent


def _send_one(line: Any, channel: int, part: memoryview, encrypted: Any) -> None:
    gcm = line._send_encryption._cipher
    head = _DATA + channel.to_bytes(4) + len(part).to_bytes(4)
    padding = -(1 + len(head) + len(part)) % _BLOCK
    padding += _BLOCK * (padding < _LEAST_PADDING)
    packet = b"".join((padding.to_bytes(), head, part, os.urandom(padding)))
    length = len(packet).to_bytes(4)
    line._send(length + encrypted(gcm._iv, packet, length))
    gcm._update_iv()
    line._send_seq = (line._send_seq + 1) & 0xFFFFFFFF
    line._rekey_bytes_sent += len(packet)
