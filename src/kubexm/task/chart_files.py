"""Charts that lie in a file of the operator's."""

from __future__ import annotations

import tarfile
from pathlib import Path

from kubexm.document import source
from kubexm.document.source import DataPath
from kubexm.errors import InvalidFile
from kubexm.task.operator_files import OperatorFiles

_LARGEST = 1 << 20
_PACK = "pack it with `helm package DIRECTORY`, and name the archive"


def chart_version(path: Path, files: OperatorFiles, place: DataPath) -> str:
    """The version that a chart says it has; nothing if it can't be told, which is noted."""
    try:
        with tarfile.open(path) as archive:
            names = (name for name in archive.getnames() if name.count("/") == 1)
            name = next(name for name in names if name.endswith("/Chart.yaml"))
            file = archive.extractfile(name)
            data = source.parse(file.read(_LARGEST) if file else b"", name).data
        return str(data["version"])
    except (OSError, tarfile.TarError, StopIteration, InvalidFile, KeyError, TypeError):
        return files.note(place, f"`{path}` is no archive of a chart", _PACK)
