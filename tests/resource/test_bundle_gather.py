"""All that a bill names, gathered from servers that cut off, lie and have nothing."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.resource import depot as depots
from tests.resource import made_images
from tests.resource.depot import Depot
from tests.resource.serving import Reply, always, file, serving

from kubexm.errors import InvalidFile, InvalidInput, StepFailed
from kubexm.resource import catalog, images, keys, layout, manifests
from kubexm.resource.bundle_build import described
from kubexm.resource.bundle_gather import Sources, gather, machines, take_images
from kubexm.resource.entries import Arch
from kubexm.resource.fetch import Advance, Options
from kubexm.resource.http import Login, Settings
from kubexm.resource.images import parse
from kubexm.resource.materials import BillOfMaterials, Binary, Image, bill
from kubexm.resource.needs import Needs
from kubexm.resource.registries import Way
from kubexm.resource.s3 import Access
from kubexm.resource.store import Store

QUICK = Options(web=Settings(first_pause=0.001, attempts=2))
NEEDS = Needs(kubernetes="v1.36.3", network="routed", proxy="none")
PAUSE = "registry.k8s.io/pause:3.10.2"


@pytest.fixture
def depot(tmp_path: Path) -> Iterator[Depot]:
    with depots.opened(tmp_path / "depot") as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def wanted(depot: Depot, tmp_path: Path) -> BillOfMaterials:
    known = catalog.load()
    stocked = depot.stock(depots.few(bill(known, NEEDS)))
    path = depots.overlay(depot, known, stocked, tmp_path / "depot.toml")
    return depots.few(bill(catalog.load([path]), NEEDS))


def sources(depot: Depot, options: Options = QUICK) -> Sources:
    return Sources(options=options, registries={"registry.k8s.io": Way(mirrors=(depot.url,))})


def path_of(found: BillOfMaterials, name: str) -> str:
    return f"/{named(found, name).urls[0].split('/', 3)[3]}"


def named(found: BillOfMaterials, name: str) -> Binary:
    return next(file for file in found.binaries if file.name == name)


def asking(*names: str, architectures: tuple[Arch, ...] = ("amd64",)) -> BillOfMaterials:
    """A bill of images alone, which whoever writes it knows by name."""
    asked = [
        Image(
            name=name,
            pulled_as=name,
            component="",
            version="",
            architectures=architectures,
            used_on=(),
            reasons=(),
        )
        for name in names
    ]
    return BillOfMaterials(
        kubernetes=(), binaries=(), images=tuple(asked), charts=(), packages=(), warnings=()
    )


def at(depot: Depot) -> Sources:
    """The depot by its own name: what it lacks is asked of nobody else."""
    return Sources(options=QUICK, registries={depot.host: Way(plain_http=True)})


class TestGathering:
    async def test_everything_is_there_under_its_key_and_is_not_asked_for_again(
        self, depot: Depot, wanted: BillOfMaterials, store: Store
    ) -> None:
        await gather(wanted, store, sources(depot))
        depot.asked.clear()
        await gather(wanted, store, sources(depot))

        assert depot.asked == []
        assert {keys.of_file(file): file.sha256 for file in wanted.binaries} == {
            name: digest for name, digest in store.names().items() if not name.startswith("image")
        }
        assert machines(parse(PAUSE), store) == {"amd64"}

    async def test_what_was_cut_off_goes_on_where_it_ended(
        self, depot: Depot, wanted: BillOfMaterials, store: Store
    ) -> None:
        cut = path_of(wanted, "kubelet")
        depot.cut[cut] = 5000

        await gather(wanted, store, sources(depot))

        assert depot.ranges == [cut]

    async def test_an_interrupted_one_leaves_parts_with_which_the_next_goes_on(
        self, depot: Depot, wanted: BillOfMaterials, store: Store
    ) -> None:
        cut = path_of(wanted, "kubelet")
        depot.cut[cut] = 5000
        slow = Options(web=Settings(first_pause=100, attempts=2))
        alone = replace(wanted, binaries=(named(wanted, "kubelet"),), images=())

        work = asyncio.create_task(gather(alone, store, sources(depot, slow)))
        for _ in range(1000):
            if store.part_size(named(wanted, "kubelet").sha256 or "") == 5000:
                break
            await asyncio.sleep(0.01)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await gather(alone, store, sources(depot))

        assert depot.ranges == [cut]
        assert store.find("kubernetes/v1.36.3/kubelet/amd64") is not None

    async def test_all_failures_are_told_at_once_and_the_rest_is_kept(
        self, depot: Depot, wanted: BillOfMaterials, store: Store
    ) -> None:
        depot.put(path_of(wanted, "kubelet"), b"another")
        depot.refused.add(path_of(wanted, "kubectl"))
        depot.add(there := f"{depot.host}/there:1")
        both = replace(wanted, images=asking(there, f"{depot.host}/lost:1").images)

        with pytest.raises(StepFailed) as caught:
            await gather(both, store, at(depot))

        told = caught.value.message
        assert "`kubernetes/v1.36.3/kubelet/amd64` from" in told
        assert "it has another content: sha256" in told
        assert f"{depot.url}{path_of(wanted, 'kubectl')}: it does not have this (404)" in told
        assert f"{depot.host} has no `lost:1`" in told
        assert store.find("kubernetes/v1.36.3/kubeadm/amd64") is not None
        assert machines(parse(there), store) == {"amd64"}

    async def test_the_next_source_is_tried_where_the_first_has_nothing(
        self, depot: Depot, wanted: BillOfMaterials, store: Store
    ) -> None:
        mirrored = replace(
            wanted,
            binaries=tuple(
                replace(each, urls=(f"{depot.url}/mirror/{each.file}", *each.urls))
                for each in wanted.binaries
            ),
        )

        await gather(mirrored, store, sources(depot))

        assert "/mirror/kubelet" in depot.asked
        assert store.find("kubernetes/v1.36.3/kubelet/amd64") is not None

    async def test_an_image_comes_from_its_own_registry_if_the_mirror_lacks_it(
        self, depot: Depot, store: Store, tmp_path: Path
    ) -> None:
        depot.add(f"{depot.host}/team/app:1")
        with depots.opened(tmp_path / "empty") as empty:
            way = Way(mirrors=(empty.url,), plain_http=True)
            own = Sources(options=QUICK, registries={depot.host: way})

            await gather(asking(f"{depot.host}/team/app:1"), store, own)

            assert empty.asked == ["/v2/team/app/manifests/1"]
        assert machines(parse(f"{depot.host}/team/app:1"), store) == {"amd64"}

    async def test_a_bucket_can_be_a_source(
        self, depot: Depot, wanted: BillOfMaterials, store: Store
    ) -> None:
        own = named(wanted, "kubelet")
        data, _ = depot.find(path_of(wanted, "kubelet")) or (b"", "")
        async with serving(file(data)) as server:
            access = Access(endpoint=server.url, access_key="me", secret_key="word")
            options = Options(web=QUICK.web, buckets={"*": access})
            one = replace(own, urls=("s3://mine/kube/kubelet",))

            await gather(replace(asking(), binaries=(one,)), store, sources(depot, options))

            assert [request.target for request in server.requests] == ["/mine/kube/kubelet"]
            assert "me/" in (server.asked("authorization")[0] or "")
        assert store.find("kubernetes/v1.36.3/kubelet/amd64") == one.sha256

    async def test_an_image_for_more_machines_keeps_those_that_it_was_there_for(
        self, depot: Depot, wanted: BillOfMaterials, store: Store
    ) -> None:
        await gather(wanted, store, sources(depot))
        other = replace(NEEDS, architectures=("arm64",))

        pulled = replace(depots.few(bill(catalog.load(), other)), binaries=())
        await gather(pulled, store, sources(depot))
        depot.asked.clear()
        await gather(wanted, store, sources(depot))

        assert machines(parse(PAUSE), store) == {"amd64", "arm64"}
        assert depot.asked == []

    async def test_documents_of_images_that_are_damaged_come_anew(
        self, depot: Depot, wanted: BillOfMaterials, store: Store
    ) -> None:
        await gather(wanted, store, sources(depot))
        image = images.find(parse(PAUSE), store)
        assert image is not None
        documents = manifests.contents([image.root], store).documents
        for each in documents:
            path = store.path(manifests.sha256_of(each.digest))
            path.chmod(0o644)
            path.write_bytes(b"{}")

        await gather(wanted, store, sources(depot))

        assert machines(parse(PAUSE), store) == {"amd64"}
        for each in documents:
            manifests.require_sound(each, store)

    async def test_it_tells_how_far_each_thing_is(
        self, depot: Depot, wanted: BillOfMaterials, store: Store
    ) -> None:
        told: list[Advance] = []

        await gather(wanted, store, sources(depot), told.append)

        last = {advance.name: advance for advance in told}
        assert last.keys() >= {"kubernetes/v1.36.3/kubelet/amd64", PAUSE}
        assert all(advance.done == advance.total for advance in last.values())

    async def test_a_login_goes_to_its_own_registry(self, store: Store) -> None:
        async with serving(always(Reply(404))) as server:
            host = server.url.removeprefix("http://")
            way = Way(plain_http=True, login=Login("me", "word"))

            with pytest.raises(StepFailed, match="has no `app:1`"):
                own = Sources(options=QUICK, registries={host: way})
                await gather(asking(f"{host}/app:1"), store, own)

            assert server.asked("authorization") == [Login("me", "word").header()]


class TestOwnImages:
    def exported(self, tmp_path: Path, *names: str) -> Path:
        made = Store(tmp_path / "made")
        found = [made_images.image(made, name, text=name.encode()) for name in names]
        archive = tmp_path / f"{parse(names[0]).tag}.tar"
        with archive.open("wb") as target:
            layout.write_archive(found, made, target)
        return archive

    async def test_what_an_archive_has_is_not_pulled(
        self, depot: Depot, wanted: BillOfMaterials, store: Store, tmp_path: Path
    ) -> None:
        own = take_images([self.exported(tmp_path, PAUSE)], store)

        await gather(wanted, store, sources(depot), own=own)

        assert not [path for path in depot.asked if "pause" in path]
        assert images.find(parse(PAUSE), store) is None
        assert described(wanted, store, own).images[PAUSE].architectures.keys() == {"amd64"}

    async def test_what_an_archive_has_for_some_of_the_machines_is_pulled(
        self, depot: Depot, store: Store, tmp_path: Path
    ) -> None:
        one = made_images.image(store, PAUSE, ("amd64",), text=b"mine")
        depot.add(PAUSE)
        wanted = asking(PAUSE, architectures=("amd64", "arm64"))

        await gather(wanted, store, sources(depot), own=[one])

        found = described(wanted, store, [one]).images[PAUSE]
        assert found.architectures.keys() == {"amd64", "arm64"}
        assert found.root != one.root

    def test_a_directory_may_hold_archives_or_be_a_layout(
        self, store: Store, tmp_path: Path
    ) -> None:
        made = Store(tmp_path / "made")
        made_images.lay_out([made_images.image(made, "a.lan/x:1")], made, tmp_path / "layout")
        (tmp_path / "many").mkdir()
        archive = self.exported(tmp_path, "a.lan/y:2", "a.lan/z:3")
        archive.rename(tmp_path / "many" / "images.tar")

        found = take_images([tmp_path / "layout", tmp_path / "many"], store)

        assert [str(image.name) for image in found] == ["a.lan/x:1", "a.lan/y:2", "a.lan/z:3"]
        assert images.recorded(store) == ()

    def test_an_image_without_a_name_is_refused(self, store: Store, tmp_path: Path) -> None:
        made = Store(tmp_path / "made")
        unnamed = replace(made_images.image(made), name=None)
        with (tmp_path / "unnamed.tar").open("wb") as target:
            layout.write_archive([unnamed], made, target)

        with pytest.raises(InvalidFile, match="has no name"):
            take_images([tmp_path / "unnamed.tar"], store)

    def test_an_empty_directory_is_refused(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()

        with pytest.raises(InvalidInput, match="is empty"):
            take_images([tmp_path / "empty"], store)

    def test_one_for_some_of_the_machines_is_taken_for_those(self, store: Store) -> None:
        arm = made_images.image(store, "a.lan/arm:1", ("arm64", "s390x"))
        both = made_images.image(store, "a.lan/both:1")
        images.record(both, store)
        wanted = asking("a.lan/both:1", architectures=("amd64", "arm64"))

        found = described(wanted, store, [arm])

        assert found.images["a.lan/both:1"].architectures.keys() == {"amd64", "arm64"}
        assert found.images["a.lan/arm:1"].architectures.keys() == {"arm64"}

    def test_one_for_none_of_the_machines_is_refused(self, store: Store) -> None:
        arm = made_images.image(store, "a.lan/arm:1", ("arm64", "s390x"))
        images.record(made_images.image(store, "a.lan/both:1"), store)

        with pytest.raises(InvalidInput, match="is for linux/arm64, linux/s390x, want amd64"):
            described(asking("a.lan/both:1"), store, [arm])
