"""Checks of a machine and its system: what it is, how much there is of it, how it is kept."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubexm.common.counting import counted
from kubexm.common.probing import RUNTIME_UNITS, TOOLS, WRITE_BYTES
from kubexm.step.preflight_look import Found, Judge, Look, unknown

FAMILIES = ("debian", "rhel", "suse")
"""Systems that have been tried."""
_REPOSITORY = "install them, or give the host a repository that has them, such as one on a medium"
LEAST_FREE_MIB = 1024
"""Of a host that has its part of the cluster already: that takes room, and is there."""
_HAPROXY = (
    "let it listen and connect at any port with `setsebool -P haproxy_connect_any 1`, and for"
    " containers have the policy container-selinux there; or make it permissive with `setenforce 0`"
)
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_REBUILT = re.compile(r"4\.18\.0-(\d+)\b.*\.el8")
_AS_NEW_AS = ((553, (5, 10, 0)), (372, (5, 4, 0)))
"""What the kernels of Red Hat 8, from this build on, can do as well as a newer one."""


def root(look: Look) -> Iterator[Found]:
    """Commands run as root."""
    if look.probed.uid != 0:
        yield Found("commands do not run as root", f"user id {look.probed.uid}")


def operating_system(look: Look) -> Iterator[Found]:
    """The system is of a family that was tried."""
    if (system := look.facts.get("os")) is None:
        yield unknown("the host does not tell its system")
    elif system.get("family") not in FAMILIES:
        name = system.get("name") or system.get("id") or "unknown"
        yield Found(f"`{name}` is like none of {', '.join(FAMILIES)}")


def systemd(look: Look) -> Iterator[Found]:
    """systemd runs the host."""
    if (init := look.facts.get("init", "")) != "systemd":
        yield Found("systemd does not run the host", f"`{init or 'something else'}` does")


def architecture(look: Look) -> Iterator[Found]:
    """The processor is what files are fetched for."""
    told = look.facts.get("arch", "")
    own, planned = _ARCHITECTURES.get(told), look.place.arch
    if own is None:
        yield Found(f"`{told}` is neither amd64 nor arm64", remedy="take another machine")
    elif planned and own != planned:
        remedy = f"write `arch: {own}` for the host in the cluster file"
        yield Found(f"the host is {own}, and the plan has {planned}", remedy=remedy)


def kernel(look: Look) -> Iterator[Found]:
    """The kernel is new enough."""
    told = look.facts.get("kernel", "")
    if (found := _kernel(told)) is None:
        yield unknown("the host does not tell the version of its kernel")
        return
    for least, why in look.wanted.kernel.items():
        if found < (_kernel(least) or found):
            yield Found(f"{why} wants a kernel from {least} on", told)


def _kernel(text: str) -> tuple[int, ...] | None:
    if rebuilt := _REBUILT.match(text):
        fitting = (version for build, version in _AS_NEW_AS if int(rebuilt[1]) >= build)
        return next(fitting, (4, 18, 0))
    found = _VERSION.match(text)
    return tuple(int(part or 0) for part in found.groups()) if found else None


def cgroups(look: Look) -> Iterator[Found]:
    """Control groups are there, and of the version that the kubelet takes."""
    if (found := look.facts.get("cgroup")) is None:
        yield Found("no control groups are mounted", remedy="take a system that has them")
    elif found < look.wanted.cgroup:
        yield Found(f"control groups are of version {found}, want {look.wanted.cgroup}")


def processors(look: Look) -> Iterator[Found]:
    """There are enough processors."""
    found, least = look.facts.get("cpus"), look.wanted.cpus
    if found is None:
        yield unknown("the host does not tell how many processors it has")
    elif found < least:
        yield Found(f"fewer than {counted(least, 'processor')}", f"{found}")


def memory(look: Look) -> Iterator[Found]:
    """There is enough memory."""
    found, least = look.facts.get("memory_mib"), look.wanted.memory_mib
    if found is None:
        yield unknown("the host does not tell how much memory it has")
    elif found < least:
        yield Found(f"less than {least:,} MiB of memory", f"{found:,} MiB")


def disk_space(look: Look) -> Iterator[Found]:
    """There is room where data will lie."""
    if (filesystems := look.facts.get("filesystems")) is None:
        yield unknown("the host does not tell of its file systems")
        return
    most = LEAST_FREE_MIB if look.probed.is_ours else math.inf
    groups: dict[str, list[str]] = {}
    for path in look.wanted.disk:
        groups.setdefault(_mount(path, filesystems), []).append(path)
    for mount, paths in groups.items():
        free = next((fs["free_mib"] for fs in filesystems if fs["path"] == mount), math.inf)
        least = min(max(look.wanted.disk[path] for path in paths), most)
        if free < least:
            what = f"less than {least:,.0f} MiB is free on `{mount}`, for {_listed(paths)}"
            yield Found(what, f"{free:,} MiB")


def _mount(path: str, filesystems: Sequence[Mapping[str, Any]]) -> str:
    """The file system that a path lies on, or will."""
    known: Iterator[str] = (fs["path"] for fs in filesystems)
    return max((at for at in known if f"{path}/".startswith(f"{at.rstrip('/')}/")), key=len)


def _listed(paths: Sequence[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)


def etcd_disk(look: Look) -> Iterator[Found]:
    """Writes of etcd are durable in time."""
    writes, least = sorted(look.probed.writes), look.wanted.etcd_fsync
    if not writes:
        yield unknown(f"nothing could be written in `{look.probed.place or look.wanted.etcd}`")
        return
    slowest = writes[math.ceil(len(writes) * 0.99) - 1]
    if slowest > least:
        what = f"one write of 100 takes more than {least * 1000:g} ms until it is durable"
        tried = f"{len(writes)} writes of {WRITE_BYTES:,} bytes in `{look.probed.place}`"
        figure = f"{slowest * 1000:.1f} ms, by {tried}"
        yield Found(what, figure)


def swap(look: Look) -> Iterator[Found]:
    """Memory is not swapped out."""
    if found := look.facts.get("swap_mib"):
        yield Found("there is swap", f"{found:,} MiB")


def selinux(look: Look) -> Iterator[Found]:
    """SELinux lets containers be, and haproxy."""
    if look.facts.get("selinux") != "enforcing":
        return
    if look.wanted.haproxy:
        what = "SELinux enforces its policy, by which haproxy has only ports of the web"
        yield Found(what, remedy=_HAPROXY)
    else:
        yield Found("SELinux enforces its policy")


def clock_kept(look: Look) -> Iterator[Found]:
    """Somebody keeps the clock right."""
    if (clock := look.probed.clock) is None:
        yield unknown("the host has no timedatectl to ask")
    elif not clock.synchronised and not clock.keeper:
        yield Found("nobody keeps the clock right")
    elif not clock.synchronised:
        yield Found(f"`{clock.keeper}` runs, and has not set the clock by another one yet")


def packages(look: Look) -> Iterator[Found]:
    """Tools are there, or can be installed."""
    if look.probed.tools is None:
        yield unknown("the host does not tell which tools it has")
        return
    missing = [tool for tool in TOOLS if tool not in look.probed.tools]
    if missing and not look.facts.get("package_manager"):
        yield Found("tools are missing, and no package manager is known", ", ".join(missing))
    elif look.out_of_reach:
        what = "packages are missing, and the package manager knows no repository that has them"
        yield Found(what, ", ".join(look.out_of_reach), _REPOSITORY, "refusal")


def container_runtime(look: Look) -> Iterator[Found]:
    """No other runtime is there."""
    running = [unit for unit in look.probed.units if unit in RUNTIME_UNITS]
    if running:
        yield Found("another container runtime runs", ", ".join(running))
    elif installed := look.facts.get("runtimes"):
        yield Found("another container runtime is installed", ", ".join(installed))


JUDGES: Mapping[str, Judge] = {
    "root": root,
    "operating-system": operating_system,
    "systemd": systemd,
    "architecture": architecture,
    "kernel": kernel,
    "cgroups": cgroups,
    "processors": processors,
    "memory": memory,
    "disk-space": disk_space,
    "etcd-disk": etcd_disk,
    "swap": swap,
    "selinux": selinux,
    "clock-kept": clock_kept,
    "packages": packages,
    "container-runtime": container_runtime,
}
