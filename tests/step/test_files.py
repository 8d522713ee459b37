"""What file steps say before they act, and what they refuse."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.step.places import LocalPlace, MemoryLedger, Place, is_root

from kubexm.errors import InvalidInput, StepFailed
from kubexm.step.contract import Step
from kubexm.step.edits import Edit, LineInFile, ManagedBlock
from kubexm.step.files import Absent, Directory, FilePresent, Rendered
from kubexm.step.secrets import RenderedSecret, SecretFile


def test_shows_what_would_change_as_a_unified_diff(place: Place) -> None:
    path = place.write("f", b"same\nold\n")

    verdict = place.verdict(FilePresent(path, content="same\nnew"))

    assert verdict.diff == (
        f"--- {path}\n+++ {path}\n@@ -1,2 +1,2 @@\n"
        " same\n-old\n+new\n\\ No newline at end of file\n"
    )


def test_shows_nothing_of_a_file_that_is_not_for_everyone(place: Place) -> None:
    path = place.write("f", b"token=hunter22\nlevel=info\n", mode=0o640)

    for step in (
        FilePresent(path, content="level=debug\n"),
        Rendered(path, text="level={{ it }}\n", data={"it": "debug"}),
    ):
        verdict = place.verdict(step)

        assert verdict.reason == "content differs (not shown: the file is private)"
        assert verdict.diff == ""


def test_an_edit_of_a_file_that_is_not_for_everyone_shows_only_what_it_adds(place: Place) -> None:
    path = place.write("f", b"token=hunter22\nlevel=info\nlast\n", mode=0o600)

    line = place.verdict(LineInFile(path, "level=debug", match="^level="))
    block = place.verdict(ManagedBlock(path, "x=1\n", marker="m"))
    gone = place.verdict(LineInFile(path, "token", match="^token=", absent=True))

    head = f"--- {path}\n+++ {path}\n"
    covered = "-(1 line, not shown: the file is private)\n"
    assert line.diff == f"{head}@@ -2 +2 @@\n{covered}+level=debug\n"
    assert block.diff == f"{head}@@ -3,0 +4,3 @@\n+# BEGIN kubexm: m\n+x=1\n+# END kubexm: m\n"
    assert gone.diff == f"{head}@@ -1 +0,0 @@\n{covered}"


def test_an_edit_of_a_file_for_everyone_shows_what_is_around_it(place: Place) -> None:
    path = place.write("f", b"first\nlevel=info\n")

    verdict = place.verdict(LineInFile(path, "level=debug", match="^level="))

    assert verdict.diff.endswith("@@ -1,2 +1,2 @@\n first\n-level=info\n+level=debug\n")


@pytest.mark.parametrize(
    "made",
    [
        lambda path: FilePresent(path, content="x"),
        lambda path: Rendered(path, text="x"),
        lambda path: LineInFile(path, "x"),
        lambda path: ManagedBlock(path, "x"),
    ],
)
def test_a_file_in_a_directory_that_is_not_there_says_what_makes_it(
    place: Place, made: Callable[[str], Step]
) -> None:
    above = f"{place.root}/no/such"

    with pytest.raises(StepFailed) as caught:
        place.run(made(f"{above}/f"))

    assert caught.value.hint == f"make `{above}` with a `directory` step before it"


def test_shows_a_new_file_against_nothing(place: Place) -> None:
    verdict = place.verdict(FilePresent(f"{place.root}/f", content="new\n"))

    assert verdict.diff == f"--- /dev/null\n+++ {place.root}/f\n@@ -0,0 +1 @@\n+new\n"


def test_shows_no_diff_of_a_secret(place: Place) -> None:
    path = place.write("f", b"password = old\n")
    place.secrets["env://TOKEN"] = "hunter22"
    steps = (
        FilePresent(path, content="password = new\n", secret=True),
        ManagedBlock(path, "password = new\n", secret=True),
        LineInFile(path, "password = new", secret=True),
        SecretFile(path, "env://TOKEN"),
        RenderedSecret(path, {"token": "env://TOKEN"}, text="{{ token }}"),
    )

    verdicts = [place.verdict(step) for step in steps]

    assert [verdict.satisfied for verdict in verdicts] == [False] * len(steps)
    assert [verdict.diff for verdict in verdicts] == [""] * len(steps)
    assert "password" not in " ".join(verdict.reason for verdict in verdicts)


@pytest.mark.parametrize(
    "step",
    [
        LineInFile("/f", "password = new", match="^password"),
        LineInFile("/f", "password = old", absent=True),
        ManagedBlock("/f", "password = new"),
        FilePresent("/f", content="password = new"),
        Absent("/f"),
    ],
    ids=lambda step: step.summary(),
)
def test_keeps_what_a_private_file_held_on_the_host_and_not_in_the_ledger(
    place: Place, step: Any
) -> None:
    old = b"x\n# BEGIN kubexm: managed\npassword = old\n# END kubexm: managed\npassword = old\n"
    step = replace(step, path=place.write("f", old, 0o640))

    place.run(step)

    (entry,) = place.ledger.entries.values()
    assert "old" not in entry
    assert b64encode(old).decode() not in entry
    place.undo(step)
    assert place.read("f") == old


@pytest.mark.parametrize(
    "edit",
    [
        LineInFile("/f", "password = new", match="^password", secret=True),
        LineInFile("/f", "password = old", absent=True, secret=True),
        ManagedBlock("/f", "password = new", secret=True),
    ],
)
def test_keeps_what_a_secret_edit_takes_on_the_host_and_not_in_the_ledger(
    place: Place, edit: Edit
) -> None:
    old = b"x\n# BEGIN kubexm: managed\npassword = old\n# END kubexm: managed\npassword = old\n"
    step = replace(edit, path=place.write("f", old, 0o640))  # type: ignore[type-var]

    place.run(step)

    ((resource, entry),) = place.ledger.entries.items()
    assert "= " not in resource + entry
    kept = f"{place.host.state_dir}/priors"
    assert [mode(place, kept), mode(place, f"{kept}/{place.ask('ls', kept)}")] == [0o700, 0o600]
    place.undo(step)
    assert place.read("f") == old


def test_a_file_that_a_secret_edit_makes_is_private(place: Place) -> None:
    for name, secret in (("open", False), ("private", True)):
        place.run(ManagedBlock(f"{place.root}/{name}", "password = new", secret=secret))

    modes = [mode(place, f"{place.root}/{name}") for name in ("open", "private")]

    assert modes == [0o644, 0o600]


def mode(place: Place, path: str) -> int | None:
    found = place.wait(place.host.stat(path))
    return None if found is None else found.mode


def test_keeps_the_prior_of_a_secret_on_the_host_and_not_in_the_ledger(place: Place) -> None:
    path = place.write("f", b"the old password", 0o640)
    step = FilePresent(path, content="the new password", secret=True)

    place.run(step)

    (entry,) = place.ledger.entries.values()
    assert "password" not in entry
    copy = place.ask("ls", f"{place.host.state_dir}/priors")
    assert place.ask("cat", f"{place.host.state_dir}/priors/{copy}") == "the old password"
    assert place.ask("stat", "-c", "%F|%a|%U|%u|%G|%g|%s", f"{place.host.state_dir}/priors")[
        :14
    ].startswith("directory|700|")


def test_keeps_mode_and_owner_that_are_not_given(place: Place) -> None:
    path = place.write("f", b"old", 0o604)

    place.run(FilePresent(path, content="new"))

    found = place.wait(place.host.stat(path))
    assert found is not None
    assert found.mode == 0o604


@pytest.mark.skipif(not is_root(), reason="only root gives files away")
def test_sets_owner_and_group_by_name_or_number(place: Place) -> None:
    path = place.write("f", b"")
    by_name = FilePresent(path, owner="nobody", group="nogroup")

    assert place.verdict(by_name).reason == "owner root, want nobody; group root, want nogroup"
    place.run(by_name)

    assert place.verdict(by_name).satisfied
    assert place.verdict(FilePresent(path, owner="65534")).satisfied
    place.undo(by_name)
    assert place.verdict(FilePresent(path, owner="root", group="root")).satisfied


@pytest.mark.parametrize("kind", [FilePresent, Directory])
@pytest.mark.parametrize(("owner", "group"), [("no-such-name", None), (None, "no-such-name")])
def test_gives_nothing_to_somebody_whom_the_host_does_not_know(
    place: Place, kind: type[FilePresent | Directory], owner: str | None, group: str | None
) -> None:
    stranger = kind(f"{place.root}/x", owner=owner, group=group)

    with pytest.raises(StepFailed, match="no-such-name"):
        place.run(stranger)

    assert not place.verdict(stranger).satisfied


def test_says_where_a_directory_is_in_the_way(place: Place) -> None:
    place.ask("mkdir", f"{place.root}/d")

    with pytest.raises(StepFailed, match="is a directory, want a file") as caught:
        place.verdict(FilePresent(f"{place.root}/d", content=""))

    assert "`absent`" in caught.value.hint


def test_removes_no_directory_unless_told_to(place: Place) -> None:
    place.ask("mkdir", f"{place.root}/d")

    with pytest.raises(StepFailed, match="is a directory") as caught:
        place.verdict(Absent(f"{place.root}/d"))

    assert "recursive: true" in caught.value.hint


def test_removes_nothing_that_it_could_not_restore(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    os.mkfifo(f"{place.root}/pipe")

    with pytest.raises(StepFailed, match="could not be restored"):
        place.run(Absent(f"{place.root}/pipe"))

    place.close()


def test_says_where_a_file_is_in_a_directorys_way(place: Place) -> None:
    path = place.write("f", b"")

    with pytest.raises(StepFailed, match="is a file, want a directory"):
        place.verdict(Directory(path))


def test_fails_where_the_directory_of_a_file_is_missing(place: Place) -> None:
    with pytest.raises(StepFailed, match="No such file or directory"):
        place.run(FilePresent(f"{place.root}/no/f", content=""))


def test_leaves_a_directory_in_which_others_have_put_something(place: Place) -> None:
    step = Directory(f"{place.root}/a/b")
    place.run(step)
    place.write("a/theirs", b"")

    left = place.wait(step.rollback(place.context()))

    assert left == f"`{place.root}/a` is not empty"
    assert place.ask("ls", f"{place.root}/a") == "theirs"


def test_edits_only_files_not_links(place: Place) -> None:
    place.write("f", b"")
    place.ask("ln", "-s", "f", f"{place.root}/link")

    with pytest.raises(StepFailed, match="is a link, want a file"):
        place.verdict(LineInFile(f"{place.root}/link", "x"))


def test_edits_no_file_that_is_too_large(place: Place) -> None:
    path = place.write("f", b"x" * 600_000)

    with pytest.raises(StepFailed, match="has 600000 bytes"):
        place.verdict(LineInFile(path, "y"))


def test_refuses_a_block_that_does_not_end(place: Place) -> None:
    path = place.write("f", b"# BEGIN kubexm: managed\nbody\n")

    with pytest.raises(StepFailed, match="begins in line 1 and does not end"):
        place.verdict(ManagedBlock(path, "x"))


def test_undoes_a_line_beside_what_others_wrote_since(place: Place) -> None:
    path = place.write("f", b"a = 1\nb = 2\n")
    step = LineInFile(path, "a = 5", match="^a =")
    place.run(step)
    place.write("f", place.read("f") + b"theirs\n")

    place.undo(step)

    assert place.read("f") == b"a = 1\nb = 2\ntheirs\n"


def test_undoes_a_block_beside_what_others_wrote_since(place: Place) -> None:
    path = place.write("f", b"a\n")
    step = ManagedBlock(path, "ours")
    place.run(step)
    place.write("f", place.read("f") + b"theirs\n")

    place.undo(step)

    assert place.read("f") == b"a\ntheirs\n"


def test_removes_a_file_it_made_only_if_nobody_else_wrote_to_it(place: Place) -> None:
    step = LineInFile(f"{place.root}/f", "ours")
    place.run(step)
    place.write("f", b"ours\ntheirs\n")

    place.undo(step)

    assert place.read("f") == b"theirs\n"


def test_writes_the_reference_and_never_the_secret_into_the_graph() -> None:
    spec = SecretFile("/etc/token", "env://TOKEN").spec()

    assert spec.params == {"path": "/etc/token", "content": "env://TOKEN"}


def test_writes_the_value_of_a_reference(place: Place) -> None:
    place.secrets["env://TOKEN"] = "s3cret"

    place.run(SecretFile(f"{place.root}/token", "env://TOKEN"))
    place.run(
        RenderedSecret(
            f"{place.root}/conf",
            {"token": "env://TOKEN"},
            text="{{ a }}:{{ token }}",
            data={"a": 1},
        )
    )

    assert place.read("token") == b"s3cret"
    assert place.read("conf") == b"1:s3cret"


def test_fails_on_a_variable_the_template_lacks(place: Place) -> None:
    with pytest.raises(InvalidInput, match=r"line 2: 'b' is undefined"):
        place.verdict(Rendered(f"{place.root}/f", text="a\n{{ b }}\n"))


def test_shares_the_prior_between_steps_on_one_path(place: Place) -> None:
    path = place.write("f", b"original")
    first, second = FilePresent(path, content="one"), FilePresent(path, content="two")
    place.run(first)
    place.run(second)

    place.undo(second)

    assert place.read("f") == b"original"
    assert isinstance(place.ledger, MemoryLedger)
    assert list(place.ledger.entries) == [f"file:{path}"]
