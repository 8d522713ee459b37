"""Users and groups, on a machine set apart."""

from __future__ import annotations

import pytest
from tests.runner.apart import work_apart
from tests.runner.hosts import complained, said, scripted

from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner import users
from kubexm.runner.host import Host

NAME = "kubexm-test"


def test_a_user_comes_changes_and_goes(apart: int) -> None:
    async def work(host: Host) -> None:
        assert await users.find(host, NAME) is None
        await host.run("groupadd", "--gid", "4242", "kubexm-more")
        await users.add(host, NAME, uid=4711, shell="/bin/sh", groups=["kubexm-more"])
        found = await users.find(host, NAME)
        assert found == users.User(
            NAME, 4711, 4711, f"/home/{NAME}", "/bin/sh", (NAME, "kubexm-more")
        )
        assert (await host.ask("test", "-d", f"/home/{NAME}")).ok
        await users.change(host, NAME, shell="/bin/false", groups=())
        found = await users.find(host, NAME)
        assert found is not None
        assert (found.shell, found.groups) == ("/bin/false", (NAME,))
        await users.remove(host, NAME, with_home=True)
        await users.remove(host, NAME)
        assert await users.find(host, NAME) is None
        assert not (await host.ask("test", "-d", f"/home/{NAME}")).ok
        assert await users.find_group(host, "kubexm-more") == 4242

    work_apart(apart, work)


def test_a_user_of_the_system_has_no_home(apart: int) -> None:
    async def work(host: Host) -> None:
        await users.add(host, NAME, system=True, home=None, shell="/usr/sbin/nologin")
        found = await users.find(host, NAME)
        assert found is not None
        assert found.uid < 1000
        assert not (await host.ask("test", "-d", f"/home/{NAME}")).ok

    work_apart(apart, work)


def test_what_can_not_be_made_says_why(apart: int) -> None:
    async def work(host: Host) -> None:
        await users.add(host, NAME, uid=0)

    with pytest.raises(CommandFailed, match="UID 0 is not unique"):
        work_apart(apart, work)


def test_a_user_that_is_at_work_is_named() -> None:
    busy = complained(f"usermod: user {NAME} is currently used by process 4711\n", 8)

    with pytest.raises(StepFailed, match="used by process 4711") as caught:
        scripted(lambda host: users.change(host, NAME, uid=5), {"usermod": busy})

    assert "end the processes" in caught.value.hint


def test_nothing_given_changes_nothing() -> None:
    _, connector = scripted(lambda host: users.change(host, NAME))

    assert connector.asked == []


def test_a_directory_of_users_that_does_not_answer_is_no_missing_user() -> None:
    with pytest.raises(CommandFailed):
        users.user_of((complained("no", 3), said("")), NAME)
