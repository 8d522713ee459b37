"""A step that adds to the graph while it runs, which no pipeline file can do by itself."""

from __future__ import annotations

from kubexm.plan import node, per_host
from kubexm.runtime.contexts import StepContext
from kubexm.step.commands import Command
from kubexm.step.contract import Expander, Outcome
from kubexm.step.files import FilePresent
from kubexm.step.registry import step


@step("chaos-provider")
class Provider(Expander):
    """What the provider of a host asks for was added."""

    path: str

    def summary(self) -> str:
        return f"steps for the provider in {self.path}"

    async def run(self, ctx: StepContext) -> Outcome:
        name = (await ctx.host.run("cat", self.path)).text
        on = (ctx.host.name,)
        added = per_host(
            node("driver", FilePresent(f"/srv/chaos/{name}", content=f"{name}\n"), on=on),
            node("setup", Command(("provide", name), creates="/srv/chaos/provided"), on=on),
        )
        return Outcome(changed=False, fragment=added)
