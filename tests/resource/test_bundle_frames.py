"""Frames of zstd behind each other: what damage in one of them does, and does not."""

import io
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubexm.resource.bundle_frames import Lost, Unreadable, packed, skip, unpacked

TEXTS = (b"first " * 50_000, b"", bytes(range(256)) * 3_000, b"last")


def frame(data: bytes) -> bytes:
    pieces = [data[start : start + 100_000] for start in range(0, len(data), 100_000)]
    return b"".join(packed(pieces, len(data)))


def joined(*datas: bytes) -> io.BytesIO:
    return io.BytesIO(b"".join(map(frame, datas)))


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_each_frame_gives_back_what_was_put_into_it() -> None:
    file = joined(*TEXTS)

    assert [b"".join(unpacked(file)) for _ in TEXTS] == list(TEXTS)
    assert file.read() == b""


def test_a_frame_can_be_skipped() -> None:
    file = joined(*TEXTS)

    for _ in TEXTS[:-1]:
        skip(file)

    assert b"".join(unpacked(file)) == TEXTS[-1]


def test_any_zstd_reads_them_as_one_stream() -> None:
    program = shutil.which("zstd")
    if program is None:
        pytest.skip("zstd is not installed: apt-get install zstd")

    done = subprocess.run(
        [program, "-dc"], input=joined(*TEXTS).getvalue(), capture_output=True, check=True
    )

    assert done.stdout == b"".join(TEXTS)


def test_the_same_bytes_in_other_pieces_are_the_same_frame() -> None:
    data = TEXTS[2]

    assert b"".join(packed([data], len(data))) == frame(data)


def test_what_can_not_be_decompressed_does_not_hide_what_follows() -> None:
    first, second = frame(TEXTS[0]), frame(TEXTS[2])
    damaged = first[:40] + bytes(8) + first[48:]
    file = io.BytesIO(damaged + second)

    with pytest.raises(Unreadable, match="can't be decompressed"):
        list(unpacked(file))
    assert b"".join(unpacked(file)) == TEXTS[2]


@pytest.mark.parametrize("kept", [0, 3, 4, 5, 8, 40, -5, -1])
def test_a_frame_that_is_cut_off_is_told_as_that(kept: int) -> None:
    whole = frame(TEXTS[2])

    with pytest.raises(Lost, match="ends too early"):
        list(unpacked(io.BytesIO(whole[:kept])))


def test_what_is_no_frame_is_told_as_that() -> None:
    with pytest.raises(Lost, match="no frame of zstd"):
        list(unpacked(io.BytesIO(b"PK\x03\x04 something else")))


@given(st.binary(max_size=2000), st.data())
def test_no_flipped_bit_goes_unnoticed(data: bytes, draw: st.DataObject) -> None:
    whole = frame(data)
    bit = draw.draw(st.integers(0, len(whole) * 8 - 1))

    try:
        found = b"".join(unpacked(io.BytesIO(flipped(whole, bit))))
    except Unreadable:
        return
    assert found == data
