"""Steps about files of the catalog: in the store of this machine, and at their places on hosts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kubexm.common.assets import Wanted
from kubexm.errors import StepFailed
from kubexm.plan.node import Key
from kubexm.runner import archives, files, installed, priors
from kubexm.runner.host import Command, Completed, Host
from kubexm.runner.installed import Record
from kubexm.runner.priors import Prior
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Minter, Outcome, Step, Verdict
from kubexm.step.files import differences
from kubexm.step.parameters import (
    BadParameter,
    Mode,
    mode_bits,
    require_absolute,
    require_mode,
)
from kubexm.step.registry import step
from kubexm.step.transfers import progress_of

_PARTS = 3


@step("artifact")
class Stored(Minter):
    """A file of the catalog is in the store of artifacts, because some host needs it.

    The store is that of the machine that runs kubexm. What came there stays there.

    ```yaml
    - name: crictl
      runOnOneOf: [control-node]
      artifact:
        component: crictl
        version: v1.36.0
        name: archive
        arch: amd64
        file: crictl-v1.36.0-linux-amd64.tar.gz
        urls: ["https://example.org/crictl-v1.36.0-linux-amd64.tar.gz"]
        value: artifact_1
    ```
    """

    component: str
    """The component of the catalog that it belongs to."""
    version: str
    """Its version."""
    name: str
    """What the catalog calls it within its component."""
    file: str
    """Its file name."""
    value: str
    """The name of the value that it leaves: the sha256 of the file."""
    arch: str = ""
    """The architecture that it is for; empty if it is the same for all."""
    urls: tuple[str, ...] = ()
    """Where it can be had, the best first; none where nothing may be asked outside."""
    sha256: str = ""
    """The checksum that it has to have; empty if the catalog has none."""

    def summary(self) -> str:
        return f"{self.file} here"

    def provides(self) -> tuple[Key, ...]:
        return (Key(self.value),)

    async def precheck(self, ctx: StepContext) -> Verdict:
        return Verdict.needed("is asked for when a host needs it")

    async def run(self, ctx: StepContext) -> Outcome:
        digest = await ctx.assets.fetch(self._wanted, progress_of(ctx))
        # No host is another than before, so there is nothing that a rollback would take back.
        return Outcome(changed=False, values={self.value: digest})

    @property
    def _wanted(self) -> Wanted:
        return Wanted(
            component=self.component,
            version=self.version,
            name=self.name,
            arch=self.arch,
            file=self.file,
            urls=self.urls,
            sha256=self.sha256,
        )


@step("binary")
class Installed(Step):
    """A file of the catalog is at `path`.

    Where the catalog has no checksum of it, the host's own record says which file it is.

    ```yaml
    - name: kubectl
      binary: {path: /usr/local/bin/kubectl, artifact: kubernetes/v1.36.3/kubectl/amd64}
    ```
    """

    path: str
    """Where the file is: an absolute path."""
    artifact: str
    """What the store calls it: component, version, name and architecture, joined by `/`."""
    sha256: str = ""
    """Its checksum, if the catalog has one."""
    mode: Mode = "0755"
    """Octal digits in quotes."""
    value: str = ""
    """The value that says that it is in the store; without one it has to be there already."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True

    def __post_init__(self) -> None:
        require_absolute(path=self.path)
        require_mode(self.mode)
        require_key(self.artifact)

    def summary(self) -> str:
        return f"{self.path} from {self.artifact}"

    def needs(self) -> tuple[str, ...]:
        return (self.value,) if self.value else ()

    def writes(self) -> tuple[str, ...]:
        return (self.path,)

    async def precheck(self, ctx: StepContext) -> Verdict:
        answers = await ctx.host.batch(self._looks(ctx.host))
        found = files.seen(answers[0])
        if found is None:
            return Verdict.needed("does not exist", "+")
        if found.kind == "link":
            return Verdict.needed("is a link, want a file")
        if found.kind != "file":
            raise files.unlike(self.path, found, "file")
        wanted = ctx.assets.digest(self.artifact) or self.sha256
        reasons = self._other(answers, wanted)
        reasons += differences(found, mode_bits(self.mode), owner=None, group=None)
        return Verdict.needed("; ".join(reasons)) if reasons else Verdict.holds()

    def _looks(self, host: Host) -> Sequence[Command]:
        return (
            files.stat_command(host, self.path, sudo=self.sudo),
            files.checksum_command(host, self.path, sudo=self.sudo),
            installed.record_command(host, self.path, sudo=self.sudo),
        )

    def _other(self, answers: Sequence[Completed], wanted: str) -> list[str]:
        """How the content differs from what is wanted, as far as anybody knows."""
        digest = files.checksum_of(answers[1], self.path)
        record = installed.recorded(answers[2])
        if wanted and digest == wanted:
            return []
        if record is None or record.digest != digest:
            return ["content differs"]
        if record.key != self.artifact:
            return [f"is `{record.key}`, want `{self.artifact}`"]
        return ["content differs"] if wanted else []

    async def run(self, ctx: StepContext) -> None:
        digest = _digest(ctx, self.artifact, self.value)
        await ctx.ledger.capture(self.resources[0], partial(self._prior, ctx))
        await files.send(
            ctx.host,
            str(ctx.assets.path(digest)),
            digest,
            self.path,
            mode=mode_bits(self.mode),
            sudo=self.sudo,
            progress=progress_of(ctx),
        )
        record = Record(self.artifact, digest)
        await installed.remember(ctx.host, self.path, record, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        if (prior := ctx.ledger.recall(self.resources[0])) is not None:
            await priors.restore(ctx.host, self.path, prior, sudo=self.sudo)
            await installed.restore_record(ctx.host, self.path, prior, sudo=self.sudo)
        await files.remove_part(ctx.host, self.path, sudo=self.sudo)

    async def _prior(self, ctx: StepContext, copy: str) -> Prior:
        prior = await priors.capture(ctx.host, self.path, copy, sudo=self.sudo)
        return {**prior, "record": await installed.told(ctx.host, self.path, sudo=self.sudo)}


@step("unpacked")
class MembersInstalled(Step):
    """Files out of an archive of the catalog are at their places.

    The host keeps a record of what came out of which archive; a file that has another size or
    mode since is put in its place again.

    ```yaml
    - name: containerd
      unpacked:
        artifact: containerd/v2.2.7/archive/amd64
        members: {"bin/*": /usr/local/bin/}
    ```
    """

    artifact: str
    """What the store calls it: component, version, name and architecture, joined by `/`."""
    members: dict[str, str]
    """Where each file comes, by its name in the archive: a path, or a directory that ends in `/`.
    A name may end in `*`, for all files in a directory of the archive that begin so."""
    sha256: str = ""
    """The checksum of the archive, if the catalog has one."""
    mode: Mode = "0755"
    """Of all these files: octal digits in quotes."""
    value: str = ""
    """The value that says that it is in the store; without one it has to be there already."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True

    def __post_init__(self) -> None:
        require_mode(self.mode)
        require_key(self.artifact)
        if not self.members:
            message = "`members` is empty, want the files and where they come"
            raise BadParameter(message, "write `members: {NAME: /PATH}`")
        for name, place in self.members.items():
            require_absolute(**{f"members.{name}": place})
            if "*" in name and not place.endswith("/"):
                message = f"`members.{name}` is `{place}`, want a directory for many files"
                raise BadParameter(message, f"write `{place}/`")

    def summary(self) -> str:
        return f"files of {self.artifact}"

    def needs(self) -> tuple[str, ...]:
        return (self.value,) if self.value else ()

    def writes(self) -> tuple[str, ...]:
        return tuple(place for place in self.members.values() if not place.endswith("/"))

    async def precheck(self, ctx: StepContext) -> Verdict:
        looks = (installed.record_command(ctx.host, self._place, sudo=self.sudo),)
        record = installed.recorded((await ctx.host.batch(looks))[0])
        if record is None:
            return Verdict.needed("was not unpacked there", "+")
        if record.key != self.artifact:
            return Verdict.needed(f"is `{record.key}`, want `{self.artifact}`")
        wanted = ctx.assets.digest(self.artifact) or self.sha256
        if wanted not in ("", record.digest):
            return Verdict.needed("another archive of this name was unpacked")
        if record.members != self.members:
            return Verdict.needed("other files of it were unpacked")
        reasons = await installed.altered(ctx.host, record, self._mode, sudo=self.sudo)
        return Verdict.needed("; ".join(reasons)) if reasons else Verdict.holds()

    async def run(self, ctx: StepContext) -> None:
        digest = _digest(ctx, self.artifact, self.value)
        archive = await self._sent(ctx, digest)
        names = await archives.names(ctx.host, archive, sudo=self.sudo)
        targets = installed.places(names, self.members)
        look = partial(installed.capture, ctx.host, self._place, [*targets.values()])
        await ctx.ledger.capture(self.resources[0], partial(look, sudo=self.sudo))
        sizes = await installed.put(ctx.host, archive, targets, self._mode, sudo=self.sudo)
        record = Record(self.artifact, digest, self.members, sizes)
        await installed.remember(ctx.host, self._place, record, sudo=self.sudo)
        await files.remove(ctx.host, archive, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        if (prior := ctx.ledger.recall(self.resources[0])) is not None:
            await installed.restore(ctx.host, self._place, prior, sudo=self.sudo)
        archive = installed.archive_path(ctx.host, self._place)
        await files.remove(ctx.host, archive, sudo=self.sudo)
        await files.remove_part(ctx.host, archive, sudo=self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"unpacked:{self._place}",)

    @property
    def _place(self) -> str:
        """What the host knows the files by: the same for all versions of an archive."""
        component, _, *name = self.artifact.split("/")[:3]
        return " ".join((component, *name, *sorted({*self.members.values()})))

    @property
    def _mode(self) -> int:
        return mode_bits(self.mode) or 0

    async def _sent(self, ctx: StepContext, digest: str) -> str:
        """Where the archive lies on the host."""
        path = installed.archive_path(ctx.host, self._place)
        await installed.make_room(ctx.host, sudo=self.sudo)
        source, progress = str(ctx.assets.path(digest)), progress_of(ctx)
        await files.send(
            ctx.host, source, digest, path, mode=0o600, sudo=self.sudo, progress=progress
        )
        return path


def require_key(artifact: str) -> None:
    """An artifact is called by its component, its version and its name, at least."""
    if len(list(filter(None, artifact.split("/")))) < _PARTS:
        message = f"`artifact` is `{artifact}`, want component, version and name"
        raise BadParameter(message, "write such as `kubernetes/v1.36.3/kubectl/amd64`")


def _digest(ctx: StepContext, artifact: str, value: str) -> str:
    """The sha256 of an artifact that has to be in the store by now."""
    found: str | None = ctx.values[value] if value else ctx.assets.digest(artifact)
    if found is None:
        message = f"`{artifact}` is not in the store of artifacts"
        raise StepFailed(message, hint="fetch it with an `artifact` step before this one")
    return found
