"""Commands on the hosts of a pipeline."""

from __future__ import annotations

import asyncio
from typing import Annotated

from cyclopts import Parameter

from kubexm.cli.flags import File, Hosts, LiteralSecrets, Output, Set
from kubexm.cli.output import document, say


def check(
    *,
    file: File,
    hosts: Hosts = (),
    simulate: Annotated[
        bool, Parameter(negative=(), help="On simulated hosts; no real host is touched.")
    ] = False,
    set_: Set = (),
    allow_literal_secrets: LiteralSecrets = False,
    output: Output = "text",
) -> int:
    """Connect to the hosts: what they are, and what is wrong with each."""
    from kubexm.app import hosts as checking
    from kubexm.app.execution import Front
    from kubexm.app.params import HostsParams, PipelineParams
    from kubexm.cli import checked, messages, terminal
    from kubexm.common.paths import Home
    from kubexm.runtime.secrets import SecretVault

    params = HostsParams(PipelineParams(file, set_, allow_literal_secrets), hosts, simulate)
    front = Front(warn=messages.warn)
    if terminal.is_interactive():
        front.vault = SecretVault(terminal.secret)
    found = asyncio.run(checking.check(params, front, Home.from_environment()))
    if output == "text":
        say(checked.as_text(found, checked.width()))
    else:
        document(checked.as_data(found), output)
    return 1 if any(host.troubles for host in found) else 0
