"""A registry of images on one of the hosts."""

from __future__ import annotations

from kubexm.common import layout
from kubexm.templates.context import Context, Template

CONFIG = f"{layout.BALANCER}/registry.yaml"


class RegistryConfig(Context, frozen=True, kw_only=True):
    """How the registry runs."""

    listen: str
    """Where it listens: `:5000` for all addresses."""
    data_dir: str
    """Where it keeps images."""
    certificate: str
    """The path of its certificate."""
    key: str
    """The path of the key of that."""


TEMPLATES = (
    Template(
        "registry/config",
        RegistryConfig,
        "yaml",
        "how the registry of the cluster runs",
        CONFIG,
        (
            RegistryConfig(
                listen=":5000",
                data_dir="/var/lib/registry",
                certificate=f"{layout.BALANCER}/registry.crt",
                key=f"{layout.BALANCER}/registry.key",
            ),
        ),
    ),
)
