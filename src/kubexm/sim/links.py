"""Simulated programs about the network of a host: its links and routes, and who listens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubexm.connector.base import Completed
from kubexm.sim import ports
from kubexm.sim.shell import OK, Program, Shell, failed, said

DEVICE = "eth0"
GATEWAY = "10.0.0.1"
_LINK = "link:"
_ROUTE = "route:"
_FAMILIES = {"-4": 4, "-6": 6}


def ip(shell: Shell, args: Sequence[str]) -> Completed:
    words = [arg for arg in args if arg not in ("-o", "-4", "-6")]
    family = next((_FAMILIES[arg] for arg in args if arg in _FAMILIES), 4)
    match words:
        case ["link", "show"]:
            return said("".join(f"{line}\n" for line in _links(shell)))
        case ["netns", "list"]:
            return OK
        case ["link", "delete" | "del", name]:
            return _without(shell, f"{_LINK}{name}", f'Cannot find device "{name}"')
        case ["addr" | "address", "show", *_]:
            return said("".join(f"{line}\n" for line in _addresses(shell)))
        case ["route", verb, *rest]:
            return _route(shell, family, verb, rest)
    raise shell.unexpected()


def _route(shell: Shell, family: int, verb: str, words: Sequence[str]) -> Completed:
    match (verb, *words):
        case ("show", *wanted):
            return said("".join(f"{line}\n" for line in _routes(shell, family, wanted)))
        case ("replace" | "add", network, *way):
            shell.state.set(f"{_ROUTE}{family} {network}", " ".join(way))
        case ("del" | "delete", network, *_):
            key = f"{_ROUTE}{family} {network}"
            return _without(shell, key, "RTNETLINK answers: No such process", 2)
        case ("flush", *wanted):
            for line in [*_added(shell, family, wanted)]:
                shell.state.set(f"{_ROUTE}{family} {line.split()[0]}", None)
        case _:
            raise shell.unexpected()
    return OK


def _without(shell: Shell, key: str, complaint: str, code: int = 1) -> Completed:
    if shell.state.get(key) is None:
        return failed(complaint, code)
    shell.state.set(key, None)
    return OK


def names(shell: Shell) -> list[str]:
    """All links of a host."""
    added = (key.removeprefix(_LINK) for key in sorted(shell.state.keys(_LINK)))
    return ["lo", DEVICE, *added]


def _links(shell: Shell) -> Iterator[str]:
    for number, name in enumerate(names(shell), 1):
        yield f"{number}: {name}: <UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT"


def _addresses(shell: Shell) -> Iterator[str]:
    for address in (*shell.around.addresses, *shell.around.held):
        kind, length = ("inet6", 64) if ":" in address else ("inet", 24)
        yield f"2: {DEVICE}    {kind} {address}/{length} scope global {DEVICE}"


def _routes(shell: Shell, family: int, wanted: Sequence[str]) -> Iterator[str]:
    if not wanted and family == 4:
        yield f"default via {GATEWAY} dev {DEVICE}"
    yield from _added(shell, family, wanted)


def _added(shell: Shell, family: int, wanted: Sequence[str]) -> Iterator[str]:
    """The routes that somebody laid; with words such as `proto 186`, those that have these."""
    beginning = f"{_ROUTE}{family} "
    for key in sorted(shell.state.keys(beginning)):
        line = f"{key.removeprefix(beginning)} {shell.state.get(key)}"
        if " ".join(wanted) in line:
            yield line


def ss(shell: Shell, args: Sequence[str]) -> Completed:
    """Only who listens: `ss -Hltunp`."""
    if list(args) != ["-Hltunp"]:
        raise shell.unexpected()
    return said("".join(f"{line}\n" for line in listening(shell)))


def listening(shell: Shell) -> Iterator[str]:
    """A line for everybody who listens."""
    for name, socket in ports.listeners(shell):
        owner = name.removesuffix(".service")
        users = f' users:(("{owner}",pid=1,fd=3))' if owner else ""
        yield f"tcp LISTEN 0 128 {socket.address or '*'}:{socket.port} *:*{users}"


PROGRAMS: Mapping[str, Program] = {"ip": ip, "ss": ss}
