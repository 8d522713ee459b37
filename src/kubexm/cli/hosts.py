"""Commands on the hosts of a pipeline or a cluster."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from kubexm.cli.flags import File, Hosts, LiteralSecrets, Output, Set


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
    from kubexm.cli import looking

    return looking.start(
        file=file,
        hosts=hosts,
        simulate=simulate,
        set_=set_,
        allow_literal_secrets=allow_literal_secrets,
        output=output,
    )
