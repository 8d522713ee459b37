"""Files that go to real hosts and come from them: whole, resumed, undone, or clearly refused.

Whether a host is as it was is asked by its files as they lie on the disk.
"""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.lab.test_runs import Control, until
from tests.lab.test_steps import FILE, LINK, LOGINS, ROOT, TREE, LabPlace, theirs
from tests.step.test_lifecycle import SENT

from kubexm.connector.base import Progress
from kubexm.connector.download import PIECE
from kubexm.connector.source import Source, part_beside
from kubexm.errors import ConnectionLost, StepFailed
from kubexm.spec import local
from kubexm.step.contract import Step
from kubexm.step.files import Absent, FilePresent, Rendered
from kubexm.step.transfers import Fetched
from kubexm.step.trees import Mirrored
from lab.testing import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(90)]
MIB = 1 << 20


@pytest.fixture(params=LOGINS)
def place(request: pytest.FixtureRequest, lab_network: Lab) -> Iterator[LabPlace]:
    made = LabPlace(lab_network, request.param)
    yield made
    made.close()


@pytest.fixture
def trixie(lab_network: Lab) -> Iterator[LabPlace]:
    """As a user who becomes root by sudo."""
    made = LabPlace(lab_network, "trixie1")
    yield made
    made.close()


@pytest.fixture
def control(lab_network: Lab, tmp_path: Path) -> Iterator[Control]:
    yield Control(lab_network, tmp_path)
    for name in ("node1", "node2", "node3"):
        lab_network.ssh(f"root@{name}", "rm -rf /srv/files")


HALF_A_TREE = (
    f"mkdir -p -m 0711 {TREE}/css; echo old >{TREE}/run; chown ops:adm {TREE}/run;"
    f"echo theirs >{TREE}/other; ln -s other {TREE}/index.html; chmod 2750 {TREE}"
)


def sent(directory: Path, data: bytes, path: str = FILE, **settings: Any) -> FilePresent:
    source = directory / "source"
    source.write_bytes(data)
    return FilePresent(path, source=str(source), sha256=sha256(data).hexdigest(), **settings)


def mirrored(path: str = TREE, **settings: Any) -> Mirrored:
    contents, directories = local.listed(SENT, "sent")
    return Mirrored(path, str(SENT), contents=contents, directories=directories, **settings)


def is_made_and_undone(place: LabPlace, step: Step, before: str, sign: str) -> None:
    place.prepare(before)
    was = place.state()

    verdict = place.verdict(step)
    assert (verdict.satisfied, verdict.sign) == (False, sign)
    place.run(step)
    assert place.verdict(step).satisfied
    place.undo(step)

    assert place.state() == was


@pytest.mark.parametrize(
    ("before", "sign"),
    [
        ("", "+"),
        (theirs("4755"), "~"),
        (theirs("0600"), "~"),
        (f"head -c 3000000 /dev/urandom >{FILE}; chown ops:adm {FILE}", "~"),
        (LINK, "~"),
    ],
)
def test_a_file_of_ours_is_needed_then_satisfied_then_undone(
    place: LabPlace, tmp_path: Path, before: str, sign: str
) -> None:
    step = sent(tmp_path, os.urandom(3 * MIB), mode="0640", owner="ops", group="adm")

    is_made_and_undone(place, step, before, sign)


@pytest.mark.parametrize(
    ("before", "sign"),
    [
        ("", "+"),
        (HALF_A_TREE, "~"),
    ],
)
@pytest.mark.parametrize("settings", [{}, {"owner": "ops", "group": "adm", "mode": "0640"}])
def test_a_tree_is_needed_then_satisfied_then_undone(
    place: LabPlace, before: str, sign: str, settings: dict[str, str]
) -> None:
    is_made_and_undone(place, mirrored(**settings), before, sign)


