"""Packages behind one face: how each tool is called, and real ones on a home-made repository."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.runner.hosts import OK, Scripted, complained, said, scripted
from tests.virtual import VirtualLoop

from kubexm.connector.base import Command, Completed, LineSink
from kubexm.connector.local import LocalConnector
from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner import packages
from kubexm.runner.host import Host

RHEL = {"os": {"id": "rocky", "like": ["rhel"], "name": "Rocky Linux 9"}}
LEAP = {"os": {"id": "opensuse-leap", "family": "suse"}, "package_manager": "zypper"}


def test_apt_is_asked_where_nothing_is_known_or_the_family_says_so() -> None:
    for facts in ({}, {"os": {"id": "mint", "like": ["ubuntu"]}}, {"package_manager": "apt"}):
        _, connector = scripted(lambda host: packages.install(host, ["jq=1.6"]), facts=facts)

        assert connector.changes[0] == "dpkg --configure -a"
        assert connector.changes[1].startswith("apt-get -y -q ")
        assert connector.changes[1].endswith(" install -- jq=1.6")


def test_each_tool_gets_a_version_in_its_own_way() -> None:
    _, dnf = scripted(lambda host: packages.install(host, ["jq=1.6-1"]), facts=RHEL)
    _, zypper = scripted(lambda host: packages.install(host, ["jq=1.6-1"]), facts=LEAP)

    assert dnf.changes == ["dnf -y -q --setopt=exit_on_lock=1 install -- jq-1.6-1"]
    assert zypper.changes == [
        "zypper --non-interactive --quiet install --oldpackage --no-recommends -- jq=1.6-1"
    ]


def test_lists_are_fetched_if_a_package_is_not_found() -> None:
    answers = {"dnf -y -q --setopt=exit_on_lock=1 install": [complained("No match"), OK]}

    _, connector = scripted(lambda host: packages.install(host, ["jq"]), answers, facts=RHEL)

    assert [text.split()[4] for text in connector.changes] == ["install", "makecache", "install"]


@pytest.mark.parametrize(
    ("facts", "path", "options"),
    [
        (
            {},
            "/etc/apt/sources.list.d/site.list",
            "-o Dir::Etc::SourceList=/etc/apt/sources.list.d/site.list",
        ),
        (RHEL, "/etc/yum.repos.d/site.repo", "--disablerepo=* --enablerepo=site"),
        (LEAP, "/etc/zypp/repos.d/site.repo", "--repo site"),
    ],
)
def test_a_repository_is_one_file_and_can_be_the_only_one(
    facts: dict[str, Any], path: str, options: str
) -> None:
    async def work(host: Host) -> None:
        await packages.add_repository(host, "site", "/srv/packages")
        await packages.install(host, ["jq"], only="site")
        await packages.remove_repository(host, "site")

    _, connector = scripted(work, facts=facts)

    assert b"file:///srv/packages" in connector.files[path]
    assert options in connector.changes[-2]
    assert connector.changes[-1] == f"rm -f -- {path}"


@pytest.mark.parametrize(
    ("name", "url"), [("../x", "/srv"), ("x", "http://a\n[other]"), ("", "/srv"), ("x", "srv")]
)
def test_what_is_no_repository_is_refused(name: str, url: str) -> None:
    with pytest.raises(StepFailed, match="is no repository"):
        scripted(lambda host: packages.add_repository(host, name, url))


def test_a_directory_may_have_blanks() -> None:
    _, connector = scripted(lambda host: packages.add_repository(host, "x", "/srv/my files"))

    written = connector.files["/etc/apt/sources.list.d/x.list"]
    assert written == b"deb [trusted=yes] file:///srv/my%20files ./\n"


def test_a_zypper_that_wants_a_boot_has_done_its_work() -> None:
    _, connector = scripted(
        lambda host: packages.install(host, ["kernel"]), {"zypper": said("", 102)}, facts=LEAP
    )

    assert len(connector.changes) == 1
    with pytest.raises(CommandFailed, match="exited with 104"):
        scripted(
            lambda host: packages.install(host, ["none"]),
            {"zypper": [said("", 104), OK, said("", 104)]},
            facts=LEAP,
        )


LOCKED = {
    "apt": "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 (apt)\n",
    "dpkg": "dpkg: error: dpkg frontend lock was locked by another process with pid 4711\n",
    "dnf": "Existing lock /var/cache/dnf/metadata_lock.pid: another copy is running as pid 4711.",
    "rpm": "can't create transaction lock on /var/lib/rpm/.rpm.lock (Resource unavailable)\n",
    "zypper": "System management is locked by the application with pid 4711 (zypper).\n",
}
HOLDERS = {
    "apt": "process 4711 (apt)",
    "dpkg": "process 4711",
    "dnf": "process 4711",
    "rpm": "another program",
    "zypper": "process 4711 (zypper)",
}


def virtually(work: Awaitable[None]) -> float:
    """Do some work; how long it takes by a clock that runs by itself."""

    async def timed() -> float:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await work
        return loop.time() - before

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(timed())


@pytest.mark.parametrize("tool", LOCKED)
def test_a_lock_that_is_never_let_go_names_its_holder(tool: str) -> None:
    host = Host("there", Scripted({"dpkg": complained(LOCKED[tool])}))

    with pytest.raises(StepFailed) as caught:
        virtually(packages.install(host, ["jq"]))

    assert f"{HOLDERS[tool]} has held the lock" in caught.value.message
    assert "300 s" in caught.value.message
    assert caught.value.hint


def test_a_lock_is_waited_for() -> None:
    connector = Scripted({"apt-get": [*([complained(LOCKED["apt"], 100)] * 3), OK]})

    took = virtually(packages.remove(Host("there", connector), ["jq"]))

    assert took == 6.0
    assert len(connector.changes) == 5


def test_versions_are_read_alike_of_dpkg_and_of_rpm() -> None:
    dpkg = said("jq\t1.6\tinstalled\nold\t1\tconfig-files\n", 1)
    rpm = said("jq\t1.6-1.el9\tinstalled\npackage a is not installed\npackage b is not installed\n")

    assert packages.versions_of(dpkg) == {"jq": "1.6"}
    assert packages.versions_of(replace(rpm, exit=2)) == {"jq": "1.6-1.el9"}


@pytest.mark.parametrize("answer", [complained("sh: 1: rpm: not found", 127), complained("", 3)])
def test_a_host_without_a_package_tool_is_named(answer: Completed) -> None:
    with pytest.raises(StepFailed, match="can't ask which packages") as caught:
        packages.versions_of(answer)

    assert "apt, dnf, yum or zypper" in caught.value.hint


class Rooted(LocalConnector):
    """This machine, with the package tools confined to a directory."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = root
        self._options = {
            "dnf": (
                f"--installroot={root}",
                "--releasever=9",
                f"--setopt=reposdir={root}/etc/yum.repos.d",
            ),
            "zypper": ("--root", str(root)),
            "rpm": ("--root", str(root)),
            "dpkg": (f"--root={root}",),
            "dpkg-query": (f"--root={root}",),
        }

    async def exec(self, command: Command, sink: LineSink | None = None) -> Completed:
        return await super().exec(self._confined(command), sink)

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        return await super().batch([self._confined(command) for command in commands])

    async def put(self, path: str, data: bytes, **settings: Any) -> None:
        target = self._root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        await super().put(str(target), data, **settings)

    def _confined(self, command: Command) -> Command:
        program, *rest = command.argv
        if program == "rm":
            rest[-1] = f"{self._root}{rest[-1]}"
        rest = [word.replace("=/etc/apt", f"={self._root}/etc/apt") for word in rest]
        argv = (program, *self._options.get(program, ()), *rest)
        return replace(command, argv=argv, env={**command.env, "APT_CONFIG": f"{self._root}.conf"})


