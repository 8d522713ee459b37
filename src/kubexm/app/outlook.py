"""What a plan comes to as far as it is known without a host: by facts declared or last stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from kubexm.app.planning import Planned
from kubexm.app.remembered import stored_facts
from kubexm.errors import Problem
from kubexm.spec.decisions import (
    Decisions,
    Facts,
    decisions,
    facts_in_conditions,
    facts_in_parameters,
)
from kubexm.spec.inventory import InventoryHost

if TYPE_CHECKING:
    from kubexm.store.facts import KnownFacts


class Outlook(msgspec.Struct, frozen=True):
    """A plan, what is known of its hosts, and what is decided by that."""

    planned: Planned
    facts: Facts
    decisions: Decisions
    as_of: Mapping[str, datetime]
    """When hosts told what the store knows of them; only those of which a fact is named."""
    strangers: Collection[str]
    """The hosts on which a condition names a fact, and of which none is known."""
    warnings: tuple[Problem, ...]
    """What is wrong with the plan, and with the store."""


def outlook(planned: Planned) -> Outlook:
    """Decide what can be decided; the store is only looked at, and only if a fact is named."""
    asked = facts_in_conditions(planned.graph)
    named = asked | facts_in_parameters(planned.graph)
    stored, warnings = stored_facts(planned.graph.name) if named else ({}, ())
    told = {host: known for host, known in stored.items() if host in named}
    facts = _merged(planned.hosts, told)
    return Outlook(
        planned=planned,
        facts=facts,
        decisions=decisions(planned.graph, planned.hosts, facts),
        as_of={host: datetime.fromtimestamp(known.at, UTC) for host, known in told.items()},
        strangers=asked - facts.keys(),
        warnings=(*planned.warnings, *warnings),
    )


def _merged(hosts: Iterable[InventoryHost], stored: Mapping[str, KnownFacts]) -> Facts:
    """What is declared of each host, and where that says nothing what is stored."""
    told = {name: known.facts for name, known in stored.items()}
    both = {host.name: _over(told.get(host.name, {}), host.facts) for host in hosts}
    return {name: facts for name, facts in both.items() if facts}


def _over(stored: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    system = {**stored.get("os", {}), **declared.get("os", {})}
    return {**stored, **declared, **({"os": system} if system else {})}
