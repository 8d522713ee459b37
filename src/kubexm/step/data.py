"""The step about directories whose content is of the cluster, and goes with it."""

from __future__ import annotations

from kubexm.runner import files, priors
from kubexm.runtime.contexts import StepContext
from kubexm.step.files import Directory
from kubexm.step.registry import step


@step("data-directory")
class DataDirectory(Directory):
    """A directory for data of something that kubexm runs; what was not there before it is its own.

    Undone, it goes with all that is in it, unless it was there already: then it stays as it is.

    ```yaml
    - name: data
      data-directory: {path: /var/lib/etcd, mode: "0700"}
    ```
    """

    async def rollback(self, ctx: StepContext) -> None:
        prior = ctx.ledger.recall(self.resources[0])
        if prior is None:
            return
        if prior["kind"] == "directory":
            await priors.restore(ctx.host, self.path, prior, sudo=self.sudo)
            return
        await files.remove(ctx.host, self.path, recursive=True, sudo=self.sudo)
        for path in prior["made"]:
            if path != self.path and not await files.remove_empty(ctx.host, path, sudo=self.sudo):
                return
