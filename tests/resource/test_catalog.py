"""The catalog: complete as it is shipped, and honest about what users lay over it."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubexm.errors import InvalidFile, InvalidInput
from kubexm.resource import catalog, images, lock, reading, versions
from kubexm.resource.catalog import Catalog
from kubexm.resource.consistency import contradictions
from kubexm.resource.entries import ARCHES, FAMILIES, Entries
from kubexm.resource.forms import mistakes
from kubexm.resource.lock import Locked
from kubexm.resource.versions import BadVersion

SUM = "0123456789abcdef" * 4
OTHER = "fedcba9876543210" * 4


@pytest.fixture
def known() -> Catalog:
    return catalog.load()


def written(folder: Path, text: str, name: str = "mine.toml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def refusal(*files: Path) -> list[tuple[str, str, str]]:
    """File, what is wrong, and what to do."""
    with pytest.raises(InvalidFile) as caught:
        catalog.load(files)
    return [(Path(p.where).name, p.message, p.hint) for p in caught.value.problems]


class TestAsShipped:
    def test_it_has_the_right_form_and_does_not_contradict_itself(self, known: Catalog) -> None:
        assert mistakes(catalog._packaged_data(), partial=False) == []
        assert list(contradictions(known.entries)) == []

    def test_no_two_files_say_the_same(self) -> None:
        files = sorted(catalog._ROOT.glob("*.toml"))
        told = [set(leaves(tomllib.loads(file.read_text()))) for file in files]

        assert len(files) > 3
        assert sum(map(len, told)) == len(set().union(*told))

    def test_it_supports_four_release_lines(self, known: Catalog) -> None:
        assert known.minors == ("v1.34", "v1.35", "v1.36", "v1.37")

    def test_every_file_can_be_had_for_both_architectures(self, known: Catalog) -> None:
        found = [
            file
            for component in known.entries.components
            for version in known.versions(component)
            for arch in ARCHES
            for file in known.downloads(component, version, arch)
        ]

        assert len(found) > 200
        for file in found:
            assert file.urls
            assert all(url.endswith(f"/{file.file}") for url in file.urls)
            assert not {"{", "}"} & set("".join((file.file, *file.urls)))

    def test_every_image_name_can_be_read_and_is_whole(self, known: Catalog) -> None:
        found = [
            image
            for component in known.entries.components
            for version in known.versions(component)
            for image in known.images(component, version).values()
        ]

        assert len(found) > 100
        assert [str(images.parse(image)) for image in found] == found
        assert not [image for image in found if image.endswith(":latest")]

    def test_every_published_sum_is_for_all_architectures_and_no_two_are_alike(
        self, known: Catalog
    ) -> None:
        sums = [
            (component.artifacts[name].kind, by_arch)
            for component in known.entries.components.values()
            for release in component.versions.values()
            for name, by_arch in release.sha256.items()
        ]
        values = [value for _, by_arch in sums for value in by_arch.values()]

        for kind, by_arch in sums:
            assert set(by_arch) == ({"any"} if kind == "manifest" else set(ARCHES))
        assert len(set(values)) == len(values)

    def test_a_manifest_is_one_file_for_all_architectures(self, known: Catalog) -> None:
        (one,), (other,) = (known.downloads("calico", "v3.32.1", arch) for arch in ARCHES)

        assert one == other
        assert one.arch == "any"
        assert one.urls[0].endswith("/v3.32.1/manifests/calico.yaml")
        assert one.sha256 is not None

    def test_the_parts_of_calico_come_in_fewer_images_from_some_version_on(
        self, known: Catalog
    ) -> None:
        assert set(known.images("calico", "v3.32.1").values()) == {
            "quay.io/calico/cni:v3.32.1",
            "quay.io/calico/kube-controllers:v3.32.1",
            "quay.io/calico/node:v3.32.1",
        }
        assert set(known.images("calico", "v3.33.0").values()) == {
            "quay.io/calico/calico:v3.33.0",
            "quay.io/calico/node:v3.33.0",
        }

    @pytest.mark.parametrize("minor", ["v1.34", "v1.35", "v1.36", "v1.37"])
    def test_every_component_has_a_default_that_goes_with_every_line(
        self, known: Catalog, minor: str
    ) -> None:
        for component in known.entries.components:
            default = known.default(component, minor)

            assert default in known.versions(component)
            assert known.verdict(minor, component, default).level != "conflicts"

    def test_every_patch_of_every_line_says_what_its_kubeadm_expects(self, known: Catalog) -> None:
        for version in known.versions("kubernetes"):
            expected = known.expected(version)

            assert known.images("pause", expected.pause)
            assert known.images("coredns", expected.coredns)
            etcd = known.images("etcd", expected.etcd.partition("-")[0])
            assert etcd == {"server": f"registry.k8s.io/etcd:{expected.etcd}"}

    def test_where_we_install_what_kubeadm_runs_it_is_what_kubeadm_expects(
        self, known: Catalog
    ) -> None:
        for version in known.versions("kubernetes"):
            expected = known.expected(version)

            assert known.default("coredns", version) == expected.coredns
            assert known.default("pause", version) == expected.pause

    def test_what_kubeadm_expects_may_change_within_a_line(self, known: Catalog) -> None:
        tags = [known.expected(f"v1.34.{patch}").etcd for patch in (0, 1, 2, 11)]

        assert tags == ["3.6.4-0", "3.6.4-0", "3.6.5-0", "3.6.5-0"]

    @pytest.mark.parametrize(
        ("component", "version"),
        [
            ("kubernetes", "v1.36.3"),
            ("kubernetes", "v1.35.4"),
            ("etcd", "v3.6.16"),
            ("containerd", "v2.4.2"),
            ("runc", "v1.5.2"),
            ("cni-plugins", "v1.9.1"),
            ("coredns", "v1.15.0"),
            ("helm", "v4.3.1"),
            ("local-path", "v0.0.30"),
            ("metrics-server", "v0.9.0"),
        ],
    )
    def test_it_knows_what_is_built_from_go_modules(
        self, known: Catalog, component: str, version: str
    ) -> None:
        assert known.version(component, version) == version
        assert known.verdict("v1.36.3", component, version).level == "fits"

    def test_every_package_has_a_name_in_every_family(self, known: Catalog) -> None:
        assert len(known.entries.packages) >= 14
        for name in known.entries.packages:
            assert all(known.packages(name, family) for family in FAMILIES)

    def test_it_is_read_once_and_only_when_asked_for(self) -> None:
        script = """if True:
            import tomllib
            real, asked = tomllib.loads, []
            tomllib.loads = lambda text: asked.append(text) or real(text)
            from kubexm.resource import catalog, materials
            before = len(asked)
            catalog.load(), catalog.load()
            print(before, len(asked) == len(list(catalog._ROOT.glob("*.toml"))))
        """

        said = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )

        assert said.stdout == "0 True\n"


def leaves(data: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(data, dict) or not data:
        return [path]
    return [leaf for key, value in data.items() for leaf in leaves(value, (*path, key))]


class TestVersions:
    def test_come_oldest_first_by_number(self, known: Catalog) -> None:
        found = known.versions("kubernetes")

        assert found.index("v1.34.9") + 1 == found.index("v1.34.10")

    @pytest.mark.parametrize("wanted", ["v3.6.14", "3.6.14"])
    def test_are_known_with_and_without_their_letter(self, known: Catalog, wanted: str) -> None:
        assert known.version("etcd", wanted) == "v3.6.14"
        assert known.version("haproxy", "v3.2.19") == "3.2.19"

    def test_of_kubernetes_may_be_a_release_line(self, known: Catalog) -> None:
        assert known.version("kubernetes", "1.36") == known.line("v1.36").default

    def test_that_are_unknown_come_with_the_nearest_and_a_way_to_add_them(
        self, known: Catalog
    ) -> None:
        with pytest.raises(InvalidInput) as caught:
            known.version("etcd", "3.6.99")

        assert caught.value.message == "unknown version `3.6.99` of `etcd`"
        assert "the nearest known is `v3.6.16`" in caught.value.hint
        assert '[components.etcd.versions."v3.6.99"]' in caught.value.hint

    @pytest.mark.parametrize(
        ("wanted", "nearest"),
        [("v1.36.99", "v1.36.4"), ("v1.2.3", "v1.34.0"), ("v9", "v1.37.1"), ("new", "v1.37.1")],
    )
    def test_nearest_is_of_the_same_line_if_there_is_one(
        self, known: Catalog, wanted: str, nearest: str
    ) -> None:
        with pytest.raises(InvalidInput) as caught:
            known.version("kubernetes", wanted)

        assert f"the nearest known is `{nearest}`" in caught.value.hint

    def test_of_an_unknown_component_name_the_one_that_was_meant(self, known: Catalog) -> None:
        with pytest.raises(InvalidInput, match="unknown component `contanerd`") as caught:
            known.versions("contanerd")

        assert caught.value.hint == "did you mean `containerd`?"

    def test_have_an_order(self) -> None:
        written = ["1.9.1", "1.36-alpha.2", "1.36-rc.1", "v1.36", "v1.36.0-0", "v1.36.0-1", "2"]
        builds = ["v1.9.1-flannel2", "v1.9.1-flannel10", "v1.9.2"]

        assert sorted(set(written), key=versions.parse) == written
        assert sorted(set(builds), key=versions.parse) == builds
        assert versions.parse("1.36") == versions.parse("v1.36.0")

    @pytest.mark.parametrize("text", ["", "v", "one", "1.2.3.4.5", "v1 ", "1..2", ">=1"])
    def test_that_are_none_are_refused(self, text: str) -> None:
        with pytest.raises(BadVersion):
            versions.parse(text)

    @pytest.mark.parametrize("text", ["", "1.2", ">=", ">=1,", ">=one", "~1.2"])
    def test_ranges_that_are_none_are_refused(self, text: str) -> None:
        with pytest.raises(BadVersion):
            versions.parse_range(text)

    @given(st.tuples(*[st.integers(0, 40)] * 3), st.tuples(*[st.integers(0, 40)] * 3))
    def test_a_bound_divides_them(
        self, one: tuple[int, int, int], other: tuple[int, int, int]
    ) -> None:
        version = versions.parse("v" + ".".join(map(str, one)))
        bound = ".".join(map(str, other))

        signs = {sign for sign in ("<", "=", ">") if version in versions.parse_range(sign + bound)}

        assert signs == {"<" if one < other else ">" if one > other else "="}
        assert (version in versions.parse_range(f">={bound}")) == (one >= other)
        assert (version in versions.parse_range(f"<={bound}")) == (one <= other)


class TestFacts:
    def test_the_form_of_containerds_configuration_follows_from_its_version(
        self, known: Catalog
    ) -> None:
        asked = ("v1.7.28", "v2.1.5", "v2.4.2")

        found = [known.trait("containerd", version, "config-version") for version in asked]

        assert found == ["2", "3", "3"]

    def test_of_kubernetes_are_told_by_its_version(self, known: Catalog) -> None:
        traits = ("kubeadm-api", "first-kubeconfig", "nftables-proxy", "ipvs-proxy")

        found = [known.trait("kubernetes", "v1.36.3", name) for name in traits]

        assert found == ["v1beta4", "super-admin.conf", "stable", "deprecated"]

    def test_of_older_versions_that_a_user_adds_are_known(self, tmp_path: Path) -> None:
        mine = written(
            tmp_path,
            """
            [components.kubernetes.versions."v1.28.1"]
            [kubernetes."v1.28"]
            default = "v1.28.1"
            [kubernetes."v1.28".expected."v1.28.0"]
            etcd = "3.5.24-0"
            coredns = "v1.12.1"
            pause = "3.10"
            least_etcd = "v3.4.13"
            """,
        )

        found = catalog.load([mine])

        assert found.minors[0] == "v1.28"
        assert found.trait("kubernetes", "1.28", "kubeadm-api") == "v1beta3"
        assert found.trait("kubernetes", "1.28", "first-kubeconfig") == "admin.conf"
        assert found.trait("kubernetes", "1.28", "nftables-proxy") is None

    def test_unknown_ones_name_the_one_that_was_meant(self, known: Catalog) -> None:
        with pytest.raises(InvalidInput) as caught:
            known.trait("kubernetes", "1.36", "kubeadm-apis")

        assert caught.value.hint == "did you mean `kubeadm-api`?"


class TestVerdicts:
    @pytest.mark.parametrize(
        ("kubernetes", "component", "version", "level"),
        [
            ("v1.34", "containerd", "v1.7.28", "fits"),
            ("v1.35", "containerd", "v1.7.34", "fits"),
            ("v1.35", "containerd", "v2.1.4", "conflicts"),
            ("v1.35", "containerd", "v2.1.5", "fits"),
            ("v1.36", "containerd", "v1.7.34", "conflicts"),
            ("v1.36", "containerd", "v2.2.0", "fits"),
            ("v1.36", "etcd", "v3.5.24", "fits"),
            ("v1.34", "calico", "v3.33.0", "untested"),
            ("v1.36", "calico", "v3.31.7", "untested"),
            ("v1.37", "calico", "v3.33.0", "fits"),
            ("v1.36", "cilium", "v1.20.1", "fits"),
            ("v1.37", "cilium", "v1.20.1", "untested"),
            ("v1.37", "nginx", "1.30.1", "fits"),
        ],
    )
    def test_follow_the_tables(
        self, known: Catalog, kubernetes: str, component: str, version: str, level: str
    ) -> None:
        assert known.verdict(kubernetes, component, version).level == level

    def test_say_why_and_what_to_do(self, known: Catalog) -> None:
        verdict = known.verdict("v1.36.3", "containerd", "1.7.34")

        assert verdict.reason == "containerd's own table asks for 2.2.0 and newer"
        assert verdict.hint == "take `containerd` `v2.3.4`, or Kubernetes `v1.34`, `v1.35`"

    def test_never_advise_what_does_not_help(self, known: Catalog) -> None:
        hint = known.verdict("v1.37", "cilium", "v1.20.1").hint

        assert hint == "take Kubernetes `v1.34`, `v1.35`, `v1.36`"


class TestOverlays:
    def test_add_a_version(self, tmp_path: Path) -> None:
        mine = written(
            tmp_path,
            f"""
            [components.etcd.versions."v3.6.99".sha256]
            archive.amd64 = "{SUM}"
            """,
        )

        found = catalog.load([mine])

        [file] = found.downloads("etcd", "3.6.99", "amd64")
        assert (file.sha256, file.file) == (SUM, "etcd-v3.6.99-linux-amd64.tar.gz")
        assert found.downloads("etcd", "3.6.99", "arm64")[0].sha256 is None
        assert "v3.6.14" in found.versions("etcd")

    def test_change_one_sum_and_leave_the_rest(self, tmp_path: Path) -> None:
        mine = written(
            tmp_path,
            f'components.kubernetes.versions."v1.36.3".sha256.kubeadm.amd64 = "{SUM}"',
        )

        found = {file.name: file.sha256 for file in files(catalog.load([mine]))}
        before = {file.name: file.sha256 for file in files(catalog.load())}

        assert found == {**before, "kubeadm": SUM}
        assert found != before

    def test_give_mirrors_that_are_tried_first(self, tmp_path: Path) -> None:
        mine = written(
            tmp_path,
            """
            [mirrors]
            "https://github.com/" = ["https://mine.lan/github/", "file:///srv/"]
            "https://storage.googleapis.com/etcd/" = ["https://mine.lan/etcd/"]
            """,
        )

        [file] = catalog.load([mine]).downloads("etcd", "v3.6.14", "amd64")

        name = "v3.6.14/etcd-v3.6.14-linux-amd64.tar.gz"
        assert file.urls == (
            f"https://mine.lan/github/etcd-io/etcd/releases/download/{name}",
            f"file:///srv/etcd-io/etcd/releases/download/{name}",
            f"https://mine.lan/etcd/{name}",
            f"https://github.com/etcd-io/etcd/releases/download/{name}",
            f"https://storage.googleapis.com/etcd/{name}",
        )

    def test_may_be_several_and_the_last_one_holds(self, tmp_path: Path) -> None:
        first = written(tmp_path, 'kubernetes."v1.36".default = "v1.36.1"', "first.toml")
        last = written(tmp_path, 'kubernetes."v1.36".default = "v1.36.2"', "last.toml")

        assert catalog.load([first, last]).version("kubernetes", "1.36") == "v1.36.2"
        assert catalog.load([last, first]).version("kubernetes", "1.36") == "v1.36.1"
        assert catalog.load().version("kubernetes", "1.36") == "v1.36.4"

    def test_leave_out_a_default_by_an_empty_text(self, tmp_path: Path) -> None:
        mine = written(tmp_path, '[kubernetes."v1.36".defaults]\ncrictl = ""\nflannel = ""\n')
        found = catalog.load([mine])

        assert not found.has_default("crictl", "1.36")
        assert found.has_default("crictl", "1.35")
        with pytest.raises(InvalidInput, match="no version of `crictl` is the default"):
            found.default("crictl", "1.36")
        general = found.component("flannel").default
        assert found.default("flannel", "1.36") == general, "one that holds for all lines is left"
        assert "crictl" not in found.line("1.36").defaults

    def test_name_the_etcd_that_kubeadm_runs_even_if_it_is_our_default_for_others(
        self, known: Catalog, tmp_path: Path
    ) -> None:
        ours = known.default("etcd", "1.36")
        mine = written(tmp_path, f'[kubernetes."v1.36".defaults]\netcd = "{ours}"\n')
        other = written(tmp_path, 'kubernetes."v1.36".default = "v1.36.1"', "other.toml")
        found = catalog.load([mine, other])

        assert known.stacked_etcd("1.36") == "v3.6.8"
        assert found.stacked_etcd("1.36") == ours != "v3.6.8"
        assert found.stacked_etcd("1.35") == known.stacked_etcd("1.35")
        assert found.digest != catalog.load([other]).digest

    def test_bring_charts_of_a_directory_but_of_no_bucket(self, tmp_path: Path) -> None:
        chart = '[components.cilium.charts.cilium]\nrepository = "{}"\n'
        here = written(tmp_path, chart.format("file:///srv/charts"))
        bucket = written(tmp_path, chart.format("s3://bucket/charts"), "bucket.toml")

        newest = catalog.load([here]).versions("cilium")[-1]
        (found,) = catalog.load([here]).charts("cilium", newest)

        assert found.repository == "file:///srv/charts"
        [(_, message, hint)] = refusal(bucket)
        assert message.startswith("components.cilium.charts.cilium.repository: found `s3://bucket/")
        assert "file:///srv/charts" in hint

    def test_bring_a_component_of_their_own(self, tmp_path: Path) -> None:
        mine = written(
            tmp_path,
            """
            [components.tool]
            about = "a tool of ours"
            default = "1.0"
            artifacts.tool = { kind = "binary", file = "t-{arch}", urls = ["s3://b/{bare}/{file}"] }
            images.tool = "mine.lan/tool:{version}-{flavour}"
            versions."1.0" = { uses = { flavour = "slim" } }
            """,
        )

        found = catalog.load([mine])

        assert found.default("tool", "1.36") == "1.0"
        assert found.downloads("tool", "1.0", "arm64")[0].urls == ("s3://b/1.0/t-arm64",)
        assert found.images("tool", "1.0") == {"tool": "mine.lan/tool:1.0-slim"}

    @given(st.data())
    def test_laid_over_nothing_or_over_themselves_change_nothing(self, data: st.DataObject) -> None:
        whole = catalog._packaged_data()
        part = {key: value for key, value in whole.items() if data.draw(st.booleans(), label=key)}

        assert reading.overlaid({}, part) == part
        assert reading.overlaid(part, {}) == part
        assert reading.overlaid(whole, part) == whole


def files(known: Catalog) -> tuple[catalog.Download, ...]:
    return known.downloads("kubernetes", "v1.36.3", "amd64")


def test_its_digest_changes_with_what_it_says(tmp_path: Path) -> None:
    nothing = written(tmp_path, "", "nothing.toml")
    change = written(tmp_path, 'kubernetes."v1.36".default = "v1.36.2"', "change.toml")

    assert catalog.load([nothing]).digest == catalog.load().digest
    assert catalog.load([change]).digest != catalog.load().digest


def is_catalog(data: dict[str, Any]) -> bool:
    try:
        msgspec.convert(data, Entries)
    except msgspec.ValidationError:
        return False
    return True


KEYS = st.sampled_from(
    [
        "components",
        "kubernetes",
        "mirrors",
        "packages",
        "etcd",
        "versions",
        "v1.36",
        "sha256",
        "archive",
        "amd64",
        "about",
        "images",
        "default",
        "urls",
        "kind",
        "https://mine.lan/",
        "?",
    ]
)
LEAVES = st.sampled_from([SUM, "v1.36", "archive", "https://mine.lan/", "", 1, 1.5, True])
VALUES = st.recursive(
    LEAVES | st.dates(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
)


class TestMistakes:
    @given(st.dictionaries(KEYS, VALUES, max_size=3))
    def test_are_found_where_data_is_no_catalog_and_nowhere_else(
        self, data: dict[str, Any]
    ) -> None:
        assert (mistakes(data, partial=False) == []) == is_catalog(data)

    def test_all_of_all_files_are_told_at_once(self, tmp_path: Path) -> None:
        one = written(
            tmp_path,
            """
            component = 1
            mirrors = "https://mine.lan/"
            [components.etcd]
            artefacts = {}
            versions."v3.6.14".sha256.archive.amd64 = "short"
            versions.newest = {}
            """,
            "one.toml",
        )
        two = written(
            tmp_path,
            """
            [components.etcd.artifacts.archive]
            kind = "archiv"
            urls = []
            [components.etcd.versions."v3.6.14".sha256]
            archive.arm = 7
            [packages.socat]
            apt = ["socat", 1]
            rpm = "socat"
            """,
            "two.toml",
        )
        three = written(tmp_path, "[components\n", "three.toml")

        assert refusal(one, two, three, tmp_path / "none.toml") == [
            ("one.toml", "component: unknown key", "did you mean `components`?"),
            (
                "one.toml",
                "mirrors: found `https://mine.lan/`, want a table",
                "write `[mirrors]` and keys below",
            ),
            ("one.toml", "components.etcd.artefacts: unknown key", "did you mean `artifacts`?"),
            (
                "one.toml",
                (
                    'components.etcd.versions."v3.6.14".sha256.archive.amd64: found `short`, '
                    "want 64 hexadecimal digits"
                ),
                "write 64 hexadecimal digits",
            ),
            (
                "one.toml",
                "components.etcd.versions.newest: found `newest`, want a version such as `v1.36.3`",
                "write a version such as `v1.36.3`",
            ),
            (
                "two.toml",
                (
                    "components.etcd.artifacts.archive.kind: found `archiv`, "
                    "want `archive` or `binary` or `manifest`"
                ),
                "did you mean `archive`?",
            ),
            (
                "two.toml",
                "components.etcd.artifacts.archive.urls: found an empty list",
                "fill it or leave it out",
            ),
            (
                "two.toml",
                (
                    'components.etcd.versions."v3.6.14".sha256.archive.arm: found `arm`, '
                    "want `amd64` or `any` or `arm64`"
                ),
                "did you mean `arm64`?",
            ),
            (
                "two.toml",
                (
                    'components.etcd.versions."v3.6.14".sha256.archive.arm: found the number 7, '
                    "want 64 hexadecimal digits"
                ),
                "write 64 hexadecimal digits",
            ),
            (
                "two.toml",
                "packages.socat.apt[1]: found the number 1, want text",
                "write text",
            ),
            ("two.toml", "packages.socat.rpm: found `socat`, want a list", "write it as `[…]`"),
            (
                "three.toml",
                (
                    "the catalog is not TOML: Expected ']' at the end of a table declaration "
                    "(at line 1, column 12)"
                ),
                "correct that line",
            ),
            (
                "none.toml",
                "the catalog can't be read: No such file or directory",
                "check its path and mode",
            ),
        ]

    def test_what_is_missing_is_blamed_on_the_file_that_began_it(self, tmp_path: Path) -> None:
        other = written(tmp_path, 'kubernetes."v1.36".default = "v1.36.2"', "other.toml")
        mine = written(tmp_path, '[packages.vim]\napt = ["vim"]\nrpm = ["vim-enhanced"]\n')

        assert [found[:2] for found in refusal(mine, other)] == [
            ("mine.toml", "packages.vim: `about` is missing"),
            ("mine.toml", "packages.vim: `zypper` is missing"),
        ]

    def test_contradictions_are_told_at_once(self, tmp_path: Path) -> None:
        mine = written(
            tmp_path,
            f"""
            [kubernetes."v1.36"]
            default = "v1.36.99"
            defaults.etcd = "v3.6.15"
            defaults.docker = "v28"
            fits.etcd.versions = [">=three"]
            expected."v1.35.9" = {{ etcd = "9-0", coredns = "v1", pause = "3", least_etcd = "v3" }}
            [components.etcd]
            default = "v3.6.17"
            images.server = "registry.k8s.io/etcd:{{vesion}}"
            versions."v3.6.14".sha256.archiv.amd64 = "{SUM}"
            [components.kubernetes.versions."v1.99.0"]
            [components.pause]
            images.pause = "registry.k8s.io/pause:{{version"
            [components.runc.traits]
            cgroups = [{{ versions = ">=x", value = "2" }}]
            """,
        )

        found = refusal(mine)

        assert {name for name, _, _ in found} == {"mine.toml"}
        assert sorted(message for _, message, _ in found) == sorted(
            [
                "components.etcd.default: unknown version `v3.6.17`",
                (
                    "components.etcd.images.server: `{vesion}` stands for nothing in "
                    "`v3.5.24`, `v3.5.25`, `v3.5.26` and 21 more"
                ),
                'components.etcd.versions."v3.6.14".sha256.archiv: unknown file `archiv`',
                (
                    'components.kubernetes.versions."v1.99.0": the release line `v1.99` is not '
                    "supported, only `v1.34`, `v1.35`, `v1.36`, `v1.37`"
                ),
                (
                    "components.pause.images.pause: found `registry.k8s.io/pause:{version`, "
                    "in which a brace has no partner"
                ),
                (
                    "components.runc.traits.cgroups[0].versions: found `x`, "
                    "want a version such as `v1.36.3`"
                ),
                'kubernetes."v1.36".default: unknown version `v1.36.99`',
                'kubernetes."v1.36".defaults.docker: unknown component `docker`',
                'kubernetes."v1.36".defaults.etcd: unknown version `v3.6.15`',
                'kubernetes."v1.36".expected."v1.35.9": found `v1.35.9`, want a version of `v1.36`',
                'kubernetes."v1.36".expected."v1.35.9".etcd: unknown version `v9`',
                (
                    'kubernetes."v1.36".fits.etcd.versions[0]: found `three`, '
                    "want a version such as `v1.36.3`"
                ),
            ]
        )

    def test_a_template_can_only_name_what_is_filled_in(self, tmp_path: Path) -> None:
        mine = written(tmp_path, '[components.pause.images]\npause = "a/{version.__class__}:1"\n')

        found = refusal(mine)

        assert [message for _, message, _ in found] == [
            (
                "components.pause.images.pause: `{version.__class__}` stands for nothing in "
                "`3.10`, `3.10.1`, `3.10.2`"
            )
        ]

    @pytest.mark.parametrize(
        "field", ["{version!x}", "{version!r}", "{version:d}", "{version:{arch}}", "{version:>9}"]
    )
    def test_a_template_fills_in_what_it_names_as_it_is(self, tmp_path: Path, field: str) -> None:
        mine = written(tmp_path, f'[components.pause.images]\npause = "a/b:{field}"\n')

        [(_, message, hint)] = refusal(mine)

        found = f"found `a/b:{field}`, want nothing but a name in braces"
        assert message == f"components.pause.images.pause: {found}"
        assert "`{version}`" in hint

    def test_lists_that_are_too_deep_in_each_other_are_refused(self, tmp_path: Path) -> None:
        mine = written(tmp_path, f"a = {'[' * 100_000}{']' * 100_000}\n")

        [(_, message, _)] = refusal(mine)

        assert message == (
            "the catalog can't be read: its lists and tables are too deep in each other"
        )

    @pytest.mark.parametrize("version", ["v12345678901.0", "v1.36.9\\n", "v1.36.9 ", "v", "١.٢"])
    def test_what_is_no_version_is_refused_by_its_form(self, tmp_path: Path, version: str) -> None:
        mine = written(tmp_path, f'[components.kubernetes.versions."{version}"]\n')

        [(_, message, _)] = refusal(mine)

        assert message.endswith("want a version such as `v1.36.3`")

    def test_bytes_that_are_no_text_are_no_catalog(self, tmp_path: Path) -> None:
        mine = tmp_path / "mine.toml"
        mine.write_bytes(b"\xff")

        assert refusal(mine)[0][1] == "the catalog can't be read: it is not UTF-8 text"


LOCKED = st.builds(
    Locked,
    st.sampled_from(["etcd", "kubernetes", "cni-plugins"]),
    st.sampled_from(["v1.36.3", "v3.6.16", "v1.9.1-flannel1"]),
    st.sampled_from(["archive", "kubeadm"]),
    st.sampled_from(ARCHES),
    st.text("0123456789abcdef", min_size=64, max_size=64),
)


class TestLocks:
    def test_are_catalogs(self, tmp_path: Path) -> None:
        fetched = [
            Locked("etcd", "v3.6.16", "archive", "arm64", OTHER),
            Locked("etcd", "v3.6.16", "archive", "amd64", SUM),
        ]

        found = catalog.load([written(tmp_path, lock.text(fetched), "lock.toml")])

        assert found.downloads("etcd", "3.6.16", "amd64")[0].sha256 == SUM
        assert found.downloads("etcd", "3.6.16", "arm64")[0].sha256 == OTHER
        before = msgspec.to_builtins(catalog.load().entries)
        after = msgspec.to_builtins(found.entries)
        before["components"]["etcd"]["versions"]["v3.6.16"]["sha256"] = {
            "archive": {"amd64": SUM, "arm64": OTHER}
        }
        assert after == before

    def test_are_written_in_one_way(self) -> None:
        text = lock.text(
            [
                Locked("runc", "v1.5.2", "runc", "amd64", SUM),
                Locked("etcd", "v3.6.16", "archive", "amd64", SUM),
            ]
        )

        assert text.split("\n", 2)[2] == (
            f'\n[components.etcd.versions."v3.6.16".sha256]\narchive.amd64 = "{SUM}"\n'
            f'\n[components.runc.versions."v1.5.2".sha256]\nrunc.amd64 = "{SUM}"\n'
        )

    @given(st.lists(LOCKED, unique_by=lambda each: (*msgspec.structs.astuple(each)[:4],)))
    def test_hold_what_was_written_in_whatever_order(self, fetched: list[Locked]) -> None:
        text = lock.text(fetched)

        assert text == lock.text(reversed(fetched))
        assert mistakes(tomllib.loads(text), partial=True) == []
        components = tomllib.loads(text).get("components", {})
        assert {
            Locked(component, version, name, arch, digest)
            for component, entry in components.items()
            for version, release in entry["versions"].items()
            for name, by_arch in release["sha256"].items()
            for arch, digest in by_arch.items()
        } == set(fetched)

    def test_refuse_two_contents_of_one_file(self) -> None:
        twice = [Locked("etcd", "v3.6.16", "archive", "amd64", digest) for digest in (SUM, OTHER)]

        with pytest.raises(InvalidInput, match="different contents") as caught:
            lock.text(twice)

        assert [problem.message for problem in caught.value.problems] == [
            "`etcd` `v3.6.16`, `archive` for amd64"
        ]
