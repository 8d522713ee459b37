"""Indexes that are trimmed to some machines, and documents that are not what they should be."""

from pathlib import Path

import msgspec
import pytest
from tests.resource import made_images

from kubexm.errors import InvalidFile, Refused
from kubexm.resource import manifests
from kubexm.resource.manifests import Descriptor, Index, Platform, origin, trimmed
from kubexm.resource.store import Store

ARM_V7 = Platform("arm", "linux", "v7")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def index_of(store: Store, *others: Descriptor) -> bytes:
    return manifests.read(made_images.image(store, others=others).root, store)


def platforms_in(data: bytes) -> list[str]:
    return [str(each.platform) for each in msgspec.json.decode(data, type=Index).manifests]


def test_an_index_of_which_nothing_is_left_out_keeps_its_bytes(store: Store) -> None:
    data = index_of(store, made_images.notes(store))

    assert trimmed(data, ("arm64", "amd64"), "it") == data


def test_a_trimmed_index_has_the_wanted_manifests_and_tells_where_it_comes_from(
    store: Store,
) -> None:
    data = index_of(store, made_images.notes(store))

    found = trimmed(data, ("arm64",), "it")

    assert platforms_in(found) == ["linux/arm64"]
    root = manifests.kept(found, manifests.OCI_INDEX, store)
    assert origin(root, store) == manifests.digest_of(data)
    assert trimmed(data, ("arm64",), "it") == found


def test_an_index_that_is_trimmed_twice_tells_where_it_first_came_from(store: Store) -> None:
    third = made_images.manifest(store, "riscv64", (b"third",))
    data = index_of(store, third)

    twice = trimmed(trimmed(data, ("amd64", "arm64"), "it"), ("amd64",), "it")

    root = manifests.kept(twice, manifests.OCI_INDEX, store)
    assert platforms_in(twice) == ["linux/amd64"]
    assert origin(root, store) == manifests.digest_of(data)


def test_what_is_not_known_of_a_manifest_stays_in_a_trimmed_index(store: Store) -> None:
    document = msgspec.json.decode(index_of(store))
    document["manifests"][0]["artifactType"] = "unheard/of"
    document["manifests"][0]["platform"]["os.version"] = "1"

    found = msgspec.json.decode(trimmed(msgspec.json.encode(document), ("amd64",), "it"))

    assert found["manifests"] == document["manifests"][:1]


def test_an_index_without_a_wanted_architecture_is_refused_and_tells_what_there_is(
    store: Store,
) -> None:
    with pytest.raises(Refused) as refused:
        trimmed(index_of(store), ("amd64", "s390x", "arm/v7"), "`app`")

    assert refused.value.message == (
        "`app` is not for s390x, arm/v7; it is for linux/amd64, linux/arm64"
    )


@pytest.mark.parametrize(
    ("architecture", "suits"),
    [("arm", True), ("arm/v7", True), ("arm/v6", False), ("arm64", False), ("amd64", False)],
)
def test_a_variant_counts_only_if_it_is_named(architecture: str, suits: bool) -> None:
    assert ARM_V7.suits(architecture) is suits


def test_a_manifest_for_another_system_suits_no_architecture() -> None:
    assert not Platform("amd64", "windows").suits("amd64")


def test_the_root_of_an_image_comes_after_all_that_it_names(store: Store) -> None:
    found = made_images.image(store)

    inside = manifests.contents([found.root], store)

    assert inside.documents[-1].digest == found.root.digest
    assert len(inside.documents) == 3
    assert len({each.digest for each in inside.blobs}) == len(inside.blobs) == 5


def test_a_document_that_was_damaged_in_the_store_is_named(store: Store) -> None:
    root = made_images.image(store).root
    path = store.path(manifests.sha256_of(root.digest))
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b" ")

    with pytest.raises(
        Refused, match=f"{root.digest} is damaged in the store: found sha256:"
    ) as caught:
        manifests.read(root, store)

    assert caught.value.where == str(path)
    assert not path.exists()


def test_a_document_that_was_damaged_in_the_store_is_mended_by_what_it_has_to_be(
    store: Store,
) -> None:
    data = manifests.encoded({"a": "document"})
    path = store.path(manifests.sha256_of(manifests.kept(data, "any", store).digest))
    path.chmod(0o644)
    path.write_bytes(b"another")

    manifests.kept(data, "any", store)

    assert path.read_bytes() == data


def test_what_is_sound_and_no_document_is_not_thrown_away(store: Store) -> None:
    layer = store.add(bytes(manifests.LARGEST_DOCUMENT + 2))
    named = Descriptor(manifests.OCI_INDEX, f"sha256:{layer.sha256}", 7)

    with pytest.raises(InvalidFile, match="is too large"):
        manifests.read(named, store)

    assert store.has(layer.sha256)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b'{"schemaVersion": 2, "config": {}, "layers": []}', manifests.OCI_MANIFEST),
        (b'{"schemaVersion": 2, "manifests": []}', manifests.OCI_INDEX),
        (
            b'{"schemaVersion": 2, "mediaType": "%s"}' % manifests.DOCKER_INDEX.encode(),
            manifests.DOCKER_INDEX,
        ),
    ],
)
def test_the_kind_of_a_document_follows_from_what_is_in_it(data: bytes, kind: str) -> None:
    assert manifests.kind_of(data, "it") == kind


def test_an_image_of_the_first_schema_is_refused() -> None:
    with pytest.raises(Refused, match="of schema 1, which is no image"):
        manifests.kind_of(b'{"schemaVersion": 1, "fsLayers": []}', "it")


@pytest.mark.parametrize("digest", ["sha256:../../etc/passwd", "sha512:" + "a" * 128, ""])
def test_a_digest_that_could_be_any_path_is_refused(digest: str) -> None:
    data = msgspec.json.encode(
        {"manifests": [{"mediaType": manifests.OCI_MANIFEST, "digest": digest, "size": 1}]}
    )

    with pytest.raises(InvalidFile, match="index of it can't be read"):
        trimmed(data, ("amd64",), "it")
