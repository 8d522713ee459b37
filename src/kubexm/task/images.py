"""Container images on the hosts that run them, before anything waits for them.

Hosts pull what they need, unless all comes out of a bundle: then it is sent to them. Where the
cluster has a registry of its own, images are pushed there once, and pulled by everyone. What
objects of add-ons run the kubelet pulls, by the name that they call it; out of a bundle it is sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubexm.common.roles import CONTROL_NODE
from kubexm.plan import ExecutionFragment, node, parallel
from kubexm.plan.policy import ResourceConstraints, RetryPolicy
from kubexm.plan.scope import task
from kubexm.resource.materials import Image
from kubexm.step.images import ImagePresent, ImagePushed, ImageStored
from kubexm.task import container_runtime
from kubexm.task.artifacts import DOWNLOADS, UPLOADS
from kubexm.task.context import ClusterContext, bracketed
from kubexm.task.system import ROLES

OURS = "kubexm"
"""The namespace of containerd for what kubexm itself runs, beside that of Kubernetes."""
OWN_REGISTRY = "registry"
"""The component that serves images."""
_BESIDE = frozenset(("haproxy", "nginx", OWN_REGISTRY))
"""Components that run without a kubelet."""
_AGAIN = RetryPolicy(attempts=4, delay=3.0, exponential_backoff=True)


@task("images")
def stored(ctx: ClusterContext) -> ExecutionFragment | None:
    """Images that go through this machine, once something turns out to need them."""
    wanted = (
        image
        for image in ctx.bill.images
        if is_sent(ctx, image) or is_pushed(ctx, image) or image.named_on
    )
    return parallel(*(_stored(ctx, image) for image in wanted))


def _stored(ctx: ClusterContext, image: Image) -> ExecutionFragment | None:
    step = ImageStored(name=image.name, architectures=image.architectures, value=_value(ctx, image))
    limits = ResourceConstraints(pools=(DOWNLOADS,))
    return node(ctx.image_titles[image.name], step, on=(CONTROL_NODE,), retry=_AGAIN, limits=limits)


@task("images")
def present(ctx: ClusterContext) -> ExecutionFragment | None:
    """The images of Kubernetes and of what runs on it."""
    pods = [image for image in ctx.bill.images if image.component not in _BESIDE]
    named = (image for image in ctx.bill.images if image.named_on)
    return parallel(
        *(_present(ctx, image, _hosts(ctx, image), "k8s.io") for image in pods),
        *(_named(ctx, image) for image in named if not _is_named_already(ctx, image)),
    )


def beside(ctx: ClusterContext, component: str, hosts: Sequence[str]) -> ExecutionFragment:
    """The image of something that runs without a kubelet."""
    found = (image for image in ctx.bill.images if image.component == component)
    return parallel(*(_present(ctx, image, hosts, OURS) for image in found))


@task("images")
def pushed(ctx: ClusterContext) -> ExecutionFragment | None:
    """All images in the cluster's own registry."""
    wanted = (image for image in ctx.bill.images if is_pushed(ctx, image))
    return parallel(*(_pushed(ctx, image) for image in wanted))


def _pushed(ctx: ClusterContext, image: Image) -> ExecutionFragment | None:
    (host,) = ctx.registries
    # This machine need not know the names that the hosts have for each other.
    registry = f"{bracketed(ctx.address(host))}:{ctx.spec.registry.port}"
    step = ImagePushed(
        name=image.name,
        as_name=f"{registry}/{image.pulled_as.partition('/')[2]}",
        registry=registry,
        architectures=image.architectures,
        ca=ctx.authority_here,
        value=_value(ctx, image),
    )
    limits = ResourceConstraints(pools=(UPLOADS,))
    return node(ctx.image_titles[image.name], step, on=(CONTROL_NODE,), retry=_AGAIN, limits=limits)


def is_sent(ctx: ClusterContext, image: Image) -> bool:
    """Whether hosts get an image from this machine."""
    if image.component == OWN_REGISTRY:
        return True
    return ctx.is_bundled and not ctx.has_registry


def is_pushed(ctx: ClusterContext, image: Image) -> bool:
    """Whether hosts get an image from the registry that the cluster has for itself."""
    if not ctx.registries or image.component == OWN_REGISTRY:
        return False
    # The digest of an image is that for all machines, and what lies here may be for some of them.
    return bool(image.used_on) or "@" not in image.name


def _present(
    ctx: ClusterContext, image: Image, hosts: Sequence[str], namespace: str
) -> ExecutionFragment | None:
    sent = is_sent(ctx, image)
    step = ImagePresent(
        name=image.pulled_as,
        source="store" if sent else "registry",
        stored=image.name if sent and image.name != image.pulled_as else "",
        login=not sent and container_runtime.asks_for_login(ctx, image.pulled_as),
        namespace=namespace,
        value=_value(ctx, image) if sent else "",
    )
    limits = ResourceConstraints(pools=(UPLOADS,)) if sent else None
    return node(ctx.image_titles[image.name], step, on=hosts, retry=_AGAIN, limits=limits)


def _named(ctx: ClusterContext, image: Image) -> ExecutionFragment | None:
    """An image as objects of add-ons name it, which know of no registry of ours."""
    value = _value(ctx, image)
    step = ImagePresent(name=image.name, source="store", namespace="k8s.io", value=value)
    limits = ResourceConstraints(pools=(UPLOADS,))
    title, hosts = f"{ctx.image_titles[image.name]}-as-named", _having(ctx, image, image.named_on)
    return node(title, step, on=hosts, retry=_AGAIN, limits=limits)


def _is_named_already(ctx: ClusterContext, image: Image) -> bool:
    """Whether pods have it by that name as soon as its hosts have it."""
    return image.component not in _BESIDE and is_sent(ctx, image) and image.name == image.pulled_as


def _hosts(ctx: ClusterContext, image: Image) -> tuple[str, ...]:
    named = image.named_on if _is_named_already(ctx, image) else ()
    return _having(ctx, image, (*image.used_on, *named))


def _having(ctx: ClusterContext, image: Image, roles: Sequence[str]) -> tuple[str, ...]:
    """The hosts of some roles of the bill, as far as the image is for their architecture."""
    found = ctx.having(*(ROLES[role] for role in roles))
    return tuple(host for host in found if ctx.arch[host] in image.architectures)


def _value(ctx: ClusterContext, image: Image) -> str:
    return f"image_{ctx.image_titles[image.name]}".replace("-", "_").replace(".", "_")
