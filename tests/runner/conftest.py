"""A machine set apart as a fixture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runner import apart as namespaces


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[int]:
    """The process that holds it; all that is done there is gone with it."""
    if why := namespaces.missing():
        pytest.skip(why)
    with namespaces.set_apart(tmp_path / "apart") as pid:
        yield pid
