"""The step: the smallest idempotent change to one host.

A step is a frozen dataclass named for what is true afterwards. It says what it would look at
(`probe`), what the answers mean (`judge`), how to make its statement true (`run`) and how to
take that back (`rollback`). An exception from any of them is a failure of that unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar, Literal

import msgspec

from kubexm.common.secrets import SecretRef
from kubexm.plan.fragment import ExecutionFragment
from kubexm.plan.node import Key, StepSpec
from kubexm.plan.result import Sign
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext

Values = Mapping[str, Any]


class Verdict(msgspec.Struct, frozen=True):
    """Whether a statement is true already, and if not, why not and what would be done."""

    satisfied: bool
    reason: str = ""
    sign: Sign = ""
    """Of what is needed: what it would do; `=` if it would run and change nothing, `?` if that
    is known only when it is reached."""
    diff: str = ""

    @classmethod
    def holds(cls, reason: str = "") -> Verdict:
        return cls(True, reason, "=")

    @classmethod
    def needed(cls, reason: str, sign: Sign = "~", diff: str = "") -> Verdict:
        return cls(False, reason, sign, diff)


class Outcome(msgspec.Struct, frozen=True):
    """What `run` did; `values` by key name."""

    changed: bool = True
    message: str = ""
    stdout: str = ""
    stderr: str = ""
    values: Values = {}
    fragment: ExecutionFragment | None = None


class NotYet(msgspec.Struct, frozen=True):
    """`run` found that it has to wait; the engine asks again after `delay`, holding no slot."""

    delay: float
    reason: str


class Step:
    """The contract; concrete steps are frozen dataclasses that derive from it."""

    kind: ClassVar[str]
    verifies = False
    """After `run`, ask `precheck` again and fail if it still says needed."""
    uninterruptible = False
    """A cancel waits for it instead of ending it; its commands say the same to a later run."""
    undoes_itself: bool | Literal["going back"] = False
    """When `run` failed, call `rollback` at once; or only in a run that goes back then, and would
    take away what the rollback needs."""
    declares_intent = False
    """Its start is durable before `run`: it keeps a ledger, or its precheck can't be relied on."""
    reads_facts = False
    """It goes by `host.facts`, which are gathered only where something needs them."""
    takes_secrets: ClassVar[tuple[str, ...]] = ()
    """Fields that may hold a value that is a secret; out of any other somebody would see it."""

    def spec(self) -> StepSpec:
        """This step as data: only what differs from the defaults."""
        # Through JSON, so that a tuple is a list already and a stored graph equals the planned one.
        params = {
            item.name: msgspec.json.decode(msgspec.json.encode(value, enc_hook=_encode))
            for item in fields(self)  # type: ignore[arg-type]  # every step is a dataclass
            if (value := getattr(self, item.name)) != _default(item)
        }
        return StepSpec(self.kind, params, self.needs(), self.provides())

    def summary(self) -> str:
        """What is true afterwards, in one line."""
        raise NotImplementedError

    def probe(self, host: Host) -> Sequence[Command] | None:
        """Short commands that change nothing; None if `precheck` is a coroutine of its own."""
        return None

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        """What the answers to `probe` mean; pure."""
        raise NotImplementedError

    async def precheck(self, ctx: StepContext) -> Verdict:
        """Whether there is anything to do; changes nothing."""
        commands = self.probe(ctx.host)
        if commands is None:
            return Verdict.needed("has no precheck", sign="~")
        return self.judge(await ctx.host.batch(commands))

    async def run(self, ctx: StepContext) -> Outcome | NotYet | None:
        """Make the statement true; None stands for a plain change."""
        raise NotImplementedError

    @property
    def can_be_undone(self) -> bool:
        """Whether `rollback` takes back what `run` did; if not, it is left, and that is told."""
        return type(self).rollback is not Step.rollback

    @property
    def resources(self) -> tuple[str, ...]:
        """What the ledger calls the things that it changes; nothing if it keeps no ledger."""
        return tuple(f"file:{path}" for path in self.writes())

    async def rollback(self, ctx: StepContext) -> str | None:
        """Restore what the ledger remembers; if something may not be touched, why it is left."""
        return None

    async def settle(self, ctx: StepContext) -> bool:
        """Go on with what was there before, when all else is undone; whether that took anything.

        Undoing goes backwards: what a step reads is put back only after its own `rollback`.
        """
        raise NotImplementedError

    async def diagnose(self, ctx: StepContext) -> str:
        """What helps to understand a failure, collected before anything is undone."""
        return ""

    def writes(self) -> tuple[str, ...]:
        """Paths that `run` changes; a dry run tells them to the steps that follow them."""
        return ()

    def follows(self) -> tuple[str, ...]:
        """Paths whose change makes it necessary, though a host can't know that beforehand."""
        return ()

    @classmethod
    def looked_at(cls, params: Values) -> Values:
        """Of stored parameters those that the precheck goes by; the rest matters only to `run`."""
        return params

    @classmethod
    def with_secret(cls, params: Values) -> Values:
        """Stored parameters as they have to be once one of them holds a secret."""
        return params

    def needs(self) -> tuple[str, ...]:
        """Names of the values it takes."""
        return ()

    def provides(self) -> tuple[Key, ...]:
        """The values it leaves; only readers and minters may."""
        return ()


class Reader(Step):
    """Changes nothing, always runs, in a dry run too; leaves values."""


class Minter(Step):
    """Makes something that others need, and runs only when one of them does."""


class Expander(Step):
    """Its `run` reads, changes nothing, and returns a fragment of graph."""


def _default(item: Field[Any]) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()


def _encode(value: Any) -> Any:
    if isinstance(value, SecretRef):
        return value.uri
    raise TypeError(f"{type(value).__name__} can't be stored in a graph")
