"""The command that asks a cluster how it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubexm.cli.clusters import Name
from kubexm.cli.flags import Output
from kubexm.cli.output import document, say, table

if TYPE_CHECKING:
    from kubexm.step.health_look import Told

_WORDS = {"well": "ok", "warning": "warning", "ill": "FAILED"}
_ILL = 1


def health(name: Name, /, *, output: Output = "text") -> int:
    """Ask a cluster how it is: API, endpoint, etcd, nodes, system pods, names, certificates."""
    from kubexm.app import health as asking
    from kubexm.app import known
    from kubexm.app.execution import Front
    from kubexm.cli import messages, terminal
    from kubexm.common.paths import Home
    from kubexm.runtime.secrets import SecretVault

    home, front = Home.from_environment(), Front(warn=messages.warn)
    if terminal.is_interactive():
        front.vault = SecretVault(terminal.secret)
    found = asyncio.run(asking.health(known.cluster(home, name), front, home))
    is_well = all(one.grade != "ill" for one in found)
    if output == "text":
        say(text(name, found, is_well))
    else:
        document({"cluster": name, "healthy": is_well, "checks": found}, output)
    return 0 if is_well else _ILL


def text(name: str, found: Sequence[Told], is_well: bool) -> str:
    """A line for each check, and below what to do about those that are not well."""
    rows = [(one.check, one.where, _WORDS[one.grade], one.what) for one in found]
    hints = dict.fromkeys(f"hint: {one.hint}" for one in found if one.hint and one.grade != "well")
    said = "is healthy" if is_well else "is not healthy"
    return "\n".join(
        (table(("CHECK", "WHERE", "STATE", "FOUND"), rows), "", f"`{name}` {said}", *hints)
    )
