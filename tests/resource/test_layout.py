"""Images written to files and read back, also from the archives of other tools."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import IO, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.resource import made_images

from kubexm.errors import InvalidFile, InvalidInput, Refused, StepFailed
from kubexm.resource import images, layout, manifests
from kubexm.resource.bundle_frames import packed
from kubexm.resource.images import Image
from kubexm.resource.store import Store

AMD64 = made_images.layer(b"of a simple tool")
CONFIG = made_images.config("amd64", [AMD64])

CONTAINERD = """\
version = 2
root = "{place}/root"
state = "{place}/state"
disabled_plugins = [
    "io.containerd.grpc.v1.cri",
    "io.containerd.internal.v1.opt",
    "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
address = "{place}/socket"
[ttrpc]
address = "{place}/ttrpc"
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def other(tmp_path: Path) -> Store:
    return Store(tmp_path / "other")


def tar_of(path: Path, files: Mapping[str, bytes | str], mode: str = "w") -> Path:
    """An archive; a text is where a link of this name leads."""
    # The types know a mode only as a literal.
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            if isinstance(content, str):
                header.type, header.linkname = tarfile.SYMTYPE, content
                tar.addfile(header)
            else:
                header.size = len(content)
                tar.addfile(header, io.BytesIO(content))
    return path


def saved(config: str, layers: Sequence[str], tags: Sequence[str] | None) -> bytes:
    return json.dumps([{"Config": config, "RepoTags": tags, "Layers": layers}]).encode()


def simple(path: Path, changed: Mapping[str, bytes] | None = None, mode: str = "w") -> Path:
    """What tools write that make an image by hand: a configuration and one layer."""
    files = {
        "manifest.json": saved("config.json", ["layer.tar"], ["team/app:1"]),
        "config.json": CONFIG,
        "layer.tar": AMD64,
        **(changed or {}),
    }
    return tar_of(path, files, mode)


def bytes_of(write: Callable[[IO[bytes]], None]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def read_json(path: Path) -> Any:
    return json.loads(path.read_bytes())


def layers_of(image: Image, store: Store) -> list[bytes]:
    found = manifests.manifest(image.root, store).layers
    return [store.path(manifests.sha256_of(each.digest)).read_bytes() for each in found]


def test_a_layout_in_a_directory_is_read_back_as_it_was(
    tmp_path: Path, store: Store, other: Store
) -> None:
    found = [made_images.image(store), made_images.sole(store)]

    made_images.lay_out(found, store, tmp_path / "layout")

    assert list(layout.read(tmp_path / "layout", other)) == found
    for each in found:
        assert made_images.everything(each, other) == made_images.everything(each, store)


def test_a_layout_in_a_tar_is_read_back_as_it_was(
    tmp_path: Path, store: Store, other: Store
) -> None:
    found = [made_images.image(store), made_images.sole(store)]

    with (tmp_path / "images.tar").open("wb") as file:
        layout.write_archive(found, store, file)

    assert list(layout.read(tmp_path / "images.tar", other)) == found
    for each in found:
        assert made_images.everything(each, other) == made_images.everything(each, store)


def test_a_layout_has_what_the_standard_and_containerd_look_for(
    tmp_path: Path, store: Store
) -> None:
    root = made_images.image(store, "nginx:1.27").root

    made_images.lay_out([Image(root, images.parse("nginx:1.27"))], store, tmp_path / "layout")

    assert read_json(tmp_path / "layout/oci-layout") == {"imageLayoutVersion": "1.0.0"}
    (entry,) = read_json(tmp_path / "layout/index.json")["manifests"]
    assert entry["digest"] == root.digest
    assert entry["annotations"] == {
        "io.containerd.image.name": "docker.io/library/nginx:1.27",
        "org.opencontainers.image.ref.name": "1.27",
    }
    for blob in (tmp_path / "layout/blobs/sha256").iterdir():
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name


def test_the_same_images_give_the_same_bytes_from_any_store_and_in_any_order(
    tmp_path: Path, store: Store, other: Store
) -> None:
    here = [made_images.image(store), made_images.sole(store)]
    there = [made_images.sole(other), made_images.image(other)]

    first = bytes_of(lambda file: layout.write_archive(here, store, file))
    second = bytes_of(lambda file: layout.write_archive(there, other, file))

    assert first == second
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        assert {(each.mtime, each.uid, each.uname, each.mode) for each in tar} == {
            (0, 0, "", 0o644)
        }


def test_an_image_with_tag_and_digest_is_found_by_both(
    tmp_path: Path, store: Store, other: Store
) -> None:
    root = made_images.image(store).root
    name = images.parse(f"example.org/app:1@{root.digest}")

    made_images.lay_out([Image(root, name)], store, tmp_path / "layout")

    assert [str(each.name) for each in layout.read(tmp_path / "layout", other)] == [
        "example.org/app:1",
        f"example.org/app@{root.digest}",
    ]


def test_an_image_without_a_name_stays_without_one(
    tmp_path: Path, store: Store, other: Store
) -> None:
    nameless = Image(made_images.image(store).root)

    made_images.lay_out([nameless], store, tmp_path / "layout")

    assert layout.read(tmp_path / "layout", other) == (nameless,)


def test_two_images_of_one_name_are_refused(tmp_path: Path, store: Store) -> None:
    first = made_images.image(store, "app:1", text=b"first")
    second = made_images.image(store, "app:1", text=b"second")

    with pytest.raises(InvalidInput, match=r"same name\n  `docker\.io/library/app:1`"):
        made_images.lay_out([first, second], store, tmp_path / "layout")


def test_damage_in_the_store_is_found_before_it_is_written(tmp_path: Path, store: Store) -> None:
    found = made_images.image(store)
    layer = manifests.contents([found.root], store).blobs[-1]
    path = store.path(manifests.sha256_of(layer.digest))
    path.chmod(0o644)
    path.write_bytes(b"x" * layer.size)

    with pytest.raises(Refused, match=f"{layer.digest} is damaged in the store") as caught:
        bytes_of(lambda file: layout.write_archive([found], store, file))

    assert caught.value.where == str(path)
    assert not path.exists()


def test_what_is_missing_in_the_store_is_named(store: Store) -> None:
    found = made_images.image(store)
    layer = manifests.sha256_of(manifests.contents([found.root], store).blobs[-1].digest)
    store.discard(layer)

    with pytest.raises(StepFailed, match=layer):
        bytes_of(lambda file: layout.write_archive([found], store, file))


def test_a_layout_with_a_damaged_layer_is_refused_and_the_layer_named(
    tmp_path: Path, store: Store, other: Store
) -> None:
    found = made_images.image(store)
    made_images.lay_out([found], store, tmp_path / "layout")
    layer = manifests.sha256_of(manifests.contents([found.root], store).blobs[-1].digest)
    (tmp_path / "layout/blobs/sha256" / layer).write_bytes(b"something else")

    with pytest.raises(InvalidFile, match=f"`blobs/sha256/{layer}` is damaged: found sha256:"):
        layout.read(tmp_path / "layout", other)

    assert not other.has(layer)


def test_a_layout_without_a_layer_is_refused_and_the_layer_named(
    tmp_path: Path, store: Store, other: Store
) -> None:
    found = made_images.image(store)
    made_images.lay_out([found], store, tmp_path / "layout")
    layer = manifests.sha256_of(manifests.contents([found.root], store).blobs[-1].digest)
    (tmp_path / "layout/blobs/sha256" / layer).unlink()

    with pytest.raises(InvalidFile, match=f"can't read `blobs/sha256/{layer}`: No such file"):
        layout.read(tmp_path / "layout", other)


def test_of_an_export_for_one_platform_the_others_are_left_out(
    tmp_path: Path, store: Store, other: Store
) -> None:
    found = made_images.image(store)
    made_images.lay_out([found], store, tmp_path / "layout")
    _, arm64 = manifests.index(found.root, store).manifests
    (tmp_path / "layout/blobs/sha256" / manifests.sha256_of(arm64.digest)).unlink()

    (image,) = layout.read(tmp_path / "layout", other)

    assert [str(each) for each, _ in manifests.platforms(image.root, other)] == ["linux/amd64"]
    assert manifests.origin(image.root, other) == found.root.digest


def test_a_name_of_one_word_in_a_layout_is_a_tag_and_names_nothing(
    tmp_path: Path, store: Store, other: Store
) -> None:
    made_images.lay_out([made_images.image(store)], store, tmp_path / "layout")
    index = read_json(tmp_path / "layout/index.json")
    index["manifests"][0]["annotations"] = {"org.opencontainers.image.ref.name": "latest"}
    (tmp_path / "layout/index.json").write_text(json.dumps(index))

    assert layout.read(tmp_path / "layout", other)[0].name is None


def test_the_archive_of_a_simple_tool_is_read(tmp_path: Path, store: Store) -> None:
    (image,) = layout.read(simple(tmp_path / "app.tar"), store)

    assert str(image.name) == "docker.io/team/app:1"
    assert layers_of(image, store) == [AMD64]
    assert str(manifests.platform_of(image.root, store)) == "linux/amd64"


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2"])
def test_a_packed_archive_is_the_same_image(tmp_path: Path, store: Store, mode: str) -> None:
    plain = layout.read(simple(tmp_path / "app.tar"), store)

    assert layout.read(simple(tmp_path / "app.packed", mode=mode), store) == plain


def test_an_archive_may_say_where_its_files_are_in_many_ways(tmp_path: Path, store: Store) -> None:
    files: dict[str, bytes | str] = {
        "./app/layer.tar": AMD64,
        "./again/layer.tar": "../app/layer.tar",
        "./sha256:abc": CONFIG,
        "./manifest.json": saved("sha256:abc", ["again/layer.tar"], None),
    }

    (image,) = layout.read(tar_of(tmp_path / "app.tar", files), store)

    assert image.name is None
    assert layers_of(image, store) == [AMD64]


def test_a_packed_layer_stays_packed_and_is_compared_as_it_is_unpacked(
    tmp_path: Path, store: Store
) -> None:
    path = simple(tmp_path / "app.tar", {"layer.tar": gzip.compress(AMD64)})

    (image,) = layout.read(path, store)

    (layer,) = manifests.manifest(image.root, store).layers
    assert layer.media_type == "application/vnd.oci.image.layer.v1.tar+gzip"
    assert gzip.decompress(layers_of(image, store)[0]) == AMD64


def test_an_image_with_several_names_is_read_once_for_each(tmp_path: Path, store: Store) -> None:
    manifest = saved("config.json", ["layer.tar"], ["app:1", "app:latest"])

    found = layout.read(simple(tmp_path / "app.tar", {"manifest.json": manifest}), store)

    assert [str(image.name) for image in found] == [
        "docker.io/library/app:1",
        "docker.io/library/app:latest",
    ]
    assert found[0].root == found[1].root


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"layer.tar": made_images.layer(b"another")}, "`layer.tar` is damaged: found sha256:"),
        (
            {"layer.tar": gzip.compress(made_images.layer(b"another"))},
            "`layer.tar` is damaged: found sha256:",
        ),
        ({"layer.tar": gzip.compress(AMD64)[:-9]}, "it is no whole tar"),
        ({"config.json": b"{}"}, "`config.json` tells of 0 layers, found 1"),
        ({"config.json": b"no json"}, "`config.json` of .* can't be read"),
        ({"manifest.json": b"{}"}, "`manifest.json` can't be read"),
        ({"manifest.json": b'[{"x":' + b"[" * 100_000}, "`manifest.json` can't be read"),
        ({"config.json": b'{"x":' + b"[" * 100_000}, "`config.json` of .* can't be read"),
        ({"manifest.json": saved("other", ["layer.tar"], None)}, "there is no `other` in it"),
        ({"manifest.json": saved("config.json", ["other"], None)}, "there is no `other` in it"),
    ],
)
def test_an_archive_that_contradicts_itself_is_refused(
    tmp_path: Path, store: Store, changed: dict[str, bytes], said: str
) -> None:
    with pytest.raises(InvalidFile, match=said):
        layout.read(simple(tmp_path / "app.tar", changed), store)


