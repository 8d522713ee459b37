"""Steps that change nothing: one that refuses, and one that does not even do that."""

from __future__ import annotations

from collections.abc import Sequence

from kubexm.common.quoting import typed
from kubexm.errors import Refused
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Outcome, Step, Verdict
from kubexm.step.parameters import require_argv, require_one
from kubexm.step.registry import step


@step("assert")
class Assert(Step):
    """A condition holds, or a command succeeds; else the host is refused, and no retry helps.

    ```yaml
    - name: processors
      assert:
        that: facts.cpus >= 2
        message: the host has two processors
        hint: take a larger machine
    ```
    """

    that: bool | None = None
    """What must be true, such as `facts.cpus >= 2`."""
    argv: tuple[str, ...] | None = None
    """A command that must succeed, in place of `that`."""
    message: str = ""
    """What must hold, in words; needed with `that`."""
    hint: str = ""
    """What to do where it does not hold."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    def __post_init__(self) -> None:
        require_one(that=self.that, argv=self.argv)
        if self.argv is not None:
            require_argv(argv=self.argv)
        if self.that is not None and not self.message:
            raise ValueError("`that` needs a `message` that says what must hold")

    def summary(self) -> str:
        return self.message or f"`{typed(self.argv or ())}` succeeds"

    def probe(self, host: Host) -> Sequence[Command]:
        return () if self.argv is None else (host.command(*self.argv, sudo=self.sudo),)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        if answers and not answers[0].ok:
            raise self._refusal(answers[0])
        if self.that is False:
            raise Refused(f"does not hold: {self.message}", hint=self.hint)
        return Verdict.holds(f"holds: {self.summary()}")

    async def run(self, ctx: StepContext) -> Outcome:
        await self.precheck(ctx)
        return Outcome(changed=False)

    def _refusal(self, answer: Completed) -> Refused:
        said = answer.error_text or answer.text
        found = f"`{typed(self.argv or ())}` exited with {answer.exit}"
        detail = f"{found}: {said}" if said else found
        failure = f"does not hold: {self.message}: {detail}" if self.message else detail
        return Refused(failure, hint=self.hint)


@step("noop")
class Noop(Step):
    """Nothing is done; it counts as a change unless told otherwise.

    ```yaml
    - name: milestone
      noop: {text: the hosts are prepared}
    ```
    """

    text: str = ""
    """What it is called in plans and results."""
    satisfied: bool = False
    """There is nothing to do already."""
    changed: bool = True
    """It counts as a change when it runs."""

    def summary(self) -> str:
        return self.text or "nothing"

    def probe(self, host: Host) -> Sequence[Command]:
        return ()

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        if self.satisfied:
            return Verdict.holds()
        return Verdict.needed("always", "~" if self.changed else "=")

    async def run(self, ctx: StepContext) -> Outcome:
        return Outcome(changed=self.changed, message=self.text)

    async def rollback(self, ctx: StepContext) -> None:
        """Nothing was done: nothing is left of it."""
