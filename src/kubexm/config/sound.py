"""The part of a cluster file that can be judged, where another part of it can't even be read."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from kubexm.config.model.cluster import ClusterFile
from kubexm.document.forms import Mistake
from kubexm.document.source import DataPath

_TIMES = 20
_STAND_INS: dict[DataPath, Any] = {
    ("apiVersion",): "kubexm.io/v1alpha1",
    ("kind",): "Cluster",
    ("metadata",): {"name": "cluster"},
    ("metadata", "name"): "cluster",
    ("spec", "kubernetes"): {"version": "v1.0.0"},
    ("spec", "kubernetes", "version"): "v1.0.0",
}
"""What no file can do without, and few rules go by."""


def sound_part(
    data: Any, mistakes: Sequence[Mistake]
) -> tuple[ClusterFile, frozenset[DataPath]] | None:
    """The file without what is wrong, and where that was; None if too little is left of it."""
    rest, gaps = deepcopy(data), set[DataPath]()
    for _ in range(_TIMES):
        for mistake in mistakes:
            gaps.add(_mended(rest, mistake.path))
        if () in gaps:
            return None
        found, mistakes = ClusterFile.read(rest)
        if found is not None:
            return found, frozenset(gaps)
    return None


def _mended(data: Any, path: DataPath) -> DataPath:
    """Put something in place of what is wrong, or take it away; the place of what has changed.

    What lacks something goes as a whole. An entry of a list can't go alone: all others would get
    other places.
    """
    for length in range(len(path), 0, -1):
        around, last = _at(data, path[: length - 1]), path[length - 1]
        if isinstance(around, dict) and path[:length] in _STAND_INS:
            around[str(last)] = deepcopy(_STAND_INS[path[:length]])
            return path[:length]
        if isinstance(around, dict) and last in around:
            del around[str(last)]
            return path[:length]
    return ()


def _at(data: Any, path: DataPath) -> Any:
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data
