"""Whole runs on real hosts: what faults, crashes and a second control machine do to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.started import started

from lab import faults
from lab.testing import ROOT, Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(150)]


class Control:
    """A control machine: its own state, its own pipeline file, in the network of the lab."""

    def __init__(self, lab: Lab, place: Path) -> None:
        self.lab = lab
        self.file = place / "site.yaml"
        self.environment = {**os.environ, "KUBEXM_HOME": str(place / "home")}

    def write(self, steps: str, *, hosts: str = "node1 node2 node3", **settings: Any) -> None:
        listed = "".join(
            f"    - {{name: {name}, address: {self.lab.address(name)}}}\n" for name in hosts.split()
        )
        body = textwrap.indent(textwrap.dedent(steps), "            ")
        more = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in settings.items())
        self.file.write_text(
            "apiVersion: kubexm.io/v1alpha1\nkind: Pipeline\nmetadata: {name: site}\nspec:\n"
            f"  ssh: {{user: root, keys: [{self.lab.key()}], config: false, agent: false,\n"
            f"        knownHosts: [{self.lab.site.known_hosts}]}}\n"
            f"  hosts:\n{listed}{more}"
            f"  modules:\n    - name: m\n      tasks:\n        - name: t\n          steps:\n{body}"
        )

    def start(self, *words: str) -> AbstractContextManager[subprocess.Popen[str]]:
        """A kubexm of its own, which works on hosts no longer than the block lasts."""
        argv = [sys.executable, "-m", "kubexm", *words]
        return started(argv, env=self.environment, cwd=ROOT)

    def kubexm(self, *words: str) -> tuple[int, str, str]:
        with self.start(*words) as process:
            out, err = process.communicate(timeout=120)
            return process.returncode, out, err

    def run(self) -> tuple[int, str, str]:
        return self.kubexm("run", "-f", str(self.file))

    def running(self) -> AbstractContextManager[subprocess.Popen[str]]:
        return self.start("run", "-f", str(self.file))

    def task(self) -> str:
        _, out, _ = self.kubexm("task", "list", "-o", "json")
        return str(json.loads(out)[0]["id"])

    def units(self) -> dict[str, dict[str, Any]]:
        """What came of each unit of the latest run, by the last word of its node and its host."""
        _, out, _ = self.kubexm("task", "show", self.task(), "-o", "json")
        nodes = json.loads(out)["result"]["nodeResults"]
        return {
            f"{id.rpartition('/')[2]}@{host}": result
            for id, node in nodes.items()
            for host, result in node["hostResults"].items()
        }


@pytest.fixture
def control(lab_network: Lab, tmp_path: Path) -> Iterator[Control]:
    yield Control(lab_network, tmp_path)
    for name in ("node1", "node2", "node3", "trixie1"):
        if (state := lab_network.root(name) / "srv").exists():
            subprocess.run(["rm", "-rf", state / "runs"], check=True)


def until(holds: Callable[[], bool]) -> None:
    """Wait for something to hold; the test's own timeout ends a wait in vain."""
    while not holds():
        time.sleep(0.05)


def there(lab: Lab, host: str, path: str) -> bool:
    return (lab.root(host) / path.lstrip("/")).exists()


def read(lab: Lab, host: str, path: str) -> str:
    return (lab.root(host) / path.lstrip("/")).read_text()


SLOW = """
- {name: place, directory: {path: /srv/runs}}
- {name: first, command: {argv: [sh, -c, echo first >>/srv/runs/log]}}
- {name: slow, command: {argv: [sh, -c, "echo slow >>/srv/runs/log; touch /srv/runs/busy;\
 for i in $(seq 300); do [ ! -e /srv/runs/go ] || exit 0; sleep 0.1; done; exit 9"]}}
- {name: last, file: {path: /srv/runs/last, content: "done\\n"}}
"""


def let_go(lab: Lab, *hosts: str) -> None:
    for host in hosts:
        lab.ssh(f"root@{host}", "touch", "/srv/runs/go")


