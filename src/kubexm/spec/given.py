"""Settings together with the places they are written at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubexm.spec.source import DataPath


@dataclass(frozen=True, slots=True)
class Given:
    """The value of a setting, and where it is written."""

    value: Any
    place: DataPath


Givens = Mapping[str, Given]
