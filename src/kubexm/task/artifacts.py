"""Files of the catalog: fetched once to the machine that runs kubexm, and brought to hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubexm.common import layout
from kubexm.common.roles import CONTROL_NODE
from kubexm.plan import ExecutionFragment, node, parallel
from kubexm.plan.policy import Pool, ResourceConstraints, RetryPolicy
from kubexm.plan.scope import task
from kubexm.resource import keys
from kubexm.resource.materials import Binary
from kubexm.step.artifacts import Installed, MembersInstalled, Stored
from kubexm.step.contract import Step
from kubexm.task.context import ClusterContext

DOWNLOADS = "download"
UPLOADS = "upload"
POOLS = {DOWNLOADS: Pool(4), UPLOADS: Pool(8)}
"""So many large files at once come here, and go to hosts."""
_AGAIN = RetryPolicy(attempts=3, delay=2.0, exponential_backoff=True)


@task("files")
def files(ctx: ClusterContext) -> ExecutionFragment | None:
    """Every file of the bill of materials, once some host turns out to need it."""
    return parallel(*(_stored(ctx, file) for file in ctx.bill.binaries))


def _stored(ctx: ClusterContext, file: Binary) -> ExecutionFragment | None:
    step = Stored(
        component=file.component,
        version=file.version,
        name=file.name,
        arch=keys.wanted(file).arch,
        file=file.file,
        urls=() if ctx.is_bundled else file.urls,
        sha256=file.sha256 or "",
        value=value(file),
    )
    limits = ResourceConstraints(pools=(DOWNLOADS,))
    return node(_name(file), step, on=(CONTROL_NODE,), retry=_AGAIN, limits=limits)


def binary(
    ctx: ClusterContext, component: str, name: str, hosts: Sequence[str]
) -> ExecutionFragment:
    """A program of the catalog among the others on these hosts, for the architecture of each."""
    path = f"{layout.BINARIES}/{name}"
    return _each(ctx, component, name, hosts, lambda file: Installed(path=path, **source(file)))


def unpacked(
    ctx: ClusterContext, component: str, hosts: Sequence[str], members: Mapping[str, str]
) -> ExecutionFragment:
    """Files out of an archive of the catalog; `{version}` and `{arch}` may stand in their names."""

    def step(file: Binary) -> MembersInstalled:
        named = {"version": file.version, "arch": file.arch}
        found = {inner.format_map(named): path for inner, path in members.items()}
        return MembersInstalled(members=found, **source(file))

    return _each(ctx, component, "archive", hosts, step)


def source(file: Binary) -> dict[str, Any]:
    """The fields of a step that takes a file out of the store."""
    return {"artifact": keys.of_file(file), "sha256": file.sha256 or "", "value": value(file)}


def value(file: Binary) -> str:
    """The name of the value that says that a file is in the store."""
    return f"artifact_{_name(file)}".replace("-", "_")


def _name(file: Binary) -> str:
    own = (file.component,) if file.component == file.name else (file.component, file.name)
    return "-".join((*own, file.arch))


def _each(
    ctx: ClusterContext,
    component: str,
    name: str,
    hosts: Sequence[str],
    step: Callable[[Binary], Step],
) -> ExecutionFragment:
    """One node for each architecture that some of the hosts have; its name tells them apart."""
    title = component if name == "archive" else name
    found = [
        (file, some)
        for file in ctx.binaries(component, name)
        if (some := ctx.of_arch(hosts, file.arch))
    ]
    limits = ResourceConstraints(pools=(UPLOADS,))
    return parallel(
        *(
            node(
                title if len(found) == 1 else f"{title}-{file.arch}",
                step(file),
                on=some,
                limits=limits,
                retry=_AGAIN,
            )
            for file, some in found
        )
    )
