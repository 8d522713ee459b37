"""Secrets that were written out in a file: refused, with the reference to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise
from typing import Any

from kubexm.common.secrets import is_reference
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath

_WORDS = (
    r"(?:password|passwd|passphrase|token|secret|api-?key|private-?key|credentials?"
    r"|secret-?access-?key)"
)
_KEY = re.compile(rf"(?:.*[-_.])?{_WORDS}s?|pgpassword|mysql-pwd|db-pwd|sshpass|rediscli-auth")
"""Words for secrets, and the variables that programs take theirs from."""
_PATH = re.compile(r"(?:~|\.{1,2})?/")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ARGUMENT = re.compile(rf"--?(?:[a-z0-9-]+-)?{_WORDS}=(?!\$\{{)\S+", re.IGNORECASE)
_FLAG = re.compile(
    r"--?(?:[a-z0-9-]+-)?(?:password|passwd|passphrase|token|api-?key|requirepass|masterauth)",
    re.IGNORECASE,
)
_CURL = re.compile(r"(?:.*/)?curl")
_CURL_USER = r"-[A-Za-z]*[uU]|--(?:proxy-)?user"
"""To curl, what follows is `USER:PASSWORD`; to others, as to docker, it may be `UID:GID`."""
_MYSQL = re.compile(r"(?:.*/)?(?:mysql|mariadb)(?:dump|admin|-dump|-admin)?")
_SSHPASS = re.compile(r"(?:.*/)?sshpass")
_HEADER = re.compile(r"authorization:\s*(?:bearer|basic|token)\s+(?![$%<{*])\S{6,}", re.IGNORECASE)
_IN_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@]+:(?!\$\{)[^/\s@]+@", re.IGNORECASE)
_LOGIN = r"(?!(?:mailto|sips?|xmpp|acct):)[a-z][^/\s:@]*:(?!\$\{)[^/\s@]+@"
_HOST = r"(?:[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)*|[0-9.]+|\[[0-9a-f:]+\])"
_BARE = re.compile(
    rf"{_LOGIN}(?:{_HOST}:\d{{1,5}}|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{{2,}}|\d+(?:\.\d+){{3}})/?",
    re.IGNORECASE,
)
"""An address without a scheme: a port or a domain tells it from `npm:react@18` and the like."""
_BARE_PROXY = re.compile(rf"{_LOGIN}{_HOST}(?::\d{{1,5}})?/?", re.IGNORECASE)
"""The same where only addresses are written."""
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----")
_SETTING = re.compile(
    r"^[ \t]*(?:-[ \t]+)?(?:export[ \t]+)?[\"']?(?P<key>[A-Za-z][A-Za-z0-9_.-]*)[\"']?[ \t]*[:=]"
    r"[ \t]*(?P<quote>[\"']?)(?P<value>[^\s\"',;]+)(?P=quote),?[ \t]*(?:[#;].*)?$",
    re.MULTILINE,
)
_REDIS_SETTING = re.compile(
    r"^[ \t]*(?P<key>requirepass|masterauth)[ \t]+"
    r"(?P<quote>[\"']?)(?P<value>[^\s\"']+)(?P=quote)[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_SETTINGS = ("content", "text", "line", "stdin")
"""The parameters whose text may be a file of settings."""
_HARMLESS = (
    r"(?i)[$%<{\[|>&*~./].*|\d{1,4}|yes|no|on|off|true|false|none|null|files|compat|sss|required"
    r"|optional|prompt|ask|.*(?:\$\{|\{\{|://).*"
)
"""Variables, placeholders, paths and words that stand where a secret could."""
_HARMLESS_AFTER_P = rf"{_HARMLESS}|[0-9.:]+(?:/[a-z]+)?"
"""The same, and ports as docker is told them: `-p` may be a flag of its own."""
_BY_COMMAND = "give it by `secretEnv` or `secretStdin`, as `env://NAME` or `file:///PATH`"
_BY_CURL = "write `--config -` there, and give the line `user = USER:PASSWORD` by `secretStdin`"
_BY_MYSQL = "leave it out there, and write `secretEnv: {MYSQL_PWD: env://MYSQL_PWD}`"
_BY_SSHPASS = "write `-e` there, and `secretEnv: {SSHPASS: env://SSHPASS}`"
_BY_TEMPLATE = (
    "use `secret-template`: `{{ NAME }}` in its text, and `NAME: env://NAME` under its `secrets`"
)


def findings(data: Any, path: DataPath = ()) -> Iterator[Finding]:
    """Every text that looks like a secret, by its key or by itself."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if names_a_secret(str(key)) and not _names_things(path):
                yield from _written_out(value, str(key), (*path, key))
            else:
                yield from findings(value, (*path, key))
    elif isinstance(data, list | tuple):
        yield from _after_flags(data, path)
        yield from _after_curl(data, path)
        yield from _after_p(data, path)
        for number, value in enumerate(data):
            yield from findings(value, (*path, number))
    elif isinstance(data, str) and not (_is_of_a_connection(path) and "keys" in path):
        # What is written there in place of a path is refused as that, whatever is allowed.
        yield from _looks_secret(data, path)


def names_a_secret(key: str) -> bool:
    """Whether a value under this key is a secret; the path of a file names none."""
    if _PATH.match(key):
        return False
    return _KEY.fullmatch(_CAMEL.sub("-", key).lower().replace("_", "-")) is not None


def _names_things(path: DataPath) -> bool:
    """Whether the keys of the mapping here are the names of hosts, packages and the like.

    No step and no expression can take what is in there. Labels are not among them: as variables
    do, they go wherever `${host.labels.NAME}` is written.
    """
    match path:
        case ("spec", "simulate", *_) | ("spec", "pools" | "groups"):
            return True
    return False


