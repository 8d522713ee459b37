"""Plain data as YAML that every reader takes alike, whichever version of YAML it knows."""

from __future__ import annotations

import re
from typing import Any

import yaml

_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_READ_AS_MORE = re.compile(r"[-+.]?[0-9].*|[yYnN]", re.DOTALL)
"""Texts that some reader takes for a number or a flag: `1e3`, `0o17`, `y`."""
_WIDTH = 1_000_000
"""No text is broken into lines of its own."""


class _Dumper(_Base):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, text: str) -> Any:
    style = '"' if _READ_AS_MORE.fullmatch(text) else None
    if "\n" in text.strip("\n"):
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dumped(data: Any) -> str:
    """One document, keys in the order they have, every text as it was."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text
