"""The artifact store: whole or not there, whoever else uses it and whatever ends a process."""

import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubexm.errors import InvalidInput, StepFailed, StoreUnusable
from kubexm.resource.arriving import Origin, Part, hold
from kubexm.resource.disk import explained
from kubexm.resource.store import Blob, Store

NOTHING = "0" * 64


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def left_in(store: Store, directory: str) -> list[str]:
    return sorted(path.name for path in (store.root / directory).iterdir())


def ruin(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


def test_what_is_added_is_there_by_digest_and_by_name(store: Store) -> None:
    blob = store.add(b"content", name="tool/1.0")

    assert blob == Blob(digest(b"content"), 7)
    assert store.has(blob.sha256)
    assert store.find("tool/1.0") == blob.sha256
    assert store.path(blob.sha256) == store.root / "blobs/sha256" / blob.sha256[:2] / blob.sha256
    with store.open(blob.sha256) as file:
        assert file.read() == b"content"


def test_a_file_is_added_by_its_path_and_stays(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(3 << 20))

    blob = store.add(path)

    assert store.path(blob.sha256).read_bytes() == path.read_bytes()


@given(st.dictionaries(st.text(min_size=1, max_size=20), st.binary(max_size=20), max_size=4))
def test_names_come_back_as_they_were_given(
    tmp_path_factory: pytest.TempPathFactory, contents: dict[str, bytes]
) -> None:
    store = Store(tmp_path_factory.mktemp("store"))

    for name, content in contents.items():
        store.add(content, name=name)

    assert store.names() == {name: digest(content) for name, content in contents.items()}
    assert store.blobs() == sorted({Blob(digest(data), len(data)) for data in contents.values()})
    assert store.verify_all() == []
    assert left_in(store, "parts") == [] if contents else not any(store.root.iterdir())


@pytest.mark.parametrize("name", [".", "..", "../up", "/etc/passwd", ".hidden", "a/../b"])
def test_no_name_leads_out_of_the_store(store: Store, tmp_path: Path, name: str) -> None:
    store.add(b"content", name=name)

    assert store.names() == {name: digest(b"content")}
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize("text", ["", "../../etc/passwd", "A" * 64, "0" * 63, f"{NOTHING}\n"])
def test_what_is_no_digest_is_refused(store: Store, text: str) -> None:
    with pytest.raises(InvalidInput, match="want a sha256"):
        store.path(text)


@pytest.mark.parametrize("name", ["", "n" * 256])
def test_a_name_that_no_file_can_have_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidInput, match="want 1 to 255"):
        store.add(b"content", name=name)


def test_a_store_that_was_never_written_is_empty(store: Store) -> None:
    assert (store.names(), store.blobs(), store.verify_all(), store.prune()) == ({}, [], [], [])
    assert store.find("tool") is None
    assert not store.root.exists()


def test_what_has_another_digest_than_wanted_is_not_added(store: Store) -> None:
    with pytest.raises(StepFailed, match=f"sha256 {digest(b'content')}, want {NOTHING}"):
        store.add(b"content", name="tool", wanted=NOTHING)

    assert (store.blobs(), store.names(), left_in(store, "parts")) == ([], {}, [])


def test_what_is_not_there_can_not_be_opened(store: Store) -> None:
    with pytest.raises(StepFailed, match=f"sha256 {NOTHING} is not in the store"):
        store.open(NOTHING)


def test_a_name_refers_to_the_latest(store: Store) -> None:
    store.add(b"old", name="tool")
    store.add(b"new", name="tool")

    assert store.names() == {"tool": digest(b"new")}


def test_a_name_is_not_given_to_what_is_not_there(store: Store) -> None:
    store.add(b"content")

    assert not store.claim("other", NOTHING)
    assert store.claim("tool", digest(b"content"))
    assert store.names() == {"tool": digest(b"content")}


def test_what_a_bundle_calls_the_same_is_only_for_who_uses_bundles(store: Store) -> None:
    store.add(b"usual", name="tool")
    store.add(b"other", name="other")
    store.loaded().add(b"loaded", name="tool")

    assert store.find("tool") == digest(b"usual")
    assert store.loaded().find("tool") == digest(b"loaded")
    assert store.loaded().find("other") == digest(b"other")
    store.loaded().forget("tool")
    assert store.find("tool") == store.loaded().find("tool") == digest(b"usual")
    assert store.verify_all() == []


