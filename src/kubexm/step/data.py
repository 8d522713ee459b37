"""The step about directories whose content is of the cluster, and goes with it."""

from __future__ import annotations

from collections.abc import Sequence

from kubexm.runner import files, priors
from kubexm.runner.host import Command, Host
from kubexm.runner.priors import Prior
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Verdict
from kubexm.step.files import Directory
from kubexm.step.registry import step


@step("data-directory")
class DataDirectory(Directory):
    """A directory for data of something that kubexm runs; what was not there before it is its own.

    Undone, it goes with all that is in it. One that was there already stays: as it is if it had
    something in it, and empty if it had not, as a place where a disk is mounted.

    ```yaml
    - name: data
      data-directory: {path: /var/lib/etcd, mode: "0700"}
    ```
    """

    def probe(self, host: Host) -> Sequence[Command] | None:
        return None

    async def precheck(self, ctx: StepContext) -> Verdict:
        commands = super().probe(ctx.host)
        assert commands is not None
        verdict = self.judge(await ctx.host.batch(commands))
        if not verdict.satisfied or await ctx.ledger.knows(self.resources[0]):
            return verdict
        # Later nobody could tell whose data it holds.
        is_empty = await files.is_empty(ctx.host, self.path, sudo=self.sudo)
        return (
            Verdict.needed("is empty, so all that will be in it is ours") if is_empty else verdict
        )

    async def _prior(self, ctx: StepContext, copy: str) -> Prior:
        found = await super()._prior(ctx, copy)
        if found["kind"] != "directory":
            return found
        return {**found, "empty": await files.is_empty(ctx.host, self.path, sudo=self.sudo)}

    async def rollback(self, ctx: StepContext) -> None:
        prior = ctx.ledger.recall(self.resources[0])
        if prior is None:
            return
        if prior["kind"] == "directory":
            if prior.get("empty"):
                await files.empty(ctx.host, self.path, sudo=self.sudo)
            await priors.restore(ctx.host, self.path, prior, sudo=self.sudo)
            return
        await files.remove(ctx.host, self.path, recursive=True, sudo=self.sudo)
        for path in prior["made"]:
            if path != self.path and not await files.remove_empty(ctx.host, path, sudo=self.sudo):
                return
