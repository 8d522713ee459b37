"""How each tool that handles packages is called, and how it says that another is at work."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from kubexm.connector.base import C_LOCALE, Completed

_RPM = (
    "rpm",
    "-q",
    "--qf",
    "%{NAME}\\t%|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\\tinstalled\\n",
)
# Files of a configuration that somebody changed stay as they are.
_KEEP_CONFIG = ("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold")
_APT = ("apt-get", "-y", "-q")
_APT_LIST = "/etc/apt/sources.list.d/{name}.list"
_REPO_FILE = "[{name}]\nname={name}\nbaseurl={url}\nenabled=1\ngpgcheck=0\n"


class PackageTool(msgspec.Struct, frozen=True):
    """One of the tools: its command lines, and where it looks for repositories."""

    query: tuple[str, ...]
    """Asks for packages, in lines of name, version and state."""
    install: tuple[str, ...]
    remove: tuple[str, ...]
    refresh: tuple[str, ...]
    repository: str
    """What declares a repository, with its name and URL to be filled in."""
    path: str
    """Where that lies."""
    only: tuple[str, ...]
    """Options by which nothing but one repository is used."""
    only_refreshed: tuple[str, ...]
    """What `refresh` needs in place of those."""
    version_sign: str = "="
    """What stands between a name and a version."""
    repair: tuple[str, ...] = ()
    """What has to be done after a tool that was killed; else it does nothing."""
    also_done: tuple[int, ...] = ()
    """Exit codes that say more than that all is done."""
    env: Mapping[str, str] = msgspec.field(default_factory=lambda: C_LOCALE)

    def repository_path(self, name: str) -> str:
        return self.path.format(name=name)

    def restricted(self, only: str | None) -> tuple[str, ...]:
        """Options that leave nothing but this repository."""
        return _filled(self.only, only)

    def refreshed(self, only: str | None) -> tuple[str, ...]:
        """Words that have nothing but this repository fetched."""
        return _filled(self.only_refreshed, only)

    def wanted(self, text: str) -> str:
        """A package as the tool wants it, of `name` or `name=version`."""
        name, sign, version = text.partition("=")
        return f"{name}{self.version_sign}{version}" if sign else name


def _filled(words: tuple[str, ...], name: str | None) -> tuple[str, ...]:
    return () if name is None else tuple(word.format(name=name) for word in words)


def _redhat(program: str) -> PackageTool:
    # By itself it waits for ever.
    start = (program, "-y", "-q", "--setopt=exit_on_lock=1")
    only = ("--disablerepo=*", "--enablerepo={name}")
    return PackageTool(
        query=_RPM,
        install=(*start, "install"),
        remove=(*start, "remove"),
        refresh=(*start, "makecache"),
        repository=_REPO_FILE,
        path="/etc/yum.repos.d/{name}.repo",
        only=only,
        only_refreshed=only,
        version_sign="-",
    )


_APT_ONLY = ("-o", f"Dir::Etc::SourceList={_APT_LIST}", "-o", "Dir::Etc::SourceParts=-")
_ZYPPER = ("zypper", "--non-interactive", "--quiet")
TOOLS: Mapping[str, PackageTool] = {
    "apt": PackageTool(
        query=("dpkg-query", "-W", "-f", "${Package}\\t${Version}\\t${db:Status-Status}\\n"),
        install=(
            *(*_APT, *_KEEP_CONFIG, "--no-install-recommends", "--allow-downgrades"),
            "install",
        ),
        remove=(*_APT, "purge"),
        refresh=(*_APT, "update"),
        repository="deb [trusted=yes] {url} ./\n",
        path=_APT_LIST,
        only=_APT_ONLY,
        # Else the lists of all others would be thrown away.
        only_refreshed=(*_APT_ONLY, "-o", "APT::Get::List-Cleanup=0"),
        repair=("dpkg", "--configure", "-a"),
        env={**C_LOCALE, "DEBIAN_FRONTEND": "noninteractive"},
    ),
    "dnf": _redhat("dnf"),
    "yum": _redhat("yum"),
    "zypper": PackageTool(
        query=_RPM,
        install=(*_ZYPPER, "install", "--oldpackage", "--no-recommends"),
        remove=(*_ZYPPER, "remove"),
        refresh=(*_ZYPPER, "refresh"),
        repository=_REPO_FILE,
        path="/etc/zypp/repos.d/{name}.repo",
        only=("--repo", "{name}"),
        only_refreshed=("{name}",),
        also_done=(102, 103),  # the host, or zypper itself, should be started anew
    ),
}
_LOCKED = re.compile(
    r"Could not get lock|Unable to acquire the dpkg frontend lock|lock was locked by another"
    r"|Existing lock|another copy is running|Failed to obtain the transaction lock"
    r"|can't create transaction lock|System management is locked|another app is currently holding"
)
_HOLDER = re.compile(r"(?:process(?: with pid)?|pid)[ :]+(\d+)(?: \(([^)]*)\))?", re.IGNORECASE)


def lock_holder(done: Completed) -> str | None:
    """Who holds the lock that a tool failed to get; None if that is not why it failed."""
    said = f"{done.text}\n{done.error_text}"
    if done.ok or not _LOCKED.search(said):
        return None
    if (found := _HOLDER.search(said)) is None:
        return "another program"
    return f"process {found[1]} ({found[2]})" if found[2] else f"process {found[1]}"
