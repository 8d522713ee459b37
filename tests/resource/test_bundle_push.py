"""The images of a bundle in a real registry, and back out of it."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.resource import made_images
from tests.resource.serving import Reply, always, serving
from tests.resource.test_bundle_gather import asking
from tests.resource.test_registry import PASSWORD, USER, Run, htpasswd, run_registry

from kubexm.errors import Refused, StepFailed
from kubexm.resource import bundle, http, images, registry
from kubexm.resource.bundle_build import build
from kubexm.resource.bundle_manifest import Manifest
from kubexm.resource.bundle_push import Target, push_images, require_registry
from kubexm.resource.fetch import Advance
from kubexm.resource.http import Login, Settings
from kubexm.resource.images import parse
from kubexm.resource.registry import Endpoint, Registry
from kubexm.resource.store import Store

__all__ = ["run_registry"]  # the fixture
QUICK = Settings(attempts=2, first_pause=0.001)
NAMES = ("example.org/team/app:1", "registry.k8s.io/pause:3.10.2")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


async def loaded(store: Store, tmp_path: Path) -> Manifest:
    """A bundle of two images, brought into a store."""
    made = Store(tmp_path / "made")
    for name in NAMES:
        images.record(made_images.image(made, name, text=name.encode()), made)
    await build(asking(*NAMES), made, tmp_path / "b.tar.zst")
    return await bundle.load(tmp_path / "b.tar.zst", store)


def target(port: int, folder: str = "", login: Login | None = None) -> Target:
    return Target(registry=f"127.0.0.1:{port}{folder}", plain_http=True, login=login, web=QUICK)


@pytest.mark.slow
async def test_what_was_pushed_can_be_pulled_under_the_names_that_clusters_use(
    tmp_path: Path, run_registry: Run, store: Store
) -> None:
    there, manifest = run_registry(), await loaded(store, tmp_path)
    told: list[Advance] = []

    pushed = await push_images(manifest, store, target(there.port, "/kube"), told.append)

    folder = f"127.0.0.1:{there.port}/kube"
    assert [(each.name, each.pushed_as, each.was_there) for each in pushed] == [
        (name, f"{folder}/{name}", False) for name in NAMES
    ]
    assert {each.name for each in told if each.done == each.total} == {
        f"{folder}/{name}" for name in NAMES
    }
    other = Store(tmp_path / "other")
    async with http.client(QUICK) as client:
        place = Registry(client, QUICK, Endpoint(there.url))
        for name in NAMES:
            image = await registry.pull([place], parse(f"{folder}/{name}"), other, ("amd64",))
            assert image.root == manifest.images[name].root


@pytest.mark.slow
async def test_what_is_there_is_not_pushed_again(
    tmp_path: Path, run_registry: Run, store: Store
) -> None:
    there, manifest = run_registry(), await loaded(store, tmp_path)
    await push_images(manifest, store, target(there.port))

    again = await push_images(manifest, store, target(there.port))

    assert [each.was_there for each in again] == [True, True]


@pytest.mark.slow
async def test_a_registry_that_wants_a_login_gets_it(
    tmp_path: Path, run_registry: Run, store: Store
) -> None:
    there = run_registry(auth=htpasswd(tmp_path / "htpasswd"))
    manifest = await loaded(store, tmp_path)

    with pytest.raises(Refused, match="only to who has a login"):
        await require_registry(target(there.port))
    known = target(there.port, login=Login(USER, PASSWORD))
    await require_registry(known)

    assert len(await push_images(manifest, store, known)) == 2
    assert PASSWORD not in repr(known)


@pytest.mark.parametrize("tag", ["", ":1"])
async def test_an_image_by_its_digest_is_told_by_that_which_it_has_there(
    store: Store, tmp_path: Path, tag: str
) -> None:
    made = Store(tmp_path / "made")
    image = made_images.image(made)
    whole, tagged = f"example.org/team/app{tag}@{image.root.digest}", "example.org/team/app:2"
    for name in (whole, tagged):
        images.record(replace(image, name=parse(name)), made)
    await build(asking(whole, tagged), made, tmp_path / "b.tar.zst")
    manifest = await bundle.load(tmp_path / "b.tar.zst", store)
    trimmed = manifest.images[whole].root.digest
    assert trimmed != image.root.digest

    # It has what it is asked for, so nothing is sent.
    async with serving(always(Reply(headers={"Docker-Content-Digest": trimmed}))) as server:
        pushed = await push_images(manifest, store, target(server.port))

    place = f"127.0.0.1:{server.port}"
    assert {each.pushed_as: each.not_as for each in pushed} == {
        f"{place}/{tagged}": "",
        f"{place}/example.org/team/app{tag}@{trimmed}": f"{place}/{whole}",
    }


async def test_all_images_that_are_not_taken_are_told(store: Store, tmp_path: Path) -> None:
    manifest = await loaded(store, tmp_path)

    with pytest.raises(StepFailed, match="does not take 2 of 2 images") as caught:
        await push_images(manifest, store, target(1))

    assert caught.value.message.count("no answer from http://127.0.0.1:1/v2/") == 2


async def test_a_registry_that_does_not_answer_is_told_beforehand() -> None:
    with pytest.raises(StepFailed, match=r"no answer from http://127\.0\.0\.1:1/v2/"):
        await require_registry(target(1))
