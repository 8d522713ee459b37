"""Documents on standard output: JSON and YAML of the same data, and plain tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

Format = Literal["text", "json", "yaml"]


def document(data: Any, style: Literal["json", "yaml"]) -> None:
    """Print data for programs."""
    plain = msgspec.to_builtins(data)
    if style == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode() + "\n")
        return
    import yaml

    yaml.safe_dump(plain, sys.stdout, sort_keys=False, allow_unicode=True)


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they must be."""
    widths = [max(len(row[at]) for row in (headers, *rows)) for at in range(len(headers))]
    lines = []
    for row in (headers, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def say(text: str) -> None:
    """Print text for people."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
