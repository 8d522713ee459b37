"""A first cluster for who is new here: on hosts of the lab if the machine can have them.

Everything is done by commands that anybody could type, and each is shown before it is run. Where
real hosts can't be, the same cluster is made on simulated ones, and that is said.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab import requirements, workplace
from lab import site as sites
from lab.errors import LabError
from lab.requirements import Machine, Missing
from lab.site import Site
from lab.software import assembling, bundles, catalog, making
from lab.software.making import Wish

TEXT = "make a first cluster, on real hosts if this machine can have them"
ROOT = Path(__file__).parents[1]
NAME = "quickstart"
HOSTS = 3
FILE = Path("examples/quickstart/cluster.yaml")
_APT = ROOT / "scripts/apt-install.sh"
_MAKERS = frozenset(making.PROGRAMS)
_GO = "go"
"""Debian's is too old for Kubernetes more often than not, so it is not installed for anybody."""
_BUILT = """Kubernetes and all it needs is built from Go modules: up to half an hour on two
               cores the first time, in a moment after that (it is kept in ~/.cache/kubexm-lab)"""
_FETCHED = """Kubernetes and all it needs is fetched from the sites of their projects the first
               time (it is kept in ~/.cache/kubexm-lab)"""
_INTRODUCTION = f"""\
A real cluster on this machine: {HOSTS} Debian hosts that systemd-nspawn boots, in a network of
their own; one becomes the control plane, the others workers. What is done, and how long it takes:

  1. software  {{software}}
  2. hosts     an image of Debian is made, a minute or two the first time; then they boot in seconds
  3. cluster   a minute or two
  4. a look    by kubectl

Every command is shown before it is run. All of it lies in .lab, what kubexm knows of the cluster
too; `make quickstart-down` takes it away."""
_REAL_END = f"""
This was a real one: {{version}} on {HOSTS} hosts. To look around, with kubexm and kubectl at hand:

  make lab-shell               a shell in the lab's network; for example:
    kubectl get nodes -o wide
    kubexm health {NAME}
    kubexm get cluster {NAME}
  make lab-shell HOST=node1    a shell on a host

Again: `make quickstart` finds nothing to change. Away with it: `make quickstart-down`."""
_SIMULATED_END = f"""
This was a simulation: no host was touched, and there is no API to talk to. To look around:

  {{kubexm}} get cluster {NAME}
  {{kubexm}} plan -f {FILE}
  {{kubexm}} graph -f {FILE}

Again: `{{again}}` finds nothing to change. Away with it: `make quickstart-down`."""

_DOWN_END = """
The quickstart is gone. What stays: what was built, in ~/.cache/kubexm-lab, and what kubexm
remembers of simulated runs, as `kubexm task list` shows."""


