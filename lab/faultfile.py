"""The faults that stay with a host until they are mended, also while it reboots."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

from lab import site as sites
from lab.site import Home


@dataclass(frozen=True, slots=True)
class Faults:
    """What is wrong with a host now."""

    cut: bool = False
    loss: float = 0.0
    """Percent of the packets that are lost, each way."""
    delay: int = 0
    """Milliseconds that bytes take, each way, between control side and host."""
    full: bool = False
    skew: int = 0
    """Seconds by which processes see the clock ahead."""


def read(home: Home) -> Faults:
    if not home.faults.exists():
        return Faults()
    return Faults(**json.loads(home.faults.read_text()))


def change(home: Home, **values: object) -> None:
    """Write down what is about to be wrong, or no longer is."""
    changed = dataclasses.asdict(read(home)) | values
    sites.write(home.faults, json.dumps(changed))
