"""The names of what hosts tell of themselves."""

from __future__ import annotations

from collections.abc import Mapping

FACTS: Mapping[str, tuple[str, ...]] = {
    "os": ("id", "family", "version", "name", "like"),
    "kernel": (),
    "arch": (),
    "cpus": (),
    "memory_mib": (),
    "swap_mib": (),
    "disks": (),
    "filesystems": (),
    "hostname": (),
    "boot_id": (),
    "machine_id": (),
    "product_uuid": (),
    "addresses": (),
    "network": ("interface", "gateway", "mtu", "mac", "others", "nameservers", "resolv_conf"),
    "ports": (),
    "clock": ("offset_s", "within_s", "kept"),
    "init": (),
    "cgroup": (),
    "selinux": (),
    "package_manager": (),
    "runtimes": (),
}
"""Every fact that a host may tell, with its parts.

There are 21: with one more, the mapping of each host takes twice the memory.
"""

FACTS_SCRIPT = "# kubexm: facts\n"
"""How the script that asks for facts begins: simulated hosts know it by this."""
