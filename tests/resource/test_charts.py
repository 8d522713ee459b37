"""Charts of Helm: found by the index of a repository, or in a registry."""

import gzip
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from tests.resource import depot as depots
from tests.resource.depot import Depot

from kubexm.errors import InvalidInput, StepFailed
from kubexm.resource import keys, manifests
from kubexm.resource.catalog import ChartRelease
from kubexm.resource.charts import CONTENT, Release, chosen, fetch_chart, listed
from kubexm.resource.fetch import Options
from kubexm.resource.http import Settings
from kubexm.resource.manifests import Descriptor, Manifest
from kubexm.resource.registries import Giving, Way, reached
from kubexm.resource.store import Store

CHART = depots.chart("podinfo", "6.9.0")
NEWEST = depots.chart("podinfo", "6.10.0")
QUICK = Options(web=Settings(first_pause=0.001, attempts=2))
INDEX = """\
apiVersion: v1
entries:
  other:
  - version: 9.0.0
    urls: [other-9.0.0.tgz]
  podinfo:
  - apiVersion: v1
    description: |
      entries of
        another kind
    digest: {digest}
    urls:
    - charts/podinfo-6.9.0.tgz
    version: 6.9.0
  - urls: [podinfo-7.0.0-rc1.tgz]
    version: 7.0.0-rc1
  - urls: [podinfo-6.10.0.tgz]
    version: v6.10.0
  zebra:
  - version: 1.0.0
    urls: [zebra-1.0.0.tgz]
generated: "2026-01-01T00:00:00Z"
"""


@pytest.fixture
def depot(tmp_path: Path) -> Iterator[Depot]:
    with depots.opened(tmp_path / "depot") as opened:
        opened.put("/stable/podinfo-6.10.0.tgz", NEWEST)
        digest = opened.put("/stable/charts/podinfo-6.9.0.tgz", CHART)
        opened.put("/stable/index.yaml", INDEX.format(digest=digest).encode())
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def chart(repository: str, version: str = "6.9.0", name: str = "podinfo") -> ChartRelease:
    return ChartRelease(name=name, version=version, repository=repository)


def index_of(address: str, digest: str = "") -> bytes:
    """An index with one release, which is at this address."""
    release = f"{{version: 6.9.0, urls: ['{address}'], digest: '{digest}'}}"
    return f"apiVersion: v1\nentries:\n  podinfo:\n  - {release}\n".encode()


@asynccontextmanager
async def asked(depot: Depot) -> AsyncIterator[Giving]:
    async with reached({depot.host: Way(plain_http=True)}, QUICK.web) as giving:
        yield giving


