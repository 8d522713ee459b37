"""Journal records as bytes and back; secret values are sealed on the way."""

from __future__ import annotations

from base64 import b64decode, b64encode
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kubexm.errors import StoreUnusable
from kubexm.plan.events import LogLine, ProducedValue
from kubexm.plan.records import AnyRecord, UnitDone

if TYPE_CHECKING:
    from kubexm.db.envelope import Envelope

encode = msgspec.json.Encoder().encode
_lines = msgspec.json.Decoder(tuple[float, str, str, str, str])
_replace = msgspec.structs.replace


def decode(run: str, body: bytes) -> AnyRecord:
    """The record in these bytes, secret values still sealed."""
    try:
        return _records().decode(body)
    except msgspec.MsgspecError as error:
        raise StoreUnusable(
            f"a record of task {run} can't be read ({error})",
            hint="use the kubexm that wrote it, or restore the database from a backup",
        ) from error


@cache
def _records() -> msgspec.json.Decoder[AnyRecord]:
    """Made for the first record that is read: a run that begins only writes."""
    return msgspec.json.Decoder(AnyRecord)


class StoredLine(msgspec.Struct, frozen=True, rename="camel"):
    """One line of a run's log."""

    seq: int
    at: float
    node: str
    host: str
    stream: str
    text: str


def encode_line(line: LogLine) -> bytes:
    """The bytes of a log line; its number is kept beside them."""
    fields = (line.at, line.node, line.host, line.stream, line.text)
    try:
        return encode(fields)
    except UnicodeEncodeError:
        # Half characters, which stand for bytes that are no text.
        return encode((*fields[:-1], line.text.encode(errors="replace").decode()))


def decode_line(seq: int, body: bytes) -> StoredLine:
    """The log line with this number."""
    return StoredLine(seq, *_lines.decode(body))


class Seals:
    """Seals the secret values of records with the key that lies beside the database."""

    def __init__(self, database: Path) -> None:
        self._key_file = database.with_suffix(".key")

    def sealed(self, run: str, record: UnitDone) -> UnitDone:
        """The record with its secret values unreadable."""
        return _replace(record, values=tuple(self._seal(run, record, v) for v in record.values))

    def unsealed(self, run: str, record: AnyRecord) -> AnyRecord:
        """The record with its secret values readable again."""
        if not isinstance(record, UnitDone) or not record.values:
            return record
        return _replace(record, values=tuple(self._unseal(run, record, v) for v in record.values))

    def _seal(self, run: str, record: UnitDone, value: ProducedValue) -> ProducedValue:
        if not value.secret:
            return value
        sealed = self._envelope.seal(encode(value.value), _context(run, record, value))
        return _replace(value, value=b64encode(sealed).decode())

    def _unseal(self, run: str, record: UnitDone, value: ProducedValue) -> ProducedValue:
        if not value.secret:
            return value
        plain = self._envelope.unseal(b64decode(value.value), _context(run, record, value))
        return _replace(value, value=msgspec.json.decode(plain))

    @cached_property
    def _envelope(self) -> Envelope:
        # Most runs make no secret, and the cryptography takes a while to load.
        from kubexm.db.envelope import Envelope  # noqa: PLC0415

        return Envelope(self._key_file)


def _context(run: str, record: UnitDone, value: ProducedValue) -> bytes:
    """Whose secret it is: a sealed value is of no use in any other place."""
    return encode((run, record.node, record.host, value.key, value.host))
