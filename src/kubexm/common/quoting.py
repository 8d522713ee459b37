"""Commands as people read them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

_PLAIN = re.compile(r"(?:[\w@%+=:,./-]|\$\{[^{}\s]*\})+", re.ASCII)


def typed(argv: Iterable[str]) -> str:
    """A command as it would be typed into a shell; references that are still open stay bare."""
    return " ".join(word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in argv)
