"""What the lab reads of the machine it runs on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab import cgroups, mirror, processes, requirements
from lab.errors import LabError
from lab.processes import Process
from lab.requirements import Machine, Missing

ROOT = Path(__file__).parents[2]
GOOD = Machine(
    uid=0,
    programs=frozenset(requirements.PACKAGES),
    filesystems=frozenset({"overlay", "ext4", "cgroup2"}),
    files=frozenset(requirements.KERNEL_FILES),
    mounted=frozenset({"cgroup2"}),
    watchers=128,
)
HYBRID = """\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /box /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""
ONE_LINE = """\
# deb http://no.example/debian bookworm main
deb [signed-by=/etc/key.gpg] http://mirror.example/debian bookworm main contrib
deb http://mirror.example/debian-security bookworm-security main
"""
STANZAS = """\
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
"""


def test_a_machine_that_has_everything_is_taken() -> None:
    requirements.check(GOOD)


def test_all_that_is_missing_is_told_at_once_with_what_to_do() -> None:
    programs = GOOD.programs - {"ip", "debootstrap"}
    bare = Machine(1000, programs, frozenset(), GOOD.files, frozenset(), 0)

    with pytest.raises(Missing) as caught:
        requirements.check(bare)

    text = str(caught.value)
    assert "root" in text
    assert "the program `debootstrap`" in text
    assert "the file system `overlay`" in text
    assert "a mounted `cgroup2`" in text
    assert "apt-get install debootstrap iproute2" in text


def test_more_hosts_than_may_watch_files_are_refused() -> None:
    requirements.check(GOOD, 11)

    with pytest.raises(Missing) as caught:
        requirements.check(GOOD, 12)

    text = str(caught.value)
    assert "12 hosts take 132 instances of inotify, 128 are free" in text
    assert "sysctl fs.inotify.max_user_instances=1024" in text


def test_the_command_says_what_is_missing_and_ends_with_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lab", "up", "--hosts", "1"],
        cwd=ROOT,
        env=os.environ | {"PATH": str(tmp_path), "KUBEXM_LAB": str(tmp_path / "lab")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "the program `systemd-nspawn`" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "lab").exists()


def test_groups_of_both_versions_are_found_where_they_are_mounted() -> None:
    groups = cgroups.own("4:memory:/box/me\n3:cpu,cpuacct:/\n1:name=systemd:/a\n0::/b\n", HYBRID)

    assert groups.unified == Path("/sys/fs/cgroup/unified/b")
    assert groups.controllers == (
        Path("/sys/fs/cgroup/cpu,cpuacct"),
        Path("/sys/fs/cgroup/memory/me"),
        Path("/sys/fs/cgroup/systemd/a"),
    )


def test_groups_of_version_2_alone_are_enough() -> None:
    groups = cgroups.own(
        "0::/user.slice\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    )

    assert groups == cgroups.Groups(Path("/sys/fs/cgroup/user.slice"), ())


def test_a_machine_without_groups_of_version_2_is_refused() -> None:
    with pytest.raises(LabError, match="mount -t cgroup2"):
        cgroups.own("4:memory:/\n", "\n".join(HYBRID.splitlines()[:-1]))


def test_a_signal_goes_to_no_process_that_only_has_the_pid() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        mine = processes.look(child.pid)
        assert mine is not None
        another = Process(mine.pid, mine.started - 1)

        assert not another.send(signal.SIGKILL)
        assert child.poll() is None
        assert mine.send(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        assert not mine.send(signal.SIGKILL)


def test_apt_sources_are_read_in_both_formats() -> None:
    assert list(mirror.archives(ONE_LINE)) == [
        ("http://mirror.example/debian", "bookworm"),
        ("http://mirror.example/debian-security", "bookworm-security"),
    ]
    assert list(mirror.archives(STANZAS)) == [
        ("http://mirror.example/debian", "bookworm"),
        ("http://mirror.example/debian", "bookworm-updates"),
    ]


def test_the_mirror_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEXM_LAB_MIRROR", "http://chosen.example/debian")

    assert mirror.mirror() == "http://chosen.example/debian"
