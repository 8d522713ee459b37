"""What every test stands on: a state directory of its own and repeatable random examples."""

import asyncio
import inspect
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# The fixtures of the lab, once for all tests: two definitions would be two labs. And who may leave
# themselves out.
pytest_plugins = ["lab.testing", "tests.required"]

# `too_slow` measures the machine, not the test: a busy one would fail at random.
_NO_CLOCK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("repeatable", _NO_CLOCK, derandomize=True, database=None)
settings.register_profile("quick", settings.get_profile("repeatable"), max_examples=25)
settings.register_profile("explore", _NO_CLOCK, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A property is tried on a hundred examples and more, so it has the time of several tests.
    for item in items:
        if item.get_closest_marker("hypothesis") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(120))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From where on files are read piece by piece, as it happens."""
    places: list[int] = []
    pread = os.pread

    def noted(descriptor: int, size: int, place: int) -> bytes:
        places.append(place)
        return pread(descriptor, size, place)

    monkeypatch.setattr(os, "pread", noted)
    return places


@pytest.fixture(scope="session", autouse=True)
def state_away_from_the_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBEXM_HOME", str(tmp_path_factory.mktemp("kubexm-home")))
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
