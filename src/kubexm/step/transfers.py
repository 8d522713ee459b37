"""The step about files that hosts have and we want, and how far a transfer has come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import field
from functools import partial
from pathlib import PurePosixPath

from kubexm.errors import StepFailed
from kubexm.runner import files, here
from kubexm.runner.host import Command, Host, Progress
from kubexm.runner.priors import Prior
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.parameters import PLANNED, BadParameter, require_absolute
from kubexm.step.registry import step

TELL_SECONDS = 0.25
"""So long a transfer says nothing more of how far it has come."""
_MIB = 1 << 20


def progress_of(ctx: StepContext) -> Progress:
    """Tells whoever watches how far a transfer has come, a few times in a second."""
    last = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done == total or now - last >= TELL_SECONDS:
            last = now
            ctx.progress(done, total, f"{done / _MIB:.0f} of {total / _MIB:.0f} MiB")

    return tell


@step("fetch")
class Fetched(Step):
    """The file `to` of the machine that runs kubexm is as the file `path` of the host.

    It comes in pieces: a fetch that was cut off goes on where it was. Directories above `to` are
    made. What not everyone may read on the host is for its owner alone here.

    ```yaml
    - name: log
      fetch: {path: /var/log/shop/today.log, to: "logs/${host.name}.log"}
    ```
    """

    path: str
    """The file on the host: an absolute path."""
    to: str
    """Where it comes: a path on the machine that runs kubexm, beside the pipeline file unless it
    begins with `/`; another one for each host."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""
    beside: str = field(default="", metadata=PLANNED)
    """The directory that a `to` starts from which does not begin with `/`."""

    declares_intent = True

    def __post_init__(self) -> None:
        require_absolute(path=self.path)
        if not self.to or self.to.endswith("/"):
            raise BadParameter(
                f"`to` is `{self.to}`, want the path of a file", "add the name of the file"
            )
        require_absolute(to=self._to)

    def summary(self) -> str:
        return f"{self.to} here from {self.path}"

    def follows(self) -> tuple[str, ...]:
        return (self.path,)

    @property
    def _to(self) -> str:
        return str(PurePosixPath(self.beside, self.to))

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"here:{self._to}",)

    async def precheck(self, ctx: StepContext) -> Verdict:
        answers = await ctx.host.batch(self._looks(ctx.host))
        there = files.checksum_of(answers[1], self.path)
        found = files.seen(answers[0])
        if found is None or (found.kind == "link" and there is None):
            raise StepFailed(
                f"there is no file `{self.path}`", hint="make it in a step before this one"
            )
        if there is None:
            raise files.unlike(self.path, found, "file")
        ours = await asyncio.to_thread(here.digest, ctx.host.here(self._to))
        if ours is None:
            return Verdict.needed("does not exist here", "+")
        return Verdict.holds() if ours == there else Verdict.needed("content differs", "~")

    async def run(self, ctx: StepContext) -> None:
        to = ctx.host.here(self._to)
        await ctx.ledger.capture(self.resources[0], partial(self._prior, ctx))
        await asyncio.to_thread(here.make_room, to)
        await files.fetch(ctx.host, self.path, to, sudo=self.sudo, progress=progress_of(ctx))

    async def rollback(self, ctx: StepContext) -> None:
        if (prior := ctx.ledger.recall(self.resources[0])) is not None:
            await asyncio.to_thread(here.restore, ctx.host.here(self._to), prior)

    def _looks(self, host: Host) -> Sequence[Command]:
        return (
            files.stat_command(host, self.path, sudo=self.sudo),
            files.checksum_command(host, self.path, sudo=self.sudo),
        )

    async def _prior(self, ctx: StepContext, copy: str) -> Prior:
        return await asyncio.to_thread(here.capture, ctx.host.here(self._to), copy)
