"""The two places as fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.step.places import LocalPlace, Place, SimPlace


@pytest.fixture(params=["local", "sim"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made: Place = LocalPlace(tmp_path) if request.param == "local" else SimPlace(tmp_path)
    yield made
    made.close()


@pytest.fixture
def sim(tmp_path: Path) -> Iterator[SimPlace]:
    made = SimPlace(tmp_path)
    yield made
    made.close()
