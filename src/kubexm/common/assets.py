"""What a cluster is made of, as whoever gets hold of it is asked for it."""

from __future__ import annotations

import msgspec

from kubexm.common.secrets import Discreet


class Wanted(msgspec.Struct, frozen=True):
    """One file of the catalog."""

    component: str
    version: str
    name: str
    arch: str
    """Empty if it is the same for all."""
    file: str
    """Its file name."""
    urls: tuple[str, ...] = ()
    """Where it can be had, the best first; none where nothing may be asked outside."""
    sha256: str = ""
    """Empty if the catalog has none."""

    @property
    def key(self) -> str:
        """What it is called where it is kept: `containerd/v2.2.7/archive/amd64`."""
        return "/".join(filter(None, (self.component, self.version, self.name, self.arch)))


class RegistrySource(Discreet, frozen=True):
    """A registry that images and charts are taken from, as a file declares it."""

    hidden = frozenset({"password"})

    mirrors: tuple[str, ...] = ()
    """Others that are asked first."""
    ca: str = ""
    """The path of the certificate of its authority."""
    insecure: bool = False
    plain_http: bool = False
    username: str = ""
    password: str = ""
    """A reference to it, or itself where that was allowed."""


class RegistryAccess(Discreet, frozen=True):
    """A registry that images are brought to, and how it is spoken to."""

    hidden = frozenset({"password"})

    address: str
    """Its host and port."""
    ca: str = ""
    """PEM of certificates that it is known by beside those of the system."""
    plain_http: bool = False
    """Whether it speaks in the clear."""
    username: str = ""
    password: str = ""