def test_a_run_changes_hosts_and_a_second_one_finds_nothing_to_do(control: Control) -> None:
    control.write(
        "- {name: place, directory: {path: /srv/runs}}\n"
        '- {name: name, file: {path: /srv/runs/name, content: "${facts.hostname}\\n"}}\n'
        "- {name: line, line: {path: /srv/runs/lines, line: a=1, match: ^a=}}\n",
        hosts="node1 node2 trixie1",
    )

    first = control.run()
    second = control.run()

    assert (first[0], second[0]) == (0, 0), first
    assert "9 changed" in first[1]
    assert "nothing to do: all 9 units are satisfied" in second[1]
    assert read(control.lab, "trixie1", "/srv/runs/name") == "trixie1\n"


def test_a_machine_may_stand_under_two_names(control: Control) -> None:
    control.write(
        "- {name: place, directory: {path: /srv/runs}}\n"
        "- name: named\n"
        '  command: {argv: [sh, -c, "sleep 1; touch /srv/runs/$0", "${host.name}"]}\n',
        hosts="node1",
    )
    text = control.file.read_text()
    entry = next(line for line in text.splitlines(keepends=True) if "name: node1" in line)
    control.file.write_text(
        text.replace(entry, entry + entry.replace("name: node1", "name: alias"))
    )

    code, out, _ = control.run()

    assert code == 0, out
    assert there(control.lab, "node1", "/srv/runs/node1")
    assert there(control.lab, "node1", "/srv/runs/alias")


def test_a_rollback_leaves_hosts_as_they_were(control: Control) -> None:
    lab = control.lab
    lab.ssh(
        "root@node1", "mkdir -p /srv/runs; echo theirs >/srv/runs/kept; chmod 600 /srv/runs/kept"
    )
    control.write(
        "- {name: kept, file: {path: /srv/runs/kept, content: ours, mode: '0644'}}\n"
        "- {name: new, directory: {path: /srv/runs/new/deep}}\n"
        "- {name: fails, command: {argv: ['false']}}\n",
        hosts="node1",
        onFailure="rollback",
    )

    code, out, _ = control.run()

    assert (code, "RolledBack" in out) == (1, True)
    assert read(lab, "node1", "/srv/runs/kept") == "theirs\n"
    assert (lab.root("node1") / "srv/runs/kept").stat().st_mode & 0o777 == 0o600
    assert not there(lab, "node1", "/srv/runs/new")


def test_a_host_that_stops_amid_a_command_is_lost_and_the_others_finish(control: Control) -> None:
    control.write(SLOW)
    lab = control.lab
    with control.running() as process:
        until(lambda: all(there(lab, f"node{n}", "/srv/runs/busy") for n in (1, 2, 3)))
        faults.kill(lab.site, "node2")
        let_go(lab, "node1", "node3")
        out, _ = process.communicate(timeout=120)

    assert process.returncode == 5, out
    assert "without node2" in out
    assert read(lab, "node1", "/srv/runs/last") == read(lab, "node3", "/srv/runs/last") == "done\n"


def test_a_network_that_is_cut_for_a_while_costs_nothing(control: Control) -> None:
    control.write(SLOW, hosts="node1")
    lab = control.lab
    with control.running() as process:
        until(lambda: there(lab, "node1", "/srv/runs/busy"))
        faults.cut(lab.site, "node1")
        time.sleep(5)
        faults.mend(lab.site, "node1")
        let_go(lab, "node1")
        out, _ = process.communicate(timeout=120)

    assert process.returncode == 0, out
    assert read(lab, "node1", "/srv/runs/log") == "first\nslow\n"


def test_an_sshd_that_is_restarted_does_not_cut_off_what_runs(control: Control) -> None:
    control.write(SLOW, hosts="node1")
    lab = control.lab
    with control.running() as process:
        until(lambda: there(lab, "node1", "/srv/runs/busy"))
        lab.ssh("root@node1", "systemctl", "restart", "ssh")
        let_go(lab, "node1")
        out, _ = process.communicate(timeout=120)

    assert process.returncode == 0, out
    assert read(lab, "node1", "/srv/runs/log") == "first\nslow\n"


