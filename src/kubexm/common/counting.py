"""Numbers of things, as people say them."""

from __future__ import annotations

from collections.abc import Sequence

FEW = 3


def counted(number: int, word: str) -> str:
    """A number of things, in the singular where there is one."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def few(names: Sequence[str]) -> str:
    """Names in a message: all, or the first of them and how many more there are."""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"{', '.join(f'`{name}`' for name in names[:FEW])}{more}"
