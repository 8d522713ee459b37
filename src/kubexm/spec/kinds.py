"""Kinds of values, also of those that are not known yet: a fact has the same kind on all hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

ANYTHING = object()
"""In place of an example, where the kind is not known either."""


class _ByAnyName(dict[str, Any]):
    """In place of a mapping whose names nobody knows: any of them has a value of one kind."""

    def __missing__(self, name: str) -> Any:
        return next(iter(self.values()))


_FACTS: Mapping[str, Any] = {
    "os": {
        "id": "debian",
        "family": "debian",
        "version": "12",
        "name": "Debian 12",
        "like": ["debian"],
    },
    "kernel": "6.1.0",
    "arch": "x86_64",
    "cpus": 1,
    "memory_mib": 1,
    "swap_mib": 1,
    "disks": [{"name": "sda", "size_mib": 1, "type": "ssd", "model": "disk"}],
    "filesystems": [{"path": "/", "type": "ext4", "size_mib": 1, "free_mib": 1}],
    "hostname": "host",
    "boot_id": "boot",
    "machine_id": "machine",
    "product_uuid": "product",
    "addresses": ["192.0.2.1"],
    "network": {
        "interface": "eth0",
        "gateway": "192.0.2.254",
        "mtu": 1500,
        "mac": "02:00:5e:00:53:01",
        "others": _ByAnyName({"198.51.100.1": "eth1"}),
        "nameservers": ["192.0.2.53"],
    },
    "ports": _ByAnyName({"tcp/22": "sshd"}),
    "clock": {"offset_s": 0.5, "within_s": 0.1},
    "init": "systemd",
    "cgroup": 2,
    "selinux": "disabled",
    "package_manager": "apt",
    "runtimes": ["containerd"],
}
_REMEDIES = {
    "a number": "compare it, such as `{} > 0`",
    "text": "compare it, such as `{} == '…'`",
    "nothing": "compare it, such as `{} != null`",
}


class Unknown(msgspec.Struct, frozen=True):
    """A value that is not known yet, and an example of its kind."""

    like: Any = ANYTHING


def example(value: Any) -> Any:
    """The value, or another of its kind where it is not known."""
    return value.like if isinstance(value, Unknown) else value


def of(value: Any) -> str:
    """The kind of a value in words; no value is told, since it may be a secret or of one host."""
    value = example(value)
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a mapping" if isinstance(value, Mapping) else "a list"


def as_a_question(value: Any, text: str) -> str:
    """How to ask something of a value that is no answer itself."""
    if value in ("true", "false"):
        return f"take it out of its quotes, or compare it: `{text} == '{value}'`"
    asked = _REMEDIES.get(of(value), "ask for its length, such as `len({}) > 0`")
    return asked.format(text)


def fact(path: Sequence[str]) -> Any:
    """An example of a fact, or of a part of one; `KeyError` if no host tells it."""
    here: Any = _FACTS
    for name in path:
        if isinstance(here, list) and name.isdecimal():
            here = here[0]
        elif isinstance(here, Mapping):
            here = here[name]
        else:
            raise KeyError(name)
    return here