def test_links_in_a_circle_lead_nowhere(tmp_path: Path, store: Store) -> None:
    files: dict[str, bytes | str] = {
        "manifest.json": saved("config.json", ["a"], None),
        "config.json": CONFIG,
        "a": "b",
        "b": "a",
    }

    with pytest.raises(InvalidFile, match="there is no `a` in it"):
        layout.read(tar_of(tmp_path / "app.tar", files), store)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"hello", "text"),
        (b"", "empty"),
        (b"<html>", "a web page"),
        (gzip.compress(b"hello", mtime=0), "a file of gzip"),
        (b"".join(packed([b"hello"], 5)), "a file of zstd"),
    ],
)
def test_a_file_that_is_no_archive_is_told_as_what_it_is(
    tmp_path: Path, store: Store, content: bytes, what: str
) -> None:
    (tmp_path / "file").write_bytes(content)

    with pytest.raises(InvalidFile, match=f"it is {what}, want a whole tar, plain or") as caught:
        layout.read(tmp_path / "file", store)

    assert "method" not in caught.value.message
    assert ("bundle" in caught.value.message) == (what == "a file of zstd")


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, store: Store) -> None:
    with pytest.raises(InvalidFile, match="this is no file"):
        layout.read(Path("/dev/null"), store)
    with pytest.raises(InvalidFile, match="can't be read: no such file"):
        layout.read(tmp_path / "nothing", store)
    with pytest.raises(InvalidFile, match=r"found neither `index.json` nor `manifest.json`"):
        layout.read(tar_of(tmp_path / "empty.tar", {"a": b""}), store)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_that_was_cut_off_between_its_files_is_not_said_to_hold_none(
    tmp_path: Path, store: Store, mode: str
) -> None:
    tar_of(path := tmp_path / "app.tar", {"layer.tar": AMD64}, mode)
    if mode == "w":
        path.write_bytes(path.read_bytes()[: 512 + len(AMD64)])
    else:
        cut = gzip.decompress(path.read_bytes())[: 512 + len(AMD64)]
        path.write_bytes(gzip.compress(cut))
    assert len(AMD64) % 512 == 0

    with pytest.raises(InvalidFile, match="it is no whole tar: it is cut off"):
        layout.read(path, store)


