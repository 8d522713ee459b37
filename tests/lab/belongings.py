"""All that a host has, told in lines, so that two states of it can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lab.testing import Lab

_PLACES = "/boot /etc /home /opt /root /run /srv /usr /var"
_PASSING = (
    *("/run/systemd", "/run/udev", "/run/user", "/run/log", "/run/sshd*", "/run/dbus", "/run/lock"),
    *("/run/utmp", "/run/credentials", "/run/host", "/run/initctl", "/run/sudo", "/run/*.lock"),
    *("/run/netns", "/run/agetty.reload"),
    *("/var/log", "/var/tmp", "/var/cache", "/var/lib/systemd"),
)
"""What changes on a host by itself, or by somebody who logs in."""
_PRUNED = " -o ".join(f"-path '{path}'" for path in _PASSING)
_LOOKS = {
    "path": f"find {_PLACES} \\( {_PRUNED} \\) -prune -o -printf '%y %m %u:%g %p %l\\n'",
    "content": "find /etc /home /opt /root /srv /usr/local /var/lib -type f -size -4M"
    " -not -path '/var/lib/systemd/*' -print0 | xargs -0r sha256sum",
    "unit": "systemctl list-unit-files --no-legend --no-pager --plain",
    "active": "systemctl list-units --state=active,failed --type=service,timer --no-legend"
    " --no-pager --plain | awk '{print $1, $3, $4}'",
    "package": "dpkg-query -W -f '${Package} ${Version} ${Status}\\n'; apt-mark showhold",
    "mount": "awk '{print $2, $3}' /proc/mounts",
    "link": "ip -o link show | awk -F '[:@] *' '{print $2}'; ls -1 /run/netns",
    "address": "ip -o addr show | awk '{print $2, $3, $4}'",
    "route": "ip route show table all; ip -6 route show table all; ip rule show",
    "packets": "iptables-save | grep ^-A; ip6tables-save | grep ^-A; ipset list -name;"
    " nft list tables | grep -vE ' ip6? (raw|mangle|nat|filter)$'",
    "sysctl": "sysctl -a",
    "module": "awk '{print $1}' /proc/modules",
    "swap": "cat /proc/swaps",
    "process": "ps -eo comm=",
}
_BY_ITSELF = re.compile(
    r"sysctl (dev\.|fs\.(dentry-state|inode-|file-|aio-nr|quota)"
    r"|kernel\.(random|ns_last_pid|pty\.nr|sched_domain|keys)"
    r"|net\.netfilter\.nf_conntrack_count|vm\.(stat|user_reserve|admin_reserve)"
    r"|net\.ipv6\.conf\.[^ ]*stable_secret"
    # Hosts of the lab have one kernel: of what they share, only the first finds it as it was.
    r"|kernel\.panic|fs\.inotify\.|user\.max_inotify_|vm\.(overcommit_memory|max_map_count))"
    r"|process (\(|kworker|sh$|ps$|sed$|ssh|sftp|bash|systemd|agetty)"
    r"|active systemd-(tmpfiles|timedated|hostnamed)"
    r"|unit session-|active (user|session|apt|dpkg|e2scrub|fstrim|logrotate)"
)


def belongings(lab: Lab, host: str) -> frozenset[str]:
    """What a host has, a line for each thing; without what comes and goes by itself."""
    script = "".join(f"echo @{kind}\n{{ {look}; }} 2>/dev/null\n" for kind, look in _LOOKS.items())
    words = ("ssh", "-F", lab.site.ssh_config, "-o", "BatchMode=yes", f"root@{host}", "sh -s")
    told = lab.run(*words, stdin=script, timeout=120)
    assert told.returncode == 0, told.stderr
    return frozenset(line for line in _lines(told.stdout) if not _BY_ITSELF.match(line))


def _lines(told: str) -> Iterator[str]:
    kind = ""
    for line in told.splitlines():
        if line.startswith("@") and line[1:] in _LOOKS:
            kind = line[1:]
        elif line.strip():
            # Counters of the firewall say nothing of its rules.
            text = re.sub(r"\[\d+:\d+\]|counter packets \d+ bytes \d+|expires \S+", "", line)
            yield f"{kind} {' '.join(text.split())}"
