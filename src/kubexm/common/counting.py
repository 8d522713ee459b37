"""Numbers of things, as people say them."""

from __future__ import annotations


def counted(number: int, word: str) -> str:
    """A number of things, in the singular where there is one."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