@given(st.integers(min_value=0, max_value=10_000))
def test_an_archive_that_was_cut_off_is_refused(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    place = tmp_path_factory.mktemp("cut")
    whole = simple(place / "app.tar").read_bytes()
    end = whole.index(AMD64) + len(AMD64) - 1
    (place / "app.tar").write_bytes(whole[: cut % end])

    with pytest.raises(InvalidFile):
        layout.read(place / "app.tar", Store(place / "store"))


@pytest.fixture
def ctr(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Runs `ctr` at a containerd of the test's own."""
    if not (shutil.which("containerd") and shutil.which("ctr")):
        pytest.skip("containerd is not installed: apt-get install containerd")
    if os.geteuid() != 0:
        pytest.skip("containerd unpacks images for root only")
    place = Path(mkdtemp(prefix="ctr-"))  # the path of a socket must not be long
    (place / "config.toml").write_text(CONTAINERD.format(place=place))
    argv = ["containerd", "--config", str(place / "config.toml")]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert any("successfully booted" in line for line in process.stderr)

    def run(*words: str) -> str:
        command = ["ctr", "--address", str(place / "socket"), "images", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    yield run
    process.terminate()
    process.wait()
    process.stderr.close()
    shutil.rmtree(place)


def test_containerd_imports_and_unpacks_what_is_written(
    tmp_path: Path, store: Store, ctr: Callable[..., str]
) -> None:
    several, sole = made_images.image(store), made_images.sole(store)
    archive = tmp_path / "oci.tar"
    with archive.open("wb") as file:
        layout.write_archive([several, sole], store, file)

    ctr("import", "--snapshotter", "native", "--platform", "linux/amd64", str(archive))

    found = ctr("check", "--snapshotter", "native")
    lines = [line.split() for line in found.splitlines()[1:]]
    assert [(line[0], line[-1]) for line in lines] == [
        ("example.org/team/app:1", "true"),
        ("example.org/team/sole:1", "true"),
    ]
    assert lines[0][2] == several.root.digest


def test_what_containerd_exports_is_read(
    tmp_path: Path, store: Store, other: Store, ctr: Callable[..., str]
) -> None:
    image = made_images.image(store)
    with (tmp_path / "oci.tar").open("wb") as file:
        layout.write_archive([image], store, file)
    ctr("import", "--all-platforms", "--no-unpack", str(tmp_path / "oci.tar"))

    ctr("export", "--all-platforms", str(tmp_path / "back.tar"), str(image.name))

    assert layout.read(tmp_path / "back.tar", other) == (image,)


@pytest.mark.slow
@settings(max_examples=15)  # each writes dozens of files durably
@given(st.lists(st.binary(max_size=100), min_size=1, max_size=4), st.booleans())
def test_what_was_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], several: bool
) -> None:
    place = tmp_path_factory.mktemp("images")
    store, other = Store(place / "store"), Store(place / "other")
    arches = made_images.BOTH if several else ("arm64",)
    found = [
        made_images.image(store, f"app:{number}", arches, text=text)
        for number, text in enumerate(texts)
    ]

    with (place / "images.tar").open("wb") as file:
        layout.write_archive(found, store, file)

    assert list(layout.read(place / "images.tar", other)) == found
    again = bytes_of(lambda file: layout.write_archive(found, other, file))
    assert again == (place / "images.tar").read_bytes()
