"""Every step that changes files: needed, run, satisfied, undone to what was there before."""

from __future__ import annotations

import io
import os
import tarfile
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.step.places import MemoryLedger, Place

from kubexm.spec import local
from kubexm.step import registry
from kubexm.step.archives import Unpacked
from kubexm.step.checks import Noop
from kubexm.step.commands import Command
from kubexm.step.contract import Step
from kubexm.step.edits import LineInFile, ManagedBlock
from kubexm.step.files import Absent, Directory, FilePresent, Rendered
from kubexm.step.secrets import RenderedSecret, SecretFile
from kubexm.step.transfers import Fetched
from kubexm.step.trees import Mirrored
from kubexm.step.values import Minted
from kubexm.step.waits import Pause, WaitFor

LARGE = os.urandom(200_000)
CONFIG = b"one\nport = 1\ntwo\nport = 2\nthree"


@dataclass(frozen=True)
class Case:
    """A step, what was there before it, and what its precheck says."""

    step: Callable[[str], Step]
    sign: str
    reason: str
    before: Callable[[Place], object] = lambda place: None


def writes(name: str, data: bytes = b"old\n", mode: int = 0o640) -> Callable[[Place], object]:
    return lambda place: place.write(name, data, mode)


def makes_tree(place: Place) -> None:
    place.ask("mkdir", "-p", f"{place.root}/tree/deep")
    place.write("tree/deep/file", b"\x00binary", 0o600)
    place.ask("ln", "-s", "deep/file", f"{place.root}/tree/link")
    place.ask("chmod", "0750", f"{place.root}/tree/deep")


