"""Simulated crictl, containerd and runc, as far as they are asked from a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubexm.common import layout
from kubexm.connector.base import Completed
from kubexm.sim import containers, registries, standins
from kubexm.sim.shell import OK, Program, Shell, failed, said

_SETTINGS = "/etc/crictl.yaml"
_VERSION = frozenset(("--version", "-v", "version"))


def containerd(shell: Shell, args: Sequence[str]) -> Completed:
    return _told(shell, args, "containerd github.com/containerd/containerd/v2 {}")


def runc(shell: Shell, args: Sequence[str]) -> Completed:
    return _told(shell, args, "runc version {}")


def crictl(shell: Shell, args: Sequence[str]) -> Completed:
    """Only its version, and the images that containerd has for Kubernetes or is to pull for it."""
    words = _words(args)
    if words[:1] not in (["images"], ["pull"]):
        return _told(shell, args, "crictl version {}")
    if not containers.is_running(shell):
        return failed(f"FATA[0000] validate service connection: {containers.can_run(shell)}")
    match words:
        case ["images", "-q"]:
            listed = "".join(f"{name}\n" for name in sorted(containers.images(shell)))
            return Completed(0, listed.encode(), _warned(shell, args).encode())
        case ["pull", name] if not name.startswith("-"):
            why = containers.pull(shell, _kept_as(name))
            return failed(f"FATA[0000] pulling image: {why}") if why else OK
    raise shell.unexpected()


def _warned(shell: Shell, args: Sequence[str]) -> str:
    """What it says where it has to guess whom to ask."""
    is_told = len(_words(args)) < len(args) or shell.files.lookup(_SETTINGS) is not None
    return "" if is_told else "WARN[0000] runtime connect using default endpoints\n"


def _kept_as(image: str) -> str:
    registry, repository, digest = registries.parts(image)
    return f"{registry}/{repository}@{digest}" if "@" in image else image


def _words(args: Sequence[str]) -> list[str]:
    """What it is asked, without where: there is one containerd."""
    where = ["--runtime-endpoint", layout.CRI_SOCKET]
    return list(args[2:] if list(args[:2]) == where else args)


def _told(shell: Shell, args: Sequence[str], text: str) -> Completed:
    if len(args) != 1 or args[0] not in _VERSION:
        raise shell.unexpected()
    return said(text.format(standins.own_version(shell)) + "\n")


PROGRAMS: Mapping[str, Program] = {"containerd": containerd, "crictl": crictl, "runc": runc}