class TestDamage:
    def test_is_found_and_named(self, store: Store) -> None:
        store.add(b"sound", name="sound")
        blob = store.add(b"content", name="tool")
        ruin(store.path(blob.sha256), b"c0ntent")

        (damage,) = store.verify_all()

        assert damage == store.verify(blob.sha256)
        assert (damage.wanted, damage.found) == (blob.sha256, digest(b"c0ntent"))
        assert str(damage) == (
            f"{store.path(blob.sha256)}: sha256 {digest(b'c0ntent')}, want {blob.sha256} (`tool`)"
        )

    def test_is_what_a_name_refers_to_and_is_gone(self, store: Store) -> None:
        blob = store.add(b"content", name="tool")
        store.discard(blob.sha256)

        (damage,) = store.verify_all()

        assert damage.found is None
        assert "it is not there" in str(damage)
        assert store.find("tool") is None

    def test_is_mended_by_adding_it_again(self, store: Store) -> None:
        blob = store.add(b"content", name="tool")
        ruin(store.path(blob.sha256), b"c0ntent")

        store.add(b"content")

        assert store.verify_all() == []

    def test_of_a_name_makes_it_unknown(self, store: Store) -> None:
        store.add(b"content", name="tool")
        (store.root / "names" / "tool").write_bytes(b"\xff half")

        assert (store.names(), store.find("tool")) == ({}, None)


class TestPrune:
    def test_removes_what_nothing_refers_to(self, store: Store) -> None:
        store.add(b"kept", name="kept")
        store.add(b"old", name="tool")
        store.add(b"new", name="tool")
        store.add(b"nameless")
        store.add(b"forgotten", name="forgotten")
        store.forget("forgotten")

        removed = store.prune()

        gone = {digest(data) for data in (b"old", b"nameless", b"forgotten")}
        assert {blob.sha256 for blob in removed} == gone
        assert {blob.sha256 for blob in store.blobs()} == {digest(b"kept"), digest(b"new")}

    def test_keeps_what_a_fetch_could_go_on_with_unless_told(self, store: Store) -> None:
        part = held(store, NOTHING)
        part.begin(Origin('"tag"', 9))
        part.write(b"begun")
        part.close()

        store.prune()
        assert left_in(store, "parts") == [NOTHING, f"{NOTHING}.from"]

        store.prune(parts=True)
        assert left_in(store, "parts") == []

    def test_leaves_alone_what_is_being_written(self, store: Store) -> None:
        parts = [held(store, NOTHING), store.new_part()]
        for part in parts:
            part.begin(Origin('"tag"'))
            part.write(b"begun")

        store.prune(parts=True)

        assert len([name for name in left_in(store, "parts") if "from" not in name]) == 2
        for part in parts:
            store.place(part)
            part.close()
        assert store.verify_all() == []

    def test_removes_what_a_killed_process_left(self, store: Store) -> None:
        script = """
            import os, signal
            store.add(b"before", name="before")
            part = store.new_part()
            part.write(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
        """
        assert process(store, script).wait() == -signal.SIGKILL
        assert len(left_in(store, "parts")) == 1
        assert store.names() == {"before": digest(b"before")}

        store.prune()

        assert left_in(store, "parts") == []
        assert store.verify_all() == []


