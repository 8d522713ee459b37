"""What Kubernetes and pod networks leave in the kernel of a host, and how it is taken away.

Only what bears their names: rules and links of others stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from kubexm.common import layout
from kubexm.connector.base import C_LOCALE
from kubexm.runner import containers, files
from kubexm.runner.host import Host

LINKS = (
    "cni0",
    "flannel.*",
    "flannel-v6.*",
    f"cali{'[0-9a-f]' * 11}",
    "vxlan.calico",
    "vxlan-v6.calico",
    "cilium_host",
    "cilium_net",
    "cilium_vxlan",
    "lxc_health",
    "kube-ipvs0",
    "nodelocaldns",
)
"""Names of network interfaces, `*` standing for anything, `[a-f]` for one of these."""
_NAMESPACE = re.compile(r"^(cni-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b", re.MULTILINE)
"""What containerd calls the network of a pod."""
_LOGIND = "/etc/systemd/logind.conf.d/99-kubelet.conf"
"""What a kubelet writes so that a host waits for its pods before it goes down."""
_CHAINS = ("KUBE-", "CNI-", "cali-", "FLANNEL-", "CILIUM_")
_RULE_OF_CALICO = '--comment "cali:'
_TARGET = re.compile(r" -[jg] (\S+)")
_TABLES = ("kube-proxy",)
_SETS = ("KUBE-", "cali")


async def remove_links(host: Host, patterns: Sequence[str], *, sudo: bool | None = None) -> None:
    """Remove the network interfaces whose names match one of these."""
    for name in _links(await _told(host, "ip", "-o", "link", "show", sudo=sudo)):
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            await host.run("ip", "link", "delete", name, sudo=sudo)


async def remove_namespaces(host: Host, *, sudo: bool | None = None) -> None:
    """Remove the networks of pods that nobody has taken down, with the links into them."""
    for name in _NAMESPACE.findall(await _told(host, "ip", "netns", "list", sudo=sudo)):
        await host.run("ip", "netns", "delete", name, sudo=sudo)


async def remove_settings(host: Host, *, sudo: bool | None = None) -> None:
    """Remove what kubelets and kubectl have written outside of their own directories."""
    await files.remove(host, layout.KUBECTL_CACHE, recursive=True, sudo=sudo)
    if await files.exists(host, _LOGIND, sudo=sudo):
        await files.remove(host, _LOGIND, sudo=sudo)
        await files.remove_empty(host, _LOGIND.rpartition("/")[0], sudo=sudo)
        await host.ask("systemctl", "reload", "systemd-logind", changes=True, sudo=sudo)


async def remove_rules(host: Host, *, sudo: bool | None = None) -> None:
    """Remove the chains, tables and sets of addresses that packets are led by."""
    for tool in ("iptables", "ip6tables"):
        if told := without_chains(await _told(host, f"{tool}-save", sudo=sudo)):
            restore = (f"{tool}-restore", "--noflush")
            await host.run(*restore, stdin=told.encode(), sudo=sudo)
    await _remove_tables(host, sudo)
    for name in (await _told(host, "ipset", "list", "-name", sudo=sudo)).split():
        if name.startswith(_SETS):
            await host.run("ipset", "destroy", name, sudo=sudo)


async def _remove_tables(host: Host, sudo: bool | None) -> None:
    told = await host.ask("nft", "-j", "list", "tables", sudo=sudo, env=C_LOCALE)
    if told.ok:
        for family, name in _tables(told.text):
            await host.run("nft", "delete", "table", family, name, sudo=sudo)
    elif image := await containers.image_like(
        host, containers.KUBERNETES, "/kube-proxy:", sudo=sudo
    ):
        # An nft that is older than the one of kube-proxy may not even be able to read its tables.
        clean = ("/usr/local/bin/kube-proxy", "--cleanup")
        await containers.run_once(host, containers.KUBERNETES, image, *clean, sudo=sudo)


def without_chains(saved: str) -> str:
    """What `iptables-restore --noflush` has to read to take our chains out of what was saved."""
    tables = re.findall(r"^\*(\S+)\n(.*?)^COMMIT$", saved, re.MULTILINE | re.DOTALL)
    return "".join(_without(name, content.splitlines()) for name, content in tables)


def _without(table: str, lines: Sequence[str]) -> str:
    named = (line[1:].split()[0] for line in lines if line.startswith(":"))
    chains = [name for name in named if name.startswith(_CHAINS)]
    rules = [line for line in lines if _leads_to(line, chains)]
    if not chains and not rules:
        return ""
    # A chain that is named is emptied, which frees those that it leads to.
    emptied = [f":{name} - [0:0]" for name in chains]
    told = [*emptied, *(f"-D {rule[3:]}" for rule in rules), *(f"-X {name}" for name in chains)]
    return "\n".join([f"*{table}", *told, "COMMIT", ""])


def _leads_to(line: str, chains: Sequence[str]) -> bool:
    """Whether a line is a rule of another chain that only these made necessary."""
    if not line.startswith("-A ") or line.split()[1] in chains:
        return False
    target = _TARGET.search(line)
    return _RULE_OF_CALICO in line or (target is not None and target[1] in chains)


def _links(told: str) -> list[str]:
    """The names in lines such as `7: veth1@if3: <BROADCAST,…`."""
    return re.findall(r"^\d+: ([^:@\s]+)", told, re.MULTILINE)


def _tables(told: str) -> Iterator[tuple[str, str]]:
    entries = json.loads(told)["nftables"] if told.strip() else ()
    for table in (entry["table"] for entry in entries if "table" in entry):
        if table["name"] in _TABLES:
            yield table["family"], table["name"]


async def _told(host: Host, *argv: str, sudo: bool | None) -> str:
    """What a tool tells; nothing on a host that does not have it, or has nothing to tell of."""
    done = await host.ask(*argv, sudo=sudo, env=C_LOCALE)
    return done.text if done.ok else ""
