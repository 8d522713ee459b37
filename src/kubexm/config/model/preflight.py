"""What hosts must be like before anything is changed on them."""

from __future__ import annotations

from typing import Annotated

from kubexm.document.fields import Duration, Name
from kubexm.document.forms import Form, Range

Amount = Annotated[int, Range(0, 100_000_000)]


class PreflightSpec(Form):
    """Thresholds of checks, and checks to leave out."""

    skip: tuple[Name, ...] = ()
    """Checks to leave out, by name."""
    control_plane_cpus: Amount = 2
    """The processors of a control plane."""
    control_plane_memory_mib: Amount = 1700
    """The memory of a control plane, in MiB."""
    worker_cpus: Amount = 1
    """The processors of a worker."""
    worker_memory_mib: Amount = 1024
    """The memory of a worker, in MiB."""
    disk_free_mib: Amount = 10_240
    """What is free where data will lie, in MiB."""
    clock_offset: Duration = 5.0
    """How far the clocks of two hosts, or of one and this machine, may be apart."""
    etcd_fsync: Duration = 0.01
    """How long a write to the disk of etcd may take, 99 times of 100."""
