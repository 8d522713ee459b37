"""Files by what is in them: what is no program and no archive is known at once."""

import bz2
import gzip
import lzma
import tarfile
from pathlib import Path

import pytest
from tests.resource import depot as depots

from kubexm.resource.kinds import Kind, fault


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("", b""),
        ("file", b"anything"),
        ("binary", b"\x7fELF\x02\x01"),
        ("binary", b"#!/bin/sh\n"),
        ("archive", gzip.compress(b"content", mtime=0)),
        ("archive", lzma.compress(b"content")),
        ("archive", bz2.compress(b"content")),
        ("archive", b"\x28\xb5\x2f\xfd..."),
        ("archive", b"PK\x03\x04..."),
        ("manifest", b"kind: Pod\n"),
        ("chart", depots.chart("app")),
    ],
    ids=str,
)
def test_what_is_of_its_kind_is_taken(path: Path, kind: Kind, content: bytes) -> None:
    path.write_bytes(content)

    assert fault(kind, path) == ""


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_plain_tar_is_an_archive(path: Path, form: int) -> None:
    with tarfile.open(path, "w", format=form) as tar:
        tar.add(__file__)

    assert fault("archive", path) == ""


@pytest.mark.parametrize(
    ("kind", "content", "told"),
    [
        ("binary", b"", "it is empty, want a program"),
        ("file", b"", "it is empty, want a file"),
        ("file", b"\n <!DOCTYPE html>", "it is a web page, want a file"),
        ("binary", b"\xef\xbb\xbf<HTML>", "it is a web page, want a program"),
        ("binary", b"\x1f\x8b\x08", "it is a file of gzip, want a program"),
        ("binary", b"Not Found", "it is text, want a program"),
        ("archive", b"\x7fELF", "it is a program, want an archive"),
        ("archive", b"{}", "it is text, want an archive"),
        ("archive", b"\0\1\2", "it is something else, want an archive"),
        ("manifest", b"<html>", "it is a web page, want a manifest in YAML"),
        ("chart", b"<html>", "it is a web page, want a chart"),
    ],
    ids=str,
)
def test_what_is_another_is_told(path: Path, kind: Kind, content: bytes, told: str) -> None:
    path.write_bytes(content)

    assert fault(kind, path) == told


def test_much_made_out_of_little_is_no_chart(path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        header = tarfile.TarInfo("app/large")
        header.size = 1 << 29
        file.write(header.tobuf())
        for _ in range(1 << 9):
            file.write(bytes(1 << 20))

    assert fault("chart", path) == "it is a file of gzip, want a chart"