def test_a_tree_keeps_modes_and_owners_and_leaves_the_rest_alone(place: LabPlace) -> None:
    place.prepare(
        f"mkdir -p {TREE}/css; echo old >{TREE}/run; chown ops:adm {TREE}/run; "
        f"echo theirs >{TREE}/other"
    )

    place.run(mirrored())

    look = f"cd {TREE}; stat -c '%n %a %U %G' run index.html css/shop.css other; ls -A"
    assert place.sh(look).splitlines() == [
        "run 755 ops adm",
        f"index.html {(SENT / 'index.html').stat().st_mode & 0o777:o} root root",
        f"css/shop.css {(SENT / 'css/shop.css').stat().st_mode & 0o777:o} root root",
        "other 644 root root",
        "css",
        "index.html",
        "other",
        "run",
    ]
    assert place.beyond(f"{TREE}/run").read_bytes() == (SENT / "run").read_bytes()


def test_a_thousand_files_take_a_handful_of_round_trips(
    trixie: LabPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1000):
        file = tmp_path / "many" / f"{number % 10}" / f"file-{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}\n")
    contents, directories = local.listed(tmp_path / "many", "many")
    step = Mirrored(TREE, str(tmp_path / "many"), contents=contents, directories=directories)
    asked: list[str] = []
    for name in ("exec", "batch", "upload"):
        real = getattr(trixie._connector, name)

        def noted(*words: Any, name: str = name, real: Any = real, **more: Any) -> Any:
            asked.append(name)
            return real(*words, **more)

        monkeypatch.setattr(trixie._connector, name, noted)

    trixie.verdict(step)
    assert asked == ["batch"]
    trixie.run(step)

    assert len(asked) < 15
    assert trixie.verdict(step).satisfied
    assert trixie.beyond(f"{TREE}/7/file-997").read_text() == "997\n"


@pytest.mark.parametrize("before", ["", "ours"])
def test_a_file_of_a_host_is_fetched_then_satisfied_then_undone(
    place: LabPlace, tmp_path: Path, before: str
) -> None:
    place.prepare(f"head -c 9000000 /dev/urandom >{FILE}; chmod 600 {FILE}")
    to = tmp_path / "here" / place.name
    if before:
        to.parent.mkdir()
        to.write_text(before)
    step = Fetched(FILE, str(to))

    assert place.verdict(step).sign == ("~" if before else "+")
    place.run(step)
    assert place.verdict(step).satisfied
    assert to.read_bytes() == place.beyond(FILE).read_bytes()
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    place.undo(step)

    assert to.read_text() == before if before else not to.parent.exists()


def cutting(place: LabPlace, at: int, told: list[int]) -> Progress:
    """Has the host cut the connection when a transfer has come so far; notes how it goes on."""

    def progress(done: int, total: int) -> None:
        if done >= at and (not told or told[-1] < at):
            place.sh(f"pkill -KILL -f '^sshd(-session)?: {LOGINS[place.name]}' || :")
        told.append(done)

    return progress


def test_an_upload_that_is_cut_off_goes_on_where_it_was(trixie: LabPlace, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(MIB) * 60)
    first, second = list[int](), list[int]()
    with_digest = Source(source)

    async def scenario() -> None:
        host = trixie._connector
        with pytest.raises(ConnectionLost):
            progress = cutting(trixie, 30 * MIB, first)
            await host.upload(with_digest, FILE, sudo=True, progress=progress)
        await host.open()
        assert await host.upload(
            with_digest, FILE, sudo=True, progress=lambda done, _: second.append(done)
        )

    trixie.wait(scenario())
    with_digest.close()

    assert trixie.beyond(FILE).read_bytes() == source.read_bytes()
    assert second[0] > 10 * MIB
    assert not trixie.beyond(part_beside(FILE)).exists()


def test_a_download_that_is_cut_off_goes_on_where_it_was(trixie: LabPlace, tmp_path: Path) -> None:
    data = os.urandom(MIB) * 60
    trixie.beyond(FILE).write_bytes(data)
    to = tmp_path / "here"
    first, second = list[int](), list[int]()

    async def scenario() -> None:
        host = trixie._connector
        with pytest.raises(ConnectionLost):
            await host.download(FILE, to, sudo=True, progress=cutting(trixie, 30 * MIB, first))
        await host.open()
        assert await host.download(
            FILE, to, sudo=True, progress=lambda done, _: second.append(done)
        )

    trixie.wait(scenario())

    assert to.read_bytes() == data
    assert second[0] > 30 * MIB
    assert [*tmp_path.iterdir()] == [to]
    assert PIECE < 30 * MIB