class TestRepositories:
    async def test_a_chart_is_kept_under_its_key_and_not_looked_for_again(
        self, depot: Depot, store: Store
    ) -> None:
        wanted = chart(f"{depot.url}/stable")
        async with asked(depot) as giving:
            await fetch_chart(wanted, store, QUICK, giving)
            depot.asked.clear()
            await fetch_chart(wanted, store, QUICK, giving)

        digest = store.find(f"chart/{depot.url}/stable/podinfo/6.9.0")
        assert digest is not None
        assert store.path(digest).read_bytes() == CHART
        assert depot.asked == []

    async def test_without_a_version_it_is_the_newest_final_one(
        self, depot: Depot, store: Store
    ) -> None:
        wanted = chart(f"{depot.url}/stable/", "")
        async with asked(depot) as giving:
            await fetch_chart(wanted, store, QUICK, giving)

        digest = store.find(keys.of_chart(wanted))
        assert digest is not None
        assert store.path(digest).read_bytes() == NEWEST

    async def test_another_content_than_the_index_tells_is_refused(
        self, depot: Depot, store: Store
    ) -> None:
        depot.put("/stable/charts/podinfo-6.9.0.tgz", b"another")

        async with asked(depot) as giving:
            with pytest.raises(StepFailed, match="it has another content"):
                await fetch_chart(chart(f"{depot.url}/stable"), store, QUICK, giving)

    async def test_a_version_that_is_not_there_is_told_with_the_newest(
        self, depot: Depot, store: Store
    ) -> None:
        async with asked(depot) as giving:
            with pytest.raises(StepFailed, match=r"has no chart `podinfo` `6\.8\.0`") as caught:
                await fetch_chart(chart(f"{depot.url}/stable", "6.8.0"), store, QUICK, giving)

        assert "the newest is `v6.10.0`" in caught.value.hint

    async def test_one_may_be_a_directory_of_this_machine(
        self, depot: Depot, store: Store, tmp_path: Path
    ) -> None:
        place = tmp_path / "my charts"
        digest = sha256(CHART).hexdigest()
        (place / "charts").mkdir(parents=True)
        (place / "index.yaml").write_text(INDEX.format(digest=digest))
        (place / "charts" / "podinfo-6.9.0.tgz").write_bytes(CHART)
        wanted = chart(place.as_uri())

        async with asked(depot) as giving:
            await fetch_chart(wanted, store, QUICK, giving)

        assert store.find(keys.of_chart(wanted)) == digest
        assert depot.asked == []

    async def test_a_directory_without_an_index_is_told_with_what_writes_one(
        self, depot: Depot, store: Store, tmp_path: Path
    ) -> None:
        async with asked(depot) as giving:
            with pytest.raises(StepFailed, match=r"can't read `.*index\.yaml`: No such") as caught:
                await fetch_chart(chart(tmp_path.as_uri()), store, QUICK, giving)

        assert "helm repo index" in caught.value.hint

    @pytest.mark.parametrize(
        "address",
        [
            "file:///etc/hostname",
            "FILE:/etc/hostname",
            "s3://bucket/key",
            "http://[::1/x",
            "http://user:word@mine.lan/x.tgz",
        ],
    )
    async def test_an_index_of_the_web_names_no_place_but_in_the_web(
        self, depot: Depot, store: Store, address: str
    ) -> None:
        depot.put("/bad/index.yaml", index_of(address))

        async with asked(depot) as giving:
            with pytest.raises(StepFailed, match="want one below it or of a web server") as caught:
                await fetch_chart(chart(f"{depot.url}/bad"), store, QUICK, giving)

        assert "word" not in caught.value.message
        assert store.names() == {}

    @pytest.mark.parametrize("address", ["../a.tgz", "%2e%2e/a.tgz", "s3://bucket/key", "{}/a.tgz"])
    async def test_an_index_of_a_directory_names_no_place_beside_it(
        self, depot: Depot, store: Store, tmp_path: Path, address: str
    ) -> None:
        place = tmp_path / "charts"
        place.mkdir()
        (tmp_path / "a.tgz").write_bytes(CHART)
        (place / "index.yaml").write_bytes(index_of(address.format(tmp_path.as_uri())))

        async with asked(depot) as giving:
            with pytest.raises(StepFailed, match="want one below it"):
                await fetch_chart(chart(place.as_uri()), store, QUICK, giving)

        assert store.names() == {}

    @pytest.mark.parametrize(
        ("content", "what"),
        [
            (b"<!DOCTYPE html><p>log in first</p>", "a web page"),
            (b"a secret", "text"),
            (b"", "empty"),
            (b"\x7fELF\0", "a program"),
            (gzip.compress(b"a secret", mtime=0), "a file of gzip"),
            (depots.chart("podinfo")[:-20], "a file of gzip"),
        ],
    )
    async def test_what_is_no_chart_is_refused(
        self, depot: Depot, store: Store, content: bytes, what: str
    ) -> None:
        digest = depot.put("/bad/podinfo.tgz", content)
        for told in ("", digest):
            depot.put("/bad/index.yaml", index_of("podinfo.tgz", told))
            async with asked(depot) as giving:
                with pytest.raises(StepFailed, match=f"it is {what}, want a chart"):
                    await fetch_chart(chart(f"{depot.url}/bad"), store, QUICK, giving)

        assert store.names() == {}

    async def test_a_bucket_is_refused_with_what_to_do(self, depot: Depot, store: Store) -> None:
        async with asked(depot) as giving:
            with pytest.raises(InvalidInput, match="want a repository and no bucket") as caught:
                await fetch_chart(chart("s3://bucket/charts"), store, QUICK, giving)

        assert "file:///" in caught.value.hint

    async def test_a_place_without_an_index_is_told(self, depot: Depot, store: Store) -> None:
        async with asked(depot) as giving:
            with pytest.raises(StepFailed, match=r"nowhere/index\.yaml answers 404"):
                await fetch_chart(chart(f"{depot.url}/nowhere"), store, QUICK, giving)


