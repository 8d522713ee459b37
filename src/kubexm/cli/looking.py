"""Look at the hosts of a pipeline or a cluster on behalf of the command line."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kubexm.app import hosts as checking
from kubexm.app import sources
from kubexm.app.execution import Front
from kubexm.app.params import HostsParams
from kubexm.cli import checked, messages, terminal
from kubexm.cli.output import Format, document, say
from kubexm.common.paths import Home
from kubexm.runtime.secrets import SecretVault


def start(
    *,
    file: Path,
    hosts: tuple[str, ...] = (),
    simulate: bool = False,
    set_: tuple[str, ...] = (),
    allow_literal_secrets: bool = False,
    output: Format = "text",
) -> int:
    """Look at hosts as a command line says; the exit code."""
    source = sources.of_file(file, set_, allow_literal_secrets=allow_literal_secrets)
    params = HostsParams(source, hosts, simulate)
    front = Front(warn=messages.warn)
    if terminal.is_interactive():
        front.vault = SecretVault(terminal.secret)
    found = asyncio.run(checking.check(params, front, Home.from_environment()))
    if output == "text":
        say(checked.as_text(found, checked.width()))
    else:
        document(checked.as_data(found), output)
    return 1 if any(host.troubles for host in found) else 0
