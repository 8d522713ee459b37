"""The lab for tests, a plugin of pytest: has it up, and puts right what a test has broken.

The labs are some of their own, in `.lab-tests` and the like: they never touch the one you work
with.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import credentials, demolition, faults, network, report
from lab import site as sites
from lab.requirements import Missing
from lab.roster import Host
from lab.site import Site
from lab.software import making
from lab.software.making import Wish

ROOT = Path(__file__).parents[1]
_STANDARD = ROOT / ".lab-tests"
_FLEET = ROOT / ".lab-fleet"
_CLUSTERS = ROOT / ".lab-clusters"


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab that is up, as tests use it."""

    site: Site

    def host(self, name: str) -> Host:
        return self.site.host(name)

    def address(self, name: str) -> str:
        return self.site.host(name).address

    def key(self, name: str = credentials.PLAIN) -> Path:
        """The private key `plain`, `locked` (by `passphrase`) or `signed` (with a certificate)."""
        return self.site.keys / name

    @property
    def certificate(self) -> Path:
        return credentials.certificate(self.site)

    @property
    def passphrase(self) -> str:
        return credentials.passphrase_file(self.site).read_text()

    def password(self, user: str) -> str:
        """Of `ops` for sudo anywhere, of `admin` and `ops` for a login at `gate`."""
        return credentials.password(self.site, user)

    def root(self, name: str) -> Path:
        """A host's root directory, to look into from outside."""
        return self.site.home(name).root

    def run(
        self, *words: str | Path, stdin: str = "", timeout: float = 15
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of this machine in the lab's network."""
        return subprocess.run(
            [*network.inside(self.site.netns), *(str(word) for word in words)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def ssh(
        self, login: str, *words: str, options: tuple[str, ...] = (), stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a host by the plain OpenSSH client: `lab.ssh("admin@node1", "id")`."""
        settings = ("BatchMode=yes", "ConnectTimeout=5", *options)
        flags = [word for setting in settings for word in ("-o", setting)]
        return self.run("ssh", "-F", self.site.ssh_config, *flags, login, *words, stdin=stdin)


@pytest.fixture(scope="session")
def lab_of_session() -> Iterator[Lab]:
    """The standard lab: up before the first test that wants it, gone after the last."""
    with _raised(_STANDARD, "--standard", lock=Path(__file__).parent) as lab:
        yield lab


@pytest.fixture(scope="module")
def fleet_of_module() -> Iterator[Lab]:
    """Ten hosts that are alike, `node1` to `node10`, for the tests of one file."""
    with _raised(_FLEET, "--hosts", "10", lock=ROOT / "tests") as fleet:
        yield fleet


@pytest.fixture(scope="module")
def cluster_hosts(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Hosts that nobody has used, as many as a file of tests names by `HOSTS`, from `node1` on."""
    number = len(request.module.HOSTS)
    with _raised(_CLUSTERS, "--hosts", str(number), lock=ROOT / "bench") as hosts:
        yield hosts


@pytest.fixture(scope="session")
def software() -> Path:
    """What clusters are made of; `make test-lab` has made it, if this machine can.

    `KUBERNETES=v1.35` chooses another version than the newest.
    """
    try:
        return making.make(Wish(os.environ.get("KUBERNETES", "")), lambda _: None)
    except Missing as missing:
        pytest.skip(f"the software of clusters can't be made here: {missing}")


@pytest.fixture
def lab(lab_of_session: Lab) -> Iterator[Lab]:
    """The standard lab, all hosts running and whole, also for the next test."""
    yield lab_of_session
    _heal(lab_of_session.site)


@pytest.fixture
def fleet_network(fleet_of_module: Lab) -> Iterator[Lab]:
    """Ten hosts, running and whole, with the test itself in their network."""
    with network.entered(fleet_of_module.site.netns):
        yield fleet_of_module
    _heal(fleet_of_module.site)


@pytest.fixture
def lab_network(lab: Lab) -> Iterator[Lab]:
    """The same, with the test itself in the lab's network, and all it starts."""
    with network.entered(lab.site.netns):
        yield lab


def command(*words: str, path: Path) -> str:
    """Run `python -m lab` for the lab in a directory; the test fails unless it succeeds."""
    done = subprocess.run(
        [sys.executable, "-m", "lab", "--path", str(path), *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.fail(done.stderr or done.stdout)
    return done.stdout


@contextmanager
def _raised(place: Path, *hosts: str, lock: Path) -> Iterator[Lab]:
    with _alone(lock):
        command("down", path=place)
        try:
            command("up", *hosts, path=place)
            yield Lab(sites.require(place))
        finally:
            demolition.down(place)


def _heal(site: Site) -> None:
    for host in site.hosts():
        if report.state(site, host) != "running":
            faults.heal(site, host.name)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Another session of tests in the same tree waits until this one has ended."""
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
