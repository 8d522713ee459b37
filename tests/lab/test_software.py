"""The lab's software, as far as it needs neither a network nor a compiler."""

import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from msgspec.structs import replace
from tests.resource import depot as depots

from kubexm.app import planning
from kubexm.app.params import ClusterParams, OperationParams, PlanParams
from kubexm.resource import bundle, keys, layout
from kubexm.resource import catalog as catalogs
from kubexm.resource.entries import Arch
from kubexm.resource.materials import BillOfMaterials, bill
from kubexm.resource.needs import Endpoint, Needs
from kubexm.resource.store import Store
from lab.errors import CommandFailed, LabError
from lab.software import (
    archives,
    assembling,
    bundles,
    catalog,
    choosing,
    fetching,
    golang,
    making,
    overlay,
    parts,
    programs,
    recipe,
    tarballs,
    versions,
)
from lab.software.archives import Start
from lab.software.assembling import Made
from lab.software.building import Workshop
from lab.software.choosing import STAND_IN, Asked, Choice, Choices
from lab.software.debian import Archive
from lab.software.making import Wish
from lab.software.progress import Progress
from lab.software.tarballs import Directory, Link

KUBERNETES = "v1.36.3"


@pytest.mark.parametrize(
    ("wanted", "there", "found"),
    [
        ("v1.4.3", ["v1.4.2", "v1.4.3", "v1.5.0"], "v1.4.3"),
        ("v1.14.2", ["v1.13.9", "v1.14.3", "v1.14.6", "v1.15.0"], "v1.14.3"),
        ("v4.2.3", ["v4.2.2", "v4.2.4"], "v4.2.4"),
        ("v0.0.37", ["v0.0.30"], "v0.0.30"),
        ("v2.2.7", ["v2.1.7", "v2.2.3", "v2.2.8", "v3.2.7"], "v2.2.8"),
    ],
)
def test_the_nearest_version_is_of_the_same_line_and_rather_newer(
    wanted: str, there: list[str], found: str
) -> None:
    assert versions.nearest(wanted, there) == found


def test_candidates_are_no_releases() -> None:
    known = ["v1.10.0", "v1.9.0", "v1.10.1-rc.0", "v1.2.0+incompatible"]

    assert versions.releases(known) == ["v1.9.0", "v1.10.0"]


@pytest.mark.parametrize(
    ("package", "packed"),
    [("1:1.37.0-6+b9", "1.37.0"), ("3.0.11-1+deb13u3", "3.0.11"), ("2.8.3+ds1-2", "2.8.3")],
)
def test_the_version_of_a_package_tells_what_it_packs(package: str, packed: str) -> None:
    assert versions.of_package(package) == packed


def test_a_tar_is_the_same_whenever_and_in_whatever_order_it_is_made(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o700)
    entries: dict[str, tarballs.Entry] = {"b": program, "a": Link("b"), "c": Directory(0o1777)}

    tarballs.write_packed(tmp_path / "one", entries)
    os.utime(program, (0, 0))
    program.chmod(0o755)
    tarballs.write_packed(tmp_path / "other", dict(reversed(entries.items())))

    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    with tarfile.open(tmp_path / "one") as tar:
        assert [(each.name, each.mode) for each in tar] == [
            ("a", 0o777),
            ("b", 0o755),
            ("c", 0o1777),
        ]


def test_an_image_is_read_by_the_product_under_its_name(tmp_path: Path) -> None:
    name = "registry.k8s.io/pause:3.10.2"
    root: dict[str, tarballs.Entry] = {"usr/bin/pause": b"#!/bin/sh\n"}

    for file in ("one", "other"):
        archives.write(tmp_path / file, name, "amd64", Start(("/usr/bin/pause",)), root)
    (image,) = layout.read(tmp_path / "one", Store(tmp_path / "store"))

    assert str(image.name) == name
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_an_image_has_the_directories_that_its_files_lie_in() -> None:
    found = tarballs.with_parents({"usr/bin/pause": b"", "usr": Directory(0o700)})

    assert found == {"usr": Directory(0o700), "usr/bin": Directory(), "usr/bin/pause": b""}


