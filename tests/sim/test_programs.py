"""Simulated programs answer as the real ones of this machine do."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from kubexm.connector.base import C_LOCALE, STAT, Command, is_missing, read_stat, reading
from kubexm.connector.local import LocalConnector
from kubexm.sim import World
from kubexm.sim.programs import PROGRAMS

CHECKSUMS = ("-maxdepth", "0", "-type", "f", "-exec", "sha256sum", "--", "{}", "+")
# Run one after the other, at both places, in an empty directory.
COMMANDS: list[tuple[str, ...]] = [
    ("mkdir", "-p", "d/e"),
    ("mkdir", "d"),
    ("mkdir", "-p", "-m", "0700", "d/f/g"),
    ("mkdir", "no/such"),
    ("touch", "file"),
    ("touch", "no/such/file"),
    ("cp", "-aT", "file", "copy"),
    ("cp", "-a", "file", "d"),
    ("cp", "d", "d2"),
    ("cp", "-aT", "d", "d2"),
    ("cp", "-aT", "nothing", "d3"),
    ("ls", "d"),
    ("ls", "d2"),
    ("ls", "nothing"),
    ("ln", "-s", "file", "link"),
    ("ln", "-s", "file", "link"),
    ("ln", "-sfn", "nowhere", "dangling"),
    ("ln", "-s", "d", "to-d"),
    ("readlink", "--", "link"),
    ("readlink", "--", "file"),
    ("test", "-e", "link"),
    ("test", "-e", "dangling"),
    ("test", "-L", "dangling"),
    ("test", "-f", "link"),
    ("test", "-d", "to-d"),
    ("test", "-d", "to-d/e"),
    ("test", "-s", "file"),
    ("test", "-x", "d"),
    ("test", "!", "-e", "file"),
    ("test", "-n", ""),
    ("test", "-z", ""),
    ("test", "a", "=", "a"),
    ("test", "a", "!=", "a"),
    ("touch", "to-d/through-link"),
    ("ls", "d"),
    ("cat", "file", "nothing", "d"),
    ("cat", "to-d/through-link"),
    ("head", "-c", "3", "--", "nothing"),
    ("sha256sum", "--", "file", "nothing", "link"),
    reading("file", 3, count=1),
    reading("file", 2, start=1, count=1),
    reading("file", 4096),
    reading("nothing", 3),
    ("find", "-L", "file", "d", "nothing", "link", *CHECKSUMS),
    ("stat", "-c", f"{STAT[2]}|%n", "file", "nothing"),
    ("chmod", "0640", "file"),
    ("chmod", "00640", "file"),
    ("chmod", "0640", "nothing"),
    ("chown", "www-data:adm", "file"),
    ("chown", "-h", "www-data:adm", "dangling"),
    ("stat", "-c", STAT[2], "file"),
    ("chown", "no-such-user", "file"),
    ("chown", ":no-such-group", "file"),
    ("chgrp", "no-such-group", "file"),
    ("mv", "file", "d"),
    ("ls", "d"),
    ("mv", "-T", "d/file", "moved"),
    ("mv", "-T", "nothing", "moved"),
    ("rmdir", "d"),
    ("rmdir", "--ignore-fail-on-non-empty", "--", "d"),
    ("rmdir", "moved"),
    ("rm", "d"),
    ("rm", "nothing"),
    ("rm", "-f", "nothing"),
    ("rm", "-rf", "d2"),
    ("rm", "link"),
    ("ls", "."),
    ("echo", "a", " b"),
    ("echo", "-n", "x"),
    ("true",),
    ("false",),
    ("grep", "-s", "-H", "", "moved", "nothing"),
    ("id", "-u"),
    ("id", "-un"),
    ("id", "no-such-user"),
    ("timeout", "5", "true"),
]


@pytest.mark.skipif(os.geteuid() != 0, reason="simulated commands run as root")
def test_say_and_do_what_the_real_ones_say_and_do(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    world = World.create(tmp_path / "world")

    async def compare() -> None:
        local, sim = LocalConnector(), world.connector("n1")
        try:
            await sim.exec(Command(("mkdir", "/srv/real")))
            for argv in COMMANDS:
                here = await local.exec(Command(argv, cwd=str(real), env=C_LOCALE))
                there = await sim.exec(Command(argv, cwd="/srv/real"))
                assert (there.exit, there.stdout) == (here.exit, here.stdout), argv
                assert is_missing(there) == is_missing(here), argv
        finally:
            await local.close()

    asyncio.run(compare())
    world.close()


TEXT = b"root:x:0:\na+b\nab(c)\nlast"
GREPS: list[tuple[str, ...]] = [
    ("grep", "-q", "^root:", "text"),
    ("grep", "-q", "no-such-line", "text"),
    ("grep", "-c", "^root:x*:", "text"),
    ("grep", "-qE", "^(root|toor):", "text"),
    ("grep", "-q", "^\\(root\\|toor\\):", "text"),
    ("grep", "-F", "^root", "text"),
    ("grep", "-ix", "ROOT:X:0:", "text"),
    ("grep", "-cv", "root", "text"),
    ("grep", "-s", "root", "nothing"),
    ("grep", "-q", "root", "nothing", "text"),
    ("grep", "-q", "", "file"),
    ("grep", "a+b", "text"),
    ("grep", "-E", "a+b", "text"),
    ("grep", "b(c)", "text", "text"),
    ("grep", "-h", "b(c)", "text", "text"),
    ("grep", "la", "."),
]


def test_grep_finds_what_the_real_one_finds(tmp_path: Path) -> None:
    world = World.create(tmp_path / "world")
    (tmp_path / "text").write_bytes(TEXT)
    (tmp_path / "file").touch()

    async def compare() -> None:
        local, sim = LocalConnector(), world.connector("n1")
        try:
            await sim.put("/srv/text", TEXT)
            await sim.put("/srv/file", b"")
            for argv in GREPS:
                here = await local.exec(Command(argv, cwd=str(tmp_path), env=C_LOCALE))
                there = await sim.exec(Command(argv, cwd="/srv"))
                assert there == here, argv
        finally:
            await local.close()

    asyncio.run(compare())
    world.close()


def test_the_page_about_simulations_lists_every_program() -> None:
    page = (Path(__file__).parents[2] / "docs/howto/simulate-a-fleet.md").read_text()
    table = page.partition("| program | what it takes |\n")[2].partition("\n\n")[0]

    listed = {
        name
        for row in table.splitlines()[1:]
        for name in re.findall("`([^`]+)`", row.split("|")[1])
    }

    assert listed == {*PROGRAMS, "timeout"}


@pytest.mark.parametrize("name", ["file", "link", "d", "nothing", "file/below"])
def test_stat_sees_what_the_real_one_sees(name: str, tmp_path: Path) -> None:
    world = World.create(tmp_path / "world")
    (tmp_path / "file").write_text("12345")
    (tmp_path / "file").chmod(0o4750)
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "d").mkdir(mode=0o755)

    async def compare() -> None:
        local, sim = LocalConnector(), world.connector("n1")
        try:
            await sim.put("/srv/file", b"12345", mode=0o4750)
            await sim.exec(Command(("ln", "-s", "file", "/srv/link")))
            await sim.exec(Command(("mkdir", "/srv/d")))
            here = read_stat(await local.exec(Command((*STAT, f"{tmp_path}/{name}"), env=C_LOCALE)))
            there = read_stat(await sim.exec(Command((*STAT, f"/srv/{name}"))))
            assert (here is None) == (there is None)
            if here is not None and there is not None:
                assert (here.kind, here.mode) == (there.kind, there.mode)
        finally:
            await local.close()

    asyncio.run(compare())
    world.close()


def test_systemctl_knows_units_by_file_package_and_settings(tmp_path: Path) -> None:
    world = World.create(tmp_path / "world")

    async def ask(*argv: str) -> tuple[int, str]:
        done = await world.connector("n1").exec(Command(argv))
        return done.exit, done.text

    async def scenario() -> None:
        assert await ask("systemctl", "start", "app") == (5, "")
        assert await ask("systemctl", "is-active", "app") == (3, "inactive")
        await ask("apt-get", "install", "-y", "app")
        assert await ask("systemctl", "enable", "--now", "app") == (0, "")
        assert await ask("systemctl", "is-active", "app.service") == (0, "active")
        assert await ask("systemctl", "is-enabled", "--quiet", "app") == (0, "")
        assert await ask("systemctl", "disable", "--now", "app") == (0, "")
        assert await ask("systemctl", "is-active", "app") == (3, "inactive")
        await ask("systemctl", "mask", "app")
        assert (await ask("systemctl", "start", "app"))[0] == 1
        await ask("systemctl", "unmask", "app")
        assert await ask("systemctl", "restart", "app") == (0, "")

    asyncio.run(scenario())
    assert world.host("n1").starts("app") == 2
    world.close()
