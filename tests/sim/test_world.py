"""Worlds lie in a directory and go on where they were left."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE

import pytest

from kubexm.connector.base import Command, Completed
from kubexm.connector.source import Source
from kubexm.errors import (
    ConnectionLost,
    HostUnreachable,
    InvalidInput,
    Refused,
    UnsupportedFormat,
)
from kubexm.sim import (
    Effects,
    Fixed,
    Lognormal,
    Machine,
    Script,
    ServiceSettings,
    Uniform,
    World,
    WorldSettings,
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    services = {"web": ServiceSettings(active=True, enabled=True), "odd": ServiceSettings()}
    settings = WorldSettings(
        machine=Machine(files={"/etc/motd": "hello\n"}, services=services),
        machines={"big-*": Machine(cpus=64)},
        scripts=(
            Script(("flaky", "**"), exit=1, stderr="not yet\n", times=2),
            Script(("flaky", "*"), stdout="done\n", effects=Effects(files={"/etc/flaky": "1"})),
            Script(("deploy",), effects=Effects(services={"app": True}, packages={"app": "2"})),
        ),
    )
    made = World.create(tmp_path / "world", settings)
    yield made
    made.close()


def run(world: World, *argv: str, host: str = "n1") -> Completed:
    return asyncio.run(world.connector(host).exec(Command(argv)))


def reopened(world: World) -> World:
    world.close()
    return World.open(world.path)


def test_a_user_of_a_machine_has_a_group_of_the_same_name_there(tmp_path: Path) -> None:
    machines = {"app*": Machine(users={"app": 1000})}
    world = World.create(tmp_path / "world", WorldSettings(machines=machines))

    codes = [run(world, "chown", "app:app", "/root", host=host).exit for host in ("app1", "db1")]
    world.close()

    assert codes == [0, 1]


def test_a_world_that_is_opened_again_is_the_same(world: World) -> None:
    asyncio.run(world.connector("n1").put("/etc/f", b"\xff" * 5000, mode=0o600))
    run(world, "mkdir", "-p", "/srv/a/b")
    run(world, "rm", "/etc/motd")
    run(world, "systemctl", "stop", "web")
    run(world, "deploy", host="n2")
    before = world.snapshot()
    mutations = world.mutations()

    again = reopened(world)

    assert again.snapshot() == before
    assert again.mutations() == mutations
    assert again.settings == world.settings
    assert asyncio.run(again.connector("n1").get("/etc/f")) == b"\xff" * 5000
    assert before["n1"]["/etc/motd"] is None
    assert set(before["n2"]) == {"package:app", "service:app.service"}
    again.close()


def test_a_snapshot_holds_only_what_is_not_as_it_was_delivered(world: World) -> None:
    run(world, "cat", "/etc/motd")
    run(world, "chmod", "0600", "/etc/motd")
    assert world.snapshot()["n1"]["/etc/motd"]

    run(world, "chmod", "0644", "/etc/motd")

    assert world.snapshot() == {}


def test_every_change_is_counted_also_one_that_changes_nothing(world: World) -> None:
    for _ in range(3):
        run(world, "chmod", "0644", "/etc/motd")
    run(world, "cat", "/etc/motd")

    assert world.mutations() == {"n1": {"/etc/motd": 3}}
    assert world.host("n1").commands == 4
    assert world.host("n1").executed == {"chmod": 3, "cat": 1}


def test_a_scripted_command_answers_so_often_and_is_counted(world: World) -> None:
    answers = [run(world, "flaky", "x") for _ in range(2)]
    again = reopened(world)
    answers.append(run(again, "flaky", "x"))

    assert [answer.exit for answer in answers] == [1, 1, 0]
    assert again.mutations()["n1"]["script:flaky *"] == 1
    assert again.mutations()["n1"]["script:flaky **"] == 2
    assert again.snapshot()["n1"].keys() == {"/etc/flaky"}
    again.close()


def test_scripts_of_one_command_take_turns(tmp_path: Path) -> None:
    scripts = (
        Script(("x",), exit=1, times=2),
        Script(("x",), exit=2, times=1),
        Script(("x",), exit=3),
    )
    world = World.create(tmp_path / "turns", WorldSettings(scripts=scripts))

    assert [run(world, "x").exit for _ in range(5)] == [1, 1, 2, 3, 3]
    world.close()


def test_an_unexpected_command_fails_loudly_and_says_how_to_script_it(world: World) -> None:
    with pytest.raises(Refused, match="`n1` does not know `mysqladmin ping`") as caught:
        run(world, "mysqladmin", "ping")
    with pytest.raises(Refused, match="does not know `rm --one-file-system"):
        run(world, "rm", "--one-file-system", "/x")

    assert '`simulate.scripts`: - {argv: ["mysqladmin", "ping"], exit: 0}' in caught.value.hint


def test_hosts_differ_by_machine_and_by_name(world: World) -> None:
    assert run(world, "nproc", host="big-1").text == "64"
    assert run(world, "nproc", host="n1").text == "4"
    assert run(world, "hostname", host="n1").text == "n1"
    assert run(world, "cat", "/etc/machine-id") != run(world, "cat", "/etc/machine-id", host="n2")


def test_a_stopped_host_is_unreachable_until_it_is_revived(world: World) -> None:
    connector = world.connector("n1")
    world.host("n1").stop()

    async def scenario(connector: object) -> None:
        with pytest.raises(ConnectionLost):
            await world.connector("n1").exec(Command(("true",)))
        with pytest.raises(HostUnreachable):
            await world.connector("n1").open()

    asyncio.run(scenario(connector))
    again = reopened(world)
    with pytest.raises(HostUnreachable):
        asyncio.run(again.connector("n1").open())

    again.host("n1").revive()

    asyncio.run(again.connector("n1").open())
    assert run(again, "true").ok
    again.close()


def test_a_connection_that_broke_stays_broken_until_it_is_opened(world: World) -> None:
    async def scenario() -> None:
        connector = world.connector("n1")
        world.host("n1").stop()
        with pytest.raises(ConnectionLost):
            await connector.exec(Command(("true",)))
        world.host("n1").revive()
        with pytest.raises(ConnectionLost):
            await connector.exec(Command(("true",)))
        await connector.open()
        assert (await connector.exec(Command(("true",)))).ok

    asyncio.run(scenario())


def test_a_reboot_changes_the_boot_id_and_runs_what_is_enabled(world: World) -> None:
    boot = run(world, "cat", "/proc/sys/kernel/random/boot_id")
    run(world, "systemctl", "start", "odd")
    run(world, "touch", "/run/lock-of-mine")

    world.host("n1").reboot()

    assert run(world, "cat", "/proc/sys/kernel/random/boot_id") != boot
    assert world.host("n1").runs("web")
    assert not world.host("n1").runs("odd")
    assert run(world, "ls", "/run").text == ""
    assert world.host("n1").starts("web") == 1


def test_a_line_cut_short_by_a_kill_is_as_if_the_command_had_not_run(world: World) -> None:
    run(world, "touch", "/srv/whole")
    before = world.snapshot()
    run(world, "touch", "/srv/torn")
    journal = world.path / "hosts" / "n1.jsonl"
    with journal.open("r+b") as file:
        file.truncate(journal.stat().st_size - 3)

    again = reopened(world)

    assert again.snapshot() == before
    run(again, "touch", "/srv/after")
    assert reopened(again).snapshot()["n1"].keys() == {"/srv/whole", "/srv/after"}


def test_a_journal_is_made_short_when_it_is_read(world: World) -> None:
    for _ in range(500):
        run(world, "chmod", "0600", "/etc/motd")
    before, mutations = world.snapshot(), world.mutations()
    journal = world.path / "hosts" / "n1.jsonl"

    again = reopened(world)

    assert again.snapshot() == before
    assert again.mutations() == mutations
    assert journal.read_bytes().count(b"\n") == 1
    assert again.host("n1").commands == 500


def test_a_damaged_journal_is_named_with_its_line(world: World) -> None:
    run(world, "touch", "/srv/a")
    journal = world.path / "hosts" / "n1.jsonl"
    journal.write_bytes(b"nonsense\n" + journal.read_bytes())

    again = reopened(world)
    with pytest.raises(UnsupportedFormat, match=r"n1\.jsonl:1: not the state"):
        again.host("n1")


def test_a_world_is_made_once_and_opened_only_where_it_is(world: World, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="already"):
        World.create(world.path)
    with pytest.raises(InvalidInput, match="no simulated world"):
        World.open(tmp_path / "nowhere")

    (world.path / "world.json").write_text("[]")
    with pytest.raises(UnsupportedFormat, match="not a simulated world") as caught:
        World.open(world.path)
    assert "remove the directory to begin anew" in caught.value.hint
    (world.path / "world.json").write_text('{"format": "kubexm-world/9", "settings": {}}')
    with pytest.raises(UnsupportedFormat, match="kubexm-world/9"):
        World.open(world.path)


def test_settings_are_kept_as_json(world: World) -> None:
    document = json.loads((world.path / "world.json").read_text())

    assert document["format"] == "kubexm-world/1"
    assert document["settings"]["machines"] == {"big-*": {"cpus": 64}}
    assert document["settings"]["scripts"][0] == {
        "argv": ["flaky", "**"],
        "exit": 1,
        "stderr": "not yet\n",
        "times": 2,
    }


def test_names_of_hosts_cannot_leave_the_directory(world: World) -> None:
    names = ("../../up", "a/b", "..", "ü%")

    for name in names:
        run(world, "touch", "/srv/x", host=name)

    assert set(reopened(world).snapshot()) == set(names)
    assert {place.name for place in world.path.iterdir()} == {"blobs", "hosts", "world.json"}


def test_long_contents_are_kept_once_for_all_hosts(world: World) -> None:
    for number in range(20):
        asyncio.run(world.connector(f"n{number}").put("/srv/big", b"x" * 100_000))

    assert len(list((world.path / "blobs").iterdir())) == 1


@pytest.fixture
def usual_umask() -> Iterator[None]:
    """New files can be read by everybody unless somebody says otherwise."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
