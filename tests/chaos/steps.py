"""A step that adds to the graph while it runs, which no pipeline file can do by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kubexm.plan import node, parallel, per_host
from kubexm.runtime.contexts import StepContext
from kubexm.step import registry
from kubexm.step.commands import Command
from kubexm.step.contract import Expander, Outcome
from kubexm.step.files import FilePresent

KIND = "chaos-provider"


@registry.step(KIND)
class Provider(Expander):
    """What the provider of a host asks for was added."""

    path: str

    def summary(self) -> str:
        return f"steps for the provider in {self.path}"

    async def run(self, ctx: StepContext) -> Outcome:
        name = (await ctx.host.run("cat", self.path)).text
        host = ctx.host.name
        here = per_host(
            node("driver", FilePresent(f"/srv/chaos/{name}", content=f"{name}\n"), on=(host,)),
            node("setup", Command(("provide", name), creates="/srv/chaos/provided"), on=(host,)),
        )
        note = FilePresent(f"/tmp/provider-of-{host}", content=f"{name}\n")
        added = parallel(here, node("note", note, on=("control-node",)))
        return Outcome(changed=False, fragment=added)


# Pages, schemas and error messages name every kind there is: this one is known to none of them.
del registry._KINDS[KIND]


@contextmanager
def provider_known() -> Iterator[None]:
    """Let pipelines have the step."""
    registry._KINDS[KIND] = Provider
    try:
        yield
    finally:
        del registry._KINDS[KIND]
