"""Who does the same work by SSH: kubexm, its peers in venvs of their own, and two floors."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import peers
import sshmeter
from sshbed import Bed
from sshmeter import Figures, RunFailed

HERE = Path(__file__).parent
ONE_BY_ONE = "kubexm, op by op"
"""Without asking ahead: one request to the host for each operation."""
# As the tool does it: kubexm looks for garbage seldom, and loads asyncssh in its own way. What it
# takes to end a process that has imported much is no part of it.
_IMPORTING = """\
import contextlib, gc, importlib, os, pathlib, sys
names = pathlib.Path(sys.argv[1]).read_text().split()
lightly = contextlib.nullcontext
if "kubexm.cli.main" in names:
    from kubexm.cli.main import OBJECTS_BETWEEN_COLLECTIONS
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    from kubexm.connector.ssh.loading import lightly
with lightly():
    for name in names:
        with contextlib.suppress(BaseException):
            importlib.import_module(name)
os._exit(0)
"""


@dataclass(frozen=True, slots=True)
class Job:
    """A command that does some work, and how to tell from what it printed that it did."""

    command: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    did: Callable[[str], bool] = lambda _: True

    def run(self) -> Figures:
        figures = sshmeter.measure(self.command, self.env, self.cwd)
        if not self.did(figures.printed):
            raise RunFailed(f"{self.command[0]} did something else:\n{figures.printed[-1500:]}")
        return figures


@dataclass(frozen=True, slots=True)
class Tool:
    """One who does the work."""

    name: str
    job: Callable[[str, int], Job | None]
    """The job for a work on so many hosts; None for what it does not do."""
    python: Path | None = None
    """The interpreter it runs in."""
    slow: bool = False
    """Whether it takes minutes, so that fewer rounds have to do."""

    def importing(self, job: Job, home: Path) -> Job | None:
        """A job that imports what this one imports, and nothing else; runs it to find out."""
        telling = job.env | {"PYTHONPROFILEIMPORTTIME": "1"}
        printed = sshmeter.measure(job.command, telling, job.cwd).printed
        if self.python is None:
            return None
        names = re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", printed, re.MULTILINE)
        listing = home / f"{self.name}.imports"
        listing.write_text("\n".join(name for name in names if not name.endswith("__main__")))
        return Job((str(self.python), "-c", _IMPORTING, str(listing)), job.env, job.cwd)


def tools(bed: Bed, home: Path) -> tuple[Tool, ...]:
    """All of them, with their state below a directory of their own."""
    pyinfra, ansible, mitogen = map(peers.environment, ("pyinfra", "ansible", "mitogen"))
    strategies = next((mitogen.parent.parent / "lib").glob("*/site-packages/ansible_mitogen"))
    with_mitogen = {
        "ANSIBLE_STRATEGY_PLUGINS": str(strategies / "plugins" / "strategy"),
        "ANSIBLE_STRATEGY": "mitogen_linear",
    }
    python = Path(sys.executable)
    return (
        Tool("kubexm", lambda work, count: kubexm(bed, home, work, count), python),
        Tool(ONE_BY_ONE, lambda work, count: _one_by_one(bed, home, work, count), python),
        Tool("pyinfra", lambda work, count: _pyinfra(pyinfra, bed, home, work, count), pyinfra),
        Tool(
            "mitogen",
            lambda work, count: _ansible(mitogen, bed, home, work, count, with_mitogen),
            mitogen,
            slow=True,
        ),
        Tool(
            "ansible",
            lambda work, count: _ansible(ansible, bed, home, work, count, {}),
            ansible,
            slow=True,
        ),
        Tool("asyncssh", lambda work, count: _asyncssh(bed, home, work, count), python),
        Tool(
            "asyncssh, op by op",
            lambda work, count: _asyncssh(bed, home, f"{work}-one-by-one", count),
            python,
        ),
        Tool("openssh", lambda work, count: _openssh(bed, home, work, count)),
    )


def versions() -> str:
    """Which of the peers were measured."""
    found = {"pyinfra": "pyinfra", "ansible": "ansible-core", "mitogen": "mitogen"}
    return ", ".join(
        f"{package} {peers.version(peers.environment(peer), package)}"
        for peer, package in found.items()
    )


def ours(home: Path) -> dict[str, str]:
    """The environment of what runs in this interpreter."""
    env = peers.child_env(home, KUBEXM_HOME=str(home / "kubexm"))
    if path := os.environ.get("PYTHONPATH"):
        env["PYTHONPATH"] = path
    return env


def kubexm(bed: Bed, home: Path, work: str, count: int) -> Job:
    """The job of kubexm itself, as its users give it."""
    program = Path(sys.executable).with_name("kubexm")
    if not program.exists():
        raise RunFailed(f"there is no `{program}`: measure with the Python of a venv that has it")
    words = ("hosts", "check") if work == "w4" else ("run",)
    done = {
        "w2": f"{20 * count} changed",
        "w4": f"{count} hosts, nothing is wrong",
        "w5": f"{20 * count} satisfied",
        "w6": f"{50 * count} satisfied",
        "w6-one": f"{count} satisfied",
    }.get(work, f"{count} changed")
    command = (str(program), *words, "-f", str(bed.pipeline(work, count)))
    return Job(command, ours(home), bed.path, lambda said: done in said)


def _one_by_one(bed: Bed, home: Path, work: str, count: int) -> Job | None:
    if work != "w5":
        return None
    job = kubexm(bed, home, work, count)
    program = (sys.executable, str(HERE / "onebyone.py"))
    return replace(job, command=(*program, "run", "-f", str(bed.pipeline(work, count))))


def _pyinfra(python: Path, bed: Bed, home: Path, work: str, count: int) -> Job | None:
    if work in {"w6", "w6-one"}:
        return None
    program = str(python.parent / "pyinfra")
    command = (program, "-y", f"pyinfra/hosts{count}.py", f"pyinfra/{work}.py")
    unchanged = re.compile(rf"Grand total +{20 * count} +- +- +{20 * count} ")
    return Job(
        command,
        peers.child_env(home),
        bed.path,
        lambda said: work != "w5" or unchanged.search(said) is not None,
    )


def _ansible(
    python: Path, bed: Bed, home: Path, work: str, count: int, extra: dict[str, str]
) -> Job:
    settings = {
        "ANSIBLE_FORKS": "50",
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_HOST_KEY_CHECKING": "0",
        "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=60s",
        # The machine may be busy with all of its hosts.
        "ANSIBLE_TIMEOUT": "60",
        "ANSIBLE_NOCOLOR": "1",
    }
    program = str(python.parent / "ansible-playbook")
    command = (program, "-i", f"ansible/hosts{count}", f"ansible/{work}.yml")
    ended = r"ok=20 +changed=0 " if work == "w5" else r"ok=\d+ "
    each = re.compile(rf" : {ended}.* unreachable=0 +failed=0 ")
    return Job(
        command,
        peers.child_env(home, **settings, **extra),
        bed.path,
        lambda said: len(each.findall(said)) == count,
    )


def _asyncssh(bed: Bed, home: Path, work: str, count: int) -> Job | None:
    if work not in {"w1", "w2", "w3", "w3b", "w5", "w5-one-by-one"}:
        return None
    script = str(HERE / "rawasyncssh.py")
    return Job((sys.executable, script, work, str(bed.path), str(count)), ours(home), bed.path)


def _openssh(bed: Bed, home: Path, work: str, count: int) -> Job | None:
    if work not in {"w1", "w2", "w3", "w3b", "w5"}:
        return None
    shell = shutil.which("sh") or "/bin/sh"
    command = (shell, str(HERE / "rawopenssh.sh"), work, str(bed.path), str(count))
    return Job(command, peers.child_env(home), bed.path)
