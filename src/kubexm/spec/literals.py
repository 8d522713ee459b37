"""Secrets that were written out in a file: refused, with the reference to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kubexm.common.secrets import is_reference
from kubexm.spec.fields import Finding
from kubexm.spec.source import DataPath

_WORDS = r"(?:password|passwd|passphrase|token|secret|api-?key|private-?key|credentials?)"
_KEY = re.compile(rf"(?:.*[-_.])?{_WORDS}s?")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ARGUMENT = re.compile(rf"--?(?:[a-z0-9-]+-)?{_WORDS}=(?!\$\{{)\S+", re.IGNORECASE)
_IN_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@]+:(?!\$\{)[^/\s@]+@", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----")


def findings(data: Any, path: DataPath = ()) -> Iterator[Finding]:
    """Every text that looks like a secret, by its key or by itself."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if _names_a_secret(str(key)):
                yield from _written_out(value, str(key), (*path, key))
            else:
                yield from findings(value, (*path, key))
    elif isinstance(data, list | tuple):
        for number, value in enumerate(data):
            yield from findings(value, (*path, number))
    elif isinstance(data, str):
        yield from _looks_secret(data, path)


def _names_a_secret(key: str) -> bool:
    return _KEY.fullmatch(_CAMEL.sub("-", key).lower()) is not None


def _written_out(value: Any, key: str, path: DataPath) -> Iterator[Finding]:
    if isinstance(value, str) and value and not is_reference(value) and "${" not in value:
        variable = re.sub(r"[^A-Z0-9]+", "_", _CAMEL.sub("_", key).upper())
        hint = f"write `env://{variable}` or `file:///PATH` in its place"
        yield Finding(path, "a secret written out", hint)
    elif isinstance(value, Mapping | list | tuple):
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        for inner, part in parts:
            yield from _written_out(part, key, (*path, inner))


def _looks_secret(text: str, path: DataPath) -> Iterator[Finding]:
    if _PRIVATE_KEY.search(text):
        yield Finding(path, "a private key written out", "write `file:///PATH` of it in its place")
    elif _ARGUMENT.search(text):
        hint = "give it by `secretEnv` or `secretStdin`, as `env://NAME` or `file:///PATH`"
        yield Finding(path, "a secret written out in an argument", hint)
    elif _IN_URL.search(text):
        yield Finding(path, "a password written out in an address", "leave it out of the address")
