"""The step that takes away what kubexm itself remembers on a host."""

from __future__ import annotations

from kubexm.errors import StepFailed
from kubexm.runner import files
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.registry import step


@step("forgotten")
class Forgotten(Step):
    """The host has nothing of what kubexm has noted there in runs of this name.

    It comes last: nothing can be undone afterwards. So it fails while there is something that was
    changed and not undone, and names it. What runs of other names have noted stays.

    ```yaml
    - name: notes
      forgotten: {}
    ```
    """

    gone: tuple[str, ...] = ()
    """Kinds of things that went with others and need not be undone, such as `image`."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True

    def summary(self) -> str:
        return "kubexm remembers nothing of the host"

    async def precheck(self, ctx: StepContext) -> Verdict:
        seen = await files.stat(ctx.host, ctx.host.state_dir, sudo=self.sudo)
        if seen is None and not await ctx.ledger.resources():
            return Verdict.holds()
        return Verdict.needed("there are notes of kubexm", "-")

    async def run(self, ctx: StepContext) -> None:
        noted = sorted(await ctx.ledger.resources())
        if left := [resource for resource in noted if not self._is_gone(resource)]:
            named = ", ".join(f"`{resource}`" for resource in left)
            raise StepFailed(
                f"kubexm has changed {named} here, and nothing has undone that",
                hint="undo it by the file that it was made with: kubexm delete cluster -f FILE; or"
                f" undo it by hand, and go without the host then: --without {ctx.host.name}",
            )
        for resource in noted:
            await ctx.ledger.drop(resource)
        await self._remove(ctx)

    async def _remove(self, ctx: StepContext) -> None:
        """Take the directory away, unless others have notes there."""
        host = ctx.host
        left = await host.ask("ls", "-A", f"{host.state_dir}/ledger", sudo=self.sudo)
        if not left.ok or not left.text.strip():
            await files.remove(host, host.state_dir, recursive=True, sudo=self.sudo)

    def _is_gone(self, resource: str) -> bool:
        return resource.partition(":")[0] in self.gone
