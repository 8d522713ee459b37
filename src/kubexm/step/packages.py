"""Steps about packages of the operating system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubexm.runner import packages
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.parameters import require_names
from kubexm.step.registry import step


@step("package")
class Package(Step):
    """Packages are installed, each `name` or `name=version`; or, with `present: false`, none.

    A rollback leaves packages that came along with one, for others may need them by now; and
    configuration that went with one comes back as the package has it.

    ```yaml
    - name: tools
      package: {names: [curl, nginx=1.22.1-9]}
    ```
    """

    names: tuple[str, ...]
    """The packages, each `name` or `name=version`."""
    present: bool = True
    """Whether they are there; if not, they are removed with their configuration."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    reads_facts = True
    declares_intent = True
    uninterruptible = True
    verifies = True

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("`names` is empty, want at least one package")
        require_names(self.names, "package")

    def summary(self) -> str:
        return f"{'' if self.present else 'no '}{', '.join(self.names)}"

    def probe(self, host: Host) -> Sequence[Command]:
        return (packages.versions_command(host, self._bare, sudo=self.sudo),)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        found = packages.versions_of(answers[0])
        if not self.present:
            there = [f"{name} {version} is installed" for name, version in sorted(found.items())]
            return Verdict.needed("; ".join(there), "-") if there else Verdict.holds()
        reasons = [reason for name in self.names if (reason := _missing(name, found))]
        if not reasons:
            return Verdict.holds()
        return Verdict.needed("; ".join(reasons), "~" if found else "+")

    async def run(self, ctx: StepContext) -> None:
        found = await packages.versions(ctx.host, self._bare, sudo=self.sudo)
        for name, resource in zip(self._bare, self.resources, strict=True):
            await ctx.ledger.remember(resource, {"version": found.get(name)})
        if self.present:
            wanted = [name for name in self.names if _missing(name, found)]
            await packages.install(ctx.host, wanted, sudo=self.sudo)
        else:
            await packages.remove(ctx.host, sorted(found), sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        found = await packages.versions(ctx.host, self._bare, sudo=self.sudo)
        recalled = map(ctx.ledger.recall, self.resources)
        priors = dict(zip(self._bare, recalled, strict=True))
        known = {name: prior["version"] for name, prior in priors.items() if prior is not None}
        back = [f"{name}={old}" for name, old in known.items() if old and found.get(name) != old]
        gone = [name for name, old in known.items() if old is None and name in found]
        if gone:
            await packages.remove(ctx.host, gone, sudo=self.sudo)
        if back:
            await packages.install(ctx.host, back, sudo=self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return tuple(f"package:{name}" for name in self._bare)

    @property
    def _bare(self) -> tuple[str, ...]:
        return tuple(name.partition("=")[0] for name in self.names)


def _missing(wanted: str, found: Mapping[str, str]) -> str:
    """Why a package is not as it is wanted; nothing if it is."""
    name, _, version = wanted.partition("=")
    if name not in found:
        return f"{name} is not installed"
    return f"{name} {found[name]}, want {version}" if version not in ("", found[name]) else ""
