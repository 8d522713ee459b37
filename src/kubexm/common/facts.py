"""The names of what hosts tell of themselves."""

from __future__ import annotations

from collections.abc import Mapping

FACTS: Mapping[str, tuple[str, ...]] = {
    "os": ("id", "version", "name", "like"),
    "kernel": (),
    "arch": (),
    "cpus": (),
    "memory_mib": (),
    "hostname": (),
    "boot_id": (),
    "machine_id": (),
    "addresses": (),
}
"""Every fact that a host may tell, with its parts."""
