"""The step about archives: what a directory holds."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import partial

from kubexm.errors import StepFailed
from kubexm.runner import archives, files, priors
from kubexm.runner.host import Command, Completed, Host
from kubexm.runner.priors import Prior
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.parameters import BadParameter, require_absolute
from kubexm.step.registry import step

_SHA256 = re.compile("[0-9a-fA-F]{64}")


@step("archive")
class Unpacked(Step):
    """A directory holds what is in an archive of tar, and nothing else.

    The host keeps a record of the archive that it has unpacked there; what was changed in the
    directory since is not looked at.

    ```yaml
    - name: tools
      archive:
        path: /var/cache/shop/tools-1.4.tar.gz
        into: /opt/shop/tools
        strip: 1
    ```
    """

    path: str
    """The archive on the host, plain or packed with gzip, bzip2 or xz: an absolute path."""
    into: str
    """The directory: an absolute path; the one above it has to be there."""
    sha256: str | None = None
    """The checksum that the archive has to have; it is looked at before anything is unpacked."""
    strip: int = 0
    """How many parts are left out at the beginning of each name in the archive."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    verifies = True

    def __post_init__(self) -> None:
        require_absolute(path=self.path, into=self.into)
        if self.strip < 0:
            raise ValueError(f"`strip` is {self.strip}, want 0 or more")
        if self.sha256 is not None and not _SHA256.fullmatch(self.sha256):
            message = f"`sha256` is `{self.sha256}`, want 64 hexadecimal digits"
            raise BadParameter(message, "write what `sha256sum FILE` prints")

    def summary(self) -> str:
        return f"{self.into} from {self.path}"

    def writes(self) -> tuple[str, ...]:
        return (self.into,)

    def follows(self) -> tuple[str, ...]:
        return (self.path,)

    def probe(self, host: Host) -> Sequence[Command]:
        return (
            files.stat_command(host, self.into, sudo=self.sudo),
            files.checksum_command(host, self.path, sudo=self.sudo),
            files.content_command(host, archives.record_path(host, self.into), 128, sudo=self.sudo),
        )

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        found = files.seen(answers[0])
        if found is None:
            return Verdict.needed("does not exist", "+")
        if found.kind != "directory":
            raise StepFailed(
                f"`{self.into}` is a {found.kind}, want a directory",
                hint="remove it with an `absent` step first",
            )
        # With a checksum the archive itself may be gone once it is unpacked.
        digest = self.sha256 or files.checksum_of(answers[1], self.path) or ""
        if files.content(answers[2], self.into).decode() == self._record(digest):
            return Verdict.holds()
        return Verdict.needed(f"`{self.path}` was not unpacked there")

    async def run(self, ctx: StepContext) -> None:
        digest = self.sha256 or await files.checksum(ctx.host, self.path, sudo=self.sudo) or ""
        await archives.require_digest(ctx.host, self.path, digest, sudo=self.sudo)
        await ctx.ledger.capture(self.resources[0], partial(self._prior, ctx))
        await archives.unpack(ctx.host, self.path, self.into, strip=self.strip, sudo=self.sudo)
        await archives.record(ctx.host, self.into, self._record(digest), sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        if (prior := ctx.ledger.recall(self.resources[0])) is None:
            return
        if prior["kind"] == "absent":
            await files.remove(ctx.host, self.into, recursive=True, sudo=self.sudo)
        else:
            await priors.restore(ctx.host, self.into, prior, sudo=self.sudo)
        await archives.record(ctx.host, self.into, prior["record"], sudo=self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"archive:{self.into}",)

    def _record(self, digest: str) -> str:
        """The archive and how it was unpacked."""
        return hashlib.sha256(f"{digest.lower()} {self.strip}".encode()).hexdigest()

    async def _prior(self, ctx: StepContext, copy: str) -> Prior:
        answers = await ctx.host.batch(self.probe(ctx.host))
        record = files.content(answers[2], self.into).decode()
        if files.seen(answers[0]) is None:
            return {**priors.ABSENT, "record": record}
        tree = await priors.capture_tree(ctx.host, self.into, copy, sudo=self.sudo)
        return {**tree, "record": record}
