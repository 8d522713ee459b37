"""What kubeadm has to be told so that it takes the images of a bill of materials.

kubeadm puts CoreDNS into a folder of its own only where the registry is the project's; in any
other it has to be told, and likewise every tag that is not the one it expects.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubexm.errors import InvalidInput
from kubexm.resource import images
from kubexm.resource.materials import KUBEADMS, BillOfMaterials, Image


class KubeadmImages(msgspec.Struct, frozen=True, kw_only=True):
    """Values for kubeadm's configuration, and what `kubeadm config images list` prints then."""

    repository: str
    dns_repository: str
    dns_tag: str
    etcd_repository: str
    etcd_tag: str
    """Both of etcd are empty if kubeadm does not run it."""
    names: tuple[str, ...]


def kubeadm_images(bill: BillOfMaterials) -> KubeadmImages:
    """Out of a bill for one version of Kubernetes and one registry."""
    kubeadms = [image for image in bill.images if image.component in KUBEADMS]
    _require_one_of_each(kubeadms)
    own = {image.component: images.parse(image.pulled_as) for image in kubeadms}
    etcd = own.get("etcd")
    return KubeadmImages(
        repository=_folder(own["kubernetes"]),
        dns_repository=_folder(own["coredns"]),
        dns_tag=own["coredns"].tag,
        etcd_repository=_folder(etcd) if etcd else "",
        etcd_tag=etcd.tag if etcd else "",
        names=tuple(image.pulled_as for image in kubeadms),
    )


def _require_one_of_each(kubeadms: Sequence[Image]) -> None:
    repositories = {_repository(image.name) for image in kubeadms}
    if len(repositories) < len(kubeadms):
        message = "found several versions or registries of an image, want one"
        raise InvalidInput(message, hint="make a bill of materials for each cluster")


def _repository(name: str) -> str:
    return images.parse(name).repository


def _folder(image: images.Reference) -> str:
    return f"{image.registry}/{image.repository}".rpartition("/")[0]
