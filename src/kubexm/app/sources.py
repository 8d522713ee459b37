"""What a file asks for: a pipeline of one's own, or an operation on a cluster."""

from __future__ import annotations

import re
from pathlib import Path

from kubexm.app.params import ClusterParams, Operation, OperationParams, PipelineParams
from kubexm.errors import InvalidInput

_KIND = re.compile(r"""^["']?kind["']?\s*:\s*["']?Cluster\b""", re.MULTILINE)


def of_file(
    file: Path,
    overrides: tuple[str, ...] = (),
    *,
    allow_literal_secrets: bool = False,
    catalogs: tuple[Path, ...] = (),
    bundle: Path | None = None,
    templates: Path | None = None,
    operation: Operation = "create-cluster",
) -> PipelineParams | OperationParams:
    """What to plan; settings that the file has no use for are refused."""
    if not is_cluster(file):
        _refuse({"--catalog": catalogs, "--bundle": bundle, "--templates": templates}, "pipeline")
        return PipelineParams(file, overrides, allow_literal_secrets)
    _refuse({"--set": overrides}, "cluster")
    cluster = ClusterParams(file, allow_literal_secrets, catalogs)
    return OperationParams(cluster, operation, bundle, templates)


def is_cluster(file: Path) -> bool:
    """Whether a file says that it is a cluster; what can't be read is told by who reads it."""
    try:
        return _KIND.search(file.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False


def _refuse(given: dict[str, object], kind: str) -> None:
    for flag, value in given.items():
        if value:
            message = f"`{flag}` has no meaning for a {kind} file"
            raise InvalidInput(message, hint="leave it out, or name another file with `-f`")