def test_a_full_disk_is_told_and_leaves_only_the_part(place: LabPlace, tmp_path: Path) -> None:
    small = "/var/lib/small"
    step = sent(tmp_path, os.urandom(4 * MIB), f"{small}/big")
    place.prepare("", f"rm -rf {small}/big {small}/.big*")

    with pytest.raises(StepFailed, match="No space left on device") as caught:
        place.run(step)

    assert "make room there" in caught.value.hint
    assert place.sh(f"ls -A {small}") == ".big.kubexm-part"
    place.undo(step)
    assert place.sh(f"ls -A {small}") == ""


def test_a_full_disk_is_told_for_a_tree_and_leaves_nothing(
    trixie: LabPlace, tmp_path: Path
) -> None:
    (tmp_path / "many").mkdir()
    for name in "abcd":
        (tmp_path / "many" / name).write_bytes(os.urandom(MIB))
    contents, directories = local.listed(tmp_path / "many", "many")
    step = Mirrored(
        "/var/lib/small/t", str(tmp_path / "many"), contents=contents, directories=directories
    )

    with pytest.raises(StepFailed, match="No space left on device") as caught:
        trixie.run(step)

    assert "make room there" in caught.value.hint
    assert trixie.sh("find /var/lib/small -mindepth 1") == "/var/lib/small/t"
    trixie.undo(step)
    assert trixie.sh("ls -A /var/lib/small") == ""


def test_a_file_system_that_is_read_only_is_told(place: LabPlace, tmp_path: Path) -> None:
    place.prepare(f"mkdir {TREE}; mount -t tmpfs -o ro none {TREE}", f"umount {TREE}")

    for step in (sent(tmp_path, os.urandom(MIB), f"{TREE}/f"), mirrored(f"{TREE}/t")):
        with pytest.raises(StepFailed, match="Read-only file system") as caught:
            place.run(step)
        assert "mount it writable" in caught.value.hint


def test_what_the_user_may_not_write_is_told(trixie: LabPlace, tmp_path: Path) -> None:
    trixie.prepare(f"mkdir -m 0755 {TREE}")
    step = sent(tmp_path, os.urandom(MIB), f"{TREE}/f", sudo=False)

    with pytest.raises(StepFailed, match="Permission denied") as caught:
        trixie.run(step, ledger=Forgetful())

    assert "sudo: true" in caught.value.hint
    trixie.run(replace(step, sudo=True))


class Forgetful:
    """A ledger that asks nothing: who may not write may not keep one either."""

    async def remember(self, resource: str, prior: Any) -> None: ...

    async def capture(self, resource: str, look: Any) -> None: ...

    def recall(self, resource: str) -> None: ...

    async def recall_first(self, resource: str) -> None: ...

    async def drop(self, resource: str) -> None: ...

    async def forget(self) -> None: ...


def test_an_owner_that_there_is_not_is_told(place: LabPlace, tmp_path: Path) -> None:
    for step in (sent(tmp_path, os.urandom(MIB), owner="no-such-user"), mirrored(owner="no-such")):
        with pytest.raises(StepFailed, match="invalid user"):
            place.run(step)
        place.undo(step)

    assert place.sh(f"ls -A {ROOT}") == ""


@pytest.mark.timeout(30)
@pytest.mark.parametrize("made", [f"mkfifo {FILE}", f"mkdir {FILE}"])
def test_a_pipe_or_a_directory_in_the_place_of_a_file_is_refused_at_once(
    place: LabPlace, tmp_path: Path, made: str
) -> None:
    place.prepare(made)
    steps: list[Step] = [
        FilePresent(FILE, content="x"),
        FilePresent(FILE, content="x" * 100_000),
        Rendered(FILE, text="x"),
        sent(tmp_path, b"x"),
        Fetched(FILE, f"{tmp_path}/here"),
    ]

    for step in steps:
        with pytest.raises(StepFailed, match="want a file") as caught:
            place.verdict(step)
        assert "remove it with" in caught.value.hint
    with pytest.raises(StepFailed):
        place.verdict(Absent(FILE))