def packed(content: bytes) -> bytes:
    """An archive with a directory, a program and a link in it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, kind in (("app-1", tarfile.DIRTYPE), ("app-1/bin", tarfile.DIRTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.mode = kind, 0o755
            archive.addfile(member)
        program = tarfile.TarInfo("app-1/bin/app")
        program.mode, program.size = 0o755, len(content)
        archive.addfile(program, io.BytesIO(content))
        link = tarfile.TarInfo("app-1/app")
        link.type, link.linkname = tarfile.SYMTYPE, "bin/app"
        archive.addfile(link)
    return data.getvalue()


ARCHIVE = packed(b"new")


def holds_another_archive(place: Place) -> None:
    place.write("app.tgz", packed(b"old"))
    place.run(Unpacked(f"{place.root}/app.tgz", f"{place.root}/app"), ledger=MemoryLedger())
    place.write("app.tgz", ARCHIVE)


def holds_something(place: Place) -> None:
    makes_tree(place)
    place.write("app.tgz", ARCHIVE)


SENT = Path(__file__).parent / "sent"
"""A directory of this machine that goes to hosts."""
PAGE = SENT / "index.html"
PAGE_DIGEST = sha256(PAGE.read_bytes()).hexdigest()


def mirrored(root: str, **settings: Any) -> Mirrored:
    contents, directories = local.listed(SENT, "sent")
    return Mirrored(
        f"{root}/site", str(SENT), contents=contents, directories=directories, **settings
    )


def holds_another_site(place: Place) -> None:
    place.ask("mkdir", "-p", f"{place.root}/site/css")
    place.write("site/index.html", b"another", 0o600)
    place.write("site/run", (SENT / "run").read_bytes(), 0o755)
    place.write("site/other", b"not ours")
    place.ask("ln", "-s", "../other", f"{place.root}/site/css/shop.css")


CASES = {
    "new file from ours": Case(
        lambda root: FilePresent(f"{root}/f", source=str(PAGE), sha256=PAGE_DIGEST, mode="0600"),
        "+",
        "does not exist",
    ),
    "file with another content than ours": Case(
        lambda root: FilePresent(f"{root}/f", source=str(PAGE), sha256=PAGE_DIGEST),
        "~",
        "content differs (not shown: the file is private)",
        writes("f", LARGE),
    ),
    "file with our content and another mode": Case(
        lambda root: FilePresent(f"{root}/f", source=str(PAGE), sha256=PAGE_DIGEST, mode="0644"),
        "~",
        "mode 0640, want 0644",
        writes("f", PAGE.read_bytes()),
    ),
    "new tree": Case(lambda root: mirrored(f"{root}/deep"), "+", "does not exist"),
    "tree in which something is": Case(
        mirrored,
        "~",
        "3 of 4 files: `index.html` content differs; mode 0600, want 0644",
        holds_another_site,
    ),
    "tree with modes of its own": Case(
        lambda root: mirrored(root, mode="0640", directory_mode="0750"),
        "~",
        "4 of 4 files: `index.html` content differs; mode 0600, want 0640",
        holds_another_site,
    ),
    "file that comes": Case(
        lambda root: Fetched(f"{root}/f", f"{root}/here/f"), "+", "does not exist here", writes("f")
    ),
    "archive": Case(
        lambda root: Unpacked(f"{root}/app.tgz", f"{root}/app"),
        "+",
        "does not exist",
        writes("app.tgz", ARCHIVE),
    ),
    "archive with a checksum, without its first directory": Case(
        lambda root: Unpacked(
            f"{root}/app.tgz", f"{root}/app", sha256=sha256(ARCHIVE).hexdigest().upper(), strip=1
        ),
        "+",
        "does not exist",
        writes("app.tgz", ARCHIVE),
    ),
    "archive in place of another": Case(
        lambda root: Unpacked(f"{root}/app.tgz", f"{root}/app"),
        "~",
        "/app.tgz` was not unpacked there",
        holds_another_archive,
    ),
    "archive in place of something else": Case(
        lambda root: Unpacked(f"{root}/app.tgz", f"{root}/tree"),
        "~",
        "/app.tgz` was not unpacked there",
        holds_something,
    ),
    "new file": Case(
        lambda root: FilePresent(f"{root}/f", content="new\n", mode="0600"), "+", "does not exist"
    ),
    "file with other content": Case(
        lambda root: FilePresent(f"{root}/f", content="new\n"),
        "~",
        "content differs (not shown: the file is private)",
        writes("f"),
    ),
    "file with another mode": Case(
        lambda root: FilePresent(f"{root}/f", content="old\n", mode="0600"),
        "~",
        "mode 0640, want 0600",
        writes("f"),
    ),
    "file whose content is not ours": Case(
        lambda root: FilePresent(f"{root}/f", mode="0444"),
        "~",
        "mode 0640, want 0444",
        writes("f"),
    ),
    "file that only has to be there": Case(
        lambda root: FilePresent(f"{root}/f"), "+", "does not exist"
    ),
    "file of bytes": Case(
        lambda root: FilePresent(f"{root}/f", content_base64=b64encode(b"\xff\x00").decode()),
        "~",
        "content differs (not shown: the file is private)",
        writes("f"),
    ),
    "large file over a large file": Case(
        lambda root: FilePresent(f"{root}/f", content="x" * 200_000),
        "~",
        "content differs (not shown: the file is private)",
        writes("f", LARGE),
    ),
    "small file over a large file": Case(
        lambda root: FilePresent(f"{root}/f", content="x", mode="0600"),
        "~",
        "content differs (not shown: the file is private); mode 0640, want 0600",
        writes("f", LARGE),
    ),
    "file in place of a link": Case(
        lambda root: FilePresent(f"{root}/f", content="new\n"),
        "~",
        "is a link, want a file",
        lambda place: place.ask("ln", "-s", "elsewhere", f"{place.root}/f"),
    ),
    "secret content": Case(
        lambda root: FilePresent(f"{root}/f", content="new\n", secret=True),
        "~",
        "content differs",
        writes("f"),
    ),
    "secret file": Case(
        lambda root: SecretFile(f"{root}/f", "env://TOKEN"),
        "~",
        "content differs; mode 0640, want 0600",
        writes("f", b"older secret"),
    ),
    "template": Case(
        lambda root: Rendered(f"{root}/f", text="a={{ a }}\n", data={"a": 1}),
        "~",
        "content differs (not shown: the file is private)",
        writes("f"),
    ),
    "template of the program": Case(
        lambda root: Rendered(f"{root}/f", "systemd/service", data={"command": ["/bin/x"]}),
        "+",
        "does not exist",
    ),
    "template with secrets": Case(
        lambda root: RenderedSecret(f"{root}/f", {"token": "env://TOKEN"}, text="t={{ token }}\n"),
        "+",
        "does not exist",
    ),
    "absent file": Case(lambda root: Absent(f"{root}/f"), "-", "a file is there", writes("f")),
    "absent link": Case(
        lambda root: Absent(f"{root}/f"),
        "-",
        "a link is there",
        lambda place: place.ask("ln", "-s", "elsewhere", f"{place.root}/f"),
    ),
    "absent tree": Case(
        lambda root: Absent(f"{root}/tree", recursive=True), "-", "a directory is there", makes_tree
    ),
    "directory": Case(lambda root: Directory(f"{root}/d", mode="0750"), "+", "does not exist"),
    "directories": Case(lambda root: Directory(f"{root}/a/b/c"), "+", "does not exist"),
    "directory with another mode": Case(
        lambda root: Directory(f"{root}/d", mode="0700"),
        "~",
        "mode 0755, want 0700",
        lambda place: place.ask("mkdir", "-m", "0755", f"{place.root}/d"),
    ),
    "block in a new file": Case(
        lambda root: ManagedBlock(f"{root}/f", "a\nb\n"), "+", "block `managed` is missing"
    ),
    "block at the end": Case(
        lambda root: ManagedBlock(f"{root}/f", "a\nb"),
        "~",
        "block `managed` is missing",
        writes("f", b"no newline at the end"),
    ),
    "block in its place": Case(
        lambda root: ManagedBlock(f"{root}/f", "new", marker="x", comment="//"),
        "~",
        "block `x` differs",
        writes("f", b"1\n// BEGIN kubexm: x\nold\n// END kubexm: x\n2\n"),
    ),
    "line at the end": Case(
        lambda root: LineInFile(f"{root}/f", "four"), "~", "line is missing", writes("f", CONFIG)
    ),
    "line in a new file": Case(
        lambda root: LineInFile(f"{root}/f", "four"), "+", "line is missing"
    ),
    "line for all that match": Case(
        lambda root: LineInFile(f"{root}/f", "port = 3", match=r"^port\s*="),
        "~",
        "line differs",
        writes("f", CONFIG),
    ),
    "line kept, others that match gone": Case(
        lambda root: LineInFile(f"{root}/f", "port = 2", match=r"^port\s*="),
        "~",
        "line differs",
        writes("f", CONFIG),
    ),
    "no line": Case(
        lambda root: LineInFile(f"{root}/f", "three", match="^port", absent=True),
        "~",
        "3 lines to remove",
        writes("f", CONFIG),
    ),
    "no line where there is one": Case(
        lambda root: LineInFile(f"{root}/f", "three", absent=True),
        "~",
        "1 line to remove",
        writes("f", CONFIG),
    ),
    "line among bytes that are no text": Case(
        lambda root: LineInFile(f"{root}/f", "x"),
        "~",
        "line is missing",
        writes("f", b"\xff\xfe\r\n\x0bodd\n"),
    ),
    "command": Case(
        lambda root: Command(
            ("touch", f"{root}/f"), creates=f"{root}/f", undo=("rm", "-f", f"{root}/f")
        ),
        "~",
        "/f` does not exist",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_is_needed_then_run_then_satisfied_then_undone_to_what_was_there(
    name: str, place: Place
) -> None:
    case = CASES[name]
    place.secrets["env://TOKEN"] = "s3cret"
    case.before(place)
    step = case.step(place.root)
    before = place.state()

    needed = place.verdict(step)

    assert not needed.satisfied
    assert needed.sign == case.sign
    assert needed.reason.endswith(case.reason)
    assert place.state() == before, "a precheck changes nothing"

    place.run(step)

    assert place.state() != before
    assert place.verdict(step).satisfied

    place.undo(step)
    assert place.state() == before

    place.undo(step)
    assert place.state() == before, "an undo can be repeated"


@pytest.mark.parametrize("name", CASES)
def test_what_the_ledger_does_not_know_is_not_ours_and_stays(name: str, place: Place) -> None:
    case = CASES[name]
    place.secrets["env://TOKEN"] = "s3cret"
    case.before(place)
    step = case.step(place.root)
    place.run(step)
    after = place.state()

    if not isinstance(step, Command):
        place.undo(step, ledger=MemoryLedger())

    assert place.state() == after


@pytest.mark.parametrize("name", CASES)
def test_a_second_run_after_a_crash_keeps_the_first_prior(name: str, place: Place) -> None:
    case = CASES[name]
    place.secrets["env://TOKEN"] = "s3cret"
    case.before(place)
    step = case.step(place.root)
    before = place.state()
    place.run(step)
    done = place.state()

    place.run(step)

    assert place.state() == done
    place.undo(step)
    assert place.state() == before


@pytest.mark.parametrize("name", CASES)
def test_survives_being_stored(name: str) -> None:
    step = CASES[name].step("/srv/root")
    spec = step.spec()

    assert registry.load(spec.kind, spec.params) == step


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (Command(("true",)), False),
        (Command(("true",), undo=("true",)), True),
        (Minted("token", ("true",)), False),
        (WaitFor(port=1), False),
        (Pause(seconds=1), False),
        (Noop(), True),
        (FilePresent("/f"), True),
    ],
    ids=lambda value: value.summary() if isinstance(value, Step) else "",
)
def test_a_step_says_whether_it_can_be_undone(step: Step, expected: bool) -> None:
    assert step.can_be_undone is expected