def add_options(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--simulate", action="store_true", help="on simulated hosts, at once")
    kinds.add_argument("--down", action="store_true", help="take away what it has made")
    parser.add_argument(
        "--upstream",
        action="store_true",
        default=making.from_upstream(),
        help="fetch the software from the sites of its projects (or KUBEXM_LAB_UPSTREAM=1)",
    )


def run(options: argparse.Namespace) -> int:
    """Make the cluster, or take it away; the exit code."""
    _refuse_another_lab(options.path)
    if options.down:
        return down(options.path)
    if options.simulate:
        return simulated("make demo")
    new = HOSTS if sites.find(options.path) is None else 0
    builds = not options.upstream
    machine = requirements.this_machine()
    if lacks := without(machine, _makers(), new, builds=builds) or _not_installed(builds):
        print("Real hosts can't be had on this machine. What is missing:\n")
        print("\n".join(f"  {lack}" for lack in lacks))
        print("\nSo the same cluster is made on simulated hosts, which exist in a directory only.")
        return simulated("make quickstart")
    return real(options.path, upstream=options.upstream)


def without(
    machine: Machine, makers: frozenset[str], hosts: int, *, builds: bool = True
) -> list[str]:
    """What a real cluster lacks here that can't be installed; nothing if there can be one.

    `makers`: what there is of the programs that the software is made with, if somebody `builds`.
    """
    can_install = "apt-get" in makers
    had = frozenset(requirements.PACKAGES) if can_install else machine.programs
    needed = _MAKERS if builds else frozenset()
    lacking = (needed - makers) & ({_GO} if can_install else needed)
    programs = [f"the program `{name}`: {making.PROGRAMS[name]}" for name in sorted(lacking)]
    try:
        requirements.check(dataclasses.replace(machine, programs=had), hosts)
    except Missing as missing:
        return [*missing.lacks, *programs]
    return programs


def simulated(again: str) -> int:
    """The cluster of the same file on simulated hosts."""
    kubexm = _shown(bundles.kubexm())
    code = _do(kubexm, "create", "cluster", "-f", str(FILE), "--simulate")
    if code == 0:
        print(_SIMULATED_END.format(kubexm=kubexm, again=again))
    return code


def real(path: Path, *, upstream: bool = False) -> int:
    """The cluster on hosts of the lab; whoever was interrupted begins again, and goes on."""
    print(_INTRODUCTION.format(software=_FETCHED if upstream else _BUILT))
    version = _version()
    _step(1, "software")
    _must(*_lab("software", "--kubernetes", version, *(["--upstream"] if upstream else [])))
    _step(2, "hosts")
    _must(*_lab("up", "--hosts", str(HOSTS)))
    site = sites.require(path)
    _furnish(site, Wish(version, upstream=upstream))
    _step(3, "cluster")
    software = _shown(workplace.bundles(site))
    source = ("--catalog", f"{software}/catalog.toml", "--bundle", f"{software}/{bundles.NAME}")
    _must(*_inside("kubexm", "create", "cluster", "-f", str(FILE), *source, "--merge-kubeconfig"))
    _step(4, "a look")
    _must(*_inside("kubectl", "get", "nodes,pods", "-A"))
    print(_REAL_END.format(version=f"Kubernetes {version}"))
    return 0


def down(path: Path) -> int:
    """Take away the clusters and the lab, whatever there is of them."""
    if sites.find(path) is not None:
        if _is_known(_inside()):
            _do(*_inside("kubexm", "delete", "cluster", NAME, "--yes"))
        _must(*_lab("down"))
    kubexm = _shown(bundles.kubexm())
    if _is_known((), "world"):
        _must(kubexm, "delete", "cluster", NAME, "--simulate")
    print(_DOWN_END)
    return 0


def _refuse_another_lab(path: Path) -> None:
    own = (ROOT / ".lab").resolve()
    if path != own:
        message = f"`{FILE}` is for hosts of the lab in `{own}`, not in `{path}`"
        raise LabError(f"{message}: leave out `--path` and KUBEXM_LAB")


def _makers() -> frozenset[str]:
    return frozenset(name for name in _MAKERS if shutil.which(name))


def _version() -> str:
    """The Kubernetes that the cluster file asks for."""
    found = re.search(r"version: (v[0-9.]+)", (ROOT / FILE).read_text())
    assert found is not None
    return found[1]


def _not_installed(builds: bool) -> list[str]:
    """Install what Debian has of the programs that are missing; those that it could not."""
    packages = {**requirements.PACKAGES, **(making.PROGRAMS if builds else {})}
    missing = {name: one for name, one in packages.items() if shutil.which(name) is None}
    if missing:
        why = "a real cluster is made with them"
        _do("bash", _shown(_APT), why, *sorted(set(missing.values())))
    return [f"the program `{name}`" for name in missing if shutil.which(name) is None]


def _furnish(site: Site, wish: Wish) -> None:
    software = making.make(wish, lambda _: None)
    named = (wish.kubernetes, assembling.architecture())
    address = catalog.read().address("kubernetes", "kubectl", *named)
    workplace.furnish(site, software, assembling.place(address, software / "files"))


def _is_known(inside: Sequence[str], mark: str = "name") -> bool:
    """Whether kubexm knows the cluster; by `world` the simulated one is meant."""
    words = (*inside, _shown(bundles.kubexm()), "get", "clusters", "-o", "json")
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    # It fails, too, if only something else can't be read; what can be is listed nevertheless.
    found = json.loads(done.stdout or "{}").get("clusters", ())
    return any(one["name"] == NAME and one[mark] for one in found)


def _lab(*words: str) -> tuple[str, ...]:
    return (_shown(Path(sys.executable)), "-m", "lab", *words)


def _inside(*words: str) -> tuple[str, ...]:
    """A command in the lab's network."""
    return _lab("run", "--", *words)


def _shown(path: Path) -> str:
    """A path as one would type it in the repository."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def _step(number: int, what: str) -> None:
    print(f"\n== {number} of 4: {what}", flush=True)


def _must(*words: str) -> None:
    if (code := _do(*words)) != 0:
        hint = "mend what it says, and `make quickstart` goes on from there"
        raise LabError(f"`{shlex.join(words)}` ended with {code}; {hint}")


def _do(*words: str) -> int:
    """Show a command, and run it as if it had been typed; its exit code."""
    print(f"\n+ {shlex.join(words)}", flush=True)
    with _patient():
        return subprocess.run(words, cwd=ROOT, check=False).returncode


@contextmanager
def _patient() -> Iterator[None]:
    """Who interrupts means the command, which ends in its own way; we end after it."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
