"""Bundles: the same content is the same bytes, damage is named, and what is loaded is there."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.resource import depot as depots
from tests.resource import made_images
from tests.resource.depot import Depot
from tests.resource.test_bundle_gather import asking

from kubexm.errors import InvalidFile, StepFailed, StoreUnusable, UnsupportedFormat
from kubexm.resource import bundle, bundle_manifest, catalog, images, keys, manifests
from kubexm.resource.bundle_archive import MANIFEST
from kubexm.resource.bundle_build import build, described
from kubexm.resource.bundle_changes import Difference, differences
from kubexm.resource.bundle_frames import packed, unpacked
from kubexm.resource.bundle_gather import Sources, gather
from kubexm.resource.bundle_manifest import Manifest
from kubexm.resource.fetch import Advance, Options
from kubexm.resource.http import Settings
from kubexm.resource.images import Image
from kubexm.resource.materials import BillOfMaterials, bill
from kubexm.resource.needs import Needs
from kubexm.resource.registries import Way
from kubexm.resource.store import Store

QUICK = Options(web=Settings(first_pause=0.001, attempts=2))
NEEDS = Needs(kubernetes="v1.36.3", network="routed", proxy="none")
MIRRORED = ("docker.io", "ghcr.io", "quay.io", "registry.k8s.io")


NOTHING = Manifest(kubernetes=(), architectures=(), artifacts={}, images={}, blobs={})


@pytest.fixture
def depot(tmp_path: Path) -> Iterator[Depot]:
    with depots.opened(tmp_path / "depot") as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def wanted(depot: Depot, tmp_path: Path) -> BillOfMaterials:
    """A bill all of which the depot has."""
    known = catalog.load()
    stocked = depot.stock(depots.few(bill(known, NEEDS)))
    path = depots.overlay(depot, known, stocked, tmp_path / "depot.toml")
    return depots.few(bill(catalog.load([path]), NEEDS))


def sources(depot: Depot) -> Sources:
    ways = {name: Way(mirrors=(depot.url,)) for name in MIRRORED}
    return Sources(options=QUICK, registries=ways)


async def built(depot: Depot, wanted: BillOfMaterials, store: Store, path: Path) -> Manifest:
    await gather(wanted, store, sources(depot))
    return await build(wanted, store, path)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def frames(path: Path) -> list[tuple[int, int]]:
    """Where each frame of a bundle begins and ends."""
    places = []
    with path.open("rb") as file:
        while file.peek(1):
            start = file.tell()
            for _ in unpacked(file):
                pass
            places.append((start, file.tell()))
    return places


class TestBuilding:
    async def test_all_of_a_bill_is_in_it(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        manifest = await built(depot, wanted, store, tmp_path / "b.tar.zst")

        assert manifest == bundle.contents(tmp_path / "b.tar.zst")
        assert bundle.missing(manifest, wanted) == []
        assert manifest.kubernetes == ("v1.36.3",)
        assert manifest.architectures == ("amd64",)
        kubelet = manifest.artifacts["kubernetes/v1.36.3/kubelet/amd64"]
        assert kubelet.file == "kubelet"
        assert manifest.blobs[kubelet.sha256] == kubelet.size
        assert manifest.images["registry.k8s.io/pause:3.10.2"].architectures.keys() == {"amd64"}
        assert await bundle.verify(tmp_path / "b.tar.zst") == []

    async def test_two_stores_with_the_same_content_give_the_same_bytes(
        self, depot: Depot, wanted: BillOfMaterials, tmp_path: Path
    ) -> None:
        one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
        # The second one has the images for more machines, and things that nobody asks for.
        both = replace(NEEDS, architectures=("amd64", "arm64"))
        more = depots.few(bill(catalog.load(), both))
        await gather(replace(more, binaries=()), other, sources(depot))
        other.add(b"something else", name="else")

        await built(depot, wanted, one, tmp_path / "one.tar.zst")
        await built(depot, wanted, other, tmp_path / "other.tar.zst")

        first, second = ((tmp_path / f"{name}.tar.zst").read_bytes() for name in ("one", "other"))
        assert first == second

    async def test_the_manifest_comes_first_and_tells_nobody_and_no_time(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        manifest = await built(depot, wanted, store, path := tmp_path / "b.tar.zst")

        with path.open("rb") as file:
            whole = io.BytesIO(b"".join(b"".join(unpacked(file)) for _ in frames(path)))
        with tarfile.open(fileobj=whole) as tar:
            members = tar.getmembers()

        entries = [f"blobs/sha256/{digest}" for digest in sorted(manifest.blobs)]
        assert [member.name for member in members] == [MANIFEST, *entries]
        assert {(each.mtime, each.uid, each.uname, each.mode) for each in members} == {
            (0, 0, "", 0o644)
        }

    async def test_a_damaged_store_is_noticed_and_mended_by_the_next_build(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        await gather(wanted, store, sources(depot))
        digest = store.find("kubernetes/v1.36.3/kubelet/amd64")
        assert digest is not None
        store.path(digest).chmod(0o644)
        store.path(digest).write_bytes(b"x" * store.path(digest).stat().st_size)

        with pytest.raises(StepFailed, match=f"want {digest}"):
            await build(wanted, store, tmp_path / "b.tar.zst")
        assert [name for name in names(tmp_path) if "b.tar.zst" in name] == []
        await built(depot, wanted, store, tmp_path / "b.tar.zst")

        assert await bundle.verify(tmp_path / "b.tar.zst") == []

    async def test_it_is_written_whole_or_not_at_all(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        await gather(wanted, store, sources(depot))

        with pytest.raises(StoreUnusable):
            await build(wanted, store, tmp_path / "nowhere" / "b.tar.zst")

    async def test_it_tells_how_far_it_is(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        told: list[Advance] = []
        await gather(wanted, store, sources(depot))

        manifest = await build(wanted, store, tmp_path / "b.tar.zst", progress=told.append)

        assert [each.done for each in told] == sorted(each.done for each in told)
        assert told[-1] == Advance("b.tar.zst", manifest.size, manifest.size)


class TestDamage:
    async def test_a_flipped_bit_is_found_wherever_it_is(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        manifest = await built(depot, wanted, store, path := tmp_path / "b.tar.zst")
        whole, places = path.read_bytes(), frames(path)

        for number, (start, end) in enumerate(places[1:-1]):
            digest = list(manifest.blobs)[number]
            middle = (start + end) // 2
            path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 16]) + whole[middle + 1 :])

            damages = await bundle.verify(path)

            assert damages[0].entry == f"blobs/sha256/{digest}"
            assert damages[0].wanted == digest
            assert damages[0].found != digest
            assert damages[0].users == manifest.users(digest) != ()

    async def test_damage_in_one_file_does_not_hide_the_others(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        manifest = await built(depot, wanted, store, path := tmp_path / "b.tar.zst")
        whole = bytearray(path.read_bytes())
        hit = (2, 5, 7)
        for number in hit:
            whole[frames(path)[number][1] - 6] ^= 1  # in the last bytes of its last block
        path.write_bytes(whole)

        damages = await bundle.verify(path)

        digests = list(manifest.blobs)
        assert [damage.wanted for damage in damages] == [digests[number - 1] for number in hit]

    async def test_what_was_cut_off_is_named_with_all_that_is_missing(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        manifest = await built(depot, wanted, store, path := tmp_path / "b.tar.zst")
        start, end = frames(path)[4]
        path.write_bytes(path.read_bytes()[: (start + end) // 2])

        damages = await bundle.verify(path)

        digests = list(manifest.blobs)[3:]
        assert [damage.wanted for damage in damages] == digests
        assert "ends too early" in damages[0].reason
        assert damages[0].found not in ("", digests[0])
        assert {damage.reason for damage in damages[1:]} == {"it is not there"}

    @pytest.mark.parametrize(("extra", "reason"), [(b"", "ends too early"), (b"more", "behind it")])
    async def test_its_end_belongs_to_it(
        self,
        depot: Depot,
        wanted: BillOfMaterials,
        store: Store,
        tmp_path: Path,
        extra: bytes,
        reason: str,
    ) -> None:
        await built(depot, wanted, store, path := tmp_path / "b.tar.zst")
        whole = path.read_bytes()
        path.write_bytes(whole + extra if extra else whole[:-3])

        [damage] = await bundle.verify(path)

        assert (damage.entry, reason in damage.reason) == ("the end", True)

    async def test_a_file_in_the_place_of_another_is_noticed(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        manifest = await built(depot, wanted, store, path := tmp_path / "b.tar.zst")
        whole, places = path.read_bytes(), frames(path)
        one, two = (whole[start:end] for start, end in places[1:3])
        path.write_bytes(whole[: places[1][0]] + two + one + whole[places[2][1] :])

        damages = await bundle.verify(path)

        assert [damage.wanted for damage in damages] == list(manifest.blobs)[:2]

    @pytest.mark.parametrize(("said", "told"), [(3, 3), (-7, 0), (None, 512), (1 << 40, 1 << 40)])
    async def test_what_is_in_the_place_of_a_file_is_told_with_its_size(
        self,
        depot: Depot,
        wanted: BillOfMaterials,
        store: Store,
        tmp_path: Path,
        said: int | None,
        told: int,
    ) -> None:
        manifest = await built(depot, wanted, store, path := tmp_path / "b.tar.zst")
        whole = path.read_bytes()
        digest = max(manifest.blobs, key=lambda each: manifest.blobs[each])
        start, end = frames(path)[1 + list(manifest.blobs).index(digest)]
        header = tarfile.TarInfo(f"blobs/sha256/{digest}")
        header.size = manifest.blobs[digest] if said is None else said
        data = header.tobuf(tarfile.GNU_FORMAT) + bytes(512)
        path.write_bytes(whole[:start] + b"".join(packed([data], len(data))) + whole[end:])

        [damage] = await bundle.verify(path)

        assert f"with {told:,} bytes in its place" in damage.reason
        assert manifest.blobs[digest] > 512

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"", "this is no bundle"),
            (b"PK\x03\x04", "this is no bundle"),
            (b"".join(packed([b"x" * 600], 600)), "no header of tar"),
        ],
    )
    def test_what_is_no_bundle_is_told_as_that(
        self, tmp_path: Path, data: bytes, message: str
    ) -> None:
        (tmp_path / "b").write_bytes(data)

        with pytest.raises(InvalidFile, match=message) as caught:
            bundle.contents(tmp_path / "b")
        assert caught.value.where == str(tmp_path / "b")

    def test_a_bundle_that_is_not_there_is_told_as_that(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidFile, match="can't be read: no such file"):
            bundle.contents(tmp_path / "b")

    @pytest.mark.parametrize(
        ("text", "error", "message"),
        [
            ('{"apiVersion": "kubexm.io/v9", "kind": "Bundle"}', UnsupportedFormat, "kubexm.io/v9"),
            ('{"apiVersion": "kubexm.io/v1alpha1", "kind": "Bundle"}', InvalidFile, "kubernetes"),
            ("no json", InvalidFile, "can't be read"),
            (f'{{"x": {"[" * 100_000}', InvalidFile, "can't be read: maximum recursion depth"),
        ],
    )
    def test_a_manifest_that_can_not_be_used_is_refused(
        self, text: str, error: type[InvalidFile], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            bundle_manifest.decoded(text.encode(), "b")

    @pytest.mark.parametrize(
        "key",
        [
            "",
            "foo",
            "image/docker.io/library/nginx:1",
            "image/docker.io/library/nginx",
            f"image-part/{'a' * 64}/{'b' * 64}",
            "runc/v1/runc/amd64/more",
            "../v1/runc/amd64",
            "runc/v1/\x1b[31mrunc",
            "chart/\x1b]0;title\x07/a/1",
            "chart/a",
        ],
    )
    def test_a_key_that_is_none_is_refused_and_shown_as_it_can_be(self, key: str) -> None:
        file = bundle_manifest.BundledFile("a" * 64, 1, "x")
        manifest = replace(NOTHING, artifacts={key: file}, blobs={"a" * 64: 1})

        with pytest.raises(InvalidFile, match="contradicts itself") as caught:
            bundle_manifest.decoded(bundle_manifest.encoded(manifest), "b")

        [problem] = caught.value.problems
        assert "is the key of no file and no chart" in problem.message
        assert problem.message.isprintable()

    @pytest.mark.parametrize("name", ["", "a.lan/b:\x1b[31m", "a.lan/b c:1", "A", "a.lan/b:1@x"])
    def test_an_image_by_what_is_no_name_is_refused(self, store: Store, name: str) -> None:
        made = of_image(made_images.image(store, "a.lan/b:1"), store)

        with pytest.raises(InvalidFile) as caught:
            decoded(replace(made, images={name: made.images["a.lan/b:1"]}))

        [problem] = caught.value.problems
        assert "is no name of an image" in problem.message
        assert problem.message.isprintable()

    def test_an_image_that_is_none_is_refused(self, store: Store) -> None:
        made = of_image(made_images.image(store, "a.lan/b:1"), store)
        sound = made.images["a.lan/b:1"]
        layer = replace(sound.root, media_type=manifests.OCI_LAYER)
        wrong = (
            replace(sound, blobs=()),
            replace(sound, root=layer),
            replace(sound, architectures={"amd64": sound.root}),
            replace(sound, architectures={"\x1b": sound.architectures["amd64"]}),
        )

        assert decoded(made) == made
        for image in wrong:
            with pytest.raises(InvalidFile, match="contradicts itself"):
                decoded(replace(made, images={"a.lan/b:1": image}))
        for text in ("\x1b", "\n"):
            with pytest.raises(InvalidFile, match="contradicts itself"):
                decoded(replace(made, kubernetes=(text,)))
        with pytest.raises(InvalidFile, match="contradicts itself"):
            decoded(replace(made, brought=("a.lan/c:1",)))

    def test_a_manifest_that_names_what_is_not_there_is_refused(self) -> None:
        manifest = Manifest(
            kubernetes=(), architectures=(), artifacts={}, images={}, blobs={"b" * 64: 1}
        )
        file = bundle_manifest.BundledFile("a" * 64, 1, "x")
        text = bundle_manifest.encoded(replace(manifest, artifacts={"a/b/c/d": file}))

        with pytest.raises(InvalidFile, match="contradicts itself"):
            bundle_manifest.decoded(text, "b")


def of_image(image: Image, store: Store) -> Manifest:
    """The manifest of a bundle with one image."""
    images.record(image, store)
    return described(asking(str(image.name)), store)


def decoded(manifest: Manifest) -> Manifest:
    return bundle_manifest.decoded(bundle_manifest.encoded(manifest), "b")


class TestLoading:
    async def test_what_was_loaded_is_asked_of_nobody(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        manifest = await built(depot, wanted, store, tmp_path / "b.tar.zst")
        other = Store(tmp_path / "other")
        depot.asked.clear()

        assert await bundle.load(tmp_path / "b.tar.zst", other) == manifest
        await gather(wanted, other.loaded(), sources(depot))

        assert depot.asked == []
        for file in wanted.binaries:
            assert other.loaded().find(keys.of_file(file)) == file.sha256
        for image in wanted.images:
            assert images.find(images.parse(image.name), other) is None
            found = images.find(images.parse(image.name), other.loaded())
            assert found is not None
            assert found.root == manifest.images[image.name].root
        assert other.prune() == []
        assert other.verify_all() == []

    async def test_a_bundle_of_what_was_loaded_is_the_same(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        await built(depot, wanted, store, tmp_path / "one.tar.zst")
        other = Store(tmp_path / "other")

        await bundle.load(tmp_path / "one.tar.zst", other)
        await build(wanted, other.loaded(), tmp_path / "two.tar.zst")

        one, two = ((tmp_path / f"{name}.tar.zst").read_bytes() for name in ("one", "two"))
        assert one == two

    async def test_of_a_damaged_bundle_the_sound_part_is_kept_and_nothing_is_named(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        manifest = await built(depot, wanted, store, path := tmp_path / "b.tar.zst")
        other, whole = Store(tmp_path / "other"), path.read_bytes()
        place = frames(path)[3][1] - 6
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        digest = list(manifest.blobs)[2]

        with pytest.raises(InvalidFile, match="1 file of it") as caught:
            await bundle.load(path, other)

        assert [problem.where for problem in caught.value.problems] == [f"blobs/sha256/{digest}"]
        assert other.names() == {}
        assert {each.sha256 for each in other.blobs()} == manifest.blobs.keys() - {digest}
        path.write_bytes(whole)
        assert await bundle.load(path, other) == manifest

    async def test_an_interrupted_one_goes_on(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        manifest = await built(depot, wanted, store, path := tmp_path / "b.tar.zst")
        other, whole = Store(tmp_path / "other"), path.read_bytes()
        path.write_bytes(whole[: frames(path)[5][0]])
        with pytest.raises(InvalidFile):
            await bundle.load(path, other)
        before = {each.sha256: other.path(each.sha256).stat().st_ino for each in other.blobs()}
        path.write_bytes(whole)

        await bundle.load(path, other)

        assert len(before) == 4
        assert {digest: other.path(digest).stat().st_ino for digest in before} == before
        assert {each.sha256 for each in other.blobs()} == manifest.blobs.keys()

    async def test_it_mends_what_is_damaged_in_the_store(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        manifest = await built(depot, wanted, store, tmp_path / "b.tar.zst")
        await bundle.load(tmp_path / "b.tar.zst", other := Store(tmp_path / "other"))
        for digest in manifest.blobs:
            other.path(digest).chmod(0o644)
            other.path(digest).write_bytes(b"x")

        await bundle.load(tmp_path / "b.tar.zst", other)

        sizes = {digest: other.path(digest).stat().st_size for digest in manifest.blobs}
        assert sizes == manifest.blobs

    @pytest.mark.parametrize("is_large", [False, True])
    async def test_of_files_that_are_there_only_large_ones_are_not_read(
        self,
        depot: Depot,
        wanted: BillOfMaterials,
        store: Store,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        is_large: bool,
    ) -> None:
        manifest = await built(depot, wanted, store, tmp_path / "b.tar.zst")
        await bundle.load(tmp_path / "b.tar.zst", other := Store(tmp_path / "other"))
        files = {file.sha256 for file in manifest.artifacts.values()}
        whole = {digest: other.path(digest).read_bytes() for digest in files}
        for digest, data in whole.items():
            other.path(digest).chmod(0o644)
            other.path(digest).write_bytes(b"\0" * len(data))
        if is_large:
            monkeypatch.setattr(bundle, "_LARGE", 0)

        await bundle.load(tmp_path / "b.tar.zst", other)

        found = {digest: other.path(digest).read_bytes() for digest in files}
        assert (found == whole) is not is_large

    async def test_a_disk_without_room_is_told_before_anything_is_written(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        manifest = await built(depot, wanted, store, tmp_path / "b.tar.zst")
        huge = replace(manifest, blobs={**manifest.blobs, "f" * 64: 1 << 60})
        text = bundle_manifest.encoded(huge)
        header = tarfile.TarInfo(MANIFEST)
        header.size = len(text)
        first = header.tobuf() + text
        (tmp_path / "huge").write_bytes(b"".join(packed([first], len(first))))

        with pytest.raises(StoreUnusable, match="the disk is full"):
            await bundle.load(tmp_path / "huge", other := Store(tmp_path / "other"))
        assert other.blobs() == []


class TestMissing:
    @pytest.fixture
    def manifest(self, wanted: BillOfMaterials) -> Manifest:
        """One that has all of the bill, by what it says."""
        some = manifests.described(b"", manifests.OCI_MANIFEST)
        return Manifest(
            kubernetes=wanted.kubernetes,
            architectures=("amd64",),
            artifacts={
                keys.of_file(file): bundle_manifest.BundledFile(file.sha256 or "", 1, file.file)
                for file in wanted.binaries
            },
            images={
                image.name: bundle_manifest.BundledImage(some, {"amd64": some}, ())
                for image in wanted.images
            },
            blobs={},
        )

    def test_what_is_there_is_not_missed(self, manifest: Manifest, wanted: BillOfMaterials) -> None:
        assert bundle.missing(manifest, wanted) == []

    def test_everything_that_is_not_there_is_told_with_its_reason(
        self, manifest: Manifest, wanted: BillOfMaterials
    ) -> None:
        artifacts = {**manifest.artifacts}
        other = artifacts.pop("runc/v1.4.3/runc/amd64")
        artifacts["runc/v1.4.2/runc/amd64"] = other
        del artifacts["kubernetes/v1.36.3/kubectl/amd64"]
        pulled = {**manifest.images}
        del pulled["registry.k8s.io/pause:3.10.2"]
        lacking = replace(manifest, artifacts=artifacts, images=pulled)

        assert [str(problem) for problem in bundle.missing(lacking, wanted)] == [
            "`kubernetes/v1.36.3/kubectl/amd64` is missing: the cluster is asked by kubectl",
            (
                "`runc/v1.4.3/runc/amd64` is missing, there is `v1.4.2`:"
                " containers are run by containerd"
            ),
            "the image `registry.k8s.io/pause:3.10.2` for amd64 is missing: every pod has one",
        ]

    def test_another_content_is_told(self, manifest: Manifest, wanted: BillOfMaterials) -> None:
        key = "kubernetes/v1.36.3/kubelet/amd64"
        changed = replace(manifest.artifacts[key], sha256="e" * 64)

        [problem] = bundle.missing(
            replace(manifest, artifacts={**manifest.artifacts, key: changed}), wanted
        )

        assert f"`{key}` is another one: sha256 {'e' * 64}, want" in problem.message

    def test_an_architecture_that_is_missing_is_told(self, manifest: Manifest) -> None:
        both = bill(catalog.load(), replace(NEEDS, architectures=("amd64", "arm64")))

        problems = [problem.message for problem in bundle.missing(manifest, both)]

        assert any("`kubernetes/v1.36.3/kubelet/arm64` is missing" in text for text in problems)
        assert any("`registry.k8s.io/pause:3.10.2` for arm64 is" in text for text in problems)

    def test_a_chart_that_is_missing_is_told(self, manifest: Manifest) -> None:
        cilium = bill(catalog.load(), replace(NEEDS, network="cilium"))

        problems = [problem.message for problem in bundle.missing(manifest, cilium)]

        assert any("the chart `cilium`" in text for text in problems)


class TestDifferences:
    def test_versions_that_came_and_went_are_told(self) -> None:
        def made(version: str, tag: str, digest: str) -> Manifest:
            file = bundle_manifest.BundledFile(digest * 64, 1, "x")
            root = manifests.described(tag.encode(), manifests.OCI_INDEX)
            return Manifest(
                kubernetes=(),
                architectures=(),
                artifacts={
                    f"runc/{version}/runc/amd64": file,
                    "same/v1/same/amd64": file,
                    f"only-{tag}/v1/x/amd64": file,
                    f"chart/https://mine.lan/podinfo/{tag}": file,
                },
                images={
                    f"mine.lan/app:{tag}": bundle_manifest.BundledImage(root, {}, ()),
                    "mine.lan/tool:1": bundle_manifest.BundledImage(root, {}, ()),
                },
                blobs={},
            )

        found = differences(made("v1", "1", "a"), made("v2", "2", "a"))

        assert [(each.sign, each) for each in found] == [
            ("~", Difference("chart", "https://mine.lan/podinfo", ("1",), ("2",))),
            ("-", Difference("file", "only-1/x/amd64", ("v1",), ())),
            ("+", Difference("file", "only-2/x/amd64", (), ("v1",))),
            ("~", Difference("file", "runc/runc/amd64", ("v1",), ("v2",))),
            ("~", Difference("image", "mine.lan/app", ("1",), ("2",))),
            ("~", Difference("image", "mine.lan/tool", ("1",), ("1",))),
        ]

    def test_a_bundle_does_not_differ_from_itself(self, wanted: BillOfMaterials) -> None:
        blank = Manifest(kubernetes=(), architectures=(), artifacts={}, images={}, blobs={})

        assert differences(blank, blank) == []
