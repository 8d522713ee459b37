from pathlib import Path

import pytest
from tests.app.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def local(tmp_path: Path) -> Site:
    return Site(tmp_path, simulated=False)
