"""Where pods keep what they write."""

from __future__ import annotations

from kubexm.templates.context import Context, Template


class LocalPathManifest(Context, frozen=True, kw_only=True):
    """Volumes in a directory of the host that a pod runs on; their class is `local-path`."""

    image: str
    """The image of the provisioner."""
    helper_image: str
    """The image of the pods that make and remove directories; it has a shell."""
    directory: str = "/opt/local-path-provisioner"
    """The directory on every host."""
    is_default: bool = False
    """Whether claims that name no class get it."""


class NfsManifest(Context, frozen=True, kw_only=True):
    """Volumes in directories of an NFS server; their class is `nfs`."""

    image: str
    """The image of the provisioner."""
    server: str
    """The server."""
    path: str
    """What it exports."""
    is_default: bool = False
    """Whether claims that name no class get it."""


_LOCAL_PATH = LocalPathManifest(
    image="docker.io/rancher/local-path-provisioner:v0.0.37",
    helper_image="docker.io/library/busybox:1.37.0",
    directory="/data/volumes",
    is_default=True,
)
_NFS = NfsManifest(
    image="registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0.2",
    server="10.0.0.9",
    path="/exports/kubernetes",
)

TEMPLATES: tuple[Template, ...] = (
    Template(
        "local-path/manifest",
        LocalPathManifest,
        "manifests",
        "volumes in a directory of the host",
        "the cluster",
        (_LOCAL_PATH,),
    ),
    Template(
        "nfs/manifest",
        NfsManifest,
        "manifests",
        "volumes on an NFS server",
        "the cluster",
        (_NFS,),
    ),
)
