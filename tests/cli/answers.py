"""What a command of the command line answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """Exit code, output and errors."""

    code: int
    out: str
    err: str


Kubexm = Callable[..., Answer]
