"""The way to the first connection is short: what it needs is loaded, and the rest comes later."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.scenario import begun

from kubexm.store import Store

FIRST_CALL = """
import os, sys

def note(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        os.write(1, " ".join(["called", *sys.modules]).encode())
        os._exit(0)

sys.addaudithook(note)
from kubexm.cli.main import main
main()
"""
"""Runs the command line until it calls a host, and then says what is loaded."""
HEAVY = {
    "alembic", "asyncssh", "cryptography", "jinja2", "pydantic", "pydantic_core", "rich",
    "sqlalchemy", "structlog", "statistics", "difflib", "tempfile",
    "kubexm.app.dialing", "kubexm.cli.live", "kubexm.runner.packages", "kubexm.sim.host",
    "kubexm.sim.world", "kubexm.step.archives", "kubexm.step.files", "kubexm.step.services",
}  # fmt: skip
PARSER = {"attr", "cyclopts"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """A pipeline of two hosts that listen and say nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        path = tmp_path / "site.yaml"
        path.write_text(
            "apiVersion: kubexm.io/v1alpha1\nkind: Pipeline\nmetadata: {name: demo}\nspec:\n"
            '  hosts: [{name: "n[1:2]", address: "127.0.0.[1:2]"}]\n'
            f"  ssh: {{user: me, port: {server.getsockname()[1]}, config: false}}\n"
            "  modules: [{name: m, tasks: [{name: t, steps:"
            " [{name: s, command: {argv: [id]}}]}]}]\n"
        )
        yield path


def kubexm(site: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", FIRST_CALL, *words],
        env={**os.environ, "KUBEXM_HOME": str(site.parent / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )


def loaded(done: subprocess.CompletedProcess[str]) -> set[str]:
    said, *modules = done.stdout.split()
    assert said == "called", done.stderr
    return set(modules)


@pytest.mark.parametrize("more", [[], ["--check"], ["-o", "json", "--hosts", "n1"]])
def test_before_the_first_call_a_run_loads_nothing_heavy(site: Path, more: list[str]) -> None:
    assert loaded(kubexm(site, "run", "-f", site, *more)) & (HEAVY | PARSER) == set()


def test_before_the_first_call_a_look_at_hosts_loads_nothing_heavy(site: Path) -> None:
    assert loaded(kubexm(site, "hosts", "check", "-f", site)) & (HEAVY | PARSER) == set()


def test_before_the_first_call_a_resume_loads_only_the_parser(site: Path) -> None:
    kubexm(site, "run", "-f", site)  # which ends where it calls
    with Store.open(site.parent / "home" / "state" / "kubexm.db") as store:
        (run,) = store.runs()

    assert loaded(kubexm(site, "task", "resume", run.id)) & HEAVY == set()


def test_of_a_file_with_a_mistake_nobody_is_called(site: Path) -> None:
    site.write_text(site.read_text().replace("argv", "argw"))

    done = kubexm(site, "run", "-f", site)

    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown parameter `argw`" in done.stderr


def test_in_a_simulated_world_nobody_is_called(site: Path) -> None:
    done = kubexm(site, "run", "-f", site, "--simulate")

    assert done.returncode == 0, done.stderr
    assert not done.stdout.startswith("called")


def test_while_another_holds_the_lock_nobody_is_called(site: Path) -> None:
    with Store.open(site.parent / "home" / "state" / "kubexm.db") as store, begun(store)[1]:
        done = kubexm(site, "run", "-f", site)

    assert done.stdout == ""
    assert "`demo` is being worked on" in done.stderr


def test_without_what_a_connection_needs_nobody_is_called(site: Path) -> None:
    text = site.read_text().replace("user: me", "user: me, password: env://NOT_THERE")
    site.write_text(text)

    done = kubexm(site, "run", "-f", site)

    assert done.stdout == ""
    assert "NOT_THERE" in done.stderr
