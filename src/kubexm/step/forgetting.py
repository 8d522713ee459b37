"""The step that takes away what kubexm itself remembers on a host."""

from __future__ import annotations

from collections.abc import Sequence

from kubexm.runner import files
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.registry import step


@step("forgotten")
class Forgotten(Step):
    """The host has nothing of what kubexm has noted there in runs of this name.

    It comes last: nothing can be undone afterwards. What runs of other names have noted stays.

    ```yaml
    - name: notes
      forgotten: {}
    ```
    """

    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True

    def summary(self) -> str:
        return "kubexm remembers nothing of the host"

    def probe(self, host: Host) -> Sequence[Command]:
        return (files.stat_command(host, host.state_dir, sudo=self.sudo),)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        if files.seen(answers[0]) is None:
            return Verdict.holds()
        return Verdict.needed("there are notes of kubexm", "-")

    async def run(self, ctx: StepContext) -> None:
        await ctx.ledger.forget()
        host = ctx.host
        left = await host.ask("ls", "-A", f"{host.state_dir}/ledger", sudo=self.sudo)
        if not left.ok or not left.text.strip():
            await files.remove(host, host.state_dir, recursive=True, sudo=self.sudo)
