"""Where pods keep what they write."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, per_host
from kubexm.plan.scope import task
from kubexm.task.context import ClusterContext
from kubexm.task.objects import applied, rolled_out
from kubexm.templates.contexts.storage import LocalPathManifest, NfsManifest


@task("local-path")
def local_path(ctx: ClusterContext) -> ExecutionFragment | None:
    """Volumes in a directory of the host that a pod runs on."""
    spec = ctx.spec.storage.local_path
    if not spec.enabled:
        return None
    context = LocalPathManifest(
        image=ctx.image("local-path", "provisioner"),
        helper_image=ctx.image("local-path", "busybox"),
        directory=spec.directory,
        is_default=_default(ctx) == "local-path",
    )
    return per_host(
        applied(ctx, "objects", "local-path/manifest", context),
        rolled_out(ctx, "runs", "deployment/local-path-provisioner", "local-path-storage"),
    )


@task("nfs")
def nfs(ctx: ClusterContext) -> ExecutionFragment | None:
    """Volumes on a server of the operator's."""
    spec = ctx.spec.storage.nfs
    if spec is None:
        return None
    context = NfsManifest(
        image=ctx.image("nfs"),
        server=spec.server,
        path=spec.path,
        is_default=_default(ctx) == "nfs",
    )
    return per_host(
        applied(ctx, "objects", "nfs/manifest", context),
        rolled_out(ctx, "runs", "deployment/nfs-provisioner", "nfs-storage"),
    )


def _default(ctx: ClusterContext) -> str | None:
    """The class of claims that name none: the only one there is, unless one is said."""
    spec = ctx.spec.storage
    if spec.default_class is not None:
        return spec.default_class
    there = {"local-path": spec.local_path.enabled, "nfs": spec.nfs is not None}
    found = [name for name, is_there in there.items() if is_there]
    return found[0] if len(found) == 1 else None
