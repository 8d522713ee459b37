"""What runs containers, and where it gets their images."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from kubexm.config.fields import (
    AbsolutePath,
    RegistryHost,
    RegistryUrl,
    RegistryUser,
    SecretReference,
    Version,
)
from kubexm.document.fields import FilePath
from kubexm.document.forms import BadValue, Filled, Form, empty


class RegistryAuthSpec(Form):
    """Who we are to a registry."""

    username: RegistryUser
    """The name."""
    password: SecretReference
    """The password, or a token."""


class RegistryAccessSpec(Form):
    """How a registry is reached."""

    mirrors: tuple[RegistryUrl, ...] = ()
    """Others that are asked first, in this order."""
    auth: RegistryAuthSpec | None = None
    """Who we are to it."""
    ca: FilePath | None = None
    """The certificate of its authority."""
    insecure: bool = False
    """Whether any certificate is believed."""
    plain_http: bool = False
    """Whether it is asked without TLS."""

    def judged(self) -> RegistryAccessSpec:
        if self.plain_http and (self.ca is not None or self.insecure):
            raise BadValue("`plainHttp` beside settings of TLS", "leave one of them out")
        return self


class ContainerRuntimeSpec(Form):
    """What runs containers."""

    kind: Literal["containerd"] = "containerd"
    """Which."""
    version: Version | None = None
    """The one that goes with this Kubernetes if nothing is said."""
    root: AbsolutePath = "/var/lib/containerd"
    """Where images and containers lie."""
    systemd_cgroup: bool = True
    """Whether systemd manages the control groups, of the kubelet as well."""
    sandbox_image: Annotated[str, Filled()] | None = None
    """The image that holds the network of a pod; the one that goes with this Kubernetes if nothing
    is said."""
    registries: dict[RegistryHost, RegistryAccessSpec] = empty(dict)
    """How registries are reached, by host, such as `docker.io` or `registry.internal:5000`."""
    config: dict[str, Any] = empty(dict)
    """Any other setting of containerd; wins over what kubexm sets."""
