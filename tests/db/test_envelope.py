"""Sealed secrets open with the right key, in the right place, unchanged, and not otherwise."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kubexm.db.envelope import Envelope
from kubexm.errors import StoreUnusable


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "kubexm.key"


def test_secret_comes_back_through_another_process_of_the_same_key(key_file: Path) -> None:
    sealed = Envelope(key_file).seal(b"s3cret", b"here")

    assert b"s3cret" not in sealed
    assert Envelope(key_file).unseal(sealed, b"here") == b"s3cret"


def test_same_secret_is_never_sealed_alike(key_file: Path) -> None:
    envelope = Envelope(key_file)

    assert envelope.seal(b"s3cret", b"here") != envelope.seal(b"s3cret", b"here")


def test_key_file_is_the_owners_alone_and_made_whole(key_file: Path) -> None:
    Envelope(key_file).seal(b"s3cret", b"here")

    assert key_file.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in key_file.parent.iterdir()] == [key_file.name]


def test_all_who_make_the_key_file_at_once_use_the_same_key(key_file: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        sealed = list(pool.map(lambda _: Envelope(key_file).seal(b"s3cret", b"here"), range(8)))

    assert {Envelope(key_file).unseal(one, b"here") for one in sealed} == {b"s3cret"}


def test_sealed_secret_does_not_open_in_another_place(key_file: Path) -> None:
    envelope = Envelope(key_file)
    sealed = envelope.seal(b"s3cret", b"here")

    with pytest.raises(StoreUnusable, match="was changed"):
        envelope.unseal(sealed, b"there")


@pytest.mark.parametrize("position", [9, 30, 70, -1])
def test_changed_byte_is_noticed(key_file: Path, position: int) -> None:
    envelope = Envelope(key_file)
    sealed = bytearray(envelope.seal(b"s3cret", b"here"))
    sealed[position] ^= 1

    with pytest.raises(StoreUnusable, match="was changed"):
        envelope.unseal(bytes(sealed), b"here")


def test_another_key_file_is_told_from_damage(key_file: Path) -> None:
    sealed = Envelope(key_file).seal(b"s3cret", b"here")
    key_file.write_bytes(bytes(32))

    with pytest.raises(StoreUnusable, match="not the one") as refused:
        Envelope(key_file).unseal(sealed, b"here")

    assert refused.value.where == str(key_file)
    assert "restore" in refused.value.hint


def test_missing_key_file_is_not_replaced_by_a_new_one(key_file: Path) -> None:
    sealed = Envelope(key_file).seal(b"s3cret", b"here")
    key_file.unlink()

    with pytest.raises(StoreUnusable, match="is missing"):
        Envelope(key_file).unseal(sealed, b"here")

    assert not key_file.exists()


def test_key_file_that_others_can_read_is_refused(key_file: Path) -> None:
    Envelope(key_file).seal(b"s3cret", b"here")
    key_file.chmod(0o644)

    with pytest.raises(StoreUnusable, match="read by others") as refused:
        Envelope(key_file).seal(b"s3cret", b"here")

    assert f"chmod 600 {key_file}" in refused.value.hint


def test_key_file_of_another_size_is_refused(key_file: Path) -> None:
    key_file.write_bytes(b"short")
    key_file.chmod(0o600)

    with pytest.raises(StoreUnusable, match="is damaged"):
        Envelope(key_file).seal(b"s3cret", b"here")


def test_key_file_that_can_not_be_made_is_explained(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="can't be made"):
        Envelope(tmp_path / "nowhere" / "kubexm.key").seal(b"s3cret", b"here")
