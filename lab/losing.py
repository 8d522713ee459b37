"""A host whose packets get lost: rules by chance in its own network namespace."""

from __future__ import annotations

import contextlib

from lab import network
from lab.commands import run
from lab.errors import CommandFailed
from lab.roster import Host
from lab.site import Site


def begin(site: Site, host: Host, percent: float) -> None:
    """Lose so many packets of a host, in each direction."""
    for rule in _rules(percent):
        run(*_iptables(site, host), "--append", *rule)


def end(site: Site, host: Host, percent: float) -> None:
    """Lose no more; `percent` is what was lost."""
    for rule in _rules(percent):
        # A host may have flushed its tables itself.
        with contextlib.suppress(CommandFailed):
            run(*_iptables(site, host), "--delete", *rule)


def _iptables(site: Site, host: Host) -> tuple[str, ...]:
    # Not in the lab's namespace: what a bridge passes on from host to host asks no rule there.
    return (*network.inside(site.home(host.name).netns), "iptables", "--wait", "--table", "raw")


def _rules(percent: float) -> tuple[tuple[str, ...], ...]:
    if not percent:
        return ()
    chance = ("--match", "statistic", "--mode", "random", "--probability", f"{percent / 100:.4f}")
    return (
        ("PREROUTING", "!", "--in-interface", "lo", *chance, "--jump", "DROP"),
        ("OUTPUT", "!", "--out-interface", "lo", *chance, "--jump", "DROP"),
    )