@pytest.mark.parametrize("endpoint", ["single", "haproxy", "nginx", "keepalived-haproxy"])
@pytest.mark.parametrize("etcd", ["stacked", "systemd"])
@pytest.mark.parametrize("kubernetes", [KUBERNETES, "v1.35.4"])
def test_all_that_a_cluster_needs_is_made(
    kubernetes: str, etcd: Literal["stacked", "systemd"], endpoint: Endpoint, tmp_path: Path
) -> None:
    workshop = _workshop(kubernetes, tmp_path)

    found = _bill(workshop, tmp_path, Needs(kubernetes=kubernetes, etcd=etcd, endpoint=endpoint))

    made = {assembling.image_name(workshop, image) for image in recipe.IMAGES}
    assert {image.name for image in found.images} <= made
    assert all(file.sha256 == "a" * 64 for file in found.binaries)
    assert all(file.urls[0].startswith("file:///") for file in found.binaries)
    assert not found.warnings


def test_a_file_lies_where_the_catalog_looks_for_it(tmp_path: Path) -> None:
    workshop = _workshop(KUBERNETES, tmp_path)

    found = _bill(workshop, tmp_path, Needs(kubernetes=KUBERNETES))

    places = {assembling.place(each.address, tmp_path / "files") for each in _made(workshop)}
    assert {Path(file.urls[0].removeprefix("file://")) for file in found.binaries} <= places


def test_every_image_of_the_recipe_has_what_it_is_made_of() -> None:
    for image in recipe.IMAGES:
        own = recipe.GO.get(image.component)
        built = set(image.built.values()) - {"pause"}
        assert built <= set(own.programs if own else ())
        assert image.name in catalog.read().components[image.component]["images"]


def test_deviations_name_what_was_wanted_and_what_came() -> None:
    choices = Choices(
        KUBERNETES,
        "v3.6.8",
        (
            Choice("runc", "v1.4.3", "v1.4.3"),
            Choice("coredns", "v1.14.3", "v1.14.2"),
            Choice("crictl", f"v1.36.0{STAND_IN}", "v1.36.0"),
        ),
        (),
    )

    assert choices.deviations == (
        "coredns v1.14.2: can't be had; v1.14.3 in its place",
        "crictl v1.36.0: can't be built; a stand-in says so instead",
    )


@pytest.mark.parametrize(
    ("kubernetes", "etcd", "named"),
    [(KUBERNETES, "v3.6.8", None), ("v1.35.4", "v3.6.6", None), ("v1.35.4", "v3.6.8", "3.6.8-0")],
)
def test_kubeadm_is_told_of_an_etcd_that_it_does_not_expect(
    kubernetes: str, etcd: str, named: str | None, tmp_path: Path
) -> None:
    workshop = _workshop(kubernetes, tmp_path, etcd)
    catalog_ = tmp_path / "catalog.toml"
    catalog_.write_text(overlay.text(workshop.choices, _made(workshop), tmp_path, "amd64"))
    bundles.write_cluster(tmp_path, kubernetes, ("helm",))
    cluster = ClusterParams(tmp_path / "cluster.yaml", catalogs=(catalog_,))

    graph = planning.plan(PlanParams(OperationParams(cluster))).graph

    init = graph.nodes["create-cluster/control-plane/prepare/kubeadm-config"]
    image = init.step.params["data"]["stacked_etcd"]["image"]
    assert (image or {}).get("tag") == named


def test_coredns_is_built_without_the_plugins_that_are_left_out() -> None:
    listed = 'import (\n\t_ "example.org/plugin/azure"\n\t_ "example.org/plugin/cache"\n)\n'

    text = golang.main_text(listed, ("azure",))

    assert "plugin/cache" in text
    assert "azure" not in text


def test_kubernetes_is_stamped_with_its_version() -> None:
    flags = golang.stamp(recipe.GO["kubernetes"], KUBERNETES).split()

    assert "k8s.io/component-base/version.gitVersion=v1.36.3" in flags
    assert "k8s.io/client-go/pkg/version.gitMinor=36" in flags


def test_a_failure_does_not_tell_where_packages_come_from() -> None:
    with pytest.raises(CommandFailed) as failed:
        programs.run("sh", "-c", "echo reading https://proxy.example:8080/a/b: 502 >&2; exit 3")

    assert "https://…/a/b: 502" in str(failed.value)
    assert failed.value.code == 3


def test_a_part_is_made_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    def build(half: Path) -> None:
        (half / "first").touch()
        raise LabError("no second")

    with pytest.raises(LabError):
        parts.make(tmp_path / "part", build)

    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_builder_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "parts/.half-killed").mkdir(parents=True)

    with parts.locked(tmp_path, print):
        assert list((tmp_path / "parts").iterdir()) == []


