"""Check a cluster file as far as that goes without a host: it is read, and planned."""

from __future__ import annotations

from kubexm.app import clusters, operations
from kubexm.app.clusters import Summary
from kubexm.app.params import ClusterParams, OperationParams


def validate(params: ClusterParams) -> Summary:
    """What a file declares; `InvalidCluster` with all that is wrong with it, and what it names."""
    planned = operations.plan(OperationParams(params))
    return clusters.summary(clusters.read(params).declared, planned.warnings)
