"""zstd as bundles have it: a frame for each file, so that damage stays where it is.

Frames behind each other are what any `zstd` reads as one stream. Where a frame ends is told by the
lengths of its blocks, so one that can't be decompressed does not hide those behind it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import IO

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LEVEL = 3
"""One for all, or the same input would not give the same bytes."""
_MAGIC = bytes.fromhex("28b52ffd")
_REPEATED = 1
"""The kind of a block that is one byte, so many times."""
_LARGEST_BLOCK = 1 << 17


class Unreadable(Exception):
    """Bytes that are no frame, or no longer one; the text says why."""


class Lost(Unreadable):
    """Where the next frame begins can't be told either."""


def packed(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The frame of some bytes, of which there are so many."""
    compressor = zstd.ZstdCompressor(
        options={
            zstd.CompressionParameter.compression_level: LEVEL,
            zstd.CompressionParameter.checksum_flag: 1,
        }
    )
    compressor.set_pledged_input_size(size)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush(zstd.ZstdCompressor.FLUSH_FRAME)


def unpacked(file: IO[bytes]) -> Iterator[bytes]:
    """What the next frame of a file holds, a little at a time."""
    decompressor, blocks = zstd.ZstdDecompressor(), _blocks(file)
    for block in blocks:
        try:
            data = decompressor.decompress(block)
        except zstd.ZstdError as error:
            for _ in blocks:  # up to where the next one begins
                pass
            raise Unreadable("it can't be decompressed") from error
        yield data


def skip(file: IO[bytes]) -> None:
    """Go to the end of the next frame without a look at what it holds."""
    for _ in _blocks(file):
        pass


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """The next frame as it is: its head, its blocks, and its checksum if it has one."""
    head = _exactly(file, 5)
    if head[:4] != _MAGIC:
        raise Lost("there is no frame of zstd")
    yield head + _exactly(file, _rest_of_head(head[4]))
    last = 0
    while not last:
        mark = _exactly(file, 3)
        number = int.from_bytes(mark, "little")
        last, kind, size = number & 1, number >> 1 & 3, number >> 3
        if kind == 3 or size > _LARGEST_BLOCK:
            raise Lost("its blocks can't be told from each other")
        yield mark + _exactly(file, 1 if kind == _REPEATED else size)
    if head[4] & 4:
        yield _exactly(file, 4)


def _rest_of_head(descriptor: int) -> int:
    """How long the head of a frame is behind its first five bytes."""
    is_single = descriptor >> 5 & 1
    window = 1 - is_single
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    return window + dictionary + (is_single, 2, 4, 8)[descriptor >> 6]


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise Lost("the file ends too early")
    return data
