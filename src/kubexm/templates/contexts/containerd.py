"""The container runtime, and how it reaches registries."""

from __future__ import annotations

from typing import Literal

import msgspec

from kubexm.common import layout
from kubexm.templates.context import Context, Template

_SERVERS = {"docker.io": "https://registry-1.docker.io"}
"""Registries that are not where their name says."""


class RegistryLogin(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are to a registry, or to a mirror of one."""

    host: str
    """Where it is asked: the host and port of its URL, such as `registry-1.docker.io`."""
    username: str
    """The name; the password is in `passwords`, under `host`."""


class ContainerdConfig(Context, frozen=True, kw_only=True):
    """How containerd runs."""

    version: Literal[2, 3]
    """The form of its configuration: 2 for containerd 1.x, 3 for 2.x."""
    root: str
    """Where images and containers lie."""
    state: str = "/run/containerd"
    """Where it keeps what is gone after a restart of the host."""
    socket: str = layout.CONTAINERD_SOCKET
    """Where it listens."""
    systemd_cgroup: bool
    """Whether systemd manages the control groups; the kubelet has to be told the same."""
    sandbox_image: str
    """The image that holds the network of a pod; it is never removed."""
    registries: str = layout.CONTAINERD_REGISTRIES
    """The directory that says how registries are reached."""
    logins: tuple[RegistryLogin, ...] = ()
    """Who we are to those that ask."""
    passwords: dict[str, str] = msgspec.field(default_factory=dict)
    """The passwords of all logins, by host: secrets, which no graph holds."""


class RegistryEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A registry, or a mirror of one."""

    url: str
    """Where it is, such as `https://mirror.internal:5000`; `http://` is asked without TLS."""
    ca: str = ""
    """The path on the host of the certificate of its authority."""
    skip_verify: bool = False
    """Whether any certificate is believed."""
    whole_path: bool = False
    """Whether the path in `url` is all of it: else `/v2` is put behind it."""


class ContainerdHosts(Context, frozen=True, kw_only=True):
    """How containerd reaches one registry."""

    server: RegistryEndpoint
    """The registry itself, which is asked last."""
    mirrors: tuple[RegistryEndpoint, ...] = ()
    """Who is asked before it, in this order."""


class CrictlConfig(Context, frozen=True, kw_only=True):
    """What crictl has to know."""

    socket: str = layout.CRI_SOCKET
    """Where the container runtime listens."""


def server_of(registry: str, *, plain_http: bool = False) -> str:
    """The URL of a registry that names of images say."""
    return _SERVERS.get(registry, f"{'http' if plain_http else 'https'}://{registry}")


_MIRROR = RegistryEndpoint(
    url="https://mirror.internal:5000",
    ca=f"{layout.CONTAINERD_REGISTRIES}/docker.io/mirror.internal.crt",
)
_LOGINS = (
    RegistryLogin(host="registry-1.docker.io", username="reader"),
    RegistryLogin(host="mirror.internal:5000", username="robot$pull"),
)
_PASSWORDS = {"registry-1.docker.io": "secret", "mirror.internal:5000": 'pass"word\\'}

TEMPLATES = (
    Template(
        "containerd/config",
        ContainerdConfig,
        "toml",
        "how containerd runs",
        layout.CONTAINERD_CONFIG,
        (
            ContainerdConfig(
                version=2,
                root="/var/lib/containerd",
                systemd_cgroup=True,
                sandbox_image="registry.k8s.io/pause:3.10",
            ),
            ContainerdConfig(
                version=3,
                root="/data/containerd",
                systemd_cgroup=False,
                sandbox_image="registry.internal:5000/pause:3.10.1",
            ),
            ContainerdConfig(
                version=2,
                root="/var/lib/containerd",
                systemd_cgroup=True,
                sandbox_image="mirror.internal:5000/pause:3.10.1",
                logins=_LOGINS,
                passwords=_PASSWORDS,
            ),
            ContainerdConfig(
                version=3,
                root="/var/lib/containerd",
                systemd_cgroup=True,
                sandbox_image="mirror.internal:5000/pause:3.10.1",
                logins=_LOGINS,
                passwords=_PASSWORDS,
            ),
        ),
    ),
    Template(
        "containerd/hosts",
        ContainerdHosts,
        "toml",
        "how containerd reaches a registry",
        f"{layout.CONTAINERD_REGISTRIES}/{{registry}}/hosts.toml",
        (
            ContainerdHosts(server=RegistryEndpoint(url=server_of("docker.io"))),
            ContainerdHosts(
                server=RegistryEndpoint(url=server_of("docker.io")),
                mirrors=(
                    _MIRROR,
                    RegistryEndpoint(url="http://10.0.0.5:5000"),
                    RegistryEndpoint(
                        url="https://harbor.internal/v2/hub", skip_verify=True, whole_path=True
                    ),
                ),
            ),
            ContainerdHosts(
                server=RegistryEndpoint(
                    url="https://registry.internal:5000",
                    ca=f"{layout.CONTAINERD_REGISTRIES}/registry.internal:5000/ca.crt",
                ),
            ),
            ContainerdHosts(
                server=RegistryEndpoint(
                    url="https://harbor.internal/v2/all", skip_verify=True, whole_path=True
                ),
            ),
        ),
    ),
    Template(
        "crictl/config",
        CrictlConfig,
        "yaml",
        "where crictl finds the container runtime",
        "/etc/crictl.yaml",
        (CrictlConfig(),),
    ),
)
