"""Settings together with the places they are written at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kubexm.document.source import DataPath


class Given(msgspec.Struct, frozen=True):
    """The value of a setting, and where it is written."""

    value: Any
    place: DataPath


Givens = Mapping[str, Given]
