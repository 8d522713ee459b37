"""Where Debian's packages come from: where the machine's own apt has them from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from lab.errors import LabError

_ONE_LINE = re.compile(r"^deb\s+(?:\[[^]]*]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+main\b")
_SUITES = re.compile(r"[a-z]+")
_PLACE = Path("/etc/apt")


def mirror() -> str:
    """`KUBEXM_LAB_MIRROR`, or the first archive of Debian that apt knows."""
    chosen = os.environ.get("KUBEXM_LAB_MIRROR")
    if chosen:
        return chosen
    for text in _sources():
        for uri, suite in archives(text):
            # Not the archive of security updates, nor a vendor's: those hold no whole system.
            if _SUITES.fullmatch(suite) and uri.rstrip("/").endswith("/debian"):
                return uri
    raise LabError(
        "apt's sources name no archive of Debian\n"
        "hint: set KUBEXM_LAB_MIRROR to the address of one, as debootstrap takes it"
    )


def archives(text: str) -> Iterator[tuple[str, str]]:
    """Each address and suite of an apt source file, in either of its two formats."""
    for line in text.splitlines():
        if found := _ONE_LINE.match(line):
            yield found["uri"], found["suite"]
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(_fields(stanza.splitlines()))
        if "deb" in fields.get("types", "").split() and fields.get("enabled") != "no":
            for uri in fields.get("uris", "").split():
                yield from ((uri, suite) for suite in fields.get("suites", "").split())


def _fields(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, colon, value = line.partition(":")
        if colon and not line.startswith(("#", " ", "\t")):
            yield name.strip().lower(), value.strip()


def _sources() -> Iterator[str]:
    places = (
        _PLACE / "sources.list",
        *sorted((_PLACE / "sources.list.d").glob("*.sources")),
        *sorted((_PLACE / "sources.list.d").glob("*.list")),
    )
    return (place.read_text() for place in places if place.exists())
