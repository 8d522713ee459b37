"""A lab goes away wholly, whatever was killed before."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab import cgroups, daemon, mounts, power
from lab import site as sites
from lab.testing import ROOT, command

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "lab"
    yield path
    command("down", path=path)


def machine() -> set[str]:
    """What a lab could leave on the machine, apart from what has its name or its path."""
    links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True)
    spaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    left = (path for path in Path("/tmp").glob("nspawn-root-*"))
    lines = (*links.stdout.splitlines(), *spaces.stdout.splitlines())
    return {line.split()[0] for line in lines} | {str(path) for path in left}


def traces(path: Path, name: str) -> list[str]:
    """All that has the path or the name of a lab: mounts, disks, groups, processes, leftovers."""
    tables = [Path("/proc/self/mountinfo"), *Path("/sys/block").glob("loop*/loop/backing_file")]
    found = [line for table in tables for line in read(table) if str(path) in line]
    for folder in (Path("/sys/fs/cgroup"), Path("/run/systemd/nspawn")):
        found += [where for where, _, _ in os.walk(folder) if name and name in where]
    for process in Path("/proc").glob("[0-9]*"):
        words = "".join(read(process / "cmdline") + read(process / "cgroup"))
        if str(path) in words or (name and name in words):
            found.append(f"{process.name} {words}")
    return found


def read(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def id_of(path: Path) -> str:
    record = path / "lab.json"
    return f"kxm-{json.loads(record.read_text())['id']}" if record.exists() else ""


def take_down(path: Path) -> list[str]:
    """Take a lab down; what is left of it."""
    name = id_of(path)
    command("down", path=path)
    end = time.monotonic() + 5
    # A process that was killed is seen until it has been reaped.
    while (left := traces(path, name)) and time.monotonic() < end:
        time.sleep(0.05)
    return [*left, *([str(path)] if path.exists() else [])]


def start_up(path: Path, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "lab", "--path", str(path), "up", "--hosts", "2"],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
    )


def kill_when(process: subprocess.Popen[bytes], true: Callable[[], bool]) -> None:
    """Kill a process the moment something is seen, or when it has ended by itself."""
    while not true() and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    process.wait()


def test_a_lab_that_was_used_leaves_nothing(place: Path) -> None:
    before = machine()

    command("up", "--hosts", "2", "--special", "hidden", path=place)
    there = traces(place, id_of(place))

    assert len(there) > 20
    assert take_down(place) == []
    assert machine() <= before


def test_taking_down_twice_is_fine(place: Path) -> None:
    command("up", "--hosts", "1", path=place)

    assert command("down", path=place) == "the lab is gone\n"
    assert "there is no lab" in command("down", path=place)


@pytest.mark.parametrize(
    "moment",
    [
        "lab.json",
        "hosts/node1/host.json",
        "keys/plain",
        "netns.half",
        "netns",
        "hosts/node1/disk.img",
        "hosts/node2/root",
        "hosts/node1/furnished",
        "hosts/node1/keeper.json",
        "hosts/node2/netns",
    ],
)
def test_an_up_that_was_killed_leaves_nothing(place: Path, moment: str) -> None:
    before = machine()

    kill_when(start_up(place), (place / moment).exists)

    assert take_down(place) == []
    assert machine() <= before


@pytest.mark.parametrize("moment", ["netns.half", "hosts/node1/root", "hosts/node1/keeper.json"])
def test_an_up_that_was_killed_is_gone_on_with(place: Path, moment: str) -> None:
    kill_when(start_up(place), (place / moment).exists)

    command("up", "--hosts", "3", path=place)

    states = [
        host["state"] for host in json.loads(command("status", "--json", path=place))["hosts"]
    ]
    assert states == ["running"] * 3
    assert take_down(place) == []


def test_an_image_that_was_half_built_goes_with_the_lab(place: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    images = cache / "kubexm-lab"

    building = start_up(place, XDG_CACHE_HOME=str(cache))
    kill_when(building, lambda: any(images.glob("*.half/var/lib/apt/lists/*")))
    found = list(images.glob("*.half"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        left = take_down(place)

    assert len(found) == 1
    assert left == []
    assert traces(cache, "") == []
    assert list(images.glob("*.half")) == []


def test_a_second_up_adds_what_is_missing_and_leaves_the_rest(place: Path) -> None:
    command("up", "--hosts", "1", path=place)
    with (place / "hosts/node1/root/etc/hosts").open("a") as names_of_users:
        names_of_users.write("192.0.2.1 mine\n")
    first = json.loads(command("status", "--json", path=place))["hosts"][0]

    command("up", "--hosts", "2", path=place)

    hosts = json.loads(command("status", "--json", path=place))["hosts"]
    assert [host["name"] for host in hosts] == ["node1", "node2"]
    assert hosts[0]["pid"] == first["pid"]
    names = (place / "hosts/node1/root/etc/hosts").read_text()
    assert "192.0.2.1 mine\n" in names
    assert "10.99.0.12 node2\n" in names


def test_a_host_whose_nspawn_or_keeper_was_killed_is_started_again_and_leaves_nothing(
    place: Path,
) -> None:
    command("up", "--hosts", "2", path=place)
    site = sites.require(place)
    for name, victims in (("node1", nspawns(place, "node1")), ("node2", keepers(place, "node2"))):
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        command("fault", name, "kill", path=place)
        command("fault", name, "start", path=place)

    assert all(power.init_of(site, host) for host in site.hosts())
    assert take_down(place) == []


def nspawns(place: Path, name: str) -> list[int]:
    group = sites.require(place).groups.below(name).unified
    return [pid for pid in cgroups.pids(group) if "nspawn" in read(Path(f"/proc/{pid}/comm"))[0]]


def keepers(place: Path, name: str) -> list[int]:
    found = daemon.recorded(sites.require(place).home(name).keeper)
    return [found.pid] if found is not None and found.runs else []


def test_a_lab_may_be_named_by_a_link_and_from_where_one_stands(place: Path) -> None:
    link = place.with_name("link")
    link.symlink_to(place.parent)
    path = Path(os.path.relpath(link / place.name, ROOT))

    command("up", "--hosts", "1", path=path)
    command("up", "--hosts", "1", path=path)

    assert len(mounts.below(place)) == 4
    assert take_down(place) == []


def test_two_labs_stand_side_by_side(place: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    command("up", "--hosts", "1", path=place)
    command("up", "--hosts", "1", path=other)

    assert take_down(other) == []
    assert "running" in command("status", path=place)
    assert mounts.is_mounted(place / "netns")


def test_the_command_runs_things_in_the_network_and_shows_faults(place: Path) -> None:
    command("up", "--hosts", "1", path=place)

    said = command("run", "--", "ip", "-brief", "address", "show", "lan", path=place)
    assert "10.99.0.1/24" in said
    assert command("fault", "node1", "loss", "12.5", path=place) == "node1: running, loses 12.5 %\n"
    assert "running, loses 12.5 %" in command("status", path=place)


def test_what_somebody_mounted_into_a_lab_is_not_emptied(place: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").touch()
    command("up", "--hosts", "1", path=place)
    guest = place / "guest"
    guest.mkdir()
    subprocess.run(["mount", "--bind", mine, guest], check=True)
    try:
        refused = subprocess.run(
            [sys.executable, "-m", "lab", "--path", str(place), "down"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        subprocess.run(["umount", guest], check=True)

    assert f"unmount `{guest}`" in refused.stderr
    assert (mine / "thesis.txt").exists()
    assert take_down(place) == []