SPEC = """\
Name: kubexm-{name}
Version: {version}
Release: 1
Summary: nothing
License: none
BuildArch: noarch
%description
nothing
%files
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions of a package that holds nothing, and another one."""
    for program in ("rpmbuild", "createrepo_c"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no `{program}`: install rpm and createrepo-c")
    directory = tmp_path_factory.mktemp("repository")
    for name, version in (("one", "1.0"), ("one", "2.0"), ("two", "1.0")):
        spec = directory / f"{name}.spec"
        spec.write_text(SPEC.format(name=name, version=version))
        place = ("--define", f"_topdir {directory}/build", "--define", f"_rpmdir {directory}")
        subprocess.run(["rpmbuild", "-bb", "--quiet", *place, spec], check=True)
    subprocess.run(["createrepo_c", "--quiet", directory], check=True)
    return directory


@pytest.mark.parametrize("tool", ["dnf", "zypper"])
def test_real_tools_install_go_back_and_remove_from_one_repository(
    tool: str, repository: Path, tmp_path: Path
) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"there is no `{tool}`: install it to try it in a directory")

    async def work(host: Host) -> None:
        names = ("kubexm-one", "kubexm-two", "kubexm-three")
        await packages.add_repository(host, "site", str(repository))
        await packages.refresh(host, only="site")
        assert await packages.versions(host, names) == {}
        await packages.install(host, ["kubexm-one", "kubexm-two=1.0-1"], only="site")
        newest = {"kubexm-one": "2.0-1", "kubexm-two": "1.0-1"}
        assert await packages.versions(host, names) == newest
        await packages.install(host, ["kubexm-one=1.0-1"], only="site")
        assert await packages.versions(host, ["kubexm-one"]) == {"kubexm-one": "1.0-1"}
        await packages.remove(host, ["kubexm-one"])
        assert await packages.versions(host, names) == {"kubexm-two": "1.0-1"}
        await packages.remove_repository(host, "site")

    confined(work, tmp_path, {"package_manager": tool})


