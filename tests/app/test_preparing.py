"""What an operation on a cluster needs before it is planned for good."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.app.test_bundles import build, depot, home, stocked, wanted
from tests.resource import depot as depots
from tests.resource.depot import Depot

from kubexm.app import clusters
from kubexm.app.bills import BillParams, billed
from kubexm.app.execution import Front
from kubexm.app.params import ClusterParams, OperationParams, PlanParams, RunParams
from kubexm.app.places import open_store
from kubexm.app.preparing import prepared
from kubexm.app.stored import StoredOptions
from kubexm.common.paths import Home
from kubexm.engine import Options
from kubexm.errors import InvalidFile, InvalidInput, KubexmError, Problem
from kubexm.plan import ExecutionNode, StepSpec
from kubexm.plan import build as build_graph
from kubexm.plan.select import Selection
from kubexm.resource import keys
from kubexm.resource.materials import BillOfMaterials
from kubexm.resource.store import Store
from kubexm.runtime.store_assets import StoreAssets
from kubexm.store.runs import Documents

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


async def test_what_is_no_bundle_is_refused_in_a_simulation_too(
    declared: BillParams, home: Home, tmp_path: Path
) -> None:
    params = replace(creation(declared, tmp_path / "nofile"), simulate=True)

    with pytest.raises(InvalidFile, match="nofile"):
        await prepared(params, Front(), home)


async def test_a_simulation_says_what_its_bundle_lacks_and_goes_on(
    depot: Depot, declared: BillParams, home: Home, tmp_path: Path
) -> None:
    bundle = tmp_path / "b.tar.zst"
    await build(declared, Home(tmp_path / "other", tmp_path / "other", tmp_path / "other"), bundle)
    assert declared.file is not None
    declared.file.write_text(declared.file.read_text().replace("routed", "flannel"))
    heard: list[Problem] = []

    params = replace(creation(declared, bundle), simulate=True)
    assert await prepared(params, Front(warn=heard.extend), home) is None

    assert [problem.where for problem in heard] == [f"the bundle `{bundle}`"] * 2
    assert all("flannel" in problem.message for problem in heard)


async def test_a_password_written_out_is_allowed_for_a_bundle_as_for_the_rest(
    depot: Depot, declared: BillParams, home: Home, tmp_path: Path
) -> None:
    bundle = tmp_path / "b.tar.zst"
    await build(declared, Home(tmp_path / "other", tmp_path / "other", tmp_path / "other"), bundle)
    assert declared.file is not None
    declared.file.write_text(f"{declared.file.read_text()}  ssh: {{password: Hunter2hunter}}\n")
    params = creation(declared, bundle)
    source = params.plan.pipeline
    assert isinstance(source, OperationParams)
    allowed = replace(source, cluster=replace(source.cluster, allow_literal_secrets=True))

    await prepared(replace(params, plan=PlanParams(allowed)), Front(), home)

    assert home.artifacts.exists()


async def test_hosts_are_asked_what_they_are_before_a_bundle_is_held_against_it(
    depot: Depot,
    wanted: BillParams,
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bundle = tmp_path / "b.tar.zst"
    await build(wanted, Home(tmp_path / "other", tmp_path / "other", tmp_path / "other"), bundle)
    assert wanted.file is not None
    local = "{name: node1, address: 10.0.0.1, connection: local}"
    text = wanted.file.read_text().replace("{name: node1, address: 10.0.0.1}", local)
    wanted.file.write_text(text)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uname").write_text("#!/bin/sh\necho aarch64\n")
    (tmp_path / "bin" / "uname").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    with pytest.raises(InvalidInput) as caught:
        await prepared(creation(wanted, bundle), Front(), home)

    told = [problem.message for problem in caught.value.problems]
    assert any("`kubernetes/v1.36.3/kubelet/arm64` is missing" in message for message in told)
    assert not home.artifacts.exists()


async def test_what_can_t_be_had_refuses_a_creation_before_anything_begins(
    depot: Depot, stocked: BillOfMaterials, declared: BillParams, home: Home
) -> None:
    depot.refused.add(depots.path_of(stocked.binaries[0]))

    with pytest.raises(InvalidInput) as caught:
        await prepared(creation(declared, None), Front(), home)

    (problem,) = caught.value.problems
    assert (problem.where, "can't be had" in problem.message) == ("artifacts", True)
    assert "preflight: {skip: [artifacts]}" in caught.value.hint


async def test_who_only_looks_is_told_what_can_t_be_had_and_not_kept_from_it(
    depot: Depot, stocked: BillOfMaterials, declared: BillParams, home: Home
) -> None:
    depot.refused.add(depots.path_of(stocked.binaries[0]))
    heard: list[Problem] = []

    await prepared(creation(declared, None, check=True), Front(warn=heard.extend), home)

    assert ["can't be had" in problem.message for problem in heard] == [True]


async def test_a_part_of_a_creation_is_not_kept_from_by_what_the_rest_needs(
    depot: Depot, stocked: BillOfMaterials, declared: BillParams, home: Home
) -> None:
    depot.refused.add(depots.path_of(stocked.binaries[0]))
    params = creation(declared, None)
    part = replace(params.plan, selection=Selection(only=("create-cluster/system",)))

    assert await prepared(replace(params, plan=part), Front(), home) is None
    assert depot.asked == []


def done_before(operation: str, declared: BillParams, home: Home) -> None:
    node = ExecutionNode(f"{operation}/a", "a", StepSpec("noop"), ("control-node",))
    assert declared.file is not None
    name = clusters.read(ClusterParams(declared.file)).declared.name
    with open_store(home.database) as store:
        graph = build_graph(name, [node], hosts=("control-node",))
        options = msgspec.json.encode(StoredOptions(Options()))
        _, lease = store.start_run(name, Documents(graph, options=options))
        with lease:
            store.finish(lease, "Success")


async def test_of_a_cluster_that_was_made_nobody_is_asked_for_what_it_is_made_of(
    depot: Depot, stocked: BillOfMaterials, declared: BillParams, home: Home
) -> None:
    depot.refused.add(depots.path_of(stocked.binaries[0]))

    done_before("create-cluster", declared, home)
    assert await prepared(creation(declared, None), Front(), home) is None
    done_before("delete-cluster", declared, home)
    with pytest.raises(InvalidInput, match="can't be had"):
        await prepared(creation(declared, None), Front(), home)
