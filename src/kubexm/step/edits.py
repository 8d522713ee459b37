"""Steps about part of a file: a block or a line of ours in a file of others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from kubexm.common.counting import counted
from kubexm.errors import StepFailed
from kubexm.runner import files, priors, text
from kubexm.runner.host import Command, Completed, Host
from kubexm.runner.priors import Prior
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Values, Verdict
from kubexm.step.parameters import PRIVATE_MODE, mode_bits, require_absolute
from kubexm.step.registry import step


class Edit(Step):
    """A file is read whole, changed as text, and written back; the rest of it stays."""

    path: str
    """Where the file is: an absolute path; a missing file is made."""
    secret: bool
    """Never show what differs in the content; always so if a secret value is in it, and a file that
    is made for it has the mode `0600`."""
    sudo: bool | None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True

    def edited(self, old: str) -> str:
        """The text as it is wanted."""
        raise NotImplementedError

    def reason(self, old: str) -> str:
        """Why the text is not as it is wanted."""
        raise NotImplementedError

    def resource(self) -> str:
        """What the ledger calls the part of the file that is ours."""
        raise NotImplementedError

    @property
    def resources(self) -> tuple[str, ...]:
        return (self.resource(),)

    def taken(self, old: str) -> Mapping[str, Any]:
        """What the edit takes out of the text, and where it was."""
        raise NotImplementedError

    def undone(self, now: str, prior: Mapping[str, Any]) -> str:
        """The text without the edit, and with what it took out."""
        raise NotImplementedError

    @classmethod
    def with_secret(cls, params: Values) -> Values:
        return {**params, "secret": True}

    def writes(self) -> tuple[str, ...]:
        return (self.path,)

    def probe(self, host: Host) -> Sequence[Command]:
        return (
            files.stat_command(host, self.path, sudo=self.sudo),
            files.content_command(host, self.path, files.EDITED + 1, sudo=self.sudo),
        )

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        old = self._found(answers)
        new = self.edited(old or "")
        if new == (old or ""):
            return Verdict.holds()
        diff = "" if self.secret else self._diff(answers[0], old, new)
        return Verdict.needed(self.reason(old or ""), "+" if old is None else "~", diff)

    async def run(self, ctx: StepContext) -> None:
        answers = await ctx.host.batch(self.probe(ctx.host))
        old = self._found(answers)
        await ctx.ledger.capture(self.resource(), partial(self._prior, ctx, answers))
        new = text.encoded(self.edited(old or ""))
        mode = mode_bits(PRIVATE_MODE) if self.secret and old is None else None
        await files.write(ctx.host, self.path, new, mode=mode, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        prior, now = ctx.ledger.recall(self.resource()), await self._read(ctx)
        if prior is None or now is None:
            return
        old = self.undone(now, await priors.told(ctx.host, prior, sudo=self.sudo))
        if len(text.split(old)) == prior["lines"]:
            # Nobody has added any: the last line is the one that was the last.
            old = text.joined(text.split(old), prior["final_newline"])
        if not prior["existed"] and not old:
            await files.remove(ctx.host, self.path, sudo=self.sudo)
        elif old != now:
            await files.write(ctx.host, self.path, text.encoded(old), sudo=self.sudo)

    async def _read(self, ctx: StepContext) -> str | None:
        return self._found(await ctx.host.batch(self.probe(ctx.host)))

    async def _prior(self, ctx: StepContext, answers: Sequence[Completed], copy: str) -> Prior:
        found, old = files.seen(answers[0]), self._found(answers)
        taken = self.taken(old or "")
        if self.secret or (found is not None and files.is_private(found)):
            # What gives way to a secret was most likely one too.
            taken = await priors.untold(ctx.host, copy, taken, sudo=self.sudo)
        return {
            "existed": old is not None,
            "lines": len(text.split(old or "")),
            "final_newline": text.ends_its_last_line(old or ""),
            **taken,
        }

    def _diff(self, look: Completed, old: str | None, new: str) -> str:
        found = files.seen(look)
        if found is None or old is None:
            return text.diff(self.path, None, text.encoded(new))
        shown = text.additions if files.is_private(found) else text.diff
        return shown(self.path, text.encoded(old), text.encoded(new))

    def _found(self, answers: Sequence[Completed]) -> str | None:
        found = files.seen(answers[0])
        if found is None:
            return None
        if found.kind == "other":
            raise files.unlike(self.path, found, "file")
        if found.kind != "file":
            raise StepFailed(
                f"`{self.path}` is a {found.kind}, want a file",
                hint="name the file itself: only that can be edited",
            )
        if found.size > files.EDITED:
            raise StepFailed(
                f"`{self.path}` has {found.size} bytes, want at most {files.EDITED} to edit it",
                hint="replace it with a `file` step, or edit it with a `command` step",
            )
        return text.decoded(files.content(answers[1], self.path))


@step("block")
class ManagedBlock(Edit):
    """A file has a block of lines between two marks; the rest of the file is not ours.

    ```yaml
    - name: addresses
      block:
        path: /etc/hosts
        marker: shop
        content: |
          10.0.0.5 db.shop.internal
    ```
    """

    path: str
    content: str
    """The lines between the marks."""
    marker: str = "managed"
    """The name in the marks; blocks of one file are told apart by it."""
    comment: str = "#"
    """What a comment begins with in this file: the marks are comments."""
    secret: bool = False
    sudo: bool | None = None

    takes_secrets = ("content",)

    def __post_init__(self) -> None:
        require_absolute(path=self.path)
        if not self.marker.strip() or "\n" in self.marker + self.comment:
            raise ValueError(f"`marker` is `{self.marker}`, want a name on one line")
        if set(text.markers(self.marker, self.comment)) & set(self.content.split("\n")):
            raise ValueError("`content` holds one of the marks around the block itself")

    def summary(self) -> str:
        return f"block {self.marker} in {self.path}"

    def edited(self, old: str) -> str:
        return text.with_block(old, self.marker, self.content, self.comment)

    def reason(self, old: str) -> str:
        found = text.block_lines(old, self.marker, self.comment)
        return f"block `{self.marker}` {'differs' if found else 'is missing'}"

    def resource(self) -> str:
        return f"block:{self.path}#{self.marker}"

    def taken(self, old: str) -> Mapping[str, Any]:
        return {"block": text.block_lines(old, self.marker, self.comment)}

    def undone(self, now: str, prior: Mapping[str, Any]) -> str:
        return text.replaced_block(now, self.marker, prior["block"], self.comment)


@step("line")
class LineInFile(Edit):
    """A file has a line, in place of all that match; or, with `absent`, none of them.

    ```yaml
    - name: root-login
      line:
        path: /etc/ssh/sshd_config
        line: PermitRootLogin no
        match: "^#?PermitRootLogin "
    ```
    """

    path: str
    line: str
    """The whole line; at the end of the file if there is nothing it replaces."""
    match: str = ""
    """A regular expression; lines in which it is found give way to `line`."""
    absent: bool = False
    """Remove the line and all that match, in place of adding it."""
    secret: bool = False
    sudo: bool | None = None

    takes_secrets = ("line",)

    def __post_init__(self) -> None:
        require_absolute(path=self.path)
        if not self.line or "\n" in self.line:
            raise ValueError("`line` is empty or several lines, want one line")
        try:
            re.compile(self.match)
        except re.error as error:
            raise ValueError(f"`match` is no regular expression: {error}") from error

    def summary(self) -> str:
        return f"{'no ' if self.absent else ''}line `{self.line}` in {self.path}"

    def edited(self, old: str) -> str:
        return self._edit(old)[0]

    def reason(self, old: str) -> str:
        if self.absent:
            return f"{counted(len(self._edit(old)[1]), 'line')} to remove"
        return "line differs" if self._edit(old)[1] else "line is missing"

    def resource(self) -> str:
        # Edits of the same lines are of one thing, however the line is to be.
        names = (self.match, "" if self._matches_itself() else self._named())
        return f"line:{self.path}#{'#'.join(filter(None, names))}"

    def taken(self, old: str) -> Mapping[str, Any]:
        return {"found": text.lines_of(old, self.line, self.match)}

    def undone(self, now: str, prior: Mapping[str, Any]) -> str:
        left = [line for _, line in text.lines_of(now, self.line, self.match)]
        if left != ([] if self.absent else [self.line]):
            return now  # it is undone already, or somebody has put others in their place
        return text.with_lines(now, self.line, self.match, prior["found"])

    def _matches_itself(self) -> bool:
        return bool(self.match) and re.search(self.match, self.line) is not None

    def _named(self) -> str:
        return sha256(self.line.encode()).hexdigest() if self.secret else self.line

    def _edit(self, old: str) -> tuple[str, text.Taken]:
        change = text.without_lines if self.absent else text.with_line
        return change(old, self.line, self.match)
