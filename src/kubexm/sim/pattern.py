"""Commands that look alike: one glob per argument, a last `**` for any rest."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

REST = "**"


def matches(pattern: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether a command fits a pattern."""
    if pattern and pattern[-1] == REST:
        pattern = pattern[:-1]
        argv = argv[: len(pattern)]
    return len(argv) == len(pattern) and all(map(fnmatchcase, argv, pattern))
