"""Images get to hosts from registries and out of the store, and into registries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.resource import depot as depots
from tests.resource.depot import Depot
from tests.resource.test_registry import Run, run_registry
from tests.sim.site import Site
from tests.step.places import LocalPlace, Place
from tests.step.walks import Walk, node, statuses, undone

from kubexm.errors import InvalidInput, StepFailed
from kubexm.plan import ExecutionNode, Key
from kubexm.resource.bundle_gather import Sources
from kubexm.resource.registries import Way
from kubexm.resource.store import Store
from kubexm.runtime.store_assets import StoreAssets
from kubexm.sim.assets import SimAssets
from kubexm.sim.settings import Machine
from kubexm.step import registry
from kubexm.step.commands import Command
from kubexm.step.contract import Step, Verdict
from kubexm.step.images import ImagePresent, ImagePushed, ImageStored

__all__ = ["run_registry"]

PAUSE = "registry.k8s.io/pause:3.10.2"
HERE = "mine.lan:5000/registry.k8s.io/pause:3.10.2"
CTR = "/usr/local/bin/ctr"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    sites: list[Site] = []

    def make(**settings: Any) -> Site:
        sites.append(Site(tmp_path / str(len(sites)), **settings))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


@pytest.fixture
def site(made: Callable[..., Site]) -> Site:
    """Two hosts with containerd, on a world that reaches the internet."""
    found = made(outside=True)
    for host in ("n1", "n2"):
        found.run_containerd(host)
    return found


def walk_of(site: Site) -> Walk:
    return Walk(site.world, SimAssets(site.world))


def images(site: Site, host: str = "n1", namespace: str = "k8s.io") -> list[str]:
    return site.do(CTR, "-n", namespace, "images", "ls", "-q", host=host).split()


def from_store(**settings: Any) -> list[ExecutionNode]:
    """An image for two hosts out of the store, pulled there when the first of them asks."""
    there = ImagePresent(PAUSE, source="store", value="image_1", **settings)
    return [
        node("pull", ImageStored(PAUSE, ("amd64",), "image_1")),
        node("image", there, "n1", "n2", after=("pull",)),
    ]


def test_an_image_comes_from_its_registry_once(site: Site) -> None:
    walk, wanted = walk_of(site), node("image", ImagePresent(PAUSE), "n1", "n2")

    first = walk.run(wanted)
    second = walk.run(wanted)

    assert statuses(first) == {"image": ("Success", True)}
    assert images(site, "n1") == images(site, "n2") == [PAUSE]
    assert statuses(second) == {"image": ("Success", False)}


def test_where_a_registry_asks_who_we_are_an_image_is_pulled_as_for_pods(
    made: Callable[..., Site],
) -> None:
    site = made(outside=True)
    site.run_containerd(logins=["registry.k8s.io"])
    walk, wanted = walk_of(site), node("image", ImagePresent(PAUSE, login=True), "n1")

    without = walk.run(wanted)
    site.bring("crictl", "v1.36.0")
    first, second = walk.run(wanted), walk.run(wanted)

    told = without.node_results["image"].host_results["n1"].message
    assert f"`crictl pull {PAUSE}` exited with 127" in told
    assert "bring `/usr/local/bin/crictl` there" in told
    assert statuses(first) == {"image": ("Success", True)}
    assert statuses(second) == {"image": ("Success", False)}
    assert images(site) == [PAUSE]


def test_what_was_pulled_with_a_login_is_handed_on_to_other_namespaces(
    made: Callable[..., Site],
) -> None:
    site = made(outside=True)
    site.run_containerd(logins=["registry.k8s.io"])
    site.bring("crictl", "v1.36.0")
    wanted = node("image", ImagePresent(PAUSE, login=True, namespace="kubexm"), "n1")

    first = walk_of(site).run(wanted)

    assert statuses(first) == {"image": ("Success", True)}
    assert images(site, namespace="kubexm") == [PAUSE]
    assert site.do("ls", "-A", "/var/lib/kubexm/images") == ""


def test_a_tag_beside_a_digest_is_not_waited_for(made: Callable[..., Site]) -> None:
    site = made(outside=True)
    site.run_containerd(logins=["registry.k8s.io"])
    site.bring("crictl", "v1.36.0")
    wanted = node("image", ImagePresent(f"{PAUSE}@sha256:{'0' * 64}", login=True), "n1")
    walk = walk_of(site)

    first, second = walk.run(wanted), walk.run(wanted)

    assert (first.status, statuses(second)) == ("Success", {"image": ("Success", False)})
    assert images(site) == [f"registry.k8s.io/pause@sha256:{'0' * 64}"]


def test_without_saying_so_nobody_logs_in(made: Callable[..., Site]) -> None:
    site = made(outside=True)
    site.run_containerd(logins=["registry.k8s.io"])

    result = walk_of(site).run(node("image", ImagePresent(PAUSE), "n1"))

    assert "401 Unauthorized" in result.node_results["image"].host_results["n1"].message


def test_an_image_comes_out_of_the_store_and_leaves_no_archive(site: Site) -> None:
    walk = walk_of(site)

    first = walk.run(*from_store())

    assert statuses(first) == {"pull": ("Success", False), "image": ("Success", True)}
    assert images(site, "n1") == images(site, "n2") == [PAUSE]
    assert site.do("ls", "-A", "/var/lib/kubexm/images") == ""


def test_a_second_run_needs_nothing_of_the_store(site: Site, made: Callable[..., Site]) -> None:
    walk_of(site).run(*from_store())

    elsewhere = Walk(site.world, SimAssets(made(outside=False).world))
    second = elsewhere.run(*from_store())

    assert second.status == "Success"
    assert {changed for _, changed in statuses(second).values()} == {False}


def test_an_image_gets_the_name_and_the_namespace_that_are_wanted(site: Site) -> None:
    there = ImagePresent(HERE, source="store", stored=PAUSE, namespace="kubexm", value="image_1")
    fetched = node("pull", ImageStored(PAUSE, ("amd64",), "image_1"))

    walk_of(site).run(fetched, node("image", there, "n1", after=("pull",)))

    assert images(site, namespace="kubexm") == [HERE]
    assert images(site) == []


def test_each_host_gets_what_it_can_run(made: Callable[..., Site]) -> None:
    site = made(outside=True, machines={"arm*": Machine(arch="aarch64")})
    site.run_containerd("n1")
    for program in ("containerd", "containerd-shim-runc-v2", "ctr", "runc"):
        site.bring(program, "v2.2.7", "arm64", host="arm1")
    config = site.do("cat", "/etc/containerd/config.toml")
    site.put("/etc/containerd/config.toml", config, host="arm1")
    unit = site.do("cat", "/etc/systemd/system/containerd.service")
    site.put("/etc/systemd/system/containerd.service", unit, host="arm1")
    site.do("systemctl", "start", "containerd", host="arm1")
    there = ImagePresent(PAUSE, source="store", value="image_1")
    fetched = node("pull", ImageStored(PAUSE, ("amd64", "arm64"), "image_1"))

    result = walk_of(site).run(fetched, node("image", there, "n1", "arm1", after=("pull",)))

    assert result.status == "Success"
    assert images(site, "n1") == images(site, "arm1") == [PAUSE]


def test_a_machine_that_no_image_is_for_is_named(made: Callable[..., Site]) -> None:
    site = made(outside=True, machine=Machine(arch="riscv64"))
    for program in ("containerd", "containerd-shim-runc-v2", "ctr", "runc"):
        site.bring(program, "v2.2.7", "riscv64")
    config, unit = _settings(made)
    site.put("/etc/containerd/config.toml", config)
    site.put("/etc/systemd/system/containerd.service", unit)
    site.do("systemctl", "start", "containerd")

    result = walk_of(site).run(node("image", ImagePresent(PAUSE, source="store"), "n1"))

    told = result.node_results["image"].host_results["n1"].message
    assert "the host is a `riscv64`, want `x86_64` or `aarch64`" in told


def _settings(made: Callable[..., Site]) -> tuple[str, str]:
    other = made()
    other.bring_containerd()
    paths = "/etc/containerd/config.toml", "/etc/systemd/system/containerd.service"
    return other.do("cat", paths[0]), other.do("cat", paths[1])


def test_a_rollback_takes_away_what_was_not_there_before(site: Site) -> None:
    walk = walk_of(site)
    walk.run(node("image", ImagePresent(PAUSE), "n1"))
    failing = node("fail", Command(("false",)), "n1", after=("image",))

    walk.run(*from_store(), failing, on_failure="rollback")

    assert images(site, "n1") == [PAUSE], "it was there before"
    assert images(site, "n2") == []


def test_a_later_run_can_take_it_away(site: Site) -> None:
    walk, wanted = walk_of(site), node("image", ImagePresent(PAUSE), "n1", "n2")
    walk.run(wanted)

    walk.run(undone(wanted))

    assert images(site, "n1") == images(site, "n2") == []


def test_a_host_without_containerd_is_told_what_it_lacks(made: Callable[..., Site]) -> None:
    site = made()

    result = walk_of(site).run(node("image", ImagePresent(PAUSE), "n1"))

    told = result.node_results["image"].host_results["n1"].message
    assert "`ctr images ls` exited with 127" in told
    assert "bring `/usr/local/bin/ctr` there in a step before this one" in told


def test_an_image_that_no_registry_gives_is_named(made: Callable[..., Site]) -> None:
    site = made(outside=False)
    site.run_containerd()

    result = walk_of(site).run(node("image", ImagePresent(PAUSE), "n1"))

    told = result.node_results["image"].host_results["n1"].message
    assert f"`ctr images pull --hosts-dir /etc/containerd/certs.d {PAUSE}` exited with 1" in told


def test_what_the_store_lacks_and_nobody_gives_holds_back_who_needs_it(
    made: Callable[..., Site],
) -> None:
    site = made(outside=False)
    site.run_containerd("n1")
    site.run_containerd("n2")

    result = walk_of(site).run(*from_store())

    assert result.node_results["pull"].status == "Failed"
    assert result.node_results["image"].host_results["n1"].status == "Skipped"


def test_the_value_tells_the_digest_for_each_architecture(site: Site) -> None:
    walk = walk_of(site)
    walk.run(*from_store())

    (value,) = [
        value.value
        for record in walk.records
        for value in getattr(record, "values", ())
    ]  # fmt: skip

    assert value == {"amd64": walk.assets.image_digest(PAUSE, "amd64")}
    assert ImageStored(PAUSE, ("amd64",), "image_1").provides() == (Key("image_1"),)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalPlace]:
    made = LocalPlace(tmp_path)
    yield made
    made.close()


@pytest.fixture
def depot(tmp_path: Path) -> Iterator[Depot]:
    with depots.opened(tmp_path / "depot") as opened:
        yield opened


def pushed(address: str, **settings: Any) -> ImagePushed:
    given = {"architectures": ("amd64",), "plain_http": True, **settings}
    return ImagePushed("example.org/team/app:1", f"{address}/team/app:1", address, **given)


def verdict(place: Place, step: Step, assets: StoreAssets) -> Verdict:
    return place.wait(step.precheck(place.context(assets=assets)))


def test_a_registry_that_lacks_the_image_is_told(
    depot: Depot, local: LocalPlace, tmp_path: Path
) -> None:
    assets = StoreAssets(Store(tmp_path / "store"))

    found = verdict(local, pushed(depot.host), assets)

    assert found == Verdict.needed(f"`{depot.host}` does not have it", "+")


def test_certificates_that_are_not_there_are_named(local: LocalPlace, tmp_path: Path) -> None:
    assets = StoreAssets(Store(tmp_path / "store"))
    (tmp_path / "broken.crt").write_text("nothing")

    for name, message in (("none.crt", "there is no file"), ("broken.crt", "can't be read")):
        with pytest.raises(StepFailed, match=message) as caught:
            verdict(local, pushed("mine.lan", ca=str(tmp_path / name)), assets)
        assert name in str(caught.value)


@pytest.mark.slow
def test_an_image_of_the_store_comes_into_a_registry_by_a_login(
    depot: Depot, local: LocalPlace, tmp_path: Path, run_registry: Run
) -> None:
    depot.add("example.org/team/app:1")
    sources = Sources(registries={"example.org": Way(mirrors=(depot.url,))})
    assets = StoreAssets(Store(tmp_path / "store"), sources)
    local.secrets["env://PW"] = "hunter2"
    address = f"127.0.0.1:{run_registry().port}"
    step = pushed(address, username="me", password="env://PW", value="image_1")
    asyncio.run(assets.fetch_image("example.org/team/app:1", ["amd64"], lambda done, total: None))

    assert not verdict(local, step, assets).satisfied
    local.run(step, assets=assets)
    assert verdict(local, step, assets).satisfied
    both = pushed(address, architectures=("amd64", "arm64"))
    assert not verdict(local, both, assets).satisfied
    assert step.needs() == ("image_1",)


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        ("image", {"name": "-x"}, "`-x` is no name of a container image"),
        ("image", {"name": "x", "namespace": "a b"}, "`a b` is no name of a namespace"),
        ("image", {"name": "x", "source": "elsewhere"}, "Invalid enum value 'elsewhere'"),
        ("image-pushed", {"as_name": "other/x:1"}, "`as_name` is `other/x:1`, want an image of"),
        ("image-pushed", {"password": "hunter2", "username": "me"}, "`password` is no reference"),
        ("image-pushed", {"password": "env://X"}, "`password` needs `username`"),
        ("image-pushed", {"ca": "x.crt"}, "`ca` is `x.crt`, want an absolute path"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(
    kind: str, params: dict[str, Any], message: str
) -> None:
    least = {"name": "x:1", "as_name": "mine/x:1", "registry": "mine", "architectures": ["amd64"]}
    given = {**least, **params} if kind == "image-pushed" else params

    with pytest.raises(InvalidInput, match=message) as caught:
        registry.load(kind, given)

    assert "hunter2" not in str(caught.value)
