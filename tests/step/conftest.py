"""The two places as fixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.step.listening import Cluster
from tests.step.places import LocalPlace, Place, SimPlace

from kubexm.sim import Script


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


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    made: list[Cluster] = []

    def make(*scripts: Script) -> Cluster:
        made.append(Cluster(tmp_path / str(len(made)), *scripts))
        return made[-1]

    yield make
    for place in made:
        place.close()
