"""What an operation on a cluster needs before it is planned for good."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.app.test_bundles import build, depot, home, stocked, wanted
from tests.resource.depot import Depot

from kubexm.app.bills import BillParams, billed
from kubexm.app.execution import Front
from kubexm.app.params import ClusterParams, OperationParams, PlanParams, RunParams
from kubexm.app.preparing import prepared
from kubexm.common.paths import Home
from kubexm.errors import InvalidInput, KubexmError
from kubexm.resource import keys
from kubexm.resource.store import Store
from kubexm.runtime.store_assets import StoreAssets

__all__ = ["depot", "home", "stocked", "wanted"]


def creation(wanted: BillParams, bundle: Path | None, *, check: bool = False) -> RunParams:
    assert wanted.file is not None
    wanted.file.write_text(wanted.file.read_text().replace("name: a,", "name: a, arch: amd64,"))
    cluster = ClusterParams(wanted.file, catalogs=wanted.catalogs)
    return RunParams(PlanParams(OperationParams(cluster, bundle=bundle)), check=check)


@pytest.fixture
def declared(wanted: BillParams) -> BillParams:
    """The same with the architecture of its hosts said, so that none has to be asked."""
    assert wanted.file is not None
    text = wanted.file.read_text()
    assert "address:" in text
    wanted.file.write_text(text.replace("address:", "arch: amd64, address:"))
    return wanted


async def test_all_of_a_bundle_is_at_hand_and_nobody_outside_is_asked(
    depot: Depot, declared: BillParams, home: Home, tmp_path: Path
) -> None:
    bundle = tmp_path / "b.tar.zst"
    await build(declared, Home(tmp_path / "other", tmp_path / "other", tmp_path / "other"), bundle)
    depot.asked.clear()

    assert await prepared(creation(declared, bundle), Front(), home) is None

    assets = StoreAssets(Store(home.artifacts), outside=False)
    bill = billed(declared).bill
    assert all(assets.digest(keys.of_file(file)) for file in bill.binaries)
    assert all(assets.has_image(image.name, "amd64") for image in bill.images)
    assert depot.asked == []


async def test_a_bundle_that_lacks_something_is_refused_with_all_of_it(
    depot: Depot, declared: BillParams, home: Home, tmp_path: Path
) -> None:
    bundle = tmp_path / "b.tar.zst"
    await build(declared, Home(tmp_path / "other", tmp_path / "other", tmp_path / "other"), bundle)
    assert declared.file is not None
    declared.file.write_text(declared.file.read_text().replace("routed", "flannel"))

    with pytest.raises(InvalidInput) as caught:
        await prepared(creation(declared, bundle), Front(), home)

    assert {"flannel"} == {word for problem in caught.value.problems for word in ("flannel",)
                           if word in problem.message}  # fmt: skip
    assert len(caught.value.problems) == 2
    assert not home.artifacts.exists()


async def test_who_only_looks_leaves_the_store_alone(
    depot: Depot, declared: BillParams, home: Home, tmp_path: Path
) -> None:
    bundle = tmp_path / "b.tar.zst"
    await build(declared, Home(tmp_path / "other", tmp_path / "other", tmp_path / "other"), bundle)

    await prepared(creation(declared, bundle, check=True), Front(), home)

    assert not home.artifacts.exists()


async def test_a_host_of_unknown_architecture_is_asked_and_told_if_it_does_not_answer(
    wanted: BillParams, home: Home
) -> None:
    told = await prepared(creation(wanted, None), Front(), home)

    assert told == {}  # nobody is there to answer, which the run itself tells


async def test_a_file_that_is_no_bundle_is_refused(
    declared: BillParams, home: Home, tmp_path: Path
) -> None:
    (tmp_path / "no.tar.zst").write_text("something else")
    with pytest.raises(KubexmError):
        await prepared(creation(declared, tmp_path / "no.tar.zst"), Front(), home)
