"""Files of the catalog: fetched once when a host needs them, put in place, known again."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.resource import depot as depots
from tests.resource.depot import Depot
from tests.step.places import MemoryLedger, Place
from tests.step.walks import Walk, node, statuses, undone

from kubexm.errors import InvalidInput, StepFailed
from kubexm.plan import Key
from kubexm.resource.bundle_gather import Sources
from kubexm.resource.fetch import Options
from kubexm.resource.http import Settings
from kubexm.resource.store import Store
from kubexm.runtime.store_assets import StoreAssets
from kubexm.sim import World
from kubexm.step import registry
from kubexm.step.artifacts import Installed, MembersInstalled, Stored
from kubexm.step.commands import Command
from kubexm.step.contract import Step, Verdict

TOOL = b"\x7fELF a program" * 9000
NEWER = b"\x7fELF another program" * 9000
KEY, NEWER_KEY = "tool/v1/binary/amd64", "tool/v2/binary/amd64"


def packed(*, version: str = "1", more: tuple[str, ...] = (), mode: str = "w:gz") -> bytes:
    """An archive as projects make them: programs in a directory, and something to read."""
    names = ("./", "./README", "bin/", "bin/app", "bin/app-helper", *more)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as archive:  # type: ignore[call-overload]
        for name in names:
            member = tarfile.TarInfo(name)
            content = f"{name} of {version}".encode()
            if name.endswith("/"):
                member.type, content = tarfile.DIRTYPE, b""
            member.mode, member.size, member.uid = 0o700, len(content), 1234
            archive.addfile(member, io.BytesIO(content))
    return data.getvalue()


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


class Bench:
    """A place to put files in, and the store that they come from."""

    def __init__(self, place: Place, store: Store) -> None:
        self.place = place
        self.store = store
        self.assets = StoreAssets(store, outside=False)

    @property
    def root(self) -> str:
        return self.place.root

    def keep(self, data: bytes, key: str) -> str:
        return self.store.add(data, name=key).sha256

    def verdict(self, step: Step) -> Verdict:
        return self.place.wait(step.precheck(self.place.context(assets=self.assets)))

    def run(self, step: Step, **settings: Any) -> None:
        self.place.run(step, assets=self.assets, **settings)

    def undo(self, step: Step) -> None:
        self.place.undo(step, assets=self.assets)

    def mode(self, name: str) -> int | None:
        found = self.place.wait(self.place.host.stat(f"{self.root}/{name}"))
        return None if found is None else found.mode


@pytest.fixture
def bench(place: Place, store: Store) -> Bench:
    return Bench(place, store)


def installed(bench: Bench, key: str = KEY, **settings: Any) -> Installed:
    return Installed(f"{bench.root}/tool", key, **settings)


def test_a_program_is_put_in_place_and_known_by_its_sum(bench: Bench) -> None:
    bench.keep(TOOL, KEY)
    step = installed(bench)

    before = bench.verdict(step)
    bench.run(step)

    assert before == Verdict.needed("does not exist", "+")
    assert bench.place.read("tool") == TOOL
    assert bench.mode("tool") == 0o755
    assert bench.verdict(step).satisfied


@pytest.mark.parametrize("known", [True, False], ids=["sum", "record"])
def test_a_program_that_somebody_changed_is_put_in_place_again(bench: Bench, known: bool) -> None:
    sum_ = bench.keep(TOOL, KEY)
    step = installed(bench, sha256=sum_ if known else "")
    bench.run(step)
    bench.store.forget(KEY)

    bench.place.write("tool", b"something else", 0o755)

    assert bench.verdict(step) == Verdict.needed("content differs")


def test_a_program_with_another_mode_is_made_right(bench: Bench) -> None:
    bench.keep(TOOL, KEY)
    bench.run(installed(bench))

    bench.place.ask("chmod", "0600", f"{bench.root}/tool")

    assert bench.verdict(installed(bench)) == Verdict.needed("mode 0600, want 0755")
    bench.run(installed(bench))
    assert bench.verdict(installed(bench)).satisfied


def test_another_machine_with_an_empty_store_knows_it_by_the_record_of_the_host(
    bench: Bench,
) -> None:
    bench.keep(TOOL, KEY)
    bench.run(installed(bench))

    bench.store.forget(KEY)

    assert bench.verdict(installed(bench)).satisfied
    other = installed(bench, NEWER_KEY)
    assert bench.verdict(other) == Verdict.needed(f"is `{KEY}`, want `{NEWER_KEY}`")


def test_a_program_that_nobody_knows_is_replaced(bench: Bench) -> None:
    bench.place.write("tool", TOOL, 0o755)

    assert bench.verdict(installed(bench)) == Verdict.needed("content differs")


def test_a_newer_program_takes_the_place_of_an_older_one_and_goes_back(bench: Bench) -> None:
    bench.keep(TOOL, KEY)
    bench.keep(NEWER, NEWER_KEY)
    bench.run(installed(bench), ledger=MemoryLedger())
    newer = installed(bench, NEWER_KEY)

    assert bench.verdict(newer) == Verdict.needed(f"is `{KEY}`, want `{NEWER_KEY}`")
    bench.run(newer)
    assert bench.place.read("tool") == NEWER

    bench.undo(newer)
    assert bench.place.read("tool") == TOOL
    bench.store.forget(KEY)
    assert bench.verdict(installed(bench)).satisfied


def test_a_program_that_was_not_there_is_taken_away_again(bench: Bench) -> None:
    bench.keep(TOOL, KEY)
    before = bench.place.state()

    bench.run(installed(bench))
    bench.undo(installed(bench))

    assert bench.place.state() == before
    assert bench.verdict(installed(bench)).sign == "+"


def test_a_link_is_replaced_and_a_directory_is_refused(bench: Bench) -> None:
    bench.keep(TOOL, KEY)
    bench.place.ask("ln", "-s", "elsewhere", f"{bench.root}/tool")
    assert bench.verdict(installed(bench)) == Verdict.needed("is a link, want a file")

    bench.place.ask("mkdir", f"{bench.root}/directory")
    with pytest.raises(StepFailed, match="is a directory, want a file"):
        bench.verdict(Installed(f"{bench.root}/directory", KEY))


def test_a_program_that_is_in_no_store_is_named(bench: Bench) -> None:
    with pytest.raises(StepFailed, match=f"`{KEY}` is not in the store") as caught:
        bench.run(installed(bench))

    assert "`artifact` step" in caught.value.hint


ARCHIVE = "app/v1/archive/amd64"
NEWER_ARCHIVE = "app/v2/archive/amd64"


def members(bench: Bench, key: str = ARCHIVE, **settings: Any) -> MembersInstalled:
    names = settings.pop("members", {"bin/*": f"{bench.root}/bin/"})
    return MembersInstalled(key, names, **settings)


@pytest.fixture
def unpacking(bench: Bench) -> Bench:
    bench.keep(packed(), ARCHIVE)
    bench.place.ask("mkdir", f"{bench.root}/bin")
    return bench


def listed(bench: Bench) -> list[str]:
    return bench.place.ask("ls", "-A", f"{bench.root}/bin").split()


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w"])
def test_files_of_an_archive_come_to_their_places(bench: Bench, mode: str) -> None:
    bench.keep(packed(mode=mode), ARCHIVE)
    bench.place.ask("mkdir", f"{bench.root}/bin")
    step = members(bench)

    before = bench.verdict(step)
    bench.run(step)

    assert before == Verdict.needed("was not unpacked there", "+")
    assert listed(bench) == ["app", "app-helper"]
    assert bench.place.read("bin/app") == b"bin/app of 1"
    assert bench.mode("bin/app") == 0o755
    assert bench.verdict(step).satisfied


def test_a_file_may_get_another_name_and_one_that_begins_with_a_dot_is_found(
    unpacking: Bench,
) -> None:
    names = {"README": f"{unpacking.root}/bin/read-me", "./bin/app": f"{unpacking.root}/bin/"}
    unpacking.run(members(unpacking, members=names, mode="0644"))

    assert listed(unpacking) == ["app", "read-me"]
    assert unpacking.place.read("bin/read-me") == b"./README of 1"


def test_nothing_of_the_archive_stays_beside_its_files(unpacking: Bench) -> None:
    unpacking.run(members(unpacking))

    state = unpacking.place.host.state_dir
    assert len(unpacking.place.ask("ls", "-A", f"{state}/artifacts").split()) == 1
    assert listed(unpacking) == ["app", "app-helper"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("rm", "{root}/bin/app"), "`{root}/bin/app` does not exist"),
        (("chmod", "0600", "{root}/bin/app"), "`{root}/bin/app` mode 0600, want 0755"),
        (
            ("cp", "{root}/bin/app-helper", "{root}/bin/app"),
            "`{root}/bin/app` has 19 bytes, want 12",
        ),
    ],
)
def test_a_file_that_somebody_changed_is_unpacked_again(
    unpacking: Bench, change: tuple[str, ...], reason: str
) -> None:
    unpacking.run(members(unpacking))

    unpacking.place.ask(*(word.format(root=unpacking.root) for word in change))

    wanted = Verdict.needed(reason.format(root=unpacking.root))
    assert unpacking.verdict(members(unpacking)) == wanted
    unpacking.run(members(unpacking))
    assert unpacking.verdict(members(unpacking)).satisfied


def test_a_newer_archive_is_unpacked_over_an_older_one_and_goes_back(unpacking: Bench) -> None:
    unpacking.run(members(unpacking), ledger=MemoryLedger())
    unpacking.keep(packed(version="2", more=("bin/new",)), NEWER_ARCHIVE)
    newer = members(unpacking, NEWER_ARCHIVE)

    assert unpacking.verdict(newer) == Verdict.needed(f"is `{ARCHIVE}`, want `{NEWER_ARCHIVE}`")
    unpacking.run(newer)
    assert listed(unpacking) == ["app", "app-helper", "new"]
    assert unpacking.place.read("bin/app") == b"bin/app of 2"

    unpacking.undo(newer)
    assert listed(unpacking) == ["app", "app-helper"]
    assert unpacking.place.read("bin/app") == b"bin/app of 1"
    assert unpacking.verdict(members(unpacking)).satisfied


def test_what_a_later_version_has_added_goes_with_the_first_one(unpacking: Bench) -> None:
    first = MemoryLedger()
    unpacking.run(members(unpacking), ledger=first)
    unpacking.keep(packed(version="2", more=("bin/new",)), NEWER_ARCHIVE)
    newer = members(unpacking, NEWER_ARCHIVE)
    unpacking.run(newer, ledger=MemoryLedger())

    unpacking.place.undo(newer, ledger=first)

    assert listed(unpacking) == []


def test_files_that_were_there_before_come_back(unpacking: Bench) -> None:
    unpacking.place.write("bin/app", b"of the distribution", 0o711)
    before = unpacking.place.state()

    unpacking.run(members(unpacking))
    unpacking.undo(members(unpacking))

    assert unpacking.place.state() == before


def test_an_archive_without_the_wanted_file_is_refused_before_anything_changes(
    unpacking: Bench,
) -> None:
    names = {"bin/app": f"{unpacking.root}/bin/", "bin/nothing": f"{unpacking.root}/bin/"}

    with pytest.raises(StepFailed, match="the archive has no `bin/nothing`; it has"):
        unpacking.run(members(unpacking, members=names))

    assert listed(unpacking) == []


def test_a_directory_that_is_missing_is_named(bench: Bench) -> None:
    bench.keep(packed(), ARCHIVE)

    with pytest.raises(StepFailed, match=f"there is no directory `{bench.root}/bin`") as caught:
        bench.run(members(bench))

    assert "`directory` step" in caught.value.hint


def test_two_archives_may_share_a_directory(unpacking: Bench) -> None:
    unpacking.keep(packed(more=("other/tool",)), "tools/v1/archive/amd64")
    other = members(
        unpacking, "tools/v1/archive/amd64", members={"other/*": f"{unpacking.root}/bin/"}
    )

    unpacking.run(members(unpacking))
    unpacking.run(other)

    assert unpacking.verdict(members(unpacking)).satisfied
    assert unpacking.verdict(other).satisfied


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        ("binary", {"path": "x", "artifact": KEY}, "`path` is `x`, want an absolute path"),
        ("binary", {"path": "/x", "artifact": "tool"}, "want component, version and name"),
        ("unpacked", {"artifact": ARCHIVE, "members": {}}, "`members` is empty"),
        ("unpacked", {"artifact": ARCHIVE, "members": {"a": "b"}}, "`members.a` is `b`, want an"),
        ("unpacked", {"artifact": ARCHIVE, "members": {"a*": "/b"}}, "want a directory for many"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(
    kind: str, params: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        registry.load(kind, params)


def test_the_value_is_needed_only_by_who_names_it() -> None:
    assert Installed("/x", KEY).needs() == ()
    assert Installed("/x", KEY, value="artifact_1").needs() == ("artifact_1",)
    step = Stored("tool", "v1", "binary", "tool", "artifact_1")
    assert step.provides() == (Key("artifact_1"),)
    assert registry.load("artifact", step.spec().params) == step


@pytest.fixture
def depot(tmp_path: Path) -> Iterator[Depot]:
    with depots.opened(tmp_path / "depot") as made:
        yield made


@pytest.fixture
def walk(tmp_path: Path, store: Store) -> Iterator[Walk]:
    world = World.create(tmp_path / "world")
    yield Walk(world, StoreAssets(store, Sources(options=Options(web=Settings(attempts=1)))))
    world.close()


def graph(depot: Depot) -> list[Any]:
    """One file and one archive for two hosts, each fetched when the first of them asks."""
    tool = Stored(
        *("tool", "v1", "binary", "tool", "artifact_1", "amd64"), urls=(f"{depot.url}/tool",)
    )
    app = Stored(
        *("app", "v1", "archive", "app.tgz", "artifact_2", "amd64"),
        urls=(f"{depot.url}/app.tgz",),
        sha256=digest(packed()),
    )
    binary = Installed("/usr/local/bin/tool", KEY, value="artifact_1")
    unpacked = MembersInstalled(ARCHIVE, {"bin/*": "/usr/local/bin/"}, value="artifact_2")
    return [
        node("fetch-tool", tool),
        node("fetch-app", app),
        node("tool", binary, "n1", "n2", after=("fetch-tool",)),
        node("app", unpacked, "n1", "n2", after=("fetch-app",)),
    ]


def test_what_hosts_lack_is_fetched_once_and_what_they_have_is_not(
    depot: Depot, walk: Walk, store: Store
) -> None:
    depot.put("/tool", TOOL)
    depot.put("/app.tgz", packed())

    first = walk.run(*graph(depot))

    assert statuses(first) == {
        "fetch-tool": ("Success", False),
        "fetch-app": ("Success", False),
        "tool": ("Success", True),
        "app": ("Success", True),
    }
    assert sorted(depot.asked) == ["/app.tgz", "/tool"]
    assert walk.read("n2", "/usr/local/bin/tool") == TOOL
    assert walk.read("n1", "/usr/local/bin/app") == b"bin/app of 1"

    second = walk.run(*graph(depot))

    assert {changed for _, changed in statuses(second).values()} == {False}
    assert len(depot.asked) == 2

    walk.put("n1", "/usr/local/bin/tool", b"broken")
    third = walk.run(*graph(depot))

    assert statuses(third)["tool"] == ("Success", True)
    assert statuses(third)["app"] == ("Success", False)
    assert len(depot.asked) == 2
    assert walk.read("n1", "/usr/local/bin/tool") == TOOL

    walk.put("n1", "/usr/local/bin/tool", b"broken")
    store.forget(KEY)
    walk.run(*graph(depot))

    assert sorted(depot.asked) == ["/app.tgz", "/tool", "/tool"]
    assert walk.read("n1", "/usr/local/bin/tool") == TOOL


def test_a_second_run_asks_nobody_though_its_store_is_empty(
    depot: Depot, walk: Walk, tmp_path: Path
) -> None:
    depot.put("/tool", TOOL)
    depot.put("/app.tgz", packed())
    walk.run(*graph(depot))

    walk.assets = StoreAssets(Store(tmp_path / "another machine"), outside=False)
    second = walk.run(*graph(depot))

    assert second.status == "Success"
    assert {changed for _, changed in statuses(second).values()} == {False}


def test_a_dry_run_fetches_nothing(depot: Depot, walk: Walk) -> None:
    foreseen = walk.run(*graph(depot), dry_run=True)

    assert foreseen.node_results["tool"].host_results["n1"].sign == "+"
    assert depot.asked == []


def test_who_can_not_be_served_is_held_back_with_the_fetch_as_the_cause(
    depot: Depot, walk: Walk
) -> None:
    depot.put("/app.tgz", packed())

    result = walk.run(*graph(depot))

    assert result.node_results["fetch-tool"].status == "Failed"
    held = result.node_results["tool"].host_results["n1"]
    assert held.status == "Skipped"
    assert f"{depot.url}/tool: it does not have this (404)" in held.message
    assert result.node_results["app"].status == "Success"


def test_a_rollback_takes_the_files_away_and_leaves_the_store(
    depot: Depot, walk: Walk, store: Store
) -> None:
    depot.put("/tool", TOOL)
    depot.put("/app.tgz", packed())
    failing = node("fail", Command(("false",)), "n1", after=("tool", "app"))

    result = walk.run(*graph(depot), failing, on_failure="rollback")

    assert result.status in ("Failed", "RolledBack")
    assert "tool" not in walk.ask("n1", "ls", "/usr/local/bin")
    assert "app" not in walk.ask("n2", "ls", "/usr/local/bin")
    assert store.find(KEY) == digest(TOOL)


def test_a_later_run_can_take_all_of_it_away(depot: Depot, walk: Walk) -> None:
    depot.put("/tool", TOOL)
    depot.put("/app.tgz", packed())
    walk.put("n1", "/usr/local/bin/app", b"of the distribution")
    walk.run(*graph(depot))

    result = walk.run(*map(undone, graph(depot)[2:]))

    assert statuses(result) == {"undo-tool": ("Success", True), "undo-app": ("Success", True)}
    assert walk.ask("n1", "ls", "/usr/local/bin") == "app"
    assert walk.read("n1", "/usr/local/bin/app") == b"of the distribution"
    assert walk.ask("n2", "ls", "/usr/local/bin") == ""
    assert walk.ask("n1", "ls", "-A", "/var/lib/kubexm/priors") == ""
