"""Unit files of systemd: what they say, with what is dropped in, and commands as words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from posixpath import basename

import msgspec

from kubexm.sim.shell import Shell

DIRECTORIES = (
    *("/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system"),
    *("/usr/lib/systemd/system", "/lib/systemd/system"),
)
_ESCAPES = {"n": "\n", "t": "\t", "s": " ", "r": "\r"}
_VARIABLE = re.compile(r"\$\$|\$\{(\w+)\}")
_WHOLE_VARIABLE = re.compile(r"\$(\w+)")


class Unit(msgspec.Struct, frozen=True):
    """A unit as its files describe it."""

    name: str
    settings: Mapping[str, tuple[str, ...]]
    """Every value by its name; one that was empty took those before it away."""

    def all(self, key: str) -> tuple[str, ...]:
        """All values of a setting, in order."""
        return self.settings.get(key, ())

    def one(self, key: str, default: str = "") -> str:
        """The value of a setting that has one: the last that was given."""
        return (self.all(key) or (default,))[-1]

    def names(self, key: str) -> tuple[str, ...]:
        """The words of a setting that lists units."""
        return tuple(name for value in self.all(key) for name in value.split())


class Execution(msgspec.Struct, frozen=True):
    """A command of a unit."""

    argv: tuple[str, ...]
    lenient: bool
    """Whether it may fail."""


def load(shell: Shell, unit: str) -> Unit | None:
    """What the files of a unit say; None if it has none."""
    paths = files(shell, unit)
    if not paths:
        return None
    return Unit(unit, _parsed(tuple(shell.files.read(path).decode() for path in paths)))


def files(shell: Shell, unit: str) -> list[str]:
    """The file of a unit, and those that are dropped in beside it; none if it has no file."""
    at = (f"{directory}/{unit}" for directory in DIRECTORIES)
    main = next((path for path in at if _is_file(shell, path)), None)
    return [] if main is None else [main, *_dropped_in(shell, unit)]


def digest(shell: Shell, unit: str) -> str:
    """Changes when any file of a unit does; nothing if it has none."""
    found = [shell.files.digest(path) for path in files(shell, unit)]
    return sha256("".join(found).encode()).hexdigest() if len(found) > 1 else "".join(found)


def execution(text: str, environment: Mapping[str, str]) -> Execution:
    """A command line of a unit, its variables filled in."""
    bare = text.lstrip("-@+!:|")
    lenient = "-" in text[: len(text) - len(bare)]
    return Execution(tuple(_filled(words(bare), environment)), lenient)


def words(text: str) -> list[str]:
    """Words of a setting, as systemd takes them apart."""
    found: list[str] = []
    word, quote, begun = "", "", False
    letters = iter(text)
    for letter in letters:
        if letter == "\\":
            follows = next(letters, "")
            word, begun = word + _ESCAPES.get(follows, follows), True
        elif quote:
            word, quote = (word, "") if letter == quote else (word + letter, quote)
        elif letter in "\"'" and not word:
            quote, begun = letter, True
        elif letter.isspace():
            found += [word] if begun else []
            word, begun = "", False
        else:
            word, begun = word + letter, True
    return [*found, word] if begun else found


def environment(shell: Shell, unit: Unit) -> tuple[dict[str, str], str]:
    """The variables of a unit's commands; and what file is missing that must be there."""
    known = dict(
        pair.partition("=")[::2] for value in unit.all("Environment") for pair in words(value)
    )
    for path in unit.all("EnvironmentFile"):
        bare = path.removeprefix("-")
        if _is_file(shell, bare):
            known |= _variables(shell.files.read(bare).decode())
        elif bare == path:
            return known, bare
    return known, ""


def _filled(given: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    found: list[str] = []
    for word in (word.replace("%%", "%") for word in given):
        if whole := _WHOLE_VARIABLE.fullmatch(word):
            found += words(variables.get(whole[1], ""))
        else:
            found.append(
                _VARIABLE.sub(lambda each: variables.get(each[1], "") if each[1] else "$", word)
            )
    return found


@lru_cache(maxsize=256)
def _variables(text: str) -> dict[str, str]:
    lines = (line.strip() for line in text.replace("\\\n", "").splitlines())
    pairs = (line.partition("=") for line in lines if line and line[0] not in "#;")
    return {
        name.strip(): "".join(words(value.strip())) if value[:1] in "\"'" else value.strip()
        for name, _, value in pairs
    }


@lru_cache(maxsize=256)
def _parsed(texts: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    # Hosts of a world have the same few units.
    found: dict[str, list[str]] = {}
    for line in (line.strip() for text in texts for line in text.replace("\\\n", " ").splitlines()):
        name, sign, value = (part.strip() for part in line.partition("="))
        if line[:1] in ("#", ";", "[", "") or not sign:
            continue
        found[name] = [*found.get(name, ()), value] if value else []
    return {name: tuple(values) for name, values in found.items()}


def _dropped_in(shell: Shell, unit: str) -> list[str]:
    """What is dropped in, by file name; of two with the same name the first directory's counts."""
    found: dict[str, str] = {}
    for directory in (f"{above}/{unit}.d" for above in DIRECTORIES):
        if shell.files.lookup(directory) is not None:
            for name in shell.files.children(directory):
                if name.endswith(".conf"):
                    found.setdefault(name, f"{directory}/{name}")
    return sorted(found.values(), key=basename)


def _is_file(shell: Shell, path: str) -> bool:
    found = shell.files.lookup(shell.files.resolve(path))
    return found is not None and found.kind == "file"
