"""The step about releases of charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from kubexm.errors import StepFailed
from kubexm.runner import files, helm, kubectl, pod_evidence
from kubexm.runner.diagnosis import report
from kubexm.runner.helm import Release
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.parameters import require_absolute, require_names, require_one
from kubexm.step.registry import step
from kubexm.step.transfers import progress_of

_DEPLOYED = "deployed"
_BEGUN = "pending-install"
_PENDING = ("pending-upgrade", "pending-rollback")


@step("helm-release")
class Released(Step):
    """A chart of the catalog is installed in the cluster, in this version and with these values.

    ```yaml
    - name: cilium
      timeout: 10m
      helm-release:
        name: cilium
        artifact: cilium/v1.18.2/chart/
        version: 1.18.2
        namespace: kube-system
        values: {kubeProxyReplacement: true}
    ```
    """

    name: str
    """What the release is called."""
    artifact: str = ""
    """What the store calls the chart."""
    version: str = ""
    """The version that the chart itself says it has."""
    source: str = ""
    """A chart of the machine that runs kubexm, in place of `artifact`: the absolute path of its
    archive."""
    sha256: str = ""
    """The checksum of `source`."""
    namespace: str = "kube-system"
    """Where it is installed; it is made if it is not there."""
    values: dict[str, Any] = field(default_factory=dict)
    """What differs from the chart's own values."""
    value: str = ""
    """The value that an `artifact` step leaves when it has the chart; without one, the store has
    it already."""
    timeout: float = 300.0
    """Seconds that helm waits for its parts to run."""
    wait: bool = True
    """Whether it waits for that at all."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    uninterruptible = True
    takes_secrets = ("values",)

    def __post_init__(self) -> None:
        require_names((self.name, self.namespace, self.version), "release")
        require_one(artifact=self.artifact or None, source=self.source or None)
        require_absolute(source=self.source or None)
        if self.timeout < 1:
            raise ValueError(f"`timeout` is {self.timeout:g}, want 1 or more")

    def summary(self) -> str:
        return f"release {self.name} {self.version} in {self.namespace}"

    def needs(self) -> tuple[str, ...]:
        return (self.value,) if self.value else ()

    def probe(self, host: Host) -> Sequence[Command]:
        return (
            helm.list_command(host, self.name, self.namespace, sudo=self.sudo),
            helm.values_command(host, self.name, self.namespace, sudo=self.sudo),
        )

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        release = helm.release_of(answers[0])
        if release is None:
            return Verdict.needed("is not installed", "+")
        reasons = []
        if not release.chart.endswith(f"-{self.version}"):
            reasons.append(f"is {release.chart}, want version {self.version}")
        if helm.values_of(answers[1]) != self.values:
            reasons.append("values differ")
        if release.status != _DEPLOYED:
            reasons.append(f"is {release.status}, want {_DEPLOYED}")
        return Verdict.needed("; ".join(reasons)) if reasons else Verdict.holds()

    async def run(self, ctx: StepContext) -> None:
        release = await self._found(ctx)
        await ctx.ledger.remember(self.resources[0], _prior(release))
        if release is not None:
            await self._free(ctx, release)
        chart = f"{ctx.host.state_dir}/charts/{self.name}-{self.version}.tgz"
        await self._send(ctx, chart)
        try:
            await helm.upgrade(
                ctx.host,
                self.name,
                self.namespace,
                chart,
                self.values,
                self.timeout if self.wait else None,
                sudo=self.sudo,
            )
        finally:
            await files.remove(ctx.host, chart, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> str | None:
        prior = ctx.ledger.recall(self.resources[0])
        if prior is None:
            return None
        place = (ctx.host, self.name, self.namespace)
        try:
            release = await self._found(ctx)
            if release is None:
                return None
            if prior["revision"] is None:
                await helm.uninstall(*place, sudo=self.sudo)
            elif release.revision != prior["revision"]:
                await helm.rollback(*place, prior["revision"], sudo=self.sudo)
        except StepFailed as error:
            if kubectl.is_silent(error):
                return "the API server does not answer"
            raise
        return None

    async def diagnose(self, ctx: StepContext) -> str:
        place = ("-n", self.namespace)
        return report(await pod_evidence.of_pods(ctx.host, *place, sudo=self.sudo))

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"release:{self.namespace}/{self.name}",)

    async def _found(self, ctx: StepContext) -> Release | None:
        answers = await ctx.host.batch(self.probe(ctx.host))
        return helm.release_of(answers[0])

    async def _free(self, ctx: StepContext, release: Release) -> None:
        """Give up what an interrupted run has left: helm does nothing while it is pending."""
        if release.status == _BEGUN:
            await helm.uninstall(ctx.host, self.name, self.namespace, sudo=self.sudo)
        elif release.status in _PENDING:
            await helm.rollback(ctx.host, self.name, self.namespace, sudo=self.sudo)

    async def _send(self, ctx: StepContext, chart: str) -> None:
        source, digest = (self.source, self.sha256) if self.source else self._stored(ctx)
        above = chart.rpartition("/")[0]
        await files.make_directory(ctx.host, above, mode=0o700, sudo=self.sudo)
        progress = progress_of(ctx)
        await files.send(ctx.host, source, digest, chart, sudo=self.sudo, progress=progress)

    def _stored(self, ctx: StepContext) -> tuple[str, str]:
        """The chart in the store, and its checksum."""
        digest = ctx.assets.digest(self.artifact)
        if digest is None:
            raise StepFailed(
                f"`{self.artifact}` is not in the store",
                hint="have it fetched by a `chart-archive` step before this one",
            )
        return str(ctx.assets.path(digest)), digest


def _prior(release: Release | None) -> dict[str, Any]:
    if release is None or release.status == _BEGUN:
        return {"revision": None}
    return {"revision": release.revision}
