"""The examples: their plans as text, and each of them carried out on simulated hosts.

`python -m tests.spec.test_examples` writes the plans anew.
"""

import asyncio
import importlib
import re
from pathlib import Path

import pytest

from kubexm.app import runs
from kubexm.app.execution import Front
from kubexm.app.params import PipelineParams, PlanParams, RunParams
from kubexm.common.paths import Home
from kubexm.plan.result import GraphExecutionResult
from kubexm.plan.text import as_text
from kubexm.sim import World
from kubexm.spec.description import as_known, describe
from kubexm.spec.pipeline import read_pipeline
from kubexm.spec.planner import plan

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
PLANS = Path(__file__).parent / "plans"


def example(name: str) -> Path:
    return next(path for path in EXAMPLES if path.stem == name)


def drawn(path: Path) -> str:
    planned = plan(read_pipeline(path))
    return as_text(as_known(planned.graph, planned.hosts), describe)


def simulated(name: str | Path, home: Path, *overrides: str) -> GraphExecutionResult:
    path = example(name) if isinstance(name, str) else name
    pipeline = PipelineParams(path, overrides)
    params = RunParams(PlanParams(pipeline), simulate=True)
    return asyncio.run(runs.run(params, Front(), Home(home, home, home))).result


def hosts_in(result: GraphExecutionResult, node: str) -> dict[str, str]:
    return {name: host.status for name, host in result.node_results[node].host_results.items()}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_plan_of_an_example_is_as_it_was_read(path: Path) -> None:
    assert drawn(path) == (PLANS / f"{path.stem}.txt").read_text()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_plans_without_a_warning(path: Path) -> None:
    assert plan(read_pipeline(path)).warnings == ()


@pytest.mark.parametrize("name", ["hello", "nodes", "website"])
def test_an_example_does_its_work_once(name: str, tmp_path: Path) -> None:
    first = simulated(name, tmp_path)
    second = simulated(name, tmp_path)

    assert (first.status, second.status) == ("Success", "Success")
    assert first.changed > 0
    assert second.changed == 0


def test_the_workflow_runs_to_its_end(tmp_path: Path) -> None:
    result = simulated("workflow", tmp_path)

    assert result.status == "Success"
    assert hosts_in(result, "workflow/announce/@on-failure-1/alarm") == {"control-node": "Skipped"}


def test_the_release_that_fails_is_taken_back(tmp_path: Path) -> None:
    failed = simulated("rollback", tmp_path)
    healthy = simulated("rollback", tmp_path, "healthy=true")

    assert failed.status == "RolledBack"
    assert set(hosts_in(failed, "rollback/release/files/version").values()) == {"RolledBack"}
    assert healthy.status == "Success"


def test_the_fleet_goes_on_without_the_host_that_fails(tmp_path: Path) -> None:
    hurried = tmp_path / "fleet.yaml"
    text = example("fleet").read_text()
    hurried.write_text(re.sub(r"(median|low|high): [0-9.]+", r"\1: 0", text))

    result = simulated(hurried, tmp_path)

    assert result.status == "Success"
    assert result.degraded
    assert list(result.quarantined) == ["web07"]
    assert hosts_in(result, "fleet/database/join/replica") == {"db2": "Success", "db3": "Success"}
    assert set(hosts_in(result, "fleet/web/balance/members").values()) == {"Success"}


def test_the_pipeline_in_python_does_its_work_once(tmp_path: Path) -> None:
    in_python = importlib.import_module("examples.in_python")
    world = World.create(tmp_path / "world", in_python.settings())

    runs = [asyncio.run(in_python.run(world, port=80)) for _ in range(2)]
    world.close()

    assert [result.status for _, result in runs] == ["Success", "Success"]
    assert [result.changed for _, result in runs] == [8, 0]
    assert runs[0][0] == runs[1][0]
    assert "shop/database/swap/swappiness" not in runs[0][0].nodes


if __name__ == "__main__":
    PLANS.mkdir(exist_ok=True)
    for path in EXAMPLES:
        (PLANS / f"{path.stem}.txt").write_text(drawn(path))