def test_a_connection_that_was_lost_never_leaves_two_of_a_command(control: Control) -> None:
    """The one that lost its connection is ended before the unit starts at its precheck again."""
    control.write(SLOW, hosts="node1")
    lab = control.lab
    with control.running() as process:
        until(lambda: there(lab, "node1", "/srv/runs/busy"))
        lab.ssh("root@node1", "pkill", "-KILL", "-f", "'sshd: root@notty'")
        until(lambda: read(lab, "node1", "/srv/runs/log").count("slow") == 2)
        running = lab.ssh("root@node1", "pgrep", "-fc", "'[f]or i in'").stdout.strip()
        let_go(lab, "node1")
        out, _ = process.communicate(timeout=120)

    assert process.returncode == 0, out
    assert running == "1"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_run_that_was_killed_or_froze_is_taken_over(
    control: Control, number: signal.Signals
) -> None:
    control.write(SLOW, hosts="node1 node2")
    lab = control.lab
    with control.running() as process:
        until(lambda: all(there(lab, f"node{n}", "/srv/runs/busy") for n in (1, 2)))
        process.send_signal(number)
        if number == signal.SIGSTOP:
            time.sleep(35)  # longer than its lease
        let_go(lab, "node2")
        task = control.task()
        with control.start("task", "resume", task) as again:
            until(lambda: read(lab, "node1", "/srv/runs/log").count("slow") == 2)
            running = lab.ssh("root@node1", "pgrep", "-fc", "'[f]or i in'").stdout.strip()
            let_go(lab, "node1")
            _, err = again.communicate(timeout=120)
        process.send_signal(signal.SIGCONT)
        process.kill()

    assert again.returncode == 0, err
    assert running == "1"
    assert read(lab, "node1", "/srv/runs/log").count("first") == 1
    assert read(lab, "node1", "/srv/runs/last") == "done\n"


def test_a_second_control_machine_is_refused_what_a_later_one_has_taken(
    control: Control, tmp_path: Path
) -> None:
    lab = control.lab
    other = Control(lab, tmp_path / "other")
    (tmp_path / "other").mkdir()
    for machine in (control, other):
        machine.write(SLOW, hosts="node1")
    with control.running() as first:
        until(lambda: there(lab, "node1", "/srv/runs/busy"))
        with other.running() as second:
            until(lambda: read(lab, "node1", "/srv/runs/log").count("slow") == 2)
            _, err = first.communicate(timeout=120)
            let_go(lab, "node1")
            out, _ = second.communicate(timeout=120)

    assert (first.returncode, second.returncode) == (1, 0), err
    assert "is refused: the host obeys token" in err
    assert "Success" in out


def test_a_host_that_reboots_amid_a_run_goes_on(control: Control) -> None:
    control.write(SLOW, hosts="node1")
    lab = control.lab
    with control.running() as process:
        until(lambda: there(lab, "node1", "/srv/runs/busy"))
        faults.reboot(lab.site, "node1")
        let_go(lab, "node1")
        out, _ = process.communicate(timeout=120)

    assert process.returncode == 0, out
    assert read(lab, "node1", "/srv/runs/last") == "done\n"


def test_a_disk_that_fills_up_fails_the_unit_with_the_reason(control: Control) -> None:
    lab = control.lab
    control.write(
        "- {name: place, directory: {path: /srv/runs}}\n"
        "- {name: big, command: {argv: [sh, -c, head -c 100000 /dev/zero >/srv/runs/f]}}\n",
        hosts="node1",
    )
    faults.fill(lab.site, "node1")

    code, out, _ = control.run()

    assert code == 1
    assert "No space left on device" in out


def test_lost_packets_only_cost_time(control: Control) -> None:
    control.write(
        "- {name: place, directory: {path: /srv/runs}}\n"
        '- {name: file, file: {path: /srv/runs/f, content: "x\\n"}}\n',
        hosts="node1 node2",
    )
    faults.loss(control.lab.site, "node1", 30)

    code, out, err = control.run()

    assert code == 0, out + err
    assert read(control.lab, "node1", "/srv/runs/f") == "x\n"
