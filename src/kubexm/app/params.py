"""The parameters of every use case; front doors translate into these and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from kubexm.plan.policy import OnFailure
from kubexm.plan.select import Selection


class PipelineParams(msgspec.Struct, frozen=True):
    """Which pipeline, with which variables."""

    file: Path
    overrides: tuple[str, ...] = ()
    """`name=value`, as on the command line."""
    allow_literal_secrets: bool = False


class ClusterParams(msgspec.Struct, frozen=True):
    """A cluster file."""

    file: Path
    allow_literal_secrets: bool = False
    catalogs: tuple[Path, ...] = ()
    """Catalogs of users, which win over that of kubexm."""


Operation = Literal["create-cluster", "delete-cluster"]


class OperationParams(msgspec.Struct, frozen=True):
    """What is to be done with the cluster of a file."""

    cluster: ClusterParams
    operation: Operation = "create-cluster"
    bundle: Path | None = None
    """Where everything comes from, so that nobody outside is asked."""
    templates: Path | None = None
    """A directory with templates of the operator; that of the file if nothing is said."""
    world: Path | None = None
    """The simulated world that a cluster to be deleted lies in; the real one if there is none."""
    without: tuple[str, ...] = ()
    """Hosts that a deletion takes for gone, and so neither calls nor waits for."""


class DeletionParams(msgspec.Struct, frozen=True):
    """The deletion of a cluster that the store knows, without its file."""

    name: str
    world: Path | None = None
    """The simulated world that it lies in; the real one if there is none."""
    without: tuple[str, ...] = ()
    """Hosts that are taken for gone, and so neither called nor waited for."""


class PlanParams(msgspec.Struct, frozen=True):
    """A pipeline, or an operation on a cluster, and the part of it that is wanted."""

    pipeline: PipelineParams | OperationParams | DeletionParams
    selection: Selection = msgspec.field(default_factory=Selection)


class RunParams(msgspec.Struct, frozen=True):
    """A plan and how to carry it out."""

    plan: PlanParams
    check: bool = False
    debug: bool = False
    breakpoints: tuple[str, ...] = ()
    simulate: bool = False
    world: Path | None = None
    """Where the simulated world lies; by default under the data directory, by name."""
    parallelism: int | None = None
    on_failure: OnFailure | None = None
    require_all_hosts: bool = False


class HostsParams(msgspec.Struct, frozen=True):
    """The hosts of a pipeline or a cluster, or some of them, that are to be looked at."""

    pipeline: PipelineParams | OperationParams
    hosts: tuple[str, ...] = ()
    """Names, with `*` for any part of one; all hosts if there are none."""
    simulate: bool = False


class ResumeParams(msgspec.Struct, frozen=True):
    """A run that has not ended, to be continued."""

    task: str
    force: bool = False


class RetryParams(msgspec.Struct, frozen=True):
    """A run that has ended, to be opened again; with a corrected pipeline if there is one."""

    task: str
    pipeline: PipelineParams | None = None
    """A cluster file too: then what was done with the cluster is done with that of the file."""
    force: bool = False
    on_failure: OnFailure | None = None


class LogParams(msgspec.Struct, frozen=True):
    """Which lines of a run's log."""

    task: str
    node: str | None = None
    host: str | None = None
    after: int = 0
    follow: bool = False
