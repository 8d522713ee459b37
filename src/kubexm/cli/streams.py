"""Standard streams that take whatever is written: each is open, and signs it lacks are spelt."""

from __future__ import annotations

import codecs
import io
import os
import sys
from pathlib import Path

_SPELT = {"·": "|", "…": "...", "✓": "v", "✗": "x", "↶": "<", "━": "#", "╌": "."}
"""What stands for our own signs; none of it is a sign that means something else."""


def prepare() -> None:
    """Have a stream behind every name, and none that refuses a letter."""
    _open_what_is_closed()
    codecs.register_error("spelt", _spelt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="spelt")


def takes_every_letter() -> bool:
    """Whether standard output can hold any text as it is."""
    return codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"


def _open_what_is_closed() -> None:
    """Some are started without one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 for good


def _spelt(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_SPELT.get(letter) or _escaped(letter) for letter in text), error.end


def _escaped(letter: str) -> str:
    return letter.encode("ascii", "backslashreplace").decode()
