from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.app.site import Site
from tests.chaos.steps import provider_known


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def local(tmp_path: Path) -> Site:
    return Site(tmp_path, simulated=False)


@pytest.fixture
def provider() -> Iterator[None]:
    """Pipelines may have a step that adds others."""
    with provider_known():
        yield