def test_nobody_but_its_owner_looks_into_a_world(tmp_path: Path) -> None:
    path = tmp_path / "worlds" / "demo"
    world = World.create(path)
    asyncio.run(world.connector("n1").put("/etc/key", b"\xff" * 5000, mode=0o600))
    (tmp_path / "key").write_bytes(b"\xfe" * 5000)
    source = Source(tmp_path / "key")
    asyncio.run(world.connector("n1").upload(source, "/etc/other", mode=0o600))
    source.close()
    for _ in range(200):  # so many that its journal is made short when it is read again
        run(world, "touch", "/etc/f", host="n2")
    world.close()
    again = World.open(path)
    run(again, "true", host="n2")
    again.close()

    assert mode(path) == 0o700
    files = [place for place in path.rglob("*") if place.is_file()]
    assert {place.parent.name for place in files} == {"blobs", "hosts", "demo"}
    assert {place.name: mode(place) for place in files} == {place.name: 0o600 for place in files}


def test_a_world_that_others_could_look_into_is_closed_to_them(
    world: World, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    for place in (world.path, empty):
        place.mkdir(exist_ok=True)
        place.chmod(0o755)

    reopened(world).close()
    World.create(empty).close()

    assert (mode(world.path), mode(empty)) == (0o700, 0o700)


def mode(path: Path) -> int:
    return S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (lambda: Script(()), "matches nothing"),
        (lambda: Script(("x",), times=0), "`times` is 0, want at least 1"),
        (lambda: Fixed(-1.0), "`seconds` is -1"),
        (lambda: Uniform(2.0, 1.0), "`high` is 1, want at least 2"),
        (lambda: Lognormal(-1.0), "`median` is -1"),
        (lambda: Fixed(float("nan")), "`seconds` is nan"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings()  # type: ignore[operator]  # a function of many types
