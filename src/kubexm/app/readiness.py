"""What a run needs beside its file, asked before the first change: secrets, a person.

Everything that is missing is named at once. What hangs on facts is asked again when they are known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

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


class Readiness(msgspec.Struct, frozen=True):
    """A graph, and what is known of those who will answer it."""

    graph: ExecutionGraph
    confirm: Confirm
    dry_run: bool = False
    finished: Collection[Unit] = ()
    """Units of an earlier life that will not run again."""
    places: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Where the nodes are written, and the secrets of connections, if there is a file."""
    hosts: Collection[InventoryHost] = ()
    """Those that a connection is made to."""
    vault: SecretVault = msgspec.field(default_factory=SecretVault)
    """The secrets of the run, and who is asked for those that only a person knows."""

    def require(self, scopes: Scopes) -> None:
        """Raise `InvalidInput` with all that is missing, as far as the scopes tell."""
        nodes = [*self._open(scopes)]
        needs = (*self._connections(), *self._steps(nodes, scopes))
        missing = self._missing(need for need in needs if not self._must_ask(need))
        self._refuse([*missing, *self._questions(nodes, scopes)])
        # Nobody types a password for a run that can't begin for another reason, and nobody is
        # asked for one while it goes on.
        needs = (*self._connections(), *self._steps(nodes, scopes, undecided=True))
        self._refuse([*self._missing(filter(self._must_ask, needs))])

    def _refuse(self, problems: Sequence[Problem]) -> None:
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

    def _connections(self) -> Iterator[_Need]:
        found = _together(
            (use.uri, use.host, use.setting) for use in secrets.of_connections(self.hosts)
        )
        return (_Need(uri, users, "more host") for uri, users in found.items())

    def _steps(
        self, nodes: Iterable[ExecutionNode], scopes: Scopes, *, undecided: bool = False
    ) -> Iterator[_Need]:
        uses = secrets.uses(nodes, scopes, undecided=undecided)
        found = _together((use.uri, use.node, use.parameter) for use in uses)
        return (_Need(uri, users, "more step") for uri, users in found.items())

    def _must_ask(self, need: _Need) -> bool:
        return self.vault.must_ask(SecretRef(need.uri))

    def _missing(self, needs: Iterable[_Need]) -> Iterator[Problem]:
        for need in needs:
            try:
                self.vault.reveal(SecretRef(need.uri))
            except StepFailed as error:
                message = f"{error.message}; {need}"
                where = self.places.get(need.first) or self.places.get(need.uri, "")
                yield Problem(message, where, error.hint)

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


class _Need(msgspec.Struct, frozen=True):
    """A secret, and who needs it."""

    uri: str
    users: Mapping[str, str]
    """By node or host the parameter or setting that names it."""
    others: str
    """What all but the first of them are called."""

    @property
    def first(self) -> str:
        return next(iter(self.users))

    def __str__(self) -> str:
        user = f"{self.users[self.first]} of `{self.first}`"
        if len(self.users) == 1:
            return f"{user} needs it"
        return f"{user} and {counted(len(self.users) - 1, self.others)} need it"


def _together(uses: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    """Those who use a secret, by its reference."""
    found: dict[str, dict[str, str]] = {}
    for uri, user, name in uses:
        found.setdefault(uri, {}).setdefault(user, name)
    return found


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
