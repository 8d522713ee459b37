"""Worlds for the tests of simulated hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.sim.site import Site


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Makes worlds with settings, each in a directory of its own."""
    numbers, sites = count(), list[Site]()

    def make(**settings: Any) -> Site:
        sites.append(Site(tmp_path / str(next(numbers)), **settings))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


@pytest.fixture
def site(made: Callable[..., Site]) -> Site:
    """A world without settings."""
    return made()