def test_progress_tells_how_much_is_left() -> None:
    told: list[str] = []

    Progress(told.append, 3).begin("etcd v3.6.8").end()

    assert told[0] == "etcd v3.6.8: begins"
    assert told[1].startswith("etcd v3.6.8: done in 0 s; 1 of 3 parts, 2 left,")


def test_a_directory_of_somebody_else_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter").touch()

    with pytest.raises(LabError, match="neither empty nor software of the lab"):
        making.make(Wish(upstream=True, to=tmp_path / "mine"), print)

    assert (tmp_path / "mine/letter").exists()


def test_what_was_fetched_lies_as_what_was_made(tmp_path: Path) -> None:
    place, arch = tmp_path / "place", msgspec.convert(assembling.architecture(), Arch)
    needs = Needs(kubernetes=KUBERNETES, network="routed", architectures=(arch,))
    for name in ("files", "images"):
        (place / name).mkdir(parents=True)
    with depots.opened(tmp_path / "depot") as depot:
        found = depot.stock(bill(catalogs.load(), needs))
        sites = depots.overlay(depot, catalogs.load(), found, tmp_path / "depot.toml")
        depots.cluster(depot, place / "cluster.yaml", more="  network: {plugin: routed}\n")

        fetching.fetch(place, tmp_path / "home", print, "--catalog", sites, "--arch", arch)

    inside = bundle.contents(place / bundles.NAME)
    for file in found.binaries:
        fetched = assembling.place(file.urls[0], place / "files")
        assert fetched.read_bytes() == depots.content(file)
        assert os.access(fetched, os.X_OK) is (file.component in ("kubernetes", "runc"))
    assert {keys.of_file(file) for file in found.binaries} == {*inside.artifacts}
    archived = {archives.file_name(name): name for name in inside.images}
    assert {*archived} == {path.name for path in (place / "images").iterdir()}
    for path, name in archived.items():
        (image,) = layout.read(place / "images" / path, Store(tmp_path / "store"))
        assert (str(image.name), image.root) == (name, inside.images[name].architectures[arch])


def test_of_a_release_line_the_one_is_fetched_that_the_catalog_takes() -> None:
    newest, lines = catalog.read().newest, catalogs.load().entries.kubernetes

    assert newest("v1.36") == newest("1.36") == lines["v1.36"].default
    assert versions.line(newest("")) in lines
    assert newest("1.35.4") == "v1.35.4"


def test_a_line_that_nobody_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(LabError, match=r"no Kubernetes `v1\.20`, only: v1\.34, v1\.35"):
        catalog.read().newest("v1.20")


def test_what_could_not_be_fetched_leaves_nothing_where_it_was_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    with pytest.raises(CommandFailed, match=r"unknown version `v1\.36\.99`"):
        making.make(Wish("v1.36.99", upstream=True, to=tmp_path / "there"), print)

    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.parametrize(("value", "upstream"), [("1", True), ("0", False), ("", False)])
