"""Whole runs on ten real hosts: one that is lost costs only itself, and none waits for another."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.lab.test_runs import Control, let_go, there, until

from lab import faults
from lab.testing import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]
HOSTS = [f"node{number}" for number in range(1, 11)]
LOST = "node4"
OTHERS = [name for name in HOSTS if name != LOST]

_WAITS = """
          - name: {name}
            command: {{argv: [sh, -c, "touch /srv/runs/{name}.busy; \
for i in $(seq 600); do [ ! -e /srv/runs/go ] || exit 0; sleep 0.1; done; exit 9"]}}"""
_QUICK = "\n          - {{name: {name}, command: {{argv: [touch, /srv/runs/{name}]}}}}"


class Fleet(Control):
    """A control machine of ten hosts."""

    def write_modules(self, modules: str) -> None:
        """Let the file have these modules, with a barrier between them."""
        self.write("- {name: none, command: {argv: ['true']}}", hosts=" ".join(HOSTS))
        head, _, _ = self.file.read_text().partition("  modules:\n")
        named = head.replace("name: node", "vars: {turn: NUMBER}, name: node")
        for number in range(len(HOSTS)):
            named = named.replace("turn: NUMBER", f"turn: {number}", 1)
        self.file.write_text(f"{named}  onFailure: isolate\n  modules:{modules}\n")

    def two_modules(self, *, waits: str) -> None:
        """Two modules with a barrier between; in one of them each host waits for us."""
        place = "\n          - {name: place, directory: {path: /srv/runs}}"
        first, second = ((_WAITS if waits == name else _QUICK) for name in ("first", "second"))
        last = _QUICK.format(name="last")
        self.write_modules(
            "\n    - name: before\n      tasks:\n        - name: t\n          steps:"
            f"{_deeper(place + first.format(name='first'))}"
            "\n    - name: after\n      tasks:\n        - name: t\n          steps:"
            f"{_deeper(second.format(name='second') + last)}"
        )

    def result(self) -> dict[str, Any]:
        _, out, _ = self.kubexm("task", "show", self.task(), "-o", "json")
        found: dict[str, Any] = json.loads(out)["result"]
        return found


def _deeper(text: str) -> str:
    return text.replace("\n", "\n  ")


@pytest.fixture
def fleet(fleet_network: Lab, tmp_path: Path) -> Iterator[Fleet]:
    yield Fleet(fleet_network, tmp_path)
    for name in HOSTS:
        subprocess.run(["rm", "-rf", fleet_network.root(name) / "srv/runs"], check=True)


def assert_nine_of_ten(fleet: Fleet, code: int, out: str) -> None:
    """Nine have all that was asked for; the tenth is named, with its cause."""
    assert code == 5, out
    assert f"without {LOST}" in out
    assert [name for name in OTHERS if not there(fleet.lab, name, "/srv/runs/last")] == []
    result = fleet.result()
    assert [*result["quarantined"]] == [LOST]
    assert result["quarantined"][LOST]["failure"] == "unreachable"
    ends = {
        host: unit["status"]
        for node in result["nodeResults"].values()
        for host, unit in node["hostResults"].items()
        if node["nodeName"].endswith("last")
    }
    assert {ends[name] for name in OTHERS} == {"Success"}
    assert ends.get(LOST) != "Success"


def test_a_host_that_is_dead_before_the_run(fleet: Fleet) -> None:
    fleet.two_modules(waits="")
    faults.kill(fleet.lab.site, LOST)

    code, out, _ = fleet.run()

    assert_nine_of_ten(fleet, code, out)
    assert f"without {LOST}: could not be reached" in out


@pytest.mark.parametrize("module", ["first", "second"])
def test_a_host_that_dies_before_or_after_a_barrier(fleet: Fleet, module: str) -> None:
    fleet.two_modules(waits=module)
    lab = fleet.lab
    with fleet.running() as process:
        until(lambda: all(there(lab, name, f"/srv/runs/{module}.busy") for name in HOSTS))
        faults.kill(lab.site, LOST)
        let_go(lab, *OTHERS)
        out, _ = process.communicate(timeout=150)

    assert_nine_of_ten(fleet, process.returncode, out)


def test_no_host_waits_for_another(fleet: Fleet) -> None:
    """Twenty steps take as long as the host that is busy longest, and a tenth more at most.

    Each step is slow on another host, so that whoever waited for all of them after each step would
    need five times as long. All times are from the run's own record.
    """
    steps = "".join(
        f"\n            - {{name: step{n}, command: {{argv: [sh, -c, '[ $0 != $1 ] || sleep 2',"
        f' "${{vars.turn}}", "{n % 10}"]}}}}'
        for n in range(20)
    )
    fleet.write_modules(
        f"\n    - name: m\n      tasks:\n        - name: t\n          steps:{steps}"
    )

    code, out, _ = fleet.run()

    assert code == 0, out
    nodes = fleet.result()["nodeResults"].values()
    units = [unit for node in nodes for unit in node["hostResults"].values()]
    assert len(units) == 200
    wall = max(map(end, units)) - min(map(start, units))
    busy = dict.fromkeys(HOSTS, 0.0)
    for unit in units:
        busy[unit["hostName"]] += end(unit) - start(unit)
    assert wall <= 1.1 * max(busy.values()), f"{wall:.2f} s for {max(busy.values()):.2f} s"


def start(unit: dict[str, Any]) -> float:
    return datetime.fromisoformat(unit["startTime"]).timestamp()


def end(unit: dict[str, Any]) -> float:
    return datetime.fromisoformat(unit["endTime"]).timestamp()
