"""Simulated keepalived: the addresses that it wants for its host, and how much."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kubexm.connector.base import Completed
from kubexm.sim.daemons import Daemon, Ended, Start
from kubexm.sim.shell import Program, Shell, failed, said
from kubexm.sim.state import Socket

_CONFIG = "/etc/keepalived/keepalived.conf"
_CELL = "keepalived:started"
_USUAL = 100
_WORD = re.compile(r"\"[^\"]*\"|[{}]|[^\s{}\"]+")


class Instance(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group of hosts of which one holds addresses."""

    addresses: tuple[str, ...]
    priority: int = _USUAL
    watches: bool = False
    """Whether it gives the addresses up where haproxy does not run."""
    weight: int = 0


class Keepalived(Daemon):
    """keepalived: of the hosts that want an address, the one with the highest priority has it."""

    def starts(self, start: Start) -> Sequence[Socket]:
        path = start.option("-f", "--use-file") or _CONFIG
        found = _instances(start.read(path).decode(), path)
        start.shell.state.set(_CELL, msgspec.json.encode(found).decode())
        for address in (address for one in found for address in one.addresses):
            start.shell.around.candidate(address)
        return ()

    def stops(self, shell: Shell, unit: str) -> None:
        shell.state.set(_CELL, None)

    def addresses(self, shell: Shell) -> Mapping[str, int]:
        found = shell.state.get(_CELL)
        if not isinstance(found, str):
            return {}
        wanted: dict[str, int] = {}
        for one in msgspec.json.decode(found, type=tuple[Instance, ...]):
            failing = one.watches and not _runs_haproxy(shell)
            if not (failing and one.weight == 0):
                priority = one.priority + (one.weight if failing else 0)
                wanted |= dict.fromkeys(one.addresses, priority)
        return wanted


def _runs_haproxy(shell: Shell) -> bool:
    services = (shell.service(key.removeprefix("service:")) for key in shell.state.keys("service:"))
    return any(one is not None and one.active and one.program == "haproxy" for one in services)


def _instances(text: str, path: str) -> tuple[Instance, ...]:
    plain = "\n".join(re.split("[#!]", line)[0] for line in text.splitlines())
    blocks = dict(_blocks(_WORD.findall(plain), path))
    scripts = {
        name.split()[1]: words for name, words in blocks.items() if name.startswith("vrrp_script ")
    }
    found = [
        _instance(words, scripts)
        for name, words in blocks.items()
        if name.startswith("vrrp_instance ")
    ]
    if not found:
        raise Ended(f"({path}) no vrrp_instance is configured")
    return tuple(found)


def _blocks(words: Sequence[str], path: str) -> Iterator[tuple[str, list[str]]]:
    """The blocks at the top, by their names, with all words in them."""
    name: list[str] = []
    inside: list[str] = []
    depth = 0
    for word in words:
        depth += (word == "{") - (word == "}")
        if word == "}" and depth == 0:
            yield " ".join(name), inside
            name, inside = [], []
        elif depth > 0:
            inside += [word] if inside or word != "{" else []
        else:
            name.append(word)
    if depth:
        raise Ended(f"({path}) missing '}}'")


def _instance(words: Sequence[str], scripts: Mapping[str, Sequence[str]]) -> Instance:
    tracked = [scripts.get(name, ()) for name in _within(words, "track_script")]
    watching = [script for script in tracked if any("haproxy" in word for word in script)]
    addresses = [
        word.partition("/")[0] for word in _within(words, "virtual_ipaddress") if _is_address(word)
    ]
    return Instance(
        addresses=tuple(addresses),
        priority=int(_after(words, "priority", str(_USUAL))),
        watches=bool(watching),
        weight=min((int(_after(script, "weight", "0")) for script in watching), default=0),
    )


def _within(words: Sequence[str], name: str) -> list[str]:
    """The words of a block inside of another one."""
    if name not in words:
        return []
    begin = words.index(name) + 2
    return list(words[begin : words.index("}", begin)])


def _after(words: Sequence[str], name: str, default: str) -> str:
    return words[words.index(name) + 1] if name in words else default


def _is_address(word: str) -> bool:
    return re.fullmatch(r"[0-9.]+(/\d+)?|[0-9a-fA-F:]*:[0-9a-fA-F:.]*(/\d+)?", word) is not None


def keepalived(shell: Shell, args: Sequence[str]) -> Completed:
    """Only to tell whether a configuration is right: `keepalived -t -f FILE`."""
    rest = [arg for arg in args if arg not in ("-t", "--config-test")]
    if len(rest) == len(args):
        raise shell.unexpected()
    try:
        start = Start(shell, "", "keepalived", tuple(rest))
        _instances(start.read(start.option("-f", "--use-file") or _CONFIG).decode(), _CONFIG)
    except Ended as error:
        return failed(str(error))
    return said("")


DAEMONS: Mapping[str, Daemon] = {"keepalived": Keepalived()}
PROGRAMS: Mapping[str, Program] = {"keepalived": keepalived}
