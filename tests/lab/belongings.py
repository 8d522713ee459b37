"""All that a host has, told in lines, so that two states of it can be compared.

What is not looked at is in `_PASSING` and `_BY_ITSELF`: what hosts change by themselves, and what
the guide to `delete` says is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lab.testing import Lab

_PLACES = "/boot /etc /home /media /mnt /opt /root /run /srv /tmp /usr /var"
_PASSING = (
    *("/run/systemd", "/run/udev", "/run/user", "/run/log", "/run/sshd*", "/run/dbus", "/run/lock"),
    *("/run/utmp", "/run/credentials", "/run/host", "/run/initctl", "/run/sudo", "/run/*.lock"),
    "/run/agetty.reload",
    *("/tmp/systemd-private-*", "/var/tmp/systemd-private-*"),
    *("/var/log/journal", "/var/log/apt", "/var/log/dpkg.log"),
    *("/var/log/alternatives.log", "/var/log/[bw]tmp", "/var/log/lastlog"),
    *("/var/cache/apt", "/var/cache/ldconfig", "/var/lib/systemd/timers"),
)
"""Where a host, or somebody who logs in, writes without being asked; logs of its own, and what apt
has in its cache."""
_PRUNED = " -o ".join(f"-path '{path}'" for path in _PASSING)
_UNLESS = f"-ignore_readdir_race \\( {_PRUNED} \\) -prune -o"
_LOOKS = {
    "path": f"find {_PLACES} {_UNLESS} -printf '%y %m %u:%g %p %l\\n'",
    "content": "find /boot /etc /home /opt /root /srv /tmp /usr/local /var/lib"
    f" {_UNLESS} -type f -print0 | xargs -0r sha256sum",
    # What packages have brought is much, and nobody changes it in its place.
    "program": "find /usr -path /usr/local -prune -o -type f -printf '%s %T@ %p\\n'",
    "unit": "systemctl list-unit-files --no-legend --no-pager --plain",
    "active": "systemctl list-units --state=active,failed --type=service,timer --no-legend"
    " --no-pager --plain | awk '{print $1, $3, $4}'",
    "package": "dpkg-query -W -f '${Package} ${Version} ${Status}\\n'; apt-mark showhold",
    "mount": "awk '{print $2, $3}' /proc/mounts",
    "link": "ip -o link show | awk -F '[:@] *' '{print $2}'; ip netns list",
    "address": "ip -o addr show | awk '{print $2, $3, $4}'",
    "route": "ip route show table all; ip -6 route show table all; ip rule show",
    "packets": "iptables-save; ip6tables-save; ipset list -name; nft list tables",
    "sysctl": "sysctl -a --ignore",
    # Also where the kernel can't load any, and has all that it has built in.
    "module": "ls -1 /sys/module",
    "swap": "cat /proc/swaps",
    # It fails where there is none.
    "swap-units": "systemctl list-unit-files --no-legend --no-pager --plain '*.swap' || true",
    "process": "ps -eo args=",
}
_MAY_BE_EMPTY = frozenset({"packets", "swap-units"})
_ATTEMPTS = 3
_BY_ITSELF = re.compile(
    r"sysctl (fs\.(dentry-state|inode-|file-nr|aio-nr|quota)"
    r"|kernel\.(random|ns_last_pid|pty\.nr)|net\.netfilter\.nf_conntrack_count)"
    # Tables of iptables that are there since somebody has looked, and let everything through.
    r"|packets (#|\*\w+$|COMMIT$|:[A-Z]+ ACCEPT$|table ip6? (raw|mangle|nat|filter|security)$)"
    # So is what `ip netns` makes where it is asked for the networks of pods.
    r"|path d 755 root:root /run/netns$"
    # The host's own haproxy takes no care of them when it stops; they end when the host is off.
    r"|path [sf] \d+ \S+ /run/haproxy(-master\.sock|\.pid)$"
    # The kernel's, a second after a link is there: nobody else may have the address.
    r"|route local fe80::\S+ dev eth0 table local proto kernel "
    # Of who looks, of who has logged in, and of systemd.
    r"|process (bash -euo pipefail -s$|ps -eo args=$|sshd: |\(sd-|/usr/lib/openssh/)"
    r"|process (/usr)?/(lib/systemd/|sbin/(agetty|init))"
    r"|active systemd-(tmpfiles|timedated|hostnamed)"
    r"|unit session-|active (user|session|apt|dpkg|e2scrub|fstrim|logrotate)"
)
_OF_THE_MACHINE = re.compile(
    r"sysctl (kernel\.(panic|keys)|fs\.inotify\.|user\.max_inotify_"
    r"|vm\.(overcommit_memory|max_map_count|user_reserve|admin_reserve))"
)
"""Hosts of the lab have one kernel: of what they share, only the first finds it as it was."""


def belongings(lab: Lab, host: str, *, alone: bool = False) -> frozenset[str]:
    """What a host has, a line for each thing; without what comes and goes by itself.

    `alone`: no other host was changed with it, so that what hosts share is looked at too.
    """
    lines = frozenset(_lines(_told(lab, host)))
    assert not (missing := {*_LOOKS} - _MAY_BE_EMPTY - {line.split()[0] for line in lines}), missing
    shared = frozenset() if alone else frozenset(filter(_OF_THE_MACHINE.match, lines))
    return frozenset(line for line in lines - shared if not _BY_ITSELF.match(line))


def _told(lab: Lab, host: str) -> str:
    """What all looks say. A file that goes while it is read makes one fail: then once more."""
    script = "".join(f"echo @{kind}\n{look}\n" for kind, look in _LOOKS.items())
    words = ("ssh", "-F", lab.site.ssh_config, "-o", "BatchMode=yes", f"root@{host}")
    shell = "bash -euo pipefail -s"
    failed = ""
    for _ in range(_ATTEMPTS):
        told = lab.run(*words, shell, stdin=script, timeout=120)
        if told.returncode == 0:
            return told.stdout
        failed = told.stderr
    raise AssertionError(f"{host}: {failed[-2000:]}")


def _lines(told: str) -> Iterator[str]:
    kind = ""
    for line in told.splitlines():
        if line.startswith("@") and line[1:] in _LOOKS:
            kind = line[1:]
        elif line.strip():
            # Counters of the firewall say nothing of its rules.
            text = re.sub(r"\[\d+:\d+\]|counter packets \d+ bytes \d+|expires \S+", "", line)
            yield f"{kind} {' '.join(text.split())}"
