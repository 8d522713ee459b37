"""Mutants that nothing gives away, each with the reason."""

from __future__ import annotations

from fnmatch import fnmatchcase

import msgspec
from tests.mutation.mutants import Missing, Mutant


class Survivor(msgspec.Struct, frozen=True):
    """Mutants of one kind, by patterns of the steps in question, and why they survive."""

    why: str
    step: str = ""
    """That is missing."""
    before: str = ""
    """That an edge comes from, and …"""
    after: str = ""
    """… that it leads to."""


SURVIVORS: tuple[Survivor, ...] = ()


def reason(mutant: Mutant) -> Survivor | None:
    """Why nothing gives a mutant away; None if that is not known."""
    return next((one for one in SURVIVORS if _is_meant(one, mutant)), None)


def _is_meant(survivor: Survivor, mutant: Mutant) -> bool:
    if isinstance(mutant, Missing):
        return bool(survivor.step) and fnmatchcase(mutant.node, f"*/{survivor.step}")
    edge = mutant.edge
    return bool(survivor.before) and (
        fnmatchcase(edge.before, f"*/{survivor.before}")
        and fnmatchcase(edge.after, f"*/{survivor.after}")
    )