class TestIndexes:
    def test_only_the_part_of_one_chart_is_read(self) -> None:
        broken = INDEX.replace("  zebra:\n", "  zebra: {\n")

        assert [each.version for each in listed(broken, "podinfo")] == [
            "6.9.0",
            "7.0.0-rc1",
            "v6.10.0",
        ]

    @pytest.mark.parametrize("name", ["other", "zebra", "podinfo", "nobody"])
    def test_all_of_it_tells_the_same(self, name: str) -> None:
        compact = INDEX.replace(f"  {name}:\n", f'  "{name}":\n')

        assert listed(compact, name) == listed(INDEX, name)

    def test_json_is_read_as_well(self) -> None:
        text = '{"entries": {"a": [{"version": "1.0.0", "urls": ["a.tgz"], "digest": "d"}]}}'

        assert listed(text, "a") == [Release("1.0.0", ("a.tgz",), "d")]

    def test_a_version_may_have_a_v_in_front(self) -> None:
        releases = listed(INDEX, "podinfo")

        assert chosen(chart("x", "6.10.0"), releases).version == "v6.10.0"
        assert chosen(chart("x", "v6.9.0"), releases).version == "6.9.0"

    def test_where_nothing_is_final_the_newest_of_the_rest_is_taken(self) -> None:
        releases = [Release(version, ()) for version in ("1.0.0-rc1", "1.0.0-rc2", "no version")]

        assert chosen(chart("x", ""), releases).version == "1.0.0-rc2"


class TestRegistries:
    def publish(self, depot: Depot, kind: str, data: bytes = CHART) -> None:
        layer = Descriptor(kind, manifests.digest_of(data), len(data))
        config = Descriptor("application/vnd.cncf.helm.config.v1+json", layer.digest, len(data))
        document = manifests.encoded(Manifest(config, (layer,)))
        depot.put("/v2/charts/podinfo/manifests/6.9.0_b1", document, manifests.OCI_MANIFEST)
        depot.put(f"/v2/charts/podinfo/blobs/{layer.digest}", data)

    async def test_a_chart_of_a_registry_is_pulled(self, depot: Depot, store: Store) -> None:
        self.publish(depot, CONTENT)
        wanted = chart(f"oci://{depot.host}/charts", "6.9.0+b1")

        async with asked(depot) as giving:
            await fetch_chart(wanted, store, QUICK, giving)

        digest = store.find(keys.of_chart(wanted))
        assert digest is not None
        assert store.path(digest).read_bytes() == CHART

    async def test_an_image_is_no_chart(self, depot: Depot, store: Store) -> None:
        self.publish(depot, manifests.OCI_LAYER)

        async with asked(depot) as giving:
            with pytest.raises(StepFailed, match="is no chart"):
                wanted = chart(f"oci://{depot.host}/charts", "6.9.0+b1")
                await fetch_chart(wanted, store, QUICK, giving)

    async def test_what_only_calls_itself_a_chart_is_refused(
        self, depot: Depot, store: Store
    ) -> None:
        self.publish(depot, CONTENT, b"a secret")

        async with asked(depot) as giving:
            with pytest.raises(StepFailed, match="it is text, want a chart"):
                wanted = chart(f"oci://{depot.host}/charts", "6.9.0+b1")
                await fetch_chart(wanted, store, QUICK, giving)

        assert store.names() == {}

    async def test_it_needs_a_version(self, depot: Depot, store: Store) -> None:
        async with asked(depot) as giving:
            with pytest.raises(InvalidInput, match="has no version"):
                await fetch_chart(chart(f"oci://{depot.host}/c", ""), store, QUICK, giving)
