"""Use cases of bundles and locks: a cluster file in, one file with all that it needs out."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.resource import depot as depots
from tests.resource import made_images
from tests.resource.depot import Depot

from kubexm.app import bundles, locks
from kubexm.app.bills import BillParams, billed, sources
from kubexm.app.bundles import BuildParams, PushParams
from kubexm.app.locks import LockParams
from kubexm.common.paths import Home
from kubexm.errors import InvalidCluster, InvalidInput, StepFailed
from kubexm.resource import bundle, bundle_archive, catalog, layout
from kubexm.resource.asking import asking
from kubexm.resource.bundle_manifest import Manifest
from kubexm.resource.fetch import Advance, Artifact, fetch
from kubexm.resource.materials import BillOfMaterials, bill
from kubexm.resource.needs import Needs
from kubexm.resource.store import Store
from kubexm.runtime.secrets import SecretVault
from kubexm.runtime.store_assets import StoreAssets

ROUTED = "  network: {plugin: routed}\n"
ADDONS = """\
  addons:
  - name: web
    inline: |
      apiVersion: v1
      kind: Pod
      metadata: {name: web}
      spec: {containers: [{name: web, image: "nginx:1.25"}]}
"""
RUNC = b"\x7fELF a runc"
NEEDS = Needs(kubernetes="v1.36.3", network="routed")


@pytest.fixture
def depot(tmp_path: Path) -> Iterator[Depot]:
    with depots.opened(tmp_path / "depot") as opened:
        yield opened


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("KUBEXM_HOME", str(tmp_path / "home"))
    return Home.from_environment()


@pytest.fixture
def stocked(depot: Depot) -> BillOfMaterials:
    return depot.stock(bill(catalog.load(), NEEDS))


@pytest.fixture
def wanted(depot: Depot, stocked: BillOfMaterials, tmp_path: Path) -> BillParams:
    """A cluster whose things all come from the depot."""
    overlay = depots.overlay(depot, catalog.load(), stocked, tmp_path / "depot.toml")
    file = depots.cluster(depot, tmp_path / "cluster.yaml", more=ROUTED)
    return BillParams(file=file, catalogs=(overlay,))


async def build(params: BillParams, home: Home, output: Path, *own: Path) -> bundles.Built:
    return await bundles.build(BuildParams(params, output, own), home, SecretVault())


class TestBuilding:
    async def test_a_bundle_of_a_file_has_all_that_the_file_needs(
        self, depot: Depot, wanted: BillParams, home: Home, tmp_path: Path
    ) -> None:
        built = await build(wanted, home, tmp_path / "b.tar.zst")

        assert built.manifest == bundles.show(tmp_path / "b.tar.zst")
        assert built.size == (tmp_path / "b.tar.zst").stat().st_size
        assert bundles.check(tmp_path / "b.tar.zst", wanted) == []
        assert await bundles.verify(tmp_path / "b.tar.zst") == []
        assert built.warnings == ()

    async def test_what_is_in_the_store_is_not_fetched_again(
        self, depot: Depot, wanted: BillParams, home: Home, tmp_path: Path
    ) -> None:
        await build(wanted, home, tmp_path / "one.tar.zst")
        depot.asked.clear()
        await build(wanted, home, tmp_path / "two.tar.zst")

        assert depot.asked == []
        one, two = ((tmp_path / f"{name}.tar.zst").read_bytes() for name in ("one", "two"))
        assert one == two

    async def test_a_version_alone_stands_for_a_usual_cluster(
        self, depot: Depot, home: Home, tmp_path: Path
    ) -> None:
        usual = depot.stock(bill(catalog.load(), Needs(kubernetes="v1.36.3")))
        overlay = depots.overlay(depot, catalog.load(), usual, tmp_path / "depot.toml")
        with (tmp_path / "images.tar").open("wb") as file:
            found = [made_images.image(depot.store, each.name) for each in usual.images]
            layout.write_archive(found, depot.store, file)
        params = BillParams(kubernetes="v1.36.3", catalogs=(overlay,))

        built = await build(params, home, tmp_path / "b.tar.zst", tmp_path / "images.tar")

        assert built.manifest.images.keys() == {image.name for image in usual.images}
        assert any("calico" in name for name in built.manifest.images)
        assert any(key.startswith("etcd/") for key in built.manifest.artifacts)

    async def test_images_of_an_archive_are_put_into_it_as_well(
        self, depot: Depot, wanted: BillParams, home: Home, tmp_path: Path
    ) -> None:
        made = Store(tmp_path / "made")
        with (tmp_path / "own.tar").open("wb") as file:
            layout.write_archive([made_images.image(made, "mine.lan/app:7")], made, file)

        built = await build(wanted, home, tmp_path / "b.tar.zst", tmp_path / "own.tar")

        assert built.manifest.images["mine.lan/app:7"].architectures.keys() == {"amd64"}

    async def test_what_one_build_or_a_bundle_brought_is_no_business_of_the_next(
        self, depot: Depot, wanted: BillParams, home: Home, tmp_path: Path
    ) -> None:
        name = next(image.name for image in billed(wanted).bill.images)
        made = Store(tmp_path / "made")
        with (tmp_path / "own.tar").open("wb") as file:
            layout.write_archive([made_images.image(made, name, text=b"mine")], made, file)
        elsewhere = Home(tmp_path / "2", tmp_path / "2", tmp_path / "2")

        own = await build(wanted, elsewhere, tmp_path / "own.tar.zst", tmp_path / "own.tar")
        again = await build(wanted, elsewhere, tmp_path / "again.tar.zst")
        await bundle.load(own.path, Store(home.artifacts))
        usual = await build(wanted, home, tmp_path / "usual.tar.zst")

        assert own.manifest.images[name] != usual.manifest.images[name]
        assert own.manifest.brought == ()
        assert again.path.read_bytes() == usual.path.read_bytes()

    async def test_images_that_objects_of_add_ons_name_are_in_it_and_are_missed(
        self, depot: Depot, wanted: BillParams, home: Home, tmp_path: Path
    ) -> None:
        assert wanted.file is not None
        plain = await build(wanted, home, tmp_path / "plain.tar.zst")
        wanted.file.write_text(f"{wanted.file.read_text()}{ADDONS}")
        depot.add("docker.io/library/nginx:1.25")

        [missing] = bundles.check(plain.path, wanted)
        built = await build(wanted, home, tmp_path / "b.tar.zst")

        image = "the image `docker.io/library/nginx:1.25` for amd64"
        assert missing.message == f"{image} is missing: the add-on `web` runs it"
        assert "docker.io/library/nginx:1.25" in built.manifest.images
        assert bundles.check(built.path, wanted) == []
        assert built.warnings == ()

    async def test_an_image_by_its_digest_is_in_it_for_the_machines_that_there_are(
        self, depot: Depot, wanted: BillParams, home: Home, tmp_path: Path
    ) -> None:
        assert wanted.file is not None
        digest = depot.add("docker.io/library/nginx:1.25").root.digest
        addons = ADDONS.replace("nginx:1.25", f"nginx:1.25@{digest}")
        wanted.file.write_text(f"{wanted.file.read_text()}{addons}")

        built = await build(wanted, home, tmp_path / "b.tar.zst")

        name, other = f"docker.io/library/nginx@{digest}", Store(tmp_path / "other")
        await bundle.load(built.path, other)
        assert bundles.check(built.path, wanted) == []
        assert StoreAssets(other, outside=False).has_image(name, "amd64")
        with (tmp_path / "image.tar").open("wb") as file:
            StoreAssets(other, outside=False).write_image(name, "amd64", name, file)
        [image] = layout.read(tmp_path / "image.tar", Store(tmp_path / "host"))
        assert str(image.name) == name

    async def test_that_images_of_a_chart_are_not_known_is_told(
        self, depot: Depot, wanted: BillParams, home: Home, tmp_path: Path
    ) -> None:
        assert wanted.file is not None
        chart = "  - {name: shown, chart: {name: mine.tgz}}\n"
        wanted.file.write_text(f"{wanted.file.read_text()}{ADDONS}{chart}")

        [note] = bundles.notes(wanted)

        assert note.where == "the add-on `shown`"
        assert "the images of the chart `mine.tgz` are not known" in note.message

    async def test_other_architectures_can_be_asked_for(
        self, depot: Depot, wanted: BillParams, home: Home, tmp_path: Path
    ) -> None:
        arm = bill(catalog.load(), replace(NEEDS, architectures=("arm64",)))
        overlay = depots.overlay(depot, catalog.load(), depot.stock(arm), tmp_path / "arm.toml")
        params = replace(wanted, architectures=("arm64",), catalogs=(overlay,))

        built = await build(params, home, tmp_path / "b.tar.zst")

        assert built.manifest.architectures == ("arm64",)
        assert "kubernetes/v1.36.3/kubelet/arm64" in built.manifest.artifacts

    async def test_files_without_a_sum_are_a_warning(
        self, depot: Depot, stocked: BillOfMaterials, home: Home, tmp_path: Path
    ) -> None:
        overlay = depots.overlay(depot, catalog.load(), stocked, tmp_path / "depot.toml")
        unknown = tmp_path / "unknown.toml"
        unknown.write_text('[components.runc.versions."v9.9.9"]\n')
        depot.put("/github.com/opencontainers/runc/releases/download/v9.9.9/runc.amd64", RUNC)
        unknown.write_text(
            '[components.runc.versions."v9.9.9"]\n[kubernetes."v1.36"]\ndefaults.runc = "v9.9.9"\n'
        )
        file = depots.cluster(depot, tmp_path / "cluster.yaml", more=ROUTED)
        params = BillParams(file=file, catalogs=(overlay, unknown))

        built = await build(params, home, tmp_path / "b.tar.zst")

        [warning] = built.warnings
        assert "the catalog has no checksums of runc v9.9.9" in warning.message
        assert "catalog lock" in warning.hint

    @pytest.mark.parametrize(
        ("given", "found"),
        [({}, "neither"), ({"file": Path("c.yaml"), "kubernetes": "1.36"}, "both")],
    )
    async def test_one_of_file_and_version_is_named(
        self, home: Home, tmp_path: Path, given: dict[str, object], found: str
    ) -> None:
        with pytest.raises(InvalidInput, match=f"found {found} of"):
            await build(BillParams(**given), home, tmp_path / "b")  # type: ignore[arg-type]

    async def test_a_place_that_can_not_be_written_is_told_before_anything_is_fetched(
        self, depot: Depot, wanted: BillParams, home: Home, tmp_path: Path
    ) -> None:
        with pytest.raises(InvalidInput, match="its directory is not there"):
            await build(wanted, home, tmp_path / "nowhere" / "b.tar.zst")
        with pytest.raises(InvalidInput, match="it is a directory"):
            await build(wanted, home, tmp_path)
        with pytest.raises(InvalidInput, match=r"can't write `/proc/b\.tar\.zst`"):
            await build(wanted, home, Path("/proc/b.tar.zst"))
        for length in (255, 300):  # the first is too long only as the name of a draft
            with pytest.raises(InvalidInput, match="File name too long"):
                await build(wanted, home, tmp_path / ("b" * length))

        assert depot.asked == []

    async def test_what_is_there_and_is_no_bundle_is_not_written_over(
        self, depot: Depot, wanted: BillParams, home: Home, tmp_path: Path
    ) -> None:
        assert wanted.file is not None
        text = wanted.file.read_text()

        with pytest.raises(InvalidInput, match="is there already, and is no bundle") as caught:
            await build(wanted, home, wanted.file)

        assert "name another file, or remove it" in caught.value.hint
        assert wanted.file.read_text() == text
        assert depot.asked == []

    async def test_a_bundle_and_an_empty_file_are_written_over(
        self, depot: Depot, wanted: BillParams, home: Home, tmp_path: Path
    ) -> None:
        (tmp_path / "b.tar.zst").touch()

        first = await build(wanted, home, tmp_path / "b.tar.zst")
        second = await build(wanted, home, tmp_path / "b.tar.zst")

        assert first == second

    async def test_it_can_be_stopped_and_goes_on(
        self, depot: Depot, wanted: BillParams, home: Home, tmp_path: Path
    ) -> None:
        begun = asyncio.Event()
        params = BuildParams(wanted, tmp_path / "b.tar.zst")

        def note(advance: Advance) -> None:
            if advance.name == "b.tar.zst":
                begun.set()

        work = asyncio.create_task(bundles.build(params, home, SecretVault(), note))
        await begun.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        depot.asked.clear()

        assert not [name for name in listed(tmp_path) if "b.tar.zst" in name]
        await build(wanted, home, tmp_path / "b.tar.zst")
        assert depot.asked == []


class TestSources:
    def test_registries_are_reached_as_the_file_says(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("WORD", "secret")
        file = tmp_path / "cluster.yaml"
        file.write_text(
            "apiVersion: kubexm.io/v1alpha1\nkind: Cluster\nmetadata: {name: demo}\nspec:\n"
            "  hosts: [{name: node1, address: 10.0.0.1}]\n  kubernetes: {version: v1.36.3}\n"
            "  containerRuntime:\n    registries:\n"
            "      mine.lan: {ca: ca.pem, mirrors: ['https://m.lan'],"
            " auth: {username: me, password: 'env://WORD'}}\n"
            "      plain.lan: {plainHttp: true}\n"
        )

        found = sources(billed(BillParams(file=file)).cluster, SecretVault()).registries

        assert found["mine.lan"].mirrors == ("https://m.lan",)
        assert found["mine.lan"].ca_file == tmp_path / "ca.pem"
        assert found["mine.lan"].login is not None
        assert found["mine.lan"].login.password == "secret"
        assert found["plain.lan"].plain_http
        assert "secret" not in repr(found)

    def test_all_that_is_missing_is_told_at_once(
        self, depot: Depot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("WORD", raising=False)
        file = depots.cluster(
            depot,
            tmp_path / "cluster.yaml",
            more="      a.lan: {insecure: true}\n"
            "      b.lan: {auth: {username: me, password: 'env://WORD'}}\n",
        )

        with pytest.raises(InvalidInput) as caught:
            sources(billed(BillParams(file=file)).cluster, SecretVault())

        assert [problem.where.split(".", 3)[-1] for problem in caught.value.problems] == [
            "a.lan.insecure",
            "b.lan.auth.password",
        ]

    def test_buckets_are_where_the_environment_says(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "https://minio.lan:9000")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")

        access = sources(None, SecretVault()).options.access("any")

        assert access is not None
        assert (access.endpoint, access.access_key) == ("https://minio.lan:9000", "me")

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("AWS_ENDPOINT_URL", "http://["),
            ("AWS_ENDPOINT_URL", "not-a-url"),
            ("AWS_ENDPOINT_URL_S3", "https://me:word@minio.lan"),
            ("AWS_ENDPOINT_URL_S3", "http://minio.lan:port"),
            ("AWS_ACCESS_KEY_ID", "schlüssel"),
            ("AWS_REGION", "a\nb"),
        ],
    )
    async def test_what_of_the_environment_can_not_be_used_is_told_to_who_needs_a_bucket(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, text: str
    ) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        monkeypatch.setenv(name, text)
        options = sources(None, SecretVault()).options
        kubelet = Artifact(name="kubelet", sources=("s3://bucket/kubelet",))

        with pytest.raises(InvalidInput) as caught:
            await fetch([kubelet], Store(tmp_path), options)
        async with asking(options, {}) as ask:
            answer = await ask.file(kubelet.sources)

        [problem] = caught.value.problems
        assert f"`s3://bucket/kubelet` can't be reached: `{name}` " in problem.message
        assert text not in problem.message
        assert answer.word == "lacks"
        assert name in answer.why

    def test_a_file_that_is_no_cluster_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "cluster.yaml").write_text("kind: Cluster\n")

        with pytest.raises(InvalidCluster):
            billed(BillParams(file=tmp_path / "cluster.yaml"))


class TestPushing:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"username": "me"}, "want both or none"),
            ({"username": "me", "password": "the word"}, "is no reference"),
            ({"registry": "https://mine.lan"}, "want a registry such as"),
        ],
    )
    async def test_what_makes_no_sense_is_refused(
        self, home: Home, tmp_path: Path, given: dict[str, str], message: str
    ) -> None:
        path = tmp_path / "b.tar.zst"
        empty = Manifest(kubernetes=(), architectures=(), artifacts={}, images={}, blobs={})
        for _ in bundle_archive.written(empty, Store(home.artifacts), path):
            pass
        params = replace(PushParams(bundle=path, registry="mine.lan"), **given)

        with pytest.raises(InvalidInput, match=message) as caught:
            await bundles.push(params, home, SecretVault())
        assert "the word" not in str(caught.value)

    async def test_a_registry_without_tls_is_told_with_the_flag_for_it(
        self, home: Home, tmp_path: Path
    ) -> None:
        path = tmp_path / "b.tar.zst"
        empty = Manifest(kubernetes=(), architectures=(), artifacts={}, images={}, blobs={})
        for _ in bundle_archive.written(empty, Store(home.artifacts), path):
            pass

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            registry = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            with pytest.raises(StepFailed, match="it does not speak TLS") as caught:
                await bundles.push(PushParams(bundle=path, registry=registry), home, SecretVault())

        assert "--plain-http" in caught.value.hint


class TestLocking:
    @pytest.fixture
    def unknown(self, depot: Depot, stocked: BillOfMaterials, tmp_path: Path) -> BillParams:
        """A cluster with a runc of which nobody knows the sum."""
        overlay = depots.overlay(depot, catalog.load(), stocked, tmp_path / "depot.toml")
        new = tmp_path / "new.toml"
        new.write_text(
            '[components.runc.versions."v9.9.9"]\n[kubernetes."v1.36"]\ndefaults.runc = "v9.9.9"\n'
        )
        path = "/github.com/opencontainers/runc/releases/download/v9.9.9/runc.amd64"
        depot.put(path, RUNC)
        file = depots.cluster(depot, tmp_path / "cluster.yaml", more=ROUTED)
        return BillParams(file=file, catalogs=(overlay, new))

    async def test_the_unknown_is_fetched_and_afterwards_everything_is_known(
        self, depot: Depot, unknown: BillParams, home: Home, tmp_path: Path
    ) -> None:
        params = LockParams(unknown, tmp_path / "lock.toml")

        found = await locks.hold_fast(params, home, SecretVault())

        assert [(one.component, one.version) for one in found] == [("runc", "v9.9.9")]
        assert [path for path in depot.asked if path.startswith("/v2/")] == []
        locked = replace(unknown, catalogs=(*unknown.catalogs, tmp_path / "lock.toml"))
        assert all(file.sha256 for file in billed(locked).bill.binaries)
        again = await locks.hold_fast(LockParams(locked, tmp_path / "2"), home, SecretVault())
        assert again == []
        assert not (tmp_path / "2").exists()

    async def test_what_was_locked_is_the_only_thing_that_is_accepted(
        self, depot: Depot, unknown: BillParams, home: Home, tmp_path: Path
    ) -> None:
        params = LockParams(unknown, tmp_path / "lock.toml")
        await locks.hold_fast(params, home, SecretVault())
        path = "/github.com/opencontainers/runc/releases/download/v9.9.9/runc.amd64"
        depot.put(path, b"\x7fELF another runc")
        locked = replace(unknown, catalogs=(*unknown.catalogs, tmp_path / "lock.toml"))
        elsewhere = replace(home, data=tmp_path / "elsewhere")

        with pytest.raises(StepFailed, match="it has another content"):
            await build(locked, elsewhere, tmp_path / "b.tar.zst")

    async def test_what_was_fetched_before_is_locked_unless_it_is_to_be_fetched_anew(
        self, depot: Depot, unknown: BillParams, home: Home, tmp_path: Path
    ) -> None:
        params = LockParams(unknown, tmp_path / "lock.toml")
        [first] = await locks.hold_fast(params, home, SecretVault())
        path = "/github.com/opencontainers/runc/releases/download/v9.9.9/runc.amd64"
        digest = depot.put(path, b"\x7fELF another runc")

        [kept] = await locks.hold_fast(
            replace(params, output=tmp_path / "2.toml"), home, SecretVault()
        )
        [anew] = await locks.hold_fast(replace(params, overwrite=True), home, SecretVault())

        assert (kept, anew.sha256) == (first, digest)

    async def test_what_some_server_says_in_its_place_is_not_locked(
        self, depot: Depot, unknown: BillParams, home: Home, tmp_path: Path
    ) -> None:
        path = "/github.com/opencontainers/runc/releases/download/v9.9.9/runc.amd64"
        page = depot.put(path, b"<html>log in first</html>")
        params = LockParams(unknown, tmp_path / "lock.toml")

        with pytest.raises(StepFailed, match="it is a web page, want a program"):
            await locks.hold_fast(params, home, SecretVault())
        assert not (tmp_path / "lock.toml").exists()

        # An earlier kubexm may have kept it.
        store = Store(home.artifacts)
        assert store.add(b"<html>log in first</html>", name="runc/v9.9.9/runc/amd64").sha256 == page
        digest = depot.put(path, RUNC)
        [found] = await locks.hold_fast(params, home, SecretVault())
        assert found.sha256 == digest

    async def test_a_file_that_is_there_is_not_written_over(
        self, depot: Depot, unknown: BillParams, home: Home, tmp_path: Path
    ) -> None:
        (tmp_path / "lock.toml").write_text("mine")
        params = LockParams(unknown, tmp_path / "lock.toml")

        with pytest.raises(InvalidInput, match="is there already"):
            await locks.hold_fast(params, home, SecretVault())
        assert depot.asked == []
        await locks.hold_fast(replace(params, overwrite=True), home, SecretVault())

        assert "v9.9.9" in (tmp_path / "lock.toml").read_text()


def listed(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]
