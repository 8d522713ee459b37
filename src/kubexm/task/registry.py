"""A registry of the cluster's own, on the host of that role."""

from __future__ import annotations

from kubexm.common import layout
from kubexm.plan import ExecutionFragment, node, parallel, per_host
from kubexm.plan.scope import task
from kubexm.step.data import DataDirectory
from kubexm.step.services import Service
from kubexm.step.transfers import Fetched
from kubexm.step.waits import WaitFor
from kubexm.task import images
from kubexm.task.context import ClusterContext
from kubexm.task.writing import directories, rendered
from kubexm.templates.contexts.registry import CONFIG, RegistryConfig
from kubexm.templates.contexts.systemd import ContainedUnit, Mount

_SERVICE = "kubexm-registry"
_UNIT = f"{layout.UNITS}/{_SERVICE}.service"
_CERTIFICATE, _KEY = f"{layout.PKI}/registry.crt", f"{layout.PKI}/registry.key"
_SECONDS = 120.0


@task("settings")
def settings(ctx: ClusterContext) -> ExecutionFragment | None:
    """How the registry runs, and where it keeps images."""
    spec, hosts = ctx.spec.registry, ctx.registries
    config = RegistryConfig(
        listen=f":{spec.port}", data_dir=spec.data_dir, certificate=_CERTIFICATE, key=_KEY
    )
    return parallel(
        directories(hosts, layout.BALANCER),
        node("data", DataDirectory(spec.data_dir, mode="0700"), on=hosts),
        node("config", rendered(ctx, "registry/config", config, CONFIG), on=hosts),
        node("unit", rendered(ctx, "systemd/contained", _unit(ctx), _UNIT), on=hosts),
    )


@task("image")
def image(ctx: ClusterContext) -> ExecutionFragment | None:
    """The registry's own image, which no registry serves yet."""
    return images.beside(ctx, images.OWN_REGISTRY, ctx.registries)


@task("service")
def service(ctx: ClusterContext) -> ExecutionFragment | None:
    """The registry runs, and answers."""
    hosts, files = ctx.registries, (CONFIG, _UNIT, _CERTIFICATE)
    answers = WaitFor(port=ctx.spec.registry.port, unit=_SERVICE)
    return per_host(
        node("service", Service(_SERVICE, restarts_on=files), on=hosts),
        node("answers", answers, on=hosts, timeout=_SECONDS),
    )


@task("authority")
def authority(ctx: ClusterContext) -> ExecutionFragment | None:
    """This machine knows by whom the registry is vouched for."""
    step = Fetched(path=f"{layout.PKI}/ca.crt", to=ctx.authority_here)
    return node("certificate", step, on=ctx.registries)


def _unit(ctx: ClusterContext) -> ContainedUnit:
    paths = (CONFIG, _CERTIFICATE, _KEY)
    data = ctx.spec.registry.data_dir
    return ContainedUnit(
        description="registry of images",
        name=_SERVICE,
        image=ctx.image(images.OWN_REGISTRY),
        arguments=("registry", "serve", CONFIG),
        mounts=(
            *(Mount(source=path, target=path) for path in paths),
            Mount(source=data, target=data, writable=True),
        ),
    )
