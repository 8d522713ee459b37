"""What hosts told in earlier runs, as the store has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kubexm.common.paths import Home
from kubexm.errors import KubexmError, Problem

if TYPE_CHECKING:
    from kubexm.store.facts import KnownFacts

Facts = Mapping[str, Mapping[str, Any]]
"""What hosts tell of themselves, by name."""


def stored_facts(name: str) -> tuple[Mapping[str, KnownFacts], tuple[Problem, ...]]:
    """What hosts told in runs of this name, on real hosts: simulated ones are other hosts."""
    try:
        path = Home.from_environment().database
        if not path.exists():
            return {}, ()
        # Not loaded where nobody asks it: `plan` has to be quick.
        from kubexm.store import facts

        return facts.read(path, name), ()
    except (KubexmError, OSError) as error:
        hint = error.hint if isinstance(error, KubexmError) else ""
        return {}, (Problem(f"facts of earlier runs can't be read: {error}", hint=hint),)