def _written_out(value: Any, key: str, path: DataPath) -> Iterator[Finding]:
    if isinstance(value, str) and value and not is_reference(value) and "${" not in value:
        yield Finding(path, "a secret written out", _instead(key, path))
    elif isinstance(value, Mapping | list | tuple):
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        for inner, part in parts:
            yield from _written_out(part, key, (*path, inner))


def _instead(key: str, path: DataPath) -> str:
    variable = _variable(key)
    around = path[-2] if len(path) > 1 else ""
    if _is_of_a_connection(path):
        name = f"{str(around).upper()}_{variable}"
        return f"write `env://{name}`, `file:///PATH` or `prompt://WHAT` in its place"
    if around == "env":
        return f"write `secretEnv: {{{key}: env://{variable}}}` in place of it under `env`"
    if around == "data":
        return f"use `secret-template`, with `secrets: {{{key}: env://{variable}}}`"
    return f"write `env://{variable}` or `file:///PATH` in its place"


def _is_of_a_connection(path: DataPath) -> bool:
    match path:
        case ("spec", "ssh", *_) | ("spec", "hosts" | "groups", _, "ssh", *_):
            return True
    return False


def _variable(key: str) -> str:
    """The name of an environment variable for this: plain words, and no digit in front."""
    words = re.split(r"[\W_]+", _CAMEL.sub("_", key.rpartition("/")[2]).upper())
    plain = (word for word in words if word.isascii())
    return "_".join(dropwhile(lambda word: not word[:1].isalpha(), plain))


def _after_flags(entries: Sequence[Any], path: DataPath) -> Iterator[Finding]:
    """Arguments that follow a flag such as `--password`."""
    for number, (flag, value) in enumerate(pairwise(entries), 1):
        if not isinstance(flag, str) or not isinstance(value, str) or not _FLAG.fullmatch(flag):
            continue
        if value and not value.startswith("-") and not re.fullmatch(_HARMLESS, value):
            yield Finding((*path, number), "a secret written out in an argument", _BY_COMMAND)


def _after_curl(entries: Sequence[Any], path: DataPath) -> Iterator[Finding]:
    """Arguments of curl such as `-u USER:PASSWORD`."""
    arguments = list(_arguments_of(_CURL, entries))
    for (_, flag), (number, value) in pairwise(arguments):
        password = value.partition(":")[2]
        if re.fullmatch(_CURL_USER, flag) and password and not re.fullmatch(_HARMLESS, password):
            yield Finding((*path, number), "a secret written out in an argument", _BY_CURL)


def _after_p(entries: Sequence[Any], path: DataPath) -> Iterator[Finding]:
    """Arguments such as `-pPASSWORD` of mysql, and `-p PASSWORD` of sshpass."""
    message = "a secret written out in an argument"
    for program, hint in ((_MYSQL, _BY_MYSQL), (_SSHPASS, _BY_SSHPASS)):
        for number, text in _arguments_of(program, entries):
            if text.startswith("-p") and text[2:] and not re.fullmatch(_HARMLESS_AFTER_P, text[2:]):
                yield Finding((*path, number), message, hint)
    for (_, flag), (number, value) in pairwise(_arguments_of(_SSHPASS, entries)):
        if flag == "-p" and value and not re.fullmatch(_HARMLESS_AFTER_P, value):
            yield Finding((*path, number), message, _BY_SSHPASS)


def _arguments_of(program: re.Pattern[str], entries: Sequence[Any]) -> Iterator[tuple[int, str]]:
    """The arguments that follow the name of a program, with their places."""
    texts = [entry if isinstance(entry, str) else "" for entry in entries]
    start = next((number for number, text in enumerate(texts, 1) if program.fullmatch(text)), None)
    return enumerate(texts[start:], start) if start is not None else iter(())


def _looks_secret(text: str, path: DataPath) -> Iterator[Finding]:
    if found := _PRIVATE_KEY.search(text):
        hint = "write `file:///PATH` of it in its place"
        yield Finding(path, "a private key written out", hint, excerpt=found[0])
    elif found := _ARGUMENT.search(text):
        yield Finding(path, "a secret written out in an argument", _BY_COMMAND, excerpt=found[0])
    elif found := _HEADER.search(text):
        hint = _BY_TEMPLATE if path[-1:] == ("content",) else _BY_COMMAND
        yield Finding(path, "a secret written out in a header", hint, excerpt=found[0])
    elif found := _IN_URL.search(text) or _without_scheme(text, path):
        hint = "leave it out of the address"
        yield Finding(path, "a password written out in an address", hint, excerpt=found[0])
    elif path and (path[-1] in _SETTINGS or isinstance(path[-1], int)):
        yield from _settings(text, path)


def _without_scheme(text: str, path: DataPath) -> re.Match[str] | None:
    """All of a text that is `USER:PASSWORD@HOST`."""
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    is_proxy = "proxy" in key.lower() or "proxy" in path
    return (_BARE_PROXY if is_proxy else _BARE).fullmatch(text)


def _settings(text: str, path: DataPath) -> Iterator[Finding]:
    """Lines such as `db_password = hunter2`, or `requirepass hunter2`."""
    named = (found for found in _SETTING.finditer(text) if names_a_secret(found["key"]))
    for found in (*named, *_REDIS_SETTING.finditer(text)):
        if not re.fullmatch(_HARMLESS, found["value"]):
            message = f"a secret written out as `{found['key']}`"
            hint = _BY_TEMPLATE if path[-1] in ("content", "text", "line") else _BY_COMMAND
            yield Finding(path, message, hint, excerpt=found[0].strip())