PIPELINE = """
- {name: place, directory: {path: /srv/files}}
- {name: image, file: {path: /srv/files/image, source: image, mode: "0640"}}
- {name: site, tree: {path: /srv/files/site, source: site}}
- {name: back, fetch: {path: /srv/files/image, to: "back/${host.name}"}}
"""


def test_a_run_sends_and_fetches_and_a_second_one_finds_nothing_to_do(
    control: Control, tmp_path: Path
) -> None:
    image = os.urandom(5 * MIB)
    (tmp_path / "image").write_bytes(image)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("hello")
    control.write(PIPELINE)

    first, second = control.run(), control.run()

    assert (first[0], second[0]) == (0, 0), first
    assert "12 changed" in first[1]
    assert "nothing to do: all 12 units are satisfied" in second[1]
    assert [(tmp_path / "back" / f"node{n}").read_bytes() == image for n in (1, 2, 3)] == [True] * 3


def test_a_run_that_fails_brings_all_files_back(control: Control, tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(os.urandom(MIB))
    (tmp_path / "site" / "deep").mkdir(parents=True)
    (tmp_path / "site" / "deep" / "index.html").write_text("hello")
    control.write(
        PIPELINE + "- {name: fails, command: {argv: ['false']}}\n",
        hosts="node1",
        onFailure="rollback",
    )

    code, out, _ = control.run()

    assert (code, "RolledBack" in out) == (1, True)
    assert not (control.lab.root("node1") / "srv/files").exists()
    assert not (tmp_path / "back").exists()


def sending(control: Control, place: Path) -> tuple[Path, Path]:
    """Let the control machine have much to send; where that goes, and where it lies meanwhile."""
    (place / "image").write_bytes(os.urandom(MIB) * 300)
    (place / "site").mkdir()
    control.write(PIPELINE, hosts="node1")
    there = control.lab.root("node1") / "srv/files"
    return there, there / ".image.kubexm-part"


def test_a_run_that_was_killed_amid_an_upload_is_resumed_from_there(
    control: Control, tmp_path: Path
) -> None:
    there, part = sending(control, tmp_path)

    with control.running() as process:
        until(lambda: part.exists() and part.stat().st_size > 30 * MIB)
        os.kill(process.pid, signal.SIGKILL)
    assert not (there / "image").exists()
    # As long as it is open, no other file has its number.
    with part.open("rb") as held:
        code, out, err = control.kubexm("task", "resume", control.task())
        same = os.fstat(held.fileno()).st_ino == (there / "image").stat().st_ino

    assert code == 0, out + err
    assert same
    assert (there / "image").read_bytes() == (tmp_path / "image").read_bytes()
    assert not part.exists()


def test_a_run_that_loses_its_connection_amid_an_upload_goes_on(
    control: Control, tmp_path: Path
) -> None:
    there, part = sending(control, tmp_path)

    with control.running() as process:
        until(lambda: part.exists() and part.stat().st_size > 30 * MIB)
        with part.open("rb") as held:
            control.lab.ssh("root@node1", "pkill -KILL -f '^sshd(-session)?: root'; :")
            out, err = process.communicate(timeout=60)
            same = os.fstat(held.fileno()).st_ino == (there / "image").stat().st_ino

    assert process.returncode == 0, out + err
    assert same
    assert (there / "image").read_bytes() == (tmp_path / "image").read_bytes()


def test_a_source_that_was_changed_before_a_resume_is_told(
    control: Control, tmp_path: Path
) -> None:
    there, part = sending(control, tmp_path)
    with control.running() as process:
        until(lambda: part.exists() and part.stat().st_size > 30 * MIB)
        os.kill(process.pid, signal.SIGKILL)
    (tmp_path / "image").write_bytes(os.urandom(MIB))

    code, out, err = control.kubexm("task", "resume", control.task())

    assert code == 1
    assert "has changed since it was planned" in out + err
    assert not (there / "image").exists()
