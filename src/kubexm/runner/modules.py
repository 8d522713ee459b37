"""Modules of the kernel: which are loaded, now and at each boot."""

from __future__ import annotations

from kubexm.connector.base import C_LOCALE
from kubexm.errors import StepFailed
from kubexm.runner.host import Command, Completed, Host

_DIRECTORY = "/etc/modules-load.d"
_TRACES = {"br_netfilter": "/proc/sys/net/bridge/bridge-nf-call-iptables"}
"""What shows that the kernel has something that leaves no directory when it is built in."""


def loaded_command(host: Host, name: str, *, sudo: bool | None = None) -> Command:
    """Ask whether a module is loaded, or part of the kernel; `is_loaded` reads the answer."""
    trace = _TRACES.get(_kernel_name(name), f"/sys/module/{_kernel_name(name)}")
    return host.command("test", "-e", trace, sudo=sudo)


def is_loaded(answer: Completed) -> bool:
    """Whether the kernel has it."""
    return answer.ok


def boot_file(name: str) -> str:
    """The file that loads modules at each boot."""
    return f"{_DIRECTORY}/{name}.conf"


async def loaded(host: Host, name: str, *, sudo: bool | None = None) -> bool:
    """Whether a module is loaded, or part of the kernel."""
    (answer,) = await host.batch((loaded_command(host, name, sudo=sudo),))
    return is_loaded(answer)


async def load(host: Host, name: str, *, sudo: bool | None = None) -> None:
    """Load a module with all that it needs."""
    argv = ("modprobe", "--", name)
    done = await host.execute(host.command(*argv, sudo=sudo, env=C_LOCALE))
    if "not found in directory" in done.error_text:
        raise StepFailed(
            f"the host has no module `{name}` for the kernel that it runs",
            hint="install the package with the modules of this kernel, or boot the kernel that "
            "its modules are for",
        )
    Host.checked(argv, done)


async def unload(host: Host, name: str, *, sudo: bool | None = None) -> None:
    """Take a module out of the kernel, and those that nobody needs any more."""
    await host.run("modprobe", "-r", "--", name, sudo=sudo, env=C_LOCALE)


def _kernel_name(module: str) -> str:
    return module.replace("-", "_")
