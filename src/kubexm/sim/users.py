"""Simulated programs about users and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubexm.connector.base import Completed
from kubexm.sim.shell import OK, Program, Shell, failed, said

_VALUED = {"--uid": "uid", "-d": "home", "--shell": "shell", "--gid": "gid", "--groups": "groups"}
_FLAGS = frozenset(("--user-group", "--system", "--create-home", "--no-create-home", "--remove"))
_NO_SHELL = "/usr/sbin/nologin"
_FIRST, _FIRST_OF_THE_SYSTEM = 1000, 100


def getent(shell: Shell, args: Sequence[str]) -> Completed:
    match [arg for arg in args if arg != "--"]:
        case ["passwd", name]:
            uid = shell.user_id(name)
            if uid is None:
                return Completed(2)
            home, login, _ = _entry(shell, name)
            gid = shell.group_id(name)
            return said(f"{name}:x:{uid}:{uid if gid is None else gid}::{home}:{login}\n")
        case ["group", name]:
            gid = shell.group_id(name)
            return Completed(2) if gid is None else said(f"{name}:x:{gid}:\n")
    raise shell.unexpected()


def groups_of(shell: Shell, name: str) -> list[str]:
    """The groups of a user, its own first."""
    return [name, *_entry(shell, name)[2]]


def useradd(shell: Shell, args: Sequence[str]) -> Completed:
    given, flags, name = _parsed(shell, args)
    if shell.user_id(name) is not None:
        return failed(f"useradd: user '{name}' already exists", 9)
    if missing := _unknown_group(shell, given):
        return failed(f"useradd: group '{missing}' does not exist", 6)
    uid = int(given["uid"]) if "uid" in given else _free(shell, "--system" in flags)
    if uid in _ids(shell):
        return failed(f"useradd: UID {uid} is not unique", 4)
    if "--user-group" in flags:
        if shell.group_id(name) is not None:
            return failed(f"useradd: group {name} exists", 9)
        shell.state.set(f"group:{name}", uid)
    shell.state.set(f"user:{name}", uid)
    home = given.get("home", f"/home/{name}")
    _keep(shell, name, home, given.get("shell", "/bin/sh"), _split(given.get("groups", "")))
    if "--create-home" in flags and shell.files.lookup(home) is None:
        shell.files.make_directory(home, parents=True)
        shell.files.change(home, mode=0o700, owner=name, group=name)
    return OK


def usermod(shell: Shell, args: Sequence[str]) -> Completed:
    given, _, name = _parsed(shell, args)
    if shell.user_id(name) is None:
        return failed(f"usermod: user '{name}' does not exist", 6)
    if missing := _unknown_group(shell, given):
        return failed(f"usermod: group '{missing}' does not exist", 6)
    if "uid" in given:
        shell.state.set(f"user:{name}", int(given["uid"]))
    home, login, groups = _entry(shell, name)
    if "groups" in given:
        groups = _split(given["groups"])
    _keep(shell, name, given.get("home", home), given.get("shell", login), groups)
    return OK


def userdel(shell: Shell, args: Sequence[str]) -> Completed:
    _, flags, name = _parsed(shell, args)
    uid = shell.user_id(name)
    if uid is None:
        return failed(f"userdel: user '{name}' does not exist", 6)
    home = _entry(shell, name)[0]
    for key in (f"user:{name}", f"passwd:{name}", f"group:{name}"):
        if shell.state.get(key) is not None:
            shell.state.set(key, None)
    if "--remove" in flags and shell.files.lookup(home) is not None:
        shell.files.remove_tree(home)
    return OK


def _parsed(shell: Shell, args: Sequence[str]) -> tuple[dict[str, str], set[str], str]:
    given: dict[str, str] = {}
    flags: set[str] = set()
    rest = list(args)
    while rest and rest[0].startswith("-") and (word := rest.pop(0)) != "--":
        if word in _VALUED:
            given[_VALUED[word]] = rest.pop(0)
        elif word in _FLAGS:
            flags.add(word)
        else:
            raise shell.unexpected()
    if len(rest) != 1:
        raise shell.unexpected()
    return given, flags, rest[0]


def _entry(shell: Shell, name: str) -> tuple[str, str, list[str]]:
    """Home, shell and groups of a user beside its own."""
    found = shell.state.get(f"passwd:{name}")
    if isinstance(found, str):
        home, login, groups = found.split(":")
        return home, login, _split(groups)
    return _usual(shell, name)


def _usual(shell: Shell, name: str) -> tuple[str, str, list[str]]:
    if name == "root":
        return "/root", "/bin/bash", []
    ours = name in shell.around.machine.users
    return (f"/home/{name}", "/bin/sh", []) if ours else ("/nonexistent", _NO_SHELL, [])


def _keep(shell: Shell, name: str, home: str, login: str, groups: Sequence[str]) -> None:
    usual = (home, login, list(groups)) == _usual(shell, name)
    shell.state.set(f"passwd:{name}", None if usual else f"{home}:{login}:{','.join(groups)}")


def _unknown_group(shell: Shell, given: Mapping[str, str]) -> str:
    wanted = (*_split(given.get("groups", "")), *_split(given.get("gid", "")))
    return next((group for group in wanted if shell.group_id(group) is None), "")


def _split(names: str) -> list[str]:
    return names.split(",") if names else []


def _ids(shell: Shell) -> set[int]:
    found = map(shell.state.get, shell.state.keys("user:"))
    return {id for id in found if isinstance(id, int)}


def _free(shell: Shell, system: bool) -> int:
    taken = _ids(shell)
    number = _FIRST_OF_THE_SYSTEM if system else _FIRST
    while number in taken:
        number += 1
    return number


PROGRAMS: Mapping[str, Program] = {
    "getent": getent,
    "useradd": useradd,
    "userdel": userdel,
    "usermod": usermod,
}
