"""Certificates of all hosts."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, parallel
from kubexm.plan.scope import module
from kubexm.task import pki as task
from kubexm.task.context import ClusterContext


@module("pki")
def pki(ctx: ClusterContext) -> ExecutionFragment | None:
    """Who issues certificates, what each host has, and the key of what is encrypted."""
    return parallel(
        task.authorities(ctx),
        task.certificates(ctx),
        task.encryption(ctx),
        task.places(ctx),
        task.external_etcd(ctx),
    )
