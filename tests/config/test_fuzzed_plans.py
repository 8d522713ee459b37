"""Whatever a cluster file says, it is planned or refused with a reason; nobody sees a traceback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.config.test_consumers import _BASE, CASES, beside

from kubexm.app import planning
from kubexm.app.params import ClusterParams, OperationParams, PlanParams
from kubexm.errors import KubexmError
from kubexm.templates.merging import merged

_ODD_PATHS = ("~nobody-at-all/x", "x" * 5000, "a\0b", "/dev/zero", "pipe", "..")
_BESIDE = ("a.yaml", "ca.crt", "client.crt", "other.crt", "policy.yaml", "templates", "values.yaml")
_WRONG: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, -1, 0, 0.0005, 70_000),
        *("", "x", "/", "-x", "a b", "${x}", "é\n", "10.0.0.300", "fe80::1%eth0", "1.2.3"),
        *([], [1], ["-x"], {}, {"a": {"b": []}}, {"--x": "a\nb"}),
        # What functions call their parameters.
        *({name: 1} for name in ("name", "ctx", "context", "overrides", "self", "path")),
        *_ODD_PATHS,
    ]
)


def _paths(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of some data."""
    inner = data.items() if isinstance(data, dict) else enumerate(data)
    below = [path for key, value in inner if isinstance(value, dict | list)
             for path in _paths(value, (*at, key))]  # fmt: skip
    keys = data if isinstance(data, dict) else range(len(data))
    return [*((*at, key) for key in keys), *below]


def _put(data: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = deepcopy(value)


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    """Several good files laid over each other, which need not go together, with some mistakes."""
    data = deepcopy(_BASE)
    for name in draw(st.lists(st.sampled_from(sorted(CASES)), max_size=4)):
        data = merged(data, merged(CASES[name].around, CASES[name].added))
    data = deepcopy(data)
    for _ in range(draw(st.integers(0, 2))):
        path = draw(st.sampled_from(_paths(data)))
        _put(data, path, draw(_WRONG))
    return data


@st.composite
def astray(draw: st.DrawFn) -> dict[str, Any]:
    """A good file, of which one path leads to what is none of the files beside it."""
    name, place = draw(st.sampled_from(_NAMING))
    data: dict[str, Any] = deepcopy(merged(merged(_BASE, CASES[name].around), CASES[name].added))
    _put(data, place, draw(st.sampled_from(_ODD_PATHS)))
    return data


def _naming() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Each case that names a file or a directory beside it, and where it does."""
    for name, case in sorted(CASES.items()):
        data = merged(merged(_BASE, case.around), case.added)
        for path in _paths(data):
            value: Any = data
            for key in path:
                value = value[key]
            if isinstance(value, str) and value in _BESIDE:
                yield name, path


_NAMING = [*_naming()]


@pytest.mark.slow
@given(st.one_of(files(), astray()))
def test_every_file_is_planned_or_refused_with_a_reason(data: dict[str, Any]) -> None:
    with TemporaryDirectory() as directory:
        beside(Path(directory))
        os.mkfifo(Path(directory) / "pipe")
        file = Path(directory) / "cluster.yaml"
        file.write_bytes(msgspec.json.encode(data))
        assert _outcome(file)


def _outcome(file: Path) -> int | str:
    """How many nodes a plan has, or why there is none; anything else is raised."""
    try:
        return len(planning.plan(PlanParams(OperationParams(ClusterParams(file)))).graph)
    except KubexmError as error:
        return error.message
