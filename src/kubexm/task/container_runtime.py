"""containerd, and what it needs: runc, CNI plugins, the way to registries."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from kubexm.common import layout
from kubexm.config.model.container_runtime import RegistryAccessSpec, RegistryAuthSpec
from kubexm.plan import ExecutionFragment, node, parallel
from kubexm.plan.node import StepSpec
from kubexm.plan.scope import task
from kubexm.resource import images
from kubexm.step.data import DataDirectory
from kubexm.step.files import FilePresent
from kubexm.step.secrets import RenderedSecret
from kubexm.step.services import Service
from kubexm.task import proxy
from kubexm.task.artifacts import binary, unpacked
from kubexm.task.context import ClusterContext
from kubexm.task.writing import data_directories, directories, parent, referring, rendered, template
from kubexm.templates.contexts.containerd import (
    ContainerdConfig,
    ContainerdHosts,
    CrictlConfig,
    RegistryEndpoint,
    RegistryLogin,
    server_of,
)
from kubexm.templates.contexts.systemd import ContainerdUnit

UNIT = f"{layout.UNITS}/containerd.service"
PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr")
_CRICTL = "/etc/crictl.yaml"
_REGISTRIES = ("spec", "containerRuntime", "registries")


@task("programs")
def programs(ctx: ClusterContext) -> ExecutionFragment | None:
    """The programs of the container runtime."""
    ours = {f"bin/{name}": f"{layout.BINARIES}/{name}" for name in PROGRAMS}
    return parallel(
        binary(ctx, "runc", "runc", ctx.containerd_hosts),
        unpacked(ctx, "containerd", ctx.containerd_hosts, ours),
    )


@task("plugins")
def plugins(ctx: ClusterContext) -> ExecutionFragment | None:
    """What connects pods; it is first called for a pod, long after the runtime has started."""
    return unpacked(ctx, "cni-plugins", ctx.kube_nodes, {"./*": f"{layout.CNI_PLUGINS}/"})


@task("crictl")
def crictl(ctx: ClusterContext) -> ExecutionFragment | None:
    """What lets people look into the container runtime, and pulls where a login is needed."""
    if not ctx.binaries("crictl", "archive"):
        return None
    config = rendered(ctx, "crictl/config", CrictlConfig(), _CRICTL)
    return parallel(
        unpacked(ctx, "crictl", ctx.kube_nodes, {"crictl": f"{layout.BINARIES}/crictl"}),
        node("config", config, on=ctx.kube_nodes),
    )


def places(ctx: ClusterContext) -> ExecutionFragment | None:
    """Where programs and settings go that no package brings."""
    return parallel(
        directories(ctx.containerd_hosts, parent(layout.CONTAINERD_CONFIG), *_places(ctx)),
        data_directories(ctx.kube_nodes, layout.CNI_PLUGINS),
        proxy.place(ctx, "containerd", ctx.containerd_hosts),
    )


def _places(ctx: ClusterContext) -> Iterator[str]:
    """The directories of registries, each of which has its own."""
    if known := sorted(_accesses(ctx)):
        # Were it made along with the first of them, it would go with whichever has made it.
        yield layout.CONTAINERD_REGISTRIES
        yield from (f"{layout.CONTAINERD_REGISTRIES}/{host}" for host in known)


@task("settings")
def settings(ctx: ClusterContext) -> ExecutionFragment | None:
    """How the container runtime works, and how it reaches registries."""
    spec, hosts = ctx.spec.container_runtime, ctx.containerd_hosts
    return parallel(
        node("root", DataDirectory(spec.root, mode="0700"), on=hosts),
        data_directories(hosts, *layout.CONTAINERD_STATE),
        # It watches this directory as long as it runs, and ends if it goes.
        node("networks", DataDirectory(layout.CNI_CONFIG), on=hosts),
        node("addresses", DataDirectory(layout.CNI_DATA), on=ctx.kube_nodes),
        node("config", _config(ctx), on=hosts),
        node("unit", rendered(ctx, "systemd/containerd", ContainerdUnit(), UNIT), on=hosts),
        proxy.settings(ctx, "containerd", hosts),
        *_registries(ctx),
    )


@task("service")
def service(ctx: ClusterContext) -> ExecutionFragment | None:
    """The container runtime runs, with its settings as they are."""
    # How registries are reached is read anew for each image; all else only at the start.
    files = (layout.CONTAINERD_CONFIG, UNIT, *proxy.files(ctx, "containerd"))
    step = Service("containerd", restarts_on=files)
    return node("containerd", step, on=ctx.containerd_hosts)


def sandbox_image(ctx: ClusterContext) -> str:
    """The image that holds the network of a pod, as hosts pull it."""
    wanted = ctx.spec.container_runtime.sandbox_image
    if wanted is None:
        return ctx.image("pause")
    name = str(images.parse(wanted))
    return next(image.pulled_as for image in ctx.bill.images if image.name == name)


def _config(ctx: ClusterContext) -> StepSpec:
    """How containerd runs. Who we are to registries stands there and not beside: of a file that
    it imports, containerd 1.x takes the settings of a plugin in place of all others of it."""
    spec, known = ctx.spec.container_runtime, logins(ctx)
    config = ContainerdConfig(
        version=3 if ctx.trait("containerd", "config-version") == "3" else 2,
        root=spec.root,
        systemd_cgroup=spec.systemd_cgroup,
        sandbox_image=sandbox_image(ctx),
        logins=tuple(RegistryLogin(host=host, username=known[host].username) for host in known),
    )
    name, path = "containerd/config", layout.CONTAINERD_CONFIG
    if not known:
        return rendered(ctx, name, config, path, overrides=spec.config)
    fields = template(ctx, name, config, spec.config)
    fields["data"].pop("passwords")
    passwords = {host: auth.password for host, auth in known.items()}
    return referring(RenderedSecret(path=path, secrets={"passwords": passwords}, **fields))


def logins(ctx: ClusterContext) -> dict[str, RegistryAuthSpec]:
    """Who we are to registries and mirrors, by the host that containerd asks."""
    return {
        urlsplit(server_of(host)).netloc: access.auth
        for host, access in sorted(_accesses(ctx).items())
        if access.auth is not None
    }


def asks_for_login(ctx: ClusterContext, image: str) -> bool:
    """Whether one of those that have an image wants to know who we are."""
    registry = images.parse(image).registry
    mirrors = _accesses(ctx).get(registry, RegistryAccessSpec()).mirrors
    return any(urlsplit(url).netloc in logins(ctx) for url in (*mirrors, server_of(registry)))


def _registries(ctx: ClusterContext) -> Iterator[ExecutionFragment | None]:
    """What each registry is reached by, in a directory of its name."""
    for number, (host, access) in enumerate(sorted(_accesses(ctx).items())):
        directory = f"{layout.CONTAINERD_REGISTRIES}/{host}"
        name = f"registry-{number + 1}"
        yield node(name, _registry(ctx, host, access, directory), on=ctx.containerd_hosts)
        if access.ca is not None:
            text = ctx.files.text(access.ca, (*_REGISTRIES, host, "ca"))
            file = FilePresent(f"{directory}/ca.crt", content=text, mode="0644")
            yield node(f"{name}-ca", file, on=ctx.containerd_hosts)


def _accesses(ctx: ClusterContext) -> dict[str, RegistryAccessSpec]:
    """How registries are reached, that of the cluster itself among them."""
    known = dict(ctx.spec.container_runtime.registries)
    if ctx.registries:
        known.setdefault(own_registry(ctx), RegistryAccessSpec())
    return known


def own_registry(ctx: ClusterContext) -> str:
    """What images of the cluster's own registry are called by."""
    (host,) = ctx.registries
    return f"{host}:{ctx.spec.registry.port}"


def _registry(
    ctx: ClusterContext, host: str, access: RegistryAccessSpec, directory: str
) -> StepSpec:
    context = ContainerdHosts(
        server=_endpoint(ctx, host, server_of(host, plain_http=access.plain_http)),
        mirrors=tuple(_endpoint(ctx, urlsplit(url).netloc, url) for url in access.mirrors),
    )
    return rendered(ctx, "containerd/hosts", context, f"{directory}/hosts.toml")


def _endpoint(ctx: ClusterContext, host: str, url: str) -> RegistryEndpoint:
    """A registry or a mirror of one, reached as the file says of that host."""
    access = _accesses(ctx).get(host, RegistryAccessSpec())
    ca = f"{layout.CONTAINERD_REGISTRIES}/{host}/ca.crt" if access.ca is not None else ""
    return RegistryEndpoint(
        url=url,
        ca=ca or _own_authority(ctx, host),
        skip_verify=access.insecure,
        whole_path=urlsplit(url).path.startswith("/v2"),
    )


def _own_authority(ctx: ClusterContext, host: str) -> str:
    """The cluster's own registry is known by the cluster's authority."""
    is_own = bool(ctx.registries) and host == own_registry(ctx)
    return f"{layout.PKI}/ca.crt" if is_own else ""
