"""The step about Helm charts: in the store of this machine."""

from __future__ import annotations

from kubexm.plan.node import Key
from kubexm.resource import keys
from kubexm.resource.catalog import ChartRelease
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Minter, Outcome, Verdict
from kubexm.step.registry import step
from kubexm.step.transfers import progress_of


@step("chart-archive")
class ChartStored(Minter):
    """A chart is in the store of artifacts, because it has to be installed.

    ```yaml
    - name: cilium
      runOnOneOf: [control-node]
      chart-archive:
        name: cilium
        version: 1.20.1
        repository: https://helm.cilium.io/
        value: chart_cilium
    ```
    """

    name: str
    """What it is called in its repository."""
    repository: str
    """The address of the repository; none where nothing may be asked outside."""
    value: str
    """The name of the value that it leaves: the sha256 of the chart."""
    version: str = ""
    """Which; the newest if nothing is said."""
    outside: bool = True
    """Whether the repository may be asked; else the chart has to be here already."""

    def summary(self) -> str:
        return f"chart {self.name} {self.version} here"

    def provides(self) -> tuple[Key, ...]:
        return (Key(self.value),)

    async def precheck(self, ctx: StepContext) -> Verdict:
        return Verdict.needed("is had for those who need it", "+")

    async def run(self, ctx: StepContext) -> Outcome:
        chart = ChartRelease(name=self.name, version=self.version, repository=self.repository)
        found = ctx.assets.digest(keys.of_chart(chart))
        if found is None:
            found = await ctx.assets.fetch_chart(
                self.name, self.version, self.repository, self.outside, progress_of(ctx)
            )
        return Outcome(changed=False, values={self.value: found})
