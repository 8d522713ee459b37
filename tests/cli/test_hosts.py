"""`kubexm hosts check`: what hosts tell, and what is wrong with each of them."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.cli.answers import Kubexm
from tests.started import started

from kubexm.app.hosts import CheckedHost, Trouble, troubles
from kubexm.cli.checked import as_text

Write = Callable[..., Path]
STEP = "- {name: s, file: {path: /a, content: x}}"
HOSTS = '    - {name: "n[1:4]", address: "10.0.0.[1:4]"}\n'
STOPPED = "  simulate: {faults: [{kind: unreachable, hosts: 'n[23]', at: 1}]}\n"


@pytest.fixture
def site(pipeline: Write) -> Path:
    return pipeline(STEP, hosts=HOSTS, more=STOPPED)


def test_hosts_that_are_well_make_a_table_and_nothing_is_kept(
    kubexm: Kubexm, pipeline: Write, home: Path
) -> None:
    answer = kubexm("hosts", "check", "-f", pipeline(STEP, hosts=HOSTS), "--simulate")

    head, first, *_ = answer.out.splitlines()
    assert (answer.code, answer.err) == (0, "")
    assert head.split()[:4] == ["HOST", "ADDRESS", "STATE", "OS"]
    assert "RUNTIMES" not in head  # nobody has one
    assert first.split()[:5] == ["n1", "10.0.0.1", "ok", "debian", "12"]
    assert answer.out.endswith("\n4 hosts, nothing is wrong\n")
    assert not home.exists()


def test_what_is_wrong_with_many_hosts_is_said_once(kubexm: Kubexm, site: Path) -> None:
    answer = kubexm("hosts", "check", "-f", site, "--simulate")

    assert answer.code == 1
    assert answer.out.count("unreachable") == 2
    assert "✗ simulated host `HOST` does not answer  [n2 n3]\n    hint: see" in answer.out
    assert answer.out.endswith("\n4 hosts: 2 ok, 2 not\n")


def test_what_is_wrong_with_one_host_names_it(kubexm: Kubexm, site: Path) -> None:
    answer = kubexm("hosts", "check", "-f", site, "--simulate", "--hosts", "n1", "--hosts", "n2")

    assert answer.code == 1
    assert "✗ simulated host `n2` does not answer  [n2]" in answer.out
    assert "n4" not in answer.out


@pytest.mark.parametrize(("style", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_documents_have_facts_and_problems(
    kubexm: Kubexm,
    site: Path,
    style: str,
    read: Callable[[str], dict[str, list[dict[str, object]]]],
) -> None:
    answer = kubexm("hosts", "check", "-f", site, "--simulate", "-o", style)

    well, stopped = read(answer.out)["hosts"][:2]
    assert answer.code == 1
    assert (well["name"], well["address"]) == ("n1", "10.0.0.1")
    assert (well["reached"], well["problems"]) == (True, [])
    assert isinstance(well["facts"], dict)
    assert well["facts"]["cpus"] == 4
    assert (stopped["reached"], stopped["facts"]) == (False, {})
    assert stopped["problems"] == [
        {
            "kind": "unreachable",
            "message": "simulated host `n2` does not answer",
            "hint": "see that it is up, and that its `address` and `ssh.port` are right",
        }
    ]


def test_sudo_is_tried_where_the_file_wants_it(kubexm: Kubexm, pipeline: Write) -> None:
    refuses = "  simulate: {scripts: [{argv: ['true'], exit: 1, stderr: 'sudo: no'}]}\n"
    hosts = "    - {name: n1, sudo: true}\n    - {name: n2}\n"

    answer = kubexm("hosts", "check", "-f", pipeline(STEP, hosts=hosts, more=refuses), "--simulate")

    assert answer.code == 1
    assert "✗ commands can't run as root: sudo: no  [n1]" in answer.out
    assert answer.out.endswith("\n2 hosts: 1 ok, 1 not\n")


def test_a_root_file_system_with_little_room_is_named(kubexm: Kubexm, pipeline: Write) -> None:
    small = "  simulate: {machines: {n1: {diskMib: 1000}}}\n"

    answer = kubexm("hosts", "check", "-f", pipeline(STEP, hosts=HOSTS, more=small), "--simulate")

    assert answer.code == 1
    assert "✗ less than 1 GiB is free on `/`: 900 MiB  [n1]" in answer.out


@pytest.mark.parametrize(
    ("offset", "within", "said"),
    [
        (300.04, 0.01, ["300.0 s ahead"]),
        (-2.0, 0.1, ["2.0 s behind"]),
        (1.0, 0.0, []),
        (3.0, 2.5, []),
    ],
)
def test_a_clock_is_off_if_the_measurement_can_tell(
    offset: float, within: float, said: list[str]
) -> None:
    found = troubles({"clock": {"offset_s": offset, "within_s": within}})

    assert [trouble.figure for trouble in found] == said


def test_a_host_that_tells_nothing_has_nothing_wrong() -> None:
    assert [*troubles({})] == []


def test_hosts_of_a_group_have_their_own_figures() -> None:
    hosts = [
        CheckedHost(f"n{n}", f"n{n}", True, (Trouble("clock", "off", "mend it", f"{n} s"),), {})
        for n in range(1000)
    ]

    text = as_text(hosts)

    assert "✗ off  [n0 (0 s) n1 (1 s) n2 (2 s) n3 (3 s) n4 (4 s) n5 (5 s) … 1000 hosts]" in text


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100])
def test_a_narrow_terminal_gets_fewer_columns(width: int) -> None:
    facts = {"os": {"id": "debian", "version": "12"}, "kernel": "6.1.0-18-amd64", "cpus": 4}
    hosts = [CheckedHost("node1", "10.0.0.1", True, (), {**facts, "init": "systemd"})]

    wide, narrow = as_text(hosts), as_text(hosts, width)

    rows = narrow.splitlines()[:2]
    assert max(map(len, rows)) <= width
    assert rows[0].split()[0] == "HOST"
    assert "STATE" in rows[0]
    assert ("no room for" in narrow) == (narrow != wide)


def test_a_file_with_mistakes_is_refused_as_a_whole(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline("- {name: s, file: {pth: /a}}", hosts="    - {name: n1, sudo: maybe}\n")

    answer = kubexm("hosts", "check", "-f", file, "--simulate")

    assert (answer.code, answer.out) == (2, "")
    assert f"{file}:6:" in answer.err
    assert f"{file}:12:" in answer.err


def test_a_pattern_that_names_no_host_is_refused(kubexm: Kubexm, site: Path) -> None:
    answer = kubexm("hosts", "check", "-f", site, "--simulate", "--hosts", "nn1")

    assert answer.code == 2
    assert "`--hosts nn1`: `site` has no such host" in answer.err
    assert "did you mean `n1`?" in answer.err


def test_a_missing_secret_of_a_connection_is_named_and_those_of_steps_are_not(
    kubexm: Kubexm, pipeline: Write
) -> None:
    file = pipeline(
        "- {name: s, secret-file: {path: /a, content: 'env://OF_THE_STEP'}}",
        hosts="    - {name: n1, ssh: {password: 'env://OF_THE_HOST'}}\n",
    )

    answer = kubexm("hosts", "check", "-f", file)

    assert answer.code == 2
    assert f"{file}:6:" in answer.err
    assert "`OF_THE_HOST` is not set; `ssh.password` of `n1` needs it" in answer.err
    assert "OF_THE_STEP" not in answer.err
    assert kubexm("hosts", "check", "-f", file, "--simulate").code == 0


def test_this_machine_is_looked_at_for_real(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline(STEP, hosts="    - {name: here, connection: local}\n")

    answer = kubexm("hosts", "check", "-f", file, "-o", "json")

    (host,) = json.loads(answer.out)["hosts"]
    assert host["reached"]
    assert host["facts"]["hostname"]
    assert answer.code == (1 if host["problems"] else 0)


def test_an_interrupt_ends_it_at_once(pipeline: Write, tmp_path: Path) -> None:
    silent = "  simulate: {latency: {kind: fixed, seconds: 10}}\n"
    file = pipeline(STEP, hosts=HOSTS, more=silent)
    words = [sys.executable, "-m", "kubexm", "hosts", "check", "-f", str(file), "--simulate"]
    places = {"KUBEXM_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    with started(words, env={**os.environ, **places}) as process:
        while not [*tmp_path.glob("kubexm-*/world.json")]:  # from then on it waits for its hosts
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=5)

    assert (process.returncode, err) == (3, "cancelled; nothing was changed\n")