class TestParts:
    def test_have_one_writer(self, store: Store) -> None:
        first = held(store, NOTHING)

        assert store.part_of(NOTHING) is None

        first.close()
        held(store, NOTHING).close()

    def test_are_taken_up_where_they_were_left(self, store: Store) -> None:
        wanted = digest(b"begun and ended")
        part = held(store, wanted)
        part.begin(Origin('"tag"', 15))
        part.write(b"begun ")
        part.close()

        later = held(store, wanted)
        while later.take_up():
            pass
        assert (later.size, later.origin) == (6, Origin('"tag"', 15))
        later.write(b"and ended")
        store.place(later, name="tool", wanted=wanted)
        later.close()

        assert store.find("tool") == wanted
        assert left_in(store, "parts") == []

    def test_of_which_nobody_knows_the_origin_start_over(self, store: Store) -> None:
        part = held(store, NOTHING)
        part.begin(Origin('"tag"'))
        part.write(b"begun ")
        part.close()
        (store.root / "parts" / f"{NOTHING}.from").write_bytes(b'{"validator": "\\"ta')

        later = held(store, NOTHING)

        assert not later.take_up()
        assert (later.size, later.path.stat().st_size) == (0, 0)
        later.close()

    def test_that_nobody_could_go_on_with_are_not_left(self, store: Store) -> None:
        part = held(store, NOTHING)
        part.begin(Origin())
        part.write(b"begun ")
        part.close()

        assert left_in(store, "parts") == []

    def test_that_become_whole_just_now_are_not_written_any_more(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wanted = digest(b"whole")
        first = held(store, wanted)
        first.write(b"whole")

        def late(handle: int) -> bool:
            if not store.has(wanted):
                store.place(first)
                first.close()
            return hold(handle)

        monkeypatch.setattr("kubexm.resource.store.hold", late)

        second = held(store, wanted)
        second.write(b"other")
        second.close()

        assert store.verify_all() == []


def test_many_processes_add_and_prune_at_once(store: Store) -> None:
    script = """
        import sys
        for number in range(20):
            store.add(b"common %d" % number, name=f"common/{number}")
            own = f"{sys.argv[2]}/{number}"
            store.add(own.encode(), name=own)
            store.prune()
    """
    processes = [process(store, script, str(number)) for number in range(3)]

    assert [each.wait() for each in processes] == [0, 0, 0]
    assert store.verify_all() == []
    assert len(store.names()) == len(store.blobs()) == 80
    assert left_in(store, "parts") == []


class TestTrouble:
    def test_with_a_full_disk_is_told(self, tmp_path: Path) -> None:
        part = Part(tmp_path / "part", os.open("/dev/full", os.O_RDWR), lasting=False)

        with pytest.raises(StoreUnusable, match="the disk is full") as caught:
            part.write(b"content")

        part.close()
        assert caught.value.where == str(tmp_path / "part")
        assert "free some space" in caught.value.hint

    def test_with_a_file_size_limit_is_told_and_leaves_nothing(self, store: Store) -> None:
        script = """
            import resource
            store.add(b"small")
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            try:
                store.add(bytes(2000))
            except StoreUnusable as error:
                assert "too large" in str(error), error
                raise SystemExit(7)
        """
        assert process(store, script).wait() == 7
        assert store.blobs() == [Blob(digest(b"small"), 5)]
        assert left_in(store, "parts") == []

    def test_with_too_little_room_is_told_before_anything_is_written(self, store: Store) -> None:
        store.add(b"content")

        store.require_room(1)
        with pytest.raises(
            StoreUnusable, match=r"the disk is full: .* bytes are wanted, .* are free"
        ):
            store.require_room(1 << 62)

    def test_where_nobody_may_write_is_told(self) -> None:
        with pytest.raises(StoreUnusable, match=r"may not do that|is read-only"):
            Store(Path("/sys/kubexm-store")).add(b"content")

    def test_with_a_file_in_the_way_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()

        with pytest.raises(StoreUnusable, match="a file is where a directory should be"):
            Store(tmp_path / "file").add(b"content")

    def test_with_a_directory_of_somebody_else_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "thesis.txt").touch()

        with pytest.raises(StoreUnusable, match=r"no artifact store: `thesis.txt` is in it"):
            Store(tmp_path).add(b"content")

        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]

    def test_with_another_format_is_told(self, store: Store) -> None:
        store.add(b"content")
        (store.root / "format").write_text("kubexm artifact store 2\n")

        with pytest.raises(StoreUnusable, match="no artifact store that this kubexm knows"):
            Store(store.root).add(b"content")

    def test_with_what_is_to_be_added_is_told(self, store: Store, tmp_path: Path) -> None:
        with pytest.raises(StepFailed, match="can't be read: no such file"):
            store.add(tmp_path / "missing")
        with pytest.raises(StepFailed, match="this is no file"):
            store.add(tmp_path)

    def test_that_nobody_foresaw_is_told_too(self, tmp_path: Path) -> None:
        with pytest.raises(StoreUnusable, match="is a directory"), explained(tmp_path):
            tmp_path.read_bytes()


def held(store: Store, wanted: str) -> Part:
    part = store.part_of(wanted)
    assert part is not None
    return part


def process(store: Store, script: str, *arguments: str) -> "subprocess.Popen[bytes]":
    preamble = (
        "import sys; from pathlib import Path\n"
        "from kubexm.errors import StoreUnusable\n"
        "from kubexm.resource.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
    )
    text = preamble + dedent(script)
    return subprocess.Popen([sys.executable, "-c", text, str(store.root), *arguments])
