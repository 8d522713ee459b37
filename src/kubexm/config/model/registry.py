"""A registry on one of the hosts."""

from __future__ import annotations

from kubexm.config.fields import AbsolutePath, DomainName
from kubexm.document.fields import Port
from kubexm.document.forms import Form


class RegistrySpec(Form):
    """Where images are taken from in place of the registries that their names say."""

    host: DomainName | None = None
    """A registry of yours that has all images, where no host has the role `registry`; where one
    has, kubexm sets one up there."""
    port: Port = 5000
    """Its port."""
    data_dir: AbsolutePath = "/var/lib/registry"
    """Where the one that kubexm sets up keeps images."""
