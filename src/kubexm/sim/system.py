"""Simulated programs about the host itself: who it is, what it has, who answers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from kubexm.connector.base import Completed
from kubexm.sim.network import OUTSIDE
from kubexm.sim.shell import OK, Program, Shell, failed, options, said
from kubexm.sim.users import groups_of

_HOSTNAME = "/proc/sys/kernel/hostname"
_HANDSHAKE = b"\x16"
"""How both sides begin to talk by TLS."""


def true(_shell: Shell, _args: Sequence[str]) -> Completed:
    return OK


def false(_shell: Shell, _args: Sequence[str]) -> Completed:
    return Completed(1)


def echo(_shell: Shell, args: Sequence[str]) -> Completed:
    if args and args[0] == "-n":
        return said(" ".join(args[1:]))
    return said(" ".join(args) + "\n")


def hostname(shell: Shell, args: Sequence[str]) -> Completed:
    if list(args) == ["-I"]:
        return said(" ".join((*shell.around.addresses, *shell.around.held)) + " \n")
    if not args:
        return Completed(0, shell.files.read(_HOSTNAME))
    if args[0] == "--" and len(args) == 2:
        shell.files.write(_HOSTNAME, f"{args[1]}\n".encode())
        return OK
    raise shell.unexpected()


def uname(shell: Shell, args: Sequence[str]) -> Completed:
    words = {"": "Linux", "-s": "Linux", "-r": shell.around.machine.kernel}
    words |= {"-m": shell.around.machine.arch, "-n": shell.state.name}
    try:
        return said(" ".join(words[arg] for arg in args or ("",)) + "\n")
    except KeyError:
        raise shell.unexpected() from None


def nproc(shell: Shell, _args: Sequence[str]) -> Completed:
    return said(f"{shell.around.machine.cpus}\n")


def whoami(shell: Shell, _args: Sequence[str]) -> Completed:
    return said(f"{shell.user}\n")


def id(shell: Shell, args: Sequence[str]) -> Completed:
    given, names = options(shell, args, flags="unG")
    name = names[0] if names else shell.user
    number = shell.user_id(name)
    if number is None:
        return failed(f"id: '{name}': no such user")
    if not given:
        return said(f"uid={number}({name}) gid={number}({name}) groups={number}({name})\n")
    if "G" in given:
        known = groups_of(shell, name)
        return said(
            " ".join(known if "n" in given else map(str, map(shell.group_id, known))) + "\n"
        )
    return said(f"{name}\n" if "n" in given else f"{number}\n")


def bash(shell: Shell, args: Sequence[str]) -> Completed:
    """Only what knocks at a port: `bash -c 'exec 3<>"/dev/tcp/$0/$1"' HOST PORT`.

    Whoever is greeted by TLS there goes on with it.
    """
    match list(args):
        case ["-c", script, where, port] if "/dev/tcp/$0/$1" in script:
            if not shell.around.listens(where, int(port)):
                return failed(f"bash: connect: Connection refused ({where}:{port})")
            greeted = shell.command.stdin[:1] == _HANDSHAKE
            answers = greeted and shell.around.reached(where, int(port))
            return said(f" {_HANDSHAKE.hex()}\n") if answers else OK
    raise shell.unexpected()


def curl(shell: Shell, args: Sequence[str]) -> Completed:
    """Only what asks for a status; whoever answers at the port of the URL says 200."""
    given, urls = options(shell, args, flags="sSk", valued="omw")
    if given.get("w") != "%{http_code}" or len(urls) != 1:
        raise shell.unexpected()
    url = urlsplit(urls[0])
    host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
    around = shell.around
    if not around.resolved(host):
        return _unanswered(6, f"Could not resolve host: {host}")
    if around.reached(host, port):
        return said("200")
    if not around.listens(host, port):
        return _unanswered(7, f"Failed to connect to {host} port {port}")
    if OUTSIDE in around.resolved(host):
        return said("200")
    return _unanswered(35, "Connection reset by peer")


def date(shell: Shell, args: Sequence[str]) -> Completed:
    """Only what asks for seconds, which are those of the machine that simulates."""
    if [*args] != ["+%s"]:
        raise shell.unexpected()
    return said(f"{time.time():.0f}\n")


def _unanswered(code: int, why: str) -> Completed:
    return Completed(code, b"000", f"curl: ({code}) {why}\n".encode())


PROGRAMS: Mapping[str, Program] = {
    "bash": bash,
    "curl": curl,
    "date": date,
    "echo": echo,
    "false": false,
    "hostname": hostname,
    "id": id,
    "nproc": nproc,
    # How long it takes is up to whoever waits for the command.
    "sleep": true,
    "true": true,
    "uname": uname,
    "whoami": whoami,
}
