"""Simulated crictl, containerd and runc, as far as they are asked from a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubexm.connector.base import Completed
from kubexm.sim import containers, standins
from kubexm.sim.shell import Program, Shell, failed, said

_VERSION = frozenset(("--version", "-v", "version"))


def containerd(shell: Shell, args: Sequence[str]) -> Completed:
    return _told(shell, args, "containerd github.com/containerd/containerd/v2 {}")


def runc(shell: Shell, args: Sequence[str]) -> Completed:
    return _told(shell, args, "runc version {}")


def crictl(shell: Shell, args: Sequence[str]) -> Completed:
    """Only its version, and the images that containerd has for Kubernetes."""
    if list(args) != ["images", "-q"]:
        return _told(shell, args, "crictl version {}")
    if not containers.is_running(shell):
        return failed(f"FATA[0000] validate service connection: {containers.can_run(shell)}")
    return said("".join(f"{name}\n" for name in sorted(containers.images(shell))))


def _told(shell: Shell, args: Sequence[str], text: str) -> Completed:
    if len(args) != 1 or args[0] not in _VERSION:
        raise shell.unexpected()
    return said(text.format(standins.own_version(shell)) + "\n")


PROGRAMS: Mapping[str, Program] = {"containerd": containerd, "crictl": crictl, "runc": runc}
