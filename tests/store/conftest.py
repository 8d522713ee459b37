from collections.abc import Iterator
from pathlib import Path

import pytest

from kubexm.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "kubexm.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as store:
        yield store
