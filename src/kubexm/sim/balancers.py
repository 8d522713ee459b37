"""Simulated haproxy and nginx: what their configuration has them listen at, and hand on to whom."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from posixpath import dirname

from kubexm.connector.base import Completed
from kubexm.sim import standins
from kubexm.sim.daemons import Daemon, Ended, Start
from kubexm.sim.shell import Program, Shell, failed, said
from kubexm.sim.state import EVERY_IPV4, Socket

_HAPROXY = "/etc/haproxy/haproxy.cfg"
_LOG = "/var/lib/haproxy/dev/log"
_NGINX = "/etc/nginx/nginx.conf"
_SECTIONS = frozenset(
    (
        *("global", "defaults", "frontend", "backend", "listen", "userlist", "peers"),
        *("resolvers", "program", "cache", "http-errors", "ring", "mailers", "crt-store"),
    )
)
_TOKEN = re.compile(r"#[^\n]*|\"(?:[^\"\\]|\\.)*\"|'[^']*'|[{};]|[^\s{};\"'#]+")
Block = tuple[tuple[str, ...], tuple["Block", ...] | None]
"""A directive of nginx: its words, and what is in its braces."""


class Haproxy(Daemon):
    """haproxy: every `bind` is a port, and leads to the servers of its backend."""

    def starts(self, start: Start) -> Sequence[Socket]:
        path = start.option("-f") or start.environment.get("CONFIG") or _HAPROXY
        data = start.read(path)
        if start.mounts:
            _require_readable(start, path)
        sockets = _haproxy_sockets(data.decode(), path)
        if start.unit and not start.mounts:
            # Where its unit has systemd bring the host's log to; that stays when it stops.
            start.shell.files.make_directory(dirname(_LOG), parents=True)
            start.shell.files.write(_LOG, b"")
        return sockets


class Nginx(Daemon):
    """nginx: every `listen` is a port; that of a stream leads to the servers of its upstream."""

    def starts(self, start: Start) -> Sequence[Socket]:
        path = start.option("-c") or _NGINX
        return _nginx_sockets(start.read(path).decode(), path)


def _require_readable(start: Start, path: str) -> None:
    """In its image haproxy is nobody in particular, and reads what everybody may."""
    if not start.shell.files.find(start.place(path)).mode & 0o004:
        raise Ended(f"[ALERT] Cannot open configuration file {path} : Permission denied.")


@lru_cache(maxsize=64)
def _haproxy_sockets(text: str, path: str) -> tuple[Socket, ...]:
    sections = _sections(text, path)
    servers = {
        name: tuple(line[2] for line in lines if line[0] == "server")
        for (kind, name), lines in sections.items()
        if kind in ("backend", "listen")
    }
    found: list[Socket] = []
    for (kind, name), lines in sections.items():
        if kind not in ("frontend", "listen"):
            continue
        backend = next((line[1] for line in lines if line[0] == "default_backend"), name)
        if kind == "frontend" and backend != name and backend not in servers:
            raise Ended(f"[ALERT] ({path}) unable to find required default_backend: '{backend}'.")
        bound = (line[1] for line in lines if line[0] == "bind")
        places = (place for listed in bound for place in listed.split(","))
        found += [_socket(place, servers.get(backend, ())) for place in places]
    if not found and "stats socket" not in text:
        raise Ended(f"[ALERT] ({path}) config : no <listen> line. Nothing to do! Exiting.")
    return tuple(found)


def _sections(text: str, path: str) -> dict[tuple[str, str], list[list[str]]]:
    found: dict[tuple[str, str], list[list[str]]] = {}
    lines: list[list[str]] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if words[0] in _SECTIONS and not line[0].isspace():
            lines = found.setdefault((words[0], " ".join(words[1:2])), [])
        elif lines is None:
            raise Ended(
                f"[ALERT] config : parsing [{path}:{number}] : unknown keyword '{words[0]}'"
            )
        else:
            lines.append(words)
    return found


@lru_cache(maxsize=64)
def _nginx_sockets(text: str, path: str) -> tuple[Socket, ...]:
    blocks = _blocks(iter(_TOKEN.findall(text)), path, top=True)
    found: list[Socket] = []
    for words, inner in blocks:
        if words[0] in ("stream", "http") and inner is not None:
            upstreams = {
                each[1]: tuple(line[1] for line, _ in servers or () if line[0] == "server")
                for each, servers in inner
                if each[0] == "upstream"
            }
            for each, lines in inner:
                if each[0] == "server":
                    found += _listened(lines or (), upstreams, stream=words[0] == "stream")
    return tuple(found)


def _listened(
    lines: Sequence[Block], upstreams: Mapping[str, tuple[str, ...]], *, stream: bool
) -> Iterator[Socket]:
    behind = next((line[1] for line, _ in lines if line[0] == "proxy_pass"), "") if stream else ""
    forwards = upstreams.get(behind, (behind,) if behind else ())
    for line, _ in lines:
        if line[0] == "listen":
            yield _socket(line[1], forwards)


def _blocks(tokens: Iterator[str], path: str, *, top: bool = False) -> tuple[Block, ...]:
    found: list[Block] = []
    words: list[str] = []
    for word in tokens:
        if word.startswith("#"):
            continue
        if word == "}" and not words and not top:
            return tuple(found)
        if word in (";", "{") and words:
            inner = _blocks(tokens, path) if word == "{" else None
            found.append((tuple(words), inner))
            words = []
        elif word in (";", "{", "}"):
            raise Ended(f'nginx: [emerg] unexpected "{word}" in {path}')
        else:
            words.append(word.strip("\"'"))
    if words or not top:
        raise Ended(f'nginx: [emerg] unexpected end of file, expecting ";" or "}}" in {path}')
    return tuple(found)


def _socket(place: str, forwards: tuple[str, ...]) -> Socket:
    address, _, port = place.rpartition(":")
    address = address.strip("[]")
    # Both mean IPv4 alone by what names no address.
    address = EVERY_IPV4 if address in ("", "*") else address
    return Socket(int(port), "" if address == "::" else address, forwards)


def haproxy(shell: Shell, args: Sequence[str]) -> Completed:
    """Only to tell its version, and whether a configuration is right."""
    if list(args) == ["-v"]:
        return said(f"HAProxy version {standins.own_version(shell)}\n")
    if "-c" not in args:
        raise shell.unexpected()
    return _checked(shell, "haproxy", Haproxy(), [arg for arg in args if arg not in ("-c", "-q")])


def nginx(shell: Shell, args: Sequence[str]) -> Completed:
    """Only to tell its version, and whether a configuration is right."""
    if list(args) == ["-v"]:
        return Completed(0, stderr=f"nginx version: nginx/{standins.own_version(shell)}\n".encode())
    if "-t" not in args:
        raise shell.unexpected()
    return _checked(shell, "nginx", Nginx(), [arg for arg in args if arg not in ("-t", "-q")])


def _checked(shell: Shell, program: str, daemon: Daemon, args: Sequence[str]) -> Completed:
    try:
        daemon.starts(Start(shell, "", program, tuple(args)))
    except Ended as error:
        return failed(str(error))
    return said("Configuration file is valid\n")


DAEMONS: Mapping[str, Daemon] = {"haproxy": Haproxy(), "nginx": Nginx()}
PROGRAMS: Mapping[str, Program] = {"haproxy": haproxy, "nginx": nginx}
