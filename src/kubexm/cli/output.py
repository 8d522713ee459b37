"""Documents on standard output: JSON and YAML of the same data, and plain tables."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from kubexm.cli import streams
from kubexm.errors import OutputLost

Format = Literal["text", "json", "yaml"]


def document(data: Any, style: Literal["json", "yaml"]) -> None:
    """Print data for programs."""
    plain = msgspec.to_builtins(data)
    if style == "json":
        _write(f"{_json(plain)}\n")
        return
    import yaml

    unescaped = streams.takes_every_letter()
    _write(yaml.safe_dump(plain, sort_keys=False, allow_unicode=unescaped))


def _json(plain: Any) -> str:
    if not streams.takes_every_letter():
        return json.dumps(plain, indent=2)  # which escapes, but takes far longer
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they must be."""
    widths = [max(len(row[at]) for row in (headers, *rows)) for at in range(len(headers))]
    lines = []
    for row in (headers, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def place(path: str | Path) -> str:
    """A path as people write it."""
    with suppress(RuntimeError, ValueError):  # nobody's home, or it lies elsewhere
        return f"~/{Path(path).relative_to(Path.home())}"
    return str(path)


def say(text: str) -> None:
    """Print text for people."""
    _write(text if text.endswith("\n") else f"{text}\n")


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        raise lost(error) from error


def lost(error: OSError) -> OutputLost:
    """What to say when standard output takes nothing any more; nothing else is tried there."""
    _silence()
    return OutputLost(
        f"can't write to standard output: {error.strerror}",
        hint="make room, or write it elsewhere; `kubexm task list` tells what was done",
    )


def _silence() -> None:
    """Let what is left go nowhere, or Python tries it once more on its way out."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
