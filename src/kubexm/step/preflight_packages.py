"""Whether tools that a host lacks can be installed there, by what its package manager knows.

It is asked for what it has at hand, without the network: lists that were never fetched say nothing,
for an installation fetches them first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubexm.common.probing import TOOLS
from kubexm.runner.host import Command, Completed, Host
from kubexm.step.preflight_look import Look

_ENGLISH = {"LC_ALL": "C"}
_APT = {"ip": "iproute2", "nsenter": "util-linux", "tc": "iproute2"}
_RPM = {
    "conntrack": "conntrack-tools",
    "ip": "iproute",
    "mount": "util-linux",
    "nsenter": "util-linux",
    "tc": "iproute-tc",
}
_ZYPPER = {**_RPM, "ip": "iproute2", "tc": "iproute2"}
_PACKAGES: Mapping[str, Mapping[str, str]] = {
    "apt": _APT,
    "dnf": _RPM,
    "yum": _RPM,
    "zypper": _ZYPPER,
}
"""By package manager what tools come with; those that are not named come with one of their name."""
_QUESTIONS: Mapping[str, Sequence[Sequence[str]]] = {
    "apt": (("apt-get", "--print-uris", "update"), ("apt-cache", "policy")),
    "dnf": (("dnf", "-C", "-q", "repolist", "--enabled"),),
    "yum": (("yum", "-C", "-q", "repolist", "enabled"),),
    "zypper": (("zypper", "--non-interactive", "--no-refresh", "repos"),),
}
"""What tells whether there are repositories; the second one, whether their lists are there."""
_NO_REPOSITORIES = 6
"""The exit code of zypper if none is defined."""
_INSTALLED = "/var/lib/dpkg/status"


def missing(look: Look) -> tuple[str, ...]:
    """The packages of tools that a host lacks, as its package manager calls them."""
    names = _PACKAGES.get(str(look.facts.get("package_manager")))
    if names is None or look.probed.tools is None:
        return ()
    lacking = (tool for tool in TOOLS if tool not in look.probed.tools)
    return tuple(dict.fromkeys(names.get(tool, tool) for tool in lacking))


def questions(host: Host, manager: str, names: Iterable[str]) -> list[Command]:
    """What the package manager is asked; nothing is fetched and nothing is changed."""
    asked = [*_QUESTIONS[manager]]
    if manager == "apt":
        asked.append(("apt-cache", "policy", "--", *names))
    return [host.command(*argv, env=_ENGLISH) for argv in asked]


def out_of_reach(
    manager: str, names: Sequence[str], answers: Sequence[Completed]
) -> tuple[str, ...]:
    """Those packages that certainly can't be installed."""
    if manager == "apt":
        return _unknown_to_apt(names, answers)
    answer = answers[0]
    if manager == "zypper":
        return tuple(names) if answer.exit == _NO_REPOSITORIES else ()
    return tuple(names) if answer.ok and not answer.text.strip() else ()


def _unknown_to_apt(names: Sequence[str], answers: Sequence[Completed]) -> tuple[str, ...]:
    if not all(answer.ok for answer in answers):
        return ()
    repositories, lists, policy = (answer.text for answer in answers)
    has_lists = any(" Packages" in line and _INSTALLED not in line for line in lists.splitlines())
    if repositories.strip() and not has_lists:
        return ()  # they would be fetched first, and may name it
    candidates = _candidates(policy)
    return tuple(name for name in names if candidates.get(name, "(none)") == "(none)")


def _candidates(policy: str) -> dict[str, str]:
    """By package the version that would be installed."""
    found: dict[str, str] = {}
    name = ""
    for line in policy.splitlines():
        if not line.startswith(" "):
            name = line.removesuffix(":")
        elif line.strip().startswith("Candidate:"):
            found[name] = line.partition(":")[2].strip()
    return found
