"""Simulated tools of packet filters, on hosts whose filters let everything in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from kubexm.connector.base import Completed
from kubexm.sim.shell import OK, Program, Shell, failed, said

_CHAINS = {
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
}
_RULE = "rule:"
_OPTIONS = frozenset(("-w", "--wait"))


def tables(family: str) -> Program:
    """iptables or ip6tables: rules are added, looked for, taken away and shown."""

    def tool(shell: Shell, args: Sequence[str]) -> Completed:
        words = [arg for arg in args if arg not in _OPTIONS]
        table = "filter"
        if words[:1] == ["-t"]:
            table, words = words[1], words[2:]
        match words:
            case ["-S", *chain]:
                return said("".join(f"{line}\n" for line in _shown(shell, family, table, chain)))
            case [("-A" | "-I" | "-C" | "-D") as verb, chain, *rule]:
                return _changed(shell, verb, f"{_RULE}{family}:{table}:{chain} {' '.join(rule)}")
            case ["--version" | "-V"]:
                return said(f"{family} v1.8.9 (nf_tables)\n")
        raise shell.unexpected()

    return tool


def _changed(shell: Shell, verb: str, key: str) -> Completed:
    there = shell.state.get(key) is not None
    if verb in ("-A", "-I"):
        shell.state.set(key, 1)
    elif not there:
        return failed("iptables: Bad rule (does a matching rule exist in that chain?).")
    elif verb == "-D":
        shell.state.set(key, None)
    return OK


def _shown(shell: Shell, family: str, table: str, chains: Sequence[str]) -> list[str]:
    wanted = chains or _CHAINS.get(table, ())
    policies = [f"-P {chain} ACCEPT" for chain in wanted]
    return [*policies, *(f"-A {rule}" for rule in _rules(shell, family, table, wanted))]


def _rules(shell: Shell, family: str, table: str, chains: Sequence[str] = ()) -> list[str]:
    beginning = f"{_RULE}{family}:{table}:"
    found = (key.removeprefix(beginning) for key in sorted(shell.state.keys(beginning)))
    return [rule for rule in found if not chains or rule.split()[0] in chains]


def saving(family: str) -> Program:
    """iptables-save or ip6tables-save."""

    def tool(shell: Shell, args: Sequence[str]) -> Completed:
        if args:
            raise shell.unexpected()
        return said("".join(_saved(shell, family, table) for table in _CHAINS))

    return tool


def _saved(shell: Shell, family: str, table: str) -> str:
    rules = _rules(shell, family, table)
    own = {rule.split()[0] for rule in rules} - {*_CHAINS[table]}
    chains = [f":{chain} ACCEPT [0:0]" for chain in _CHAINS[table]]
    chains += [f":{chain} - [0:0]" for chain in sorted(own)]
    return "\n".join([f"*{table}", *chains, *(f"-A {rule}" for rule in rules), "COMMIT", ""])


def restoring(family: str) -> Program:
    """iptables-restore or ip6tables-restore, with `--noflush`."""

    def tool(shell: Shell, args: Sequence[str]) -> Completed:
        if list(args) != ["--noflush"]:
            raise shell.unexpected()
        table = ""
        for line in shell.command.stdin.decode().splitlines():
            if line.startswith("*"):
                table = line[1:]
            elif emptied := re.match(r":(\S+) |-X (\S+)", line):
                chain = emptied[1] or emptied[2]
                for rule in _rules(shell, family, table, (chain,)):
                    shell.state.set(f"{_RULE}{family}:{table}:{rule}", None)
            elif line.startswith(("-D ", "-A ")):
                done = _changed(shell, line[:2], f"{_RULE}{family}:{table}:{line[3:]}")
                if not done.ok:
                    return done
        return OK

    return tool


def nft(shell: Shell, args: Sequence[str]) -> Completed:
    match list(args):
        case ["-j", "list", "tables" | "chains" | "ruleset"]:
            return said(json.dumps({"nftables": [{"metainfo": {"json_schema_version": 1}}]}) + "\n")
        case ["list", "tables"]:
            return OK
    raise shell.unexpected()


def ipset(shell: Shell, args: Sequence[str]) -> Completed:
    if list(args) != ["list", "-name"]:
        raise shell.unexpected()
    return OK


_FAMILIES = ("iptables", "ip6tables")
PROGRAMS: Mapping[str, Program] = {
    "ipset": ipset,
    "nft": nft,
    **{family: tables(family) for family in _FAMILIES},
    **{f"{family}-save": saving(family) for family in _FAMILIES},
    **{f"{family}-restore": restoring(family) for family in _FAMILIES},
}
