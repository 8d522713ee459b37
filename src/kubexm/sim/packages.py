"""Simulated apt, dnf, yum and zypper: packages come, go, and bring files and services along."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from posixpath import dirname

from kubexm.connector.base import Completed
from kubexm.sim.brought import Package, package
from kubexm.sim.delivered import service, unit_name
from kubexm.sim.settings import PackageSettings
from kubexm.sim.shell import OK, Program, Shell, failed
from kubexm.sim.starting import set_service

_FORMAT = "${Package}\\t${Version}\\t${db:Status-Status}\\n"
_PLAIN = PackageSettings()
_FLAGS = frozenset(("-y", "-q", "-qq", "--no-install-recommends", "--allow-downgrades"))


def apt_get(shell: Shell, args: Sequence[str]) -> Completed:
    rest = list(args)
    while "-o" in rest:
        place = rest.index("-o")
        del rest[place : place + 2]
    words = [word for word in rest if not word.startswith("-")]
    if not words or not {word for word in rest if word.startswith("-")} - {"--"} <= _FLAGS:
        raise shell.unexpected()
    verb, names = words[0], words[1:]
    if verb == "update":
        return OK
    if verb not in ("install", "remove", "purge"):
        raise shell.unexpected()
    if shell.files.full:
        return failed("E: You don't have enough free space in /var/cache/apt/archives/.", 100)
    for name in names:
        _install(shell, name) if verb == "install" else _remove(shell, name)
    return OK


def _install(shell: Shell, wanted: str) -> None:
    name, _, version = wanted.partition("=")
    brings = _brought(shell, name)
    version = version or brings.version
    if shell.version(name) == version:
        return
    shell.state.set(f"package:{name}", version)
    for user, number in brings.users.items():
        if shell.user_id(user) is None:
            shell.state.set(f"user:{user}", number)
            shell.state.set(f"group:{user}", number)
    for path, text in brings.content.items():
        _lay(shell, path, text, 0o644)
    for path, text in brings.executables.items():
        _lay(shell, path, text, 0o755)
    for unit in brings.units if brings.starts else ():
        shell.run(("systemctl", "enable", "--now", unit))
    for unit, settings in _settings(shell, name).services.items():
        if shell.service(unit_name(unit)) is None:
            set_service(shell, unit_name(unit), service(settings), starts=settings.active)


def _remove(shell: Shell, name: str) -> None:
    if shell.version(name) is None:
        return
    brings = _brought(shell, name)
    for unit in brings.units:
        if shell.service(unit) is not None:
            shell.run(("systemctl", "disable", "--now", unit))
    for unit in _settings(shell, name).services:
        shell.state.set(f"service:{unit_name(unit)}", None)
    for path in (*brings.content, *brings.executables):
        _take_away(shell, path)
    for user in brings.users:
        shell.state.set(f"user:{user}", None)
        shell.state.set(f"group:{user}", None)
    shell.state.set(f"package:{name}", None)


def _settings(shell: Shell, name: str) -> PackageSettings:
    return shell.around.archive.get(name, _PLAIN)


def _brought(shell: Shell, name: str) -> Package:
    """What comes with a package: what the settings of the world say, else what is known of it."""
    if (settings := shell.around.archive.get(name)) is not None:
        return Package(settings.version, files=settings.files)
    return package(name, shell.around.machine.os_id) or Package(_PLAIN.version)


def _lay(shell: Shell, path: str, text: str, mode: int) -> None:
    shell.files.make_directory(dirname(path), parents=True)
    # What somebody has changed stays as it is.
    if shell.files.lookup(path) is None or mode & 0o111:
        shell.files.write(path, text.encode(), mode=mode)


def _take_away(shell: Shell, path: str) -> None:
    """Remove a file, and the directories above that are empty without it."""
    if shell.files.lookup(path) is not None:
        shell.files.remove(path)
    above = dirname(path)
    while not shell.state.was_delivered(above) and shell.files.lookup(above) is not None:
        if shell.files.children(above):
            return
        shell.files.remove(above)
        above = dirname(above)


def dpkg_query(shell: Shell, args: Sequence[str]) -> Completed:
    if list(args[:3]) != ["-W", "-f", _FORMAT]:
        raise shell.unexpected()
    names = [name for name in args[3:] if name != "--"]
    known = {name: version for name in names if (version := shell.version(name)) is not None}
    lines = [f"{name}\t{version}\tinstalled\n" for name, version in known.items()]
    missing = [
        f"dpkg-query: no packages found matching {name}\n" for name in names if name not in known
    ]
    return Completed(1 if missing else 0, "".join(lines).encode(), "".join(missing).encode())


def dpkg(shell: Shell, args: Sequence[str]) -> Completed:
    if list(args) != ["--configure", "-a"]:
        raise shell.unexpected()
    return OK


def dnf(shell: Shell, args: Sequence[str]) -> Completed:
    words = _words(shell, args, _DNF_FLAGS)
    verb, names = words[0], [_VERSION.sub(r"\1=\2", name) for name in words[1:]]
    return _handled(shell, {"makecache": "refresh"}.get(verb, verb), names)


def zypper(shell: Shell, args: Sequence[str]) -> Completed:
    rest = list(args)
    if "--repo" in rest:
        place = rest.index("--repo")
        del rest[place : place + 2]
    words = _words(shell, rest, _ZYPPER_FLAGS)
    return _handled(shell, words[0], words[1:])


def _words(shell: Shell, args: Sequence[str], flags: frozenset[str]) -> list[str]:
    given = {arg.partition("=")[0] for arg in args if arg.startswith("-")} - {"--"}
    words = [arg for arg in args if not arg.startswith("-")]
    if not words or not given <= flags:
        raise shell.unexpected()
    return words


def _handled(shell: Shell, verb: str, names: Sequence[str]) -> Completed:
    if verb == "refresh":
        return OK
    if verb not in ("install", "remove"):
        raise shell.unexpected()
    if shell.files.full:
        return failed("Error: No space left on device")
    for name in names:
        _install(shell, name) if verb == "install" else _remove(shell, name)
    return OK


def rpm(shell: Shell, args: Sequence[str]) -> Completed:
    if list(args[:2]) != ["-q", "--qf"] or not args[2].endswith("\\tinstalled\\n"):
        raise shell.unexpected()
    lines, missing = [], 0
    for name in (name for name in args[3:] if name != "--"):
        version = shell.version(name)
        missing += version is None
        lines.append(f"{name}\t{version}\tinstalled" if version else _UNKNOWN.format(name))
    return Completed(missing, "".join(f"{line}\n" for line in lines).encode())


_UNKNOWN = "package {} is not installed"
_VERSION = re.compile(r"^(.+?)-(\d.*)$")
_DNF_FLAGS = frozenset(("-y", "-q", "--setopt", "--disablerepo", "--enablerepo"))
_ZYPPER_FLAGS = frozenset(("--non-interactive", "--quiet", "--oldpackage", "--no-recommends"))

PROGRAMS: Mapping[str, Program] = {
    "apt-get": apt_get,
    "dnf": dnf,
    "dpkg": dpkg,
    "dpkg-query": dpkg_query,
    "rpm": rpm,
    "yum": dnf,
    "zypper": zypper,
}
