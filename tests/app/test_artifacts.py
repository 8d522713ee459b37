"""The check `artifacts`: what a cluster needs is in its bundle, or can be had."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.app.test_bundles import ROUTED, build, depot, home, stocked, wanted
from tests.resource import depot as depots
from tests.resource.depot import Depot
from tests.resource.serving import Reply, Request, serving

from kubexm.app import bundles
from kubexm.app.artifacts import Sought, lacking
from kubexm.app.bills import BillParams, billed
from kubexm.app.params import ClusterParams
from kubexm.common.checks import Finding
from kubexm.common.paths import Home
from kubexm.errors import InvalidFile
from kubexm.resource import keys
from kubexm.resource.asking import Answer, asking, best
from kubexm.resource.catalog import ChartRelease
from kubexm.resource.fetch import Options
from kubexm.resource.materials import BillOfMaterials, Binary
from kubexm.resource.store import Store
from kubexm.runtime.secrets import SecretVault

__all__ = ["depot", "home", "stocked", "wanted"]


async def found(
    wanted: BillParams, home: Home, *, bundle: Path | None = None, arch: str = "x86_64"
) -> list[Finding]:
    assert wanted.file is not None
    cluster = ClusterParams(wanted.file, wanted.allow_literal_secrets, wanted.catalogs)
    return await lacking(Sought(cluster, {"node1": {"arch": arch}}, bundle), home, SecretVault())


def kubelet(stocked: BillOfMaterials) -> Binary:
    return next(file for file in stocked.binaries if file.name == "kubelet")


def in_site(wanted: BillParams, depot: Depot) -> BillParams:
    """The same with a registry of the site, which the depot is."""
    assert wanted.file is not None
    place = depot.host.replace("127.0.0.1", "localhost")
    more = f"      {place}: {{plainHttp: true}}\n{ROUTED}  registry: {{host: localhost, port: "
    text = wanted.file.read_text().replace(ROUTED, f"{more}{place.partition(':')[2]}}}\n")
    wanted.file.write_text(text)
    return wanted


async def test_nothing_is_lacking_if_every_address_answers_and_nothing_is_fetched(
    depot: Depot, stocked: BillOfMaterials, wanted: BillParams, home: Home
) -> None:
    assert await found(wanted, home) == []

    assert depots.path_of(kubelet(stocked)) in depot.asked
    assert any("/manifests/" in path for path in depot.asked)
    assert not any("/blobs/" in path for path in depot.asked)
    assert not home.artifacts.exists()


async def test_a_file_that_no_address_has_is_refused_by_its_name(
    depot: Depot, stocked: BillOfMaterials, wanted: BillParams, home: Home
) -> None:
    depot.refused.add(path := depots.path_of(kubelet(stocked)))

    (one,) = await found(wanted, home)

    key = "kubernetes/v1.36.3/kubelet/amd64"
    assert one.message == f"`{key}` can't be had: {depot.url}{path} answers 404"
    assert (one.check, one.hosts, one.kind) == ("artifacts", ("control-node",), "refusal")
    assert "--catalog" in one.remedy


async def test_what_is_in_the_store_is_not_asked_for(
    depot: Depot, stocked: BillOfMaterials, wanted: BillParams, home: Home
) -> None:
    file = kubelet(stocked)
    Store(home.artifacts).add(depots.content(file), name=keys.of_file(file))
    depot.refused.add(depots.path_of(file))

    assert await found(wanted, home) == []
    assert depots.path_of(file) not in depot.asked


async def test_what_hosts_have_told_decides_for_which_machines_files_are_wanted(
    wanted: BillParams, home: Home
) -> None:
    told = await found(wanted, home, arch="aarch64")

    assert any("`kubernetes/v1.36.3/kubelet/arm64` can't be had" in one.message for one in told)


async def test_images_are_asked_of_the_registry_of_the_site_by_the_names_that_hosts_pull(
    depot: Depot, wanted: BillParams, home: Home
) -> None:
    pulled = [image.pulled_as for image in billed(in_site(wanted, depot)).bill.images]
    for name in pulled[1:]:
        depot.add(name)

    (one,) = await found(wanted, home)

    assert pulled[0].startswith("localhost:")
    assert one.message.startswith(f"the image `{pulled[0]}` can't be had: ")
    assert (one.kind, one.hosts) == ("refusal", ("control-node",))


async def test_a_registry_that_does_not_answer_here_is_a_warning_for_all_its_images(
    depot: Depot, wanted: BillParams, home: Home
) -> None:
    assert wanted.file is not None
    text = in_site(wanted, depot).file
    assert text is not None
    port = depot.host.partition(":")[2]
    text.write_text(text.read_text().replace(port, "1").replace("127.0.0.1:1", depot.host))

    (one,) = await found(wanted, home)

    assert one.kind == "warning"
    assert one.message.startswith("`localhost:1` can't be asked from here whether it has `")
    assert "and " in one.message
    assert "refused" in one.message


async def test_a_registry_that_we_may_not_believe_is_a_warning(
    depot: Depot, wanted: BillParams, home: Home
) -> None:
    file = in_site(wanted, depot).file
    assert file is not None
    file.write_text(file.read_text().replace("plainHttp: true", "insecure: true"))

    (one,) = await found(wanted, home)

    assert one.kind == "warning"
    assert "kubexm itself believes no certificate that it can't check" in one.message


async def test_a_chart_that_its_repository_does_not_list_is_refused(
    depot: Depot, wanted: BillParams, home: Home
) -> None:
    assert wanted.file is not None
    url = f"{depot.url}/charts"
    chart = f"  addons: [{{name: a, chart: {{name: shop, version: 2.0.0, repository: '{url}'}}}}]\n"
    wanted.file.write_text(wanted.file.read_text() + chart)
    entries = "entries:\n  shop:\n  - version: 1.0.0\n    urls: [shop-1.0.0.tgz]\n"
    depot.put("/charts/index.yaml", entries.encode())

    told = [one.message for one in await found(wanted, home) if "chart" in one.message]

    assert told == [
        f"the chart `shop` `2.0.0` of {url} can't be had: {url} has no chart `shop` `2.0.0`"
    ]


async def test_a_file_that_leaves_the_check_out_asks_nobody(
    depot: Depot, wanted: BillParams, home: Home
) -> None:
    assert wanted.file is not None
    text = wanted.file.read_text()
    wanted.file.write_text(f"{text}  preflight: {{skip: [artifacts]}}\n")

    assert await found(wanted, home, arch="aarch64") == []
    assert depot.asked == []


async def test_a_bundle_is_asked_in_place_of_everybody_and_lacks_what_its_own_check_says(
    depot: Depot, wanted: BillParams, home: Home, tmp_path: Path
) -> None:
    bundle = tmp_path / "b.tar.zst"
    await build(wanted, Home(tmp_path / "o", tmp_path / "o", tmp_path / "o"), bundle)
    assert wanted.file is not None
    wanted.file.write_text(wanted.file.read_text().replace("routed", "flannel"))
    depot.asked.clear()

    told = await found(wanted, home, bundle=bundle)

    assert [one.message for one in told] == [each.message for each in bundles.check(bundle, wanted)]
    assert {one.kind for one in told} == {"refusal"}
    assert depot.asked == []
    with pytest.raises(InvalidFile):
        await found(wanted, home, bundle=tmp_path / "nofile")


def test_of_several_addresses_one_is_enough_and_who_knows_nothing_denies_nothing() -> None:
    no, silent, busy = (
        Answer("lacks", "a answers 404"),
        Answer("silent", "no answer from b"),
        Answer("unsure", "c answers 503"),
    )

    assert best([no, Answer("has")]) == Answer("has")
    assert best([no, silent]) == Answer("silent", "a answers 404; no answer from b")
    assert best([silent, busy]).word == "unsure"
    assert best([]) == Answer("lacks", "it has no address")


@pytest.mark.parametrize(("status", "word"), [(200, "has"), (503, "unsure"), (410, "lacks")])
async def test_a_server_that_is_busy_is_not_believed_to_lack_something(
    status: int, word: str
) -> None:
    async with (
        serving(lambda request: Reply(status)) as server,
        asking(Options(), {}) as ask,
    ):
        assert (await ask.file([f"{server.url}/kubelet"])).word == word


async def test_a_server_that_knows_no_short_question_is_asked_for_the_first_byte() -> None:
    def answer(request: Request) -> Reply:
        return Reply(405) if request.method == "HEAD" else Reply(206, b"x")

    async with serving(answer) as server, asking(Options(), {}) as ask:
        assert (await ask.file([f"{server.url}/kubelet"])).word == "has"

    assert [request.method for request in server.requests] == ["HEAD", "GET"]
    assert server.asked("Range")[1] == "bytes=0-0"


async def test_an_address_where_nobody_is_and_a_file_that_is_not_there_are_told_apart(
    tmp_path: Path,
) -> None:
    (tmp_path / "kubelet").write_text("x")
    async with asking(Options(), {}) as ask:
        silent = await ask.file(["http://127.0.0.1:1/kubelet"])
        missing = await ask.file([str(tmp_path / "nofile")])
        there = await ask.file([str(tmp_path / "nofile"), str(tmp_path / "kubelet")])

    assert (silent.word, missing.word, there.word) == ("silent", "lacks", "has")
    assert silent.why == "no answer from http://127.0.0.1:1/kubelet: connection refused"


async def test_a_repository_of_charts_may_be_a_directory(tmp_path: Path) -> None:
    entries = "entries:\n  shop:\n  - version: 1.0.0\n    urls: [shop-1.0.0.tgz]\n"
    (tmp_path / "index.yaml").write_text(entries)
    there = ChartRelease(name="shop", version="1.0.0", repository=tmp_path.as_uri())
    newer = ChartRelease(name="shop", version="2.0.0", repository=tmp_path.as_uri())
    nowhere = ChartRelease(name="shop", version="1.0.0", repository=(tmp_path / "no").as_uri())

    async with asking(Options(), {}) as ask:
        found, lacking, missing = [await ask.chart(one) for one in (there, newer, nowhere)]

    assert found == Answer("has")
    assert (lacking.word, missing.word) == ("lacks", "lacks")
    assert "has no chart `shop` `2.0.0`" in lacking.why
    assert f"can't read `{tmp_path}/no/index.yaml`" in missing.why


async def test_what_has_no_address_or_no_version_can_t_be_had() -> None:
    chart = ChartRelease(name="shop", version="", repository="oci://r.lan/charts")
    async with asking(Options(), {}) as ask:
        address = await ask.file(["ftp://a.lan/kubelet"])
        version = await ask.chart(chart)

    assert (address.word, version.word) == ("lacks", "lacks")
    assert "ftp" in address.why
    assert "no version" in version.why
