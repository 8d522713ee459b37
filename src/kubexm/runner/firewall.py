"""The firewall of a host, whichever it has: which one is active, and the ports that it lets in.

With ufw and firewalld a port stays open for good. What iptables and nftables are told lasts until
the next boot, or until whoever writes their rules there does so again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from kubexm.connector.base import C_LOCALE
from kubexm.errors import StepFailed
from kubexm.runner.host import Command, Completed, Host

Protocol = Literal["tcp", "udp"]
Firewall = Literal["ufw", "firewalld", "iptables", "nftables"]
_LOOKS: tuple[tuple[str, ...], ...] = (
    ("ufw", "status"),
    ("firewall-cmd", "--state"),
    ("iptables", "-S", "INPUT"),
    ("nft", "-j", "list", "chains"),
)
_OURS = "kubexm"


def state_commands(host: Host, *, sudo: bool | None = None) -> tuple[Command, ...]:
    """Ask every firewall that there may be; `active_of` reads the answers."""
    return tuple(host.command(*argv, sudo=sudo, env=C_LOCALE) for argv in _LOOKS)


def active_of(answers: Sequence[Completed]) -> Firewall | None:
    """The firewall that is active; None if everything is let in.

    Of iptables and nftables that is one that lets in nothing unless a rule says so. The others
    are made of these, so they come first.
    """
    ufw, firewalld, iptables, nftables = answers
    if ufw.ok and "Status: active" in ufw.text:
        return "ufw"
    if firewalld.ok and "running" in firewalld.text.split():
        return "firewalld"
    if iptables.ok and "-P INPUT DROP" in iptables.text.splitlines():
        return "iptables"
    return "nftables" if nftables.ok and _gates(nftables) else None


async def active(host: Host, *, sudo: bool | None = None) -> Firewall | None:
    """The firewall that is active; None if everything is let in."""
    return active_of(await host.batch(state_commands(host, sudo=sudo)))


async def is_open(
    host: Host, port: int, protocol: Protocol = "tcp", *, sudo: bool | None = None
) -> bool:
    """Whether the firewall lets in what comes to a port: by a rule of its own, not by another."""
    match await active(host, sudo=sudo):
        case "ufw":
            answer = await host.ask("ufw", "status", sudo=sudo, env=C_LOCALE)
            rows = (line.split() for line in answer.text.splitlines())
            return any(row[:2] == [f"{port}/{protocol}", "ALLOW"] for row in rows)
        case "firewalld":
            asked = ("firewall-cmd", f"--query-port={port}/{protocol}")
            return (await host.ask(*asked, sudo=sudo, env=C_LOCALE)).ok
        case "iptables":
            return (await host.ask("iptables", "-C", *_rule(port, protocol), sudo=sudo)).ok
        case "nftables":
            return bool(await _nft_rules(host, port, protocol, sudo))
    return True


async def open_port(
    host: Host, port: int, protocol: Protocol = "tcp", *, sudo: bool | None = None
) -> None:
    """Let in what comes to a port; without an active firewall there is nothing to do."""
    if await is_open(host, port, protocol, sudo=sudo):
        return
    match await active(host, sudo=sudo):
        case "ufw":
            await host.run("ufw", "allow", f"{port}/{protocol}", sudo=sudo)
        case "firewalld":
            await _firewalld(host, f"--add-port={port}/{protocol}", sudo)
        case "iptables":
            await host.run("iptables", "-I", *_rule(port, protocol), sudo=sudo)
        case "nftables":
            for chain in await _nft_gates(host, sudo):
                accept = (protocol, "dport", str(port), "accept", "comment", f'"{_OURS}"')
                await host.run("nft", "insert", "rule", *chain, *accept, sudo=sudo)


async def close_port(
    host: Host, port: int, protocol: Protocol = "tcp", *, sudo: bool | None = None
) -> None:
    """Take back what `open_port` did."""
    if not await is_open(host, port, protocol, sudo=sudo):
        return
    match await active(host, sudo=sudo):
        case "ufw":
            await host.run("ufw", "delete", "allow", f"{port}/{protocol}", sudo=sudo)
        case "firewalld":
            await _firewalld(host, f"--remove-port={port}/{protocol}", sudo)
        case "iptables":
            await host.run("iptables", "-D", *_rule(port, protocol), sudo=sudo)
        case "nftables":
            for *chain, handle in await _nft_rules(host, port, protocol, sudo):
                await host.run("nft", "delete", "rule", *chain, "handle", handle, sudo=sudo)


async def _firewalld(host: Host, change: str, sudo: bool | None) -> None:
    # For good first: if that fails, nothing is different until the next boot.
    await host.run("firewall-cmd", "--quiet", "--permanent", change, sudo=sudo)
    await host.run("firewall-cmd", "--quiet", change, sudo=sudo)


def _rule(port: int, protocol: Protocol) -> tuple[str, ...]:
    ours = ("-m", "comment", "--comment", _OURS)
    return ("INPUT", "-p", protocol, "--dport", str(port), *ours, "-j", "ACCEPT")


def _gates(answer: Completed) -> list[tuple[str, str, str]]:
    """The chains that let in nothing unless a rule says so: family, table and name of each."""
    found = [entry["chain"] for entry in _entries(answer) if "chain" in entry]
    return [
        (chain["family"], chain["table"], chain["name"])
        for chain in found
        if chain.get("hook") == "input" and chain.get("policy") == "drop"
    ]


async def _nft_gates(host: Host, sudo: bool | None) -> list[tuple[str, str, str]]:
    return _gates(await host.ask(*_LOOKS[3], sudo=sudo, env=C_LOCALE))


async def _nft_rules(
    host: Host, port: int, protocol: Protocol, sudo: bool | None
) -> list[tuple[str, str, str, str]]:
    """The rules of ours that let in what comes to a port: each with its chain and its handle."""
    found: list[tuple[str, str, str, str]] = []
    for chain in await _nft_gates(host, sudo):
        answer = await host.ask("nft", "-j", "list", "chain", *chain, sudo=sudo, env=C_LOCALE)
        rules = (entry["rule"] for entry in _entries(answer) if "rule" in entry)
        ours = (rule for rule in rules if rule.get("comment") == _OURS)
        found += [(*chain, str(rule["handle"])) for rule in ours if _lets_in(rule, port, protocol)]
    return found


def _lets_in(rule: dict[str, Any], port: int, protocol: Protocol) -> bool:
    wanted = {"payload": {"protocol": protocol, "field": "dport"}}
    matches = (part["match"] for part in rule.get("expr", ()) if "match" in part)
    return any(match["left"] == wanted and match["right"] == port for match in matches)


def _entries(answer: Completed) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = json.loads(answer.stdout or b"{}").get("nftables", [])
        return found
    except ValueError as error:
        raise StepFailed(
            f"can't read what nft says of its rules: {error}",
            hint="check that `nft -j list chains` works on the host",
        ) from error
