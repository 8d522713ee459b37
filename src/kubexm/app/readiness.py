"""What a run needs beside its file, asked before the first change: secrets, a person.

Everything that is missing is named at once. What hangs on facts is asked again when they are known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubexm.common.counting import counted
from kubexm.common.secrets import SecretRef
from kubexm.errors import InvalidInput, Problem, StepFailed
from kubexm.plan.graph import ExecutionGraph
from kubexm.plan.node import ExecutionNode
from kubexm.plan.records import Unit
from kubexm.runtime.build import Confirm, nobody_to_ask
from kubexm.runtime.secrets import SecretVault
from kubexm.spec import references, secrets
from kubexm.spec.conditions import decided
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.references import BadReference

Scopes = Mapping[str, Mapping[str, Any]]
"""What references begin with, by host."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """A graph, and what is known of those who will answer it."""

    graph: ExecutionGraph
    confirm: Confirm
    dry_run: bool = False
    finished: Collection[Unit] = ()
    """Units of an earlier life that will not run again."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Where the nodes are written, if there is a file."""

    def require(self, scopes: Scopes) -> None:
        """Raise `InvalidInput` with all that is missing, as far as the scopes tell."""
        nodes = [*self._open(scopes)]
        problems = [*self._secrets(nodes, scopes), *self._questions(nodes, scopes)]
        if problems:
            raise InvalidInput(
                f"`{self.graph.name}` can't run yet: {counted(len(problems), 'thing')} it needs"
                f" {'is' if len(problems) == 1 else 'are'} missing",
                problems=problems,
                hint="nothing was changed",
            )

    def _open(self, scopes: Scopes) -> Iterator[ExecutionNode]:
        """The nodes with a unit that is still to run, on hosts that are known."""
        undone = (node for item in self.graph.compensations for node in item.nodes)
        for node in (*self.graph, *undone):
            if any(host in scopes and (node.id, host) not in self.finished for host in node.hosts):
                yield node

    def _secrets(self, nodes: Iterable[ExecutionNode], scopes: Scopes) -> Iterator[Problem]:
        asked: dict[str, dict[str, str]] = {}
        for use in secrets.uses(nodes, scopes):
            asked.setdefault(use.uri, {}).setdefault(use.node, use.parameter)
        vault = SecretVault()
        for uri, users in asked.items():
            try:
                vault.reveal(SecretRef(uri))
            except StepFailed as error:
                node, parameter = next(iter(users.items()))
                more = f" and {counted(len(users) - 1, 'more step')}" if len(users) > 1 else ""
                message = f"{error.message}; {parameter} of `{node}`{more} needs it"
                yield Problem(message, self.places.get(node, ""), error.hint)

    def _questions(self, nodes: Iterable[ExecutionNode], scopes: Scopes) -> Iterator[Problem]:
        if self.dry_run or self.confirm is not nobody_to_ask:
            return
        for node in nodes:
            if node.step.kind == "pause" and node.step.params.get("question") is not None:
                known = [scopes[host] for host in node.hosts if host in scopes]
                if any(_is_asked(node, scope) for scope in known):
                    message = f"`{node.id}` asks a question, and there is no terminal to ask it on"
                    hint = f"run it on a terminal, or leave it out with `--skip {node.id}`"
                    yield Problem(message, self.places.get(node.id, ""), hint)


def _is_asked(node: ExecutionNode, scope: Mapping[str, Any]) -> bool:
    try:
        question = references.resolved(
            node.step.params["question"], lambda found: references.in_scope(found, scope)
        )
    except BadReference:
        question = ""  # some text, whichever
    return question is not None and decided(node.when, scope)


def early(hosts: Iterable[InventoryHost]) -> Scopes:
    """What is known of hosts before any of them is reached."""
    return {host.name: {"vars": host.vars, "host": host.described()} for host in hosts}
