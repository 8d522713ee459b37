"""The catalog that leads kubexm to what was made here: laid over its own by `--catalog`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from lab.software import versions
from lab.software.assembling import Made
from lab.software.choosing import KUBERNETES, Choice, Choices

_HEAD = "# Made by `python -m lab software`: what was made is taken, and nothing else is accepted."
_WITHIN = {"busybox": "local-path"}
"""What is no component of its own, and what it belongs to."""


def text(choices: Choices, made: Iterable[Made], files: Path, arch: str) -> str:
    """As TOML; `files` is where the files lie."""
    found = list(made)
    sites = sorted({urlsplit(each.address).netloc for each in found})
    lines = [_HEAD, "", "[mirrors]"]
    lines += [f'"https://{site}/" = ["{(files / site).as_uri()}/"]' for site in sites]
    lines += _line(choices)
    for choice in choices.all:
        if choice.component not in _WITHIN:
            sums = {each.name: each.sha256 for each in found if each.choice == choice}
            lines += _version(choice, sums, arch, choices)
    return "\n".join((*lines, ""))


def _line(choices: Choices) -> Iterator[str]:
    """The release line: it takes what was made, wherever a cluster file says nothing."""
    kubernetes = choices.kubernetes
    head = f'kubernetes."{versions.line(kubernetes)}"'
    yield from ("", f"[{head}]", f'default = "{kubernetes}"')
    yield from ("", f"[{head}.defaults]")
    names = {each.component for each in choices.all} - {*_WITHIN, KUBERNETES}
    # A default of etcd counts for pods as well, and there is an image of one of them only.
    taken = {**{name: choices.version(name) for name in names}, "etcd": choices.etcd}
    yield from (f'{name} = "{version}"' for name, version in sorted(taken.items()))


def _version(choice: Choice, sums: dict[str, str], arch: str, choices: Choices) -> Iterator[str]:
    head = f'components.{choice.component}.versions."{choice.version}"'
    inside = [name for name, component in _WITHIN.items() if component == choice.component]
    yield from ("", f"[{head}]")
    yield from (f"uses.{name} = {json.dumps(choices.version(name))}" for name in inside)
    yield from (f'sha256.{name}.{arch} = "{digest}"' for name, digest in sorted(sums.items()))