def test_one_variable_makes_everybody_fetch(
    value: str, upstream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEXM_LAB_UPSTREAM", value)

    assert Wish().upstream is upstream


class Answers:
    """A proxy of modules and an archive of Debian, as the programs that ask them show them."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.memory = place / "choices"
        self._place = place
        answers = {"go": f"cat {place}/modules", "apt-cache": f"cat {place}/packages"}
        for name, answer in {**answers, "apt-get": f"test -e {place}/packages"}.items():
            program = place / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f"#!/bin/sh\nexec {answer}\n")
            program.chmod(0o755)
        monkeypatch.setenv("PATH", str(place / "bin"), prepend=os.pathsep)
        monkeypatch.setenv("KUBEXM_LAB_MIRROR", "http://mirror.example/debian")

    def are(self, kubernetes: str, nginx: str = "1.26.3-3") -> None:
        """From now on the newest is this one, and Debian has these packages."""
        golang.known.cache_clear()  # as in another process
        (self._place / "modules").write_text(json.dumps({"Versions": ["v1.35.4", kubernetes]}))
        versions_of = {**dict.fromkeys(recipe.PACKAGES, "1.0-1"), "nginx": nginx}
        stanzas = (f"Package: {name}\nVersion: {it}\n" for name, it in versions_of.items())
        (self._place / "packages").write_text("\n".join(stanzas))

    def end(self) -> None:
        golang.known.cache_clear()
        for name in ("modules", "packages"):
            (self._place / name).unlink()

    def asked(self, kubernetes: str = "") -> Asked:
        return Asked(kubernetes, (), Archive(self._place / "apt"), self.memory)

    def pass_two_days(self) -> None:
        for choice in self.memory.iterdir():
            then = choice.stat().st_mtime - 2 * 24 * 60 * 60
            os.utime(choice, (then, then))


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    found = Answers(tmp_path, monkeypatch)
    found.are(KUBERNETES)
    yield found
    golang.known.cache_clear()


@pytest.mark.parametrize("wish", ["", "v1.36"])
def test_the_newest_is_looked_for_anew_after_a_day(answers: Answers, wish: str) -> None:
    first = choosing.chosen(answers.asked(wish))
    answers.are("v1.36.4")

    same = choosing.renewed(answers.asked(wish), print)
    answers.pass_two_days()
    kept, newer = choosing.chosen(answers.asked(wish)), choosing.renewed(answers.asked(wish), print)

    assert first == same == kept
    assert (first.kubernetes, newer.kubernetes) == (KUBERNETES, "v1.36.4")
    assert choosing.chosen(answers.asked(wish)) == newer


def test_who_names_a_version_keeps_what_goes_with_it(answers: Answers) -> None:
    first = choosing.chosen(answers.asked(KUBERNETES))
    answers.are(KUBERNETES, nginx="1.26.3-4")
    answers.pass_two_days()

    assert choosing.renewed(answers.asked(KUBERNETES), print) == first


def test_where_nobody_answers_the_old_choice_stays_for_another_day(answers: Answers) -> None:
    told: list[str] = []
    first = choosing.chosen(answers.asked())
    answers.pass_two_days()
    answers.end()

    kept = [choosing.renewed(answers.asked(), told.append) for _ in range(2)]

    assert kept == [first, first]
    (line,) = told
    assert line.startswith("whether there are newer versions can't be known now: `apt-get")


def test_versions_are_chosen_again_once_debian_has_other_packages(answers: Answers) -> None:
    told: list[str] = []
    wish, root = Wish(KUBERNETES), answers.memory.parent
    assert making._workshop(wish, root, told.append).choices.version("nginx") == "1.26.3"
    answers.are(KUBERNETES, nginx="1.28.0-1")

    found = making._workshop(wish, root, told.append)
    again = making._workshop(wish, root, told.append)

    assert (found.choices, found.choices.version("nginx")) == (again.choices, "1.28.0")
    assert told == ["Debian has its packages in other versions by now: versions are chosen again"]


def test_what_was_made_of_packages_that_are_gone_is_taken_as_it_is(answers: Answers) -> None:
    wish, root = Wish(KUBERNETES), answers.memory.parent
    first = making._workshop(wish, root, print)
    first.debian.mkdir(parents=True)
    answers.are(KUBERNETES, nginx="1.28.0-1")

    assert making._workshop(wish, root, print).choices == first.choices


def _workshop(kubernetes: str, root: Path, etcd: str = "") -> Workshop:
    """As if all versions of the catalog could be had; of etcd perhaps this one for pods."""
    default = catalog.read().default
    stacked = etcd or f"v{catalog.read().expected(kubernetes).partition('-')[0]}"
    names = {*recipe.GO, "haproxy", "nginx", "pause", "crictl"} - {"kubernetes"}
    choices = [
        Choice("kubernetes", kubernetes, kubernetes),
        Choice("etcd", stacked, stacked),
        *(Choice(name, default(name, kubernetes), "") for name in sorted(names)),
        Choice("busybox", "1.35.0", "1.37.0"),
    ]
    return Workshop(root, Choices(kubernetes, stacked, tuple(choices), ()), Archive(root))


def _bill(workshop: Workshop, root: Path, needs: Needs) -> BillOfMaterials:
    """What a cluster needs by the catalog that the lab has made; everything that it can have."""
    file = root / "catalog.toml"
    file.write_text(overlay.text(workshop.choices, _made(workshop), root / "files", "amd64"))
    whole = replace(
        needs,
        network="routed",
        storage=("local-path",),
        tools=("crictl", "helm"),
        addons=("metrics-server",),
        registry="node1:5000",
        own_registry=True,
    )
    return bill(catalogs.load([file]), whole)


def _made(workshop: Workshop) -> Iterator[Made]:
    for file in recipe.FILES:
        for choice in workshop.choices.of(file.component):
            version = choice.version
            address = catalog.read().address(file.component, file.name, version, "amd64")
            yield Made(choice, file.name, address, "a" * 64)
