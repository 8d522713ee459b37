"""Files and images come out of the store, and into it from whoever has them."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from tests.resource import depot as depots
from tests.resource.depot import Depot
from tests.resource.test_registry import USER, Run, run_registry

from kubexm.common.assets import RegistryAccess, Wanted
from kubexm.errors import StepFailed
from kubexm.pki import issue
from kubexm.pki.authorities import Authority
from kubexm.pki.certificates import Subject
from kubexm.pki.names import AlternativeNames
from kubexm.resource import images, layout, manifests
from kubexm.resource.bundle_gather import Sources
from kubexm.resource.fetch import Options
from kubexm.resource.http import Settings
from kubexm.resource.registries import Way
from kubexm.resource.store import Store
from kubexm.runtime.assets import NOTHING, Assets
from kubexm.runtime.store_assets import StoreAssets

__all__ = ["run_registry"]

TOOL = b"a program" * 1000
DIGEST = sha256(TOOL).hexdigest()
APP = "example.org/team/app:1"
QUICK = Options(web=Settings(attempts=1, first_pause=0.001))
CHART = depots.chart("app", "1.2.0")


@pytest.fixture
def depot(tmp_path: Path) -> Iterator[Depot]:
    with depots.opened(tmp_path / "depot") as made:
        yield made


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def assets(store: Store, depot: Depot | None = None, *, outside: bool = True) -> StoreAssets:
    ways = {} if depot is None else {"example.org": Way(mirrors=(depot.url,))}
    return StoreAssets(store, Sources(options=QUICK, registries=ways), outside=outside)


def wanted(*urls: str, digest: str = DIGEST) -> Wanted:
    return Wanted("tool", "v1", "binary", "amd64", "tool", urls, digest)


def unheard(done: int, total: int) -> None:
    """Drop what nobody watches."""


def fetched(found: Assets, what: Wanted, progress: Callable[[int, int], None] = unheard) -> str:
    return asyncio.run(found.fetch(what, progress))


def pull(found: Assets, *architectures: str, name: str = APP) -> None:
    asyncio.run(found.fetch_image(name, architectures, unheard))


def archived(found: Assets, arch: str, as_name: str) -> bytes:
    file = io.BytesIO()
    found.write_image(APP, arch, as_name, file)
    return file.getvalue()


def test_a_file_is_called_by_its_component_version_name_and_architecture() -> None:
    assert wanted().key == "tool/v1/binary/amd64"
    assert Wanted("calico", "v3", "manifest", "", "calico.yaml").key == "calico/v3/manifest"


def test_a_file_is_fetched_once_and_is_kept_under_its_key(depot: Depot, store: Store) -> None:
    depot.put("/tool", TOOL)
    found, told = assets(store), list[tuple[int, int]]()

    first = fetched(found, wanted(f"{depot.url}/tool"), lambda *far: told.append(far))
    again = fetched(found, wanted(f"{depot.url}/tool"))

    assert first == again == DIGEST == found.digest("tool/v1/binary/amd64")
    assert found.path(DIGEST).read_bytes() == TOOL
    assert depot.asked == ["/tool"]
    assert told[-1] == (len(TOOL), len(TOOL))


def test_a_file_that_a_bundle_has_brought_is_asked_of_nobody(store: Store) -> None:
    store.add(TOOL, name="tool/v1/binary/amd64")

    assert fetched(assets(store), wanted("http://127.0.0.1:1/tool")) == DIGEST


def test_a_file_that_is_kept_under_another_key_gets_this_one_too(store: Store) -> None:
    store.add(TOOL, name="something/else")
    found = assets(store, outside=False)

    assert fetched(found, wanted()) == DIGEST
    assert found.digest("tool/v1/binary/amd64") == DIGEST


def test_what_is_kept_under_the_key_is_no_good_if_another_sum_was_published(
    depot: Depot, store: Store
) -> None:
    store.add(b"an older one", name="tool/v1/binary/amd64")
    depot.put("/tool", TOOL)
    found = assets(store)

    assert fetched(found, wanted(f"{depot.url}/tool")) == DIGEST
    assert found.digest("tool/v1/binary/amd64") == DIGEST


def test_without_a_published_sum_what_came_first_is_taken(depot: Depot, store: Store) -> None:
    depot.put("/tool", TOOL)
    found = assets(store)

    assert fetched(found, wanted(f"{depot.url}/tool", digest="")) == DIGEST
    depot.put("/tool", b"another")
    assert fetched(found, wanted(f"{depot.url}/tool", digest="")) == DIGEST


def test_whoever_was_asked_in_vain_is_named_with_the_reason(depot: Depot, store: Store) -> None:
    depot.put("/tool", b"another")
    sources = [f"{depot.url}/nowhere", f"{depot.url}/tool"]

    with pytest.raises(StepFailed) as caught:
        fetched(assets(store), wanted(*sources))

    assert f"{depot.url}/nowhere: it does not have this (404)" in caught.value.message
    assert f"{depot.url}/tool: it has another content" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("outside", [True, False])
def test_a_file_without_sources_has_to_be_there(store: Store, outside: bool) -> None:
    with pytest.raises(StepFailed, match=r"`tool` \(tool/v1/binary/amd64\) is not in the store"):
        fetched(assets(store, outside=outside), wanted())


def test_nobody_outside_is_asked_where_that_is_not_allowed(depot: Depot, store: Store) -> None:
    depot.put("/tool", TOOL)
    depot.add(APP)
    found = assets(store, depot, outside=False)

    with pytest.raises(StepFailed, match="is not in the store") as caught:
        fetched(found, wanted(f"{depot.url}/tool"))
    with pytest.raises(StepFailed, match=f"image `{APP}` for amd64 is not in the store"):
        pull(found, "amd64")

    assert "bundle" in caught.value.hint
    assert depot.asked == []


def chart(found: Assets, depot: Depot, *, outside: bool = True) -> str:
    place = f"{depot.url}/charts"
    return asyncio.run(found.fetch_chart("app", "1.2.0", place, outside, unheard))


def test_a_chart_is_fetched_once_from_its_repository(depot: Depot, store: Store) -> None:
    depot.put(
        "/charts/index.yaml",
        b"apiVersion: v1\nentries:\n  app:\n  - {version: 1.2.0, urls: [app-1.2.0.tgz]}\n",
    )
    depot.put("/charts/app-1.2.0.tgz", CHART)
    found = assets(store)

    first = chart(found, depot)
    again = chart(found, depot, outside=False)

    assert first == again == sha256(CHART).hexdigest()
    assert depot.asked == ["/charts/index.yaml", "/charts/app-1.2.0.tgz"]


def test_a_chart_is_asked_of_nobody_where_that_is_not_allowed(depot: Depot, store: Store) -> None:
    for found, outside in ((assets(store), False), (assets(store, outside=False), True)):
        with pytest.raises(StepFailed, match=r"chart `app` `1\.2\.0` of .* is not in the store"):
            chart(found, depot, outside=outside)

    assert depot.asked == []


def test_an_image_is_pulled_once_from_the_mirror_of_its_registry(
    depot: Depot, store: Store
) -> None:
    depot.add(APP)
    found = assets(store, depot)
    assert not found.has_image(APP, "amd64")

    pull(found, "amd64")
    asked = len(depot.asked)
    pull(found, "amd64")

    assert found.has_image(APP, "amd64")
    assert not found.has_image(APP, "arm64")
    assert len(depot.asked) == asked > 0


def test_an_architecture_more_takes_none_away(depot: Depot, store: Store) -> None:
    depot.add(APP)
    found = assets(store, depot)
    pull(found, "amd64")
    digest = found.image_digest(APP, "amd64")

    pull(found, "arm64")

    assert found.image_digest(APP, "amd64") == digest != found.image_digest(APP, "arm64")


def test_an_image_that_is_not_kept_is_named(store: Store) -> None:
    with pytest.raises(StepFailed, match=f"image `{APP}` is not in the store"):
        assets(store).image_digest(APP, "amd64")


def test_an_archive_has_one_architecture_under_the_name_that_is_wanted(
    depot: Depot, store: Store, tmp_path: Path
) -> None:
    depot.add(APP)
    found = assets(store, depot)
    pull(found, "amd64", "arm64")

    data = archived(found, "arm64", "mine.lan:5000/team/app:1")

    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        index = tar.extractfile("index.json")
        assert index is not None
        (entry,) = json.load(index)["manifests"]
    assert entry["annotations"]["io.containerd.image.name"] == "mine.lan:5000/team/app:1"
    assert entry["digest"] == found.image_digest(APP, "arm64")
    (tmp_path / "image.tar").write_bytes(data)
    (image,) = layout.read(tmp_path / "image.tar", Store(tmp_path / "other"))
    assert image.name == images.parse("mine.lan:5000/team/app:1")
    ((platform, _),) = manifests.platforms(image.root, Store(tmp_path / "other"))
    assert platform.architecture == "arm64"


def test_the_same_image_gives_the_same_bytes(depot: Depot, store: Store, tmp_path: Path) -> None:
    depot.add(APP)
    here, elsewhere = assets(store, depot), assets(Store(tmp_path / "other"), depot)
    pull(here, "amd64", "arm64")
    pull(elsewhere, "amd64")

    assert archived(here, "amd64", APP) == archived(elsewhere, "amd64", APP)


def test_a_runtime_without_assets_says_so_when_it_is_asked() -> None:
    with pytest.raises(StepFailed, match="nobody has said where `tool/v1` is kept") as caught:
        NOTHING.digest("tool/v1")

    assert "assets" in caught.value.hint


@pytest.mark.slow
def test_an_image_is_pushed_for_the_architectures_that_are_kept(
    depot: Depot, store: Store, run_registry: Run
) -> None:
    depot.add(APP)
    found = assets(store, depot)
    pull(found, "amd64")
    address = f"127.0.0.1:{run_registry().port}"
    access, name = RegistryAccess(address, plain_http=True), f"{address}/example.org/team/app:1"

    async def pushed(*architectures: str) -> bool:
        return await found.pushed(name, access, architectures)

    async def scenario() -> list[bool]:
        before = await pushed("amd64")
        await found.push(APP, name, access, unheard)
        after = [await pushed("amd64"), await pushed("amd64", "arm64")]
        await found.fetch_image(APP, ["arm64"], unheard)
        await found.push(APP, name, access, unheard)
        return [before, *after, await pushed("amd64", "arm64")]

    assert asyncio.run(scenario()) == [False, True, False, True]


@pytest.mark.slow
def test_a_registry_is_known_by_the_certificates_that_are_given(
    depot: Depot, store: Store, run_registry: Run, tmp_path: Path
) -> None:
    authority = issue.authority("test", now=datetime.now(UTC), algorithm="ECDSA-P256")
    address = f"127.0.0.1:{run_registry('https', http=_tls(authority, tmp_path)).port}"
    depot.add(APP)
    found = assets(store, depot)
    pull(found, "amd64")
    name = f"{address}/team/app:1"

    with pytest.raises(StepFailed, match="its certificate is not trusted"):
        asyncio.run(found.pushed(name, RegistryAccess(address), ["amd64"]))

    access = RegistryAccess(address, ca=authority.certificate.decode())
    asyncio.run(found.push(APP, name, access, unheard))
    assert asyncio.run(found.pushed(name, access, ["amd64"]))


def _tls(authority: Authority, directory: Path) -> dict[str, object]:
    subject = Subject("registry", ("server",), names=AlternativeNames(addresses=("127.0.0.1",)))
    pair = issue.leaf(issue.opened(authority), subject, now=datetime.now(UTC))
    paths = directory / "registry.crt", directory / "registry.key"
    paths[0].write_bytes(pair.certificate)
    paths[1].write_bytes(pair.key)
    return {"tls": {"certificate": str(paths[0]), "key": str(paths[1])}}


def test_how_a_registry_is_reached_does_not_show_the_password() -> None:
    assert "hunter2" not in repr(RegistryAccess("mine.lan", username=USER, password="hunter2"))