CONTROL = """\
Package: kubexm-{name}
Version: {version}
Architecture: all
Maintainer: nobody <nobody@example.org>
Description: nothing
"""


APT_CONF = """\
Dir "{root}";
Dir::State::status "{root}/var/lib/dpkg/status";
Dir::Bin::methods "/usr/lib/apt/methods";
Dir::Etc::Parts "/none";
DPkg::Options {{ "--root={root}"; }};
APT::Sandbox::User "root";
"""


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="there is no apt here")
def test_a_real_apt_installs_goes_back_and_removes_from_one_repository(tmp_path: Path) -> None:
    flat, root = tmp_path / "flat", tmp_path / "root"
    flat.mkdir()
    listed = [_made(flat, name, version) for name, version in (("one", "1.0"), ("one", "2.0"))]
    (flat / "Packages").write_text("\n".join(listed))
    for directory in (
        "var/log/apt",
        "var/lib/dpkg",
        "var/lib/apt/lists/partial",
        "var/cache/apt/archives/partial",
    ):
        (root / directory).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    Path(f"{root}.conf").write_text(APT_CONF.format(root=root))

    async def work(host: Host) -> None:
        await packages.add_repository(host, "site", str(flat))
        await packages.install(host, ["kubexm-one"], only="site")
        assert await packages.versions(host, ["kubexm-one", "x"]) == {"kubexm-one": "2.0"}
        await packages.install(host, ["kubexm-one=1.0"], only="site")
        assert await packages.versions(host, ["kubexm-one"]) == {"kubexm-one": "1.0"}
        await packages.remove(host, ["kubexm-one"])
        assert await packages.versions(host, ["kubexm-one"]) == {}

    confined(work, root, {})


def _made(flat: Path, name: str, version: str) -> str:
    """Build a package; what the list of its repository says of it."""
    control = CONTROL.format(name=name, version=version)
    tree = flat / "build" / version
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(control)
    package = flat / f"{name}_{version}.deb"
    subprocess.run(["dpkg-deb", "--build", tree, package], check=True, capture_output=True)
    data = package.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    return f"{control}Filename: ./{package.name}\nSize: {len(data)}\nSHA256: {digest}\n"


def confined(work: Callable[[Host], Awaitable[None]], root: Path, facts: dict[str, Any]) -> None:
    async def scenario() -> None:
        connector = Rooted(root)
        try:
            await work(Host("here", connector, facts=facts))
        finally:
            await connector.close()

    asyncio.run(scenario())
