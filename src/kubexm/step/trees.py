"""The step about many files at once: a directory of ours, mirrored on a host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial
from hashlib import sha256
from typing import Any

from kubexm.common.counting import counted, few
from kubexm.runner import files, trees
from kubexm.runner.host import Command, Completed, Host
from kubexm.runner.priors import Prior
from kubexm.runner.trees import Found, Wanted
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.files import differences
from kubexm.step.parameters import PLANNED, Mode, mode_bits, require_absolute, require_mode
from kubexm.step.registry import step
from kubexm.step.transfers import progress_of


@step("tree")
class Mirrored(Step):
    """All files below `source`, a directory of the machine that runs kubexm, are below `path` too.

    Those that differ are sent in one stream, and each is put in place whole. What is below `path`
    and not below `source` is left alone, and so is a directory that is there already. Links, pipes
    and devices below `source` are refused.

    ```yaml
    - name: site
      tree: {source: site, path: /srv/shop/site, owner: shop, group: shop}
    ```
    """

    path: str
    """The directory on the host: an absolute path; it is made, with all above it."""
    source: str
    """The directory on the machine that runs kubexm, beside the pipeline file unless it begins
    with `/`."""
    mode: Mode = None
    """Of the files, octal digits in quotes, such as `"0644"`; as it is below `source` unless
    given."""
    directory_mode: Mode = None
    """The same for directories that are made."""
    owner: str | None = None
    """The user that all files belong to, by name or number; left alone unless given."""
    group: str | None = None
    """Their group, by name or number; left alone unless given."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""
    contents: dict[str, str] = field(default_factory=dict, metadata=PLANNED)
    """Mode and sha256 of each file, by its name below `source`."""
    directories: dict[str, str] = field(default_factory=dict, metadata=PLANNED)
    """The mode of each directory, by its name below `source`; `.` is that itself."""

    declares_intent = True

    def __post_init__(self) -> None:
        require_absolute(path=self.path, source=self.source)
        require_mode(self.mode)
        require_mode(self.directory_mode, "directory_mode")

    def summary(self) -> str:
        return f"{counted(len(self.contents), 'file')} below {self.path}"

    def writes(self) -> tuple[str, ...]:
        return tuple(self._at(name) for name in self.contents)

    @property
    def resources(self) -> tuple[str, ...]:
        # By the names: of a plan with others, what was there before has to be looked at anew.
        names = "\0".join(sorted((*self.contents, *self.directories)))
        return (f"tree:{self._top}:{sha256(names.encode()).hexdigest()[:16]}",)

    def probe(self, host: Host) -> Sequence[Command]:
        return trees.look_commands(host, self._paths, list(self.writes()), sudo=self.sudo)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        found = trees.found(answers, self._paths)
        self._require_kinds(found)
        wanting = {name: reason for name in self.contents if (reason := self._lacks(name, found))}
        missing = [name for name in self.directories if self._at(name) not in found.stats]
        if not wanting and not missing:
            return Verdict.holds()
        if self._top not in found.stats:
            return Verdict.needed("does not exist", "+")
        return Verdict.needed(_summed_up(wanting, missing, len(self.contents)), "~")

    async def run(self, ctx: StepContext) -> None:
        found = trees.found(await ctx.host.batch(self.probe(ctx.host)), self._paths)
        await ctx.ledger.capture(self.resources[0], partial(self._prior, ctx, found))
        chosen = {name: file for name, file in self._wanted.items() if self._lacks(name, found)}
        made = {
            name: mode_bits(self.directory_mode or mode) or 0
            for name, mode in self.directories.items()
            if name == "." or self._at(name) not in found.stats
        }
        settings: Any = {"owner": self.owner, "group": self.group, "sudo": self.sudo}
        await trees.send(
            ctx.host,
            self.source,
            self._top,
            chosen,
            made,
            found,
            **settings,
            progress=progress_of(ctx),
        )

    async def rollback(self, ctx: StepContext) -> str | None:
        if (prior := ctx.ledger.recall(self.resources[0])) is None:
            return None
        return await trees.restore(ctx.host, self._top, prior, sudo=self.sudo)

    @property
    def _top(self) -> str:
        return self.path.rstrip("/")

    def _at(self, name: str) -> str:
        return self._top if name == "." else f"{self._top}/{name}"

    @property
    def _paths(self) -> list[str]:
        return [*(self._at(name) for name in self.directories), *self.writes()]

    @cached_property
    def _wanted(self) -> Mapping[str, Wanted]:
        given = mode_bits(self.mode)
        parts = {name: text.split() for name, text in self.contents.items()}
        return {
            name: Wanted(int(mode, 8) if given is None else given, digest)
            for name, (mode, digest) in parts.items()
        }

    def _lacks(self, name: str, found: Found) -> str:
        """How a file differs from what is wanted; nothing if it does not."""
        at, wanted = self._at(name), self._wanted[name]
        if (there := found.stats.get(at)) is None:
            return "does not exist"
        if there.kind == "link":
            return "is a link, want a file"
        reasons = differences(there, wanted.mode, self.owner, self.group)
        if found.digests.get(at) != wanted.digest:
            reasons.insert(0, "content differs")
        return "; ".join(reasons)

    def _require_kinds(self, found: Found) -> None:
        for name in self.directories:
            there = found.stats.get(self._at(name))
            if there is not None and there.kind != "directory":
                raise files.unlike(self._at(name), there, "directory")
        for name in self.contents:
            there = found.stats.get(self._at(name))
            if there is not None and there.kind not in ("file", "link"):
                raise files.unlike(self._at(name), there, "file")

    async def _prior(self, ctx: StepContext, found: Found, copy: str) -> Prior:
        names, directories = list(self.contents), list(self.directories)
        return await trees.capture(
            ctx.host, self._top, names, directories, copy, found, sudo=self.sudo
        )


def _summed_up(wanting: Mapping[str, str], missing: Sequence[str], total: int) -> str:
    """What has to be sent, and why the first of it."""
    if not wanting:
        return f"{few(missing)} missing"
    name, reason = next(iter(wanting.items()))
    return f"{len(wanting)} of {counted(total, 'file')}: `{name}` {reason}"
