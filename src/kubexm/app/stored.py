"""How a run was to be carried out, and on which cluster, as the store keeps it; no secret is."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace

from kubexm.app.params import (
    ClusterParams,
    DeletionParams,
    Operation,
    OperationParams,
    PipelineParams,
)
from kubexm.common.about import About
from kubexm.common.secrets import is_reference
from kubexm.engine import Options
from kubexm.errors import InvalidInput
from kubexm.plan.select import Selection


class KeptOperation(msgspec.Struct, frozen=True):
    """What an operation on a cluster was planned from beside the file of the cluster."""

    operation: Operation
    catalogs: tuple[str, ...] = ()
    bundle: str = ""
    templates: str = ""
    without: tuple[str, ...] = ()
    """The hosts that a deletion takes for gone."""

    @classmethod
    def of(cls, params: PipelineParams | OperationParams | DeletionParams) -> KeptOperation | None:
        """What is kept of an operation; paths are the same wherever one stands."""
        if isinstance(params, PipelineParams):
            return None
        if isinstance(params, DeletionParams):
            return cls("delete-cluster", without=params.without)
        bundle, templates = (
            str(path.absolute()) if path else "" for path in (params.bundle, params.templates)
        )
        catalogs = tuple(str(path.absolute()) for path in params.cluster.catalogs)
        return cls(params.operation, catalogs, bundle, templates, params.without)

    def on(self, file: PipelineParams, world: Path | None = None) -> OperationParams:
        """The same operation on the cluster of another file, where it lies."""
        if file.overrides:
            raise InvalidInput("`--set` has no meaning for a cluster file", hint="leave it out")
        return OperationParams(
            ClusterParams(file.file, file.allow_literal_secrets, tuple(map(Path, self.catalogs))),
            self.operation,
            Path(self.bundle) if self.bundle else None,
            Path(self.templates) if self.templates else None,
            world,
            self.without,
        )


class StoredOptions(msgspec.Struct, frozen=True):
    """What was asked for beside the file."""

    options: Options
    require_all_hosts: bool = False
    selection: Selection = Selection()
    """What was selected of the pipeline, for a corrected file."""
    overrides: tuple[str, ...] = ()
    """What was given by `--set`, for a corrected file."""
    operation: KeptOperation | None = None
    """What was done with a cluster, if the file was one."""
    about: About | None = None
    """The cluster itself, in short; without passwords written out."""
    withheld: tuple[str, ...] = ()
    """The names of variables that were given by `--set` and hold a secret."""


def storable(about: About | None) -> About | None:
    """The same without secrets that are no references."""
    if about is None:
        return None
    registries = {
        name: one if is_reference(one.password) else replace(one, password="")
        for name, one in about.registries.items()
    }
    return replace(about, registries=registries)
