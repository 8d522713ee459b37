"""The step about the time zone of a host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from kubexm.runner import clock, priors
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.parameters import BadParameter
from kubexm.step.registry import step

_ZONE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")
_FILES = ("/etc/localtime", "/etc/timezone")
"""Where systems keep it; not every one has the second."""


@step("timezone")
class TimeZone(Step):
    """A host tells the time of this zone, now and after a boot.

    ```yaml
    - name: time
      timezone: {zone: Europe/Berlin}
    ```
    """

    zone: str
    """Its name, such as `Europe/Berlin` or `UTC`."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    verifies = True

    def __post_init__(self) -> None:
        if not _ZONE.fullmatch(self.zone):
            raise BadParameter(
                f"`zone` is `{self.zone}`, want the name of a time zone",
                "`timedatectl list-timezones` has all of them",
            )

    def summary(self) -> str:
        return f"time zone {self.zone}"

    def writes(self) -> tuple[str, ...]:
        return _FILES

    def probe(self, host: Host) -> Sequence[Command]:
        return clock.state_commands(host, sudo=self.sudo)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        found = clock.state_of(answers).zone
        if found == self.zone:
            return Verdict.holds()
        return Verdict.needed(f"is {found or 'not set'}, want {self.zone}")

    async def run(self, ctx: StepContext) -> None:
        found = await clock.state(ctx.host, sudo=self.sudo)
        await ctx.ledger.remember("timezone", {"zone": found.zone})
        for path in _FILES:
            look = partial(priors.capture, ctx.host, path, sudo=self.sudo)
            await ctx.ledger.capture(f"file:{path}", look)
        await clock.set_zone(ctx.host, self.zone, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        prior = ctx.ledger.recall("timezone")
        if prior is not None and prior["zone"]:
            await clock.set_zone(ctx.host, prior["zone"], sudo=self.sudo)
        for path in _FILES:
            # A host may have had none of them, and told the time of this zone all the same.
            if (before := ctx.ledger.recall(f"file:{path}")) is not None:
                await priors.restore(ctx.host, path, before, sudo=self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return ("timezone", *(f"file:{path}" for path in _FILES))
