"""Steps about files and directories: what is at a path, and what it is like."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from hashlib import sha256
from typing import Any

from kubexm.errors import StepFailed
from kubexm.runner import files, priors, text
from kubexm.runner.host import Command, Completed, FileStat, Host
from kubexm.runner.priors import Prior
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Values, Verdict
from kubexm.step.parameters import (
    PLANNED,
    PRIVATE_MODE,
    BadParameter,
    Mode,
    mode_bits,
    require_absolute,
    require_at_most_one,
    require_base64,
    require_mode,
    require_one,
)
from kubexm.step.registry import step
from kubexm.step.transfers import progress_of
from kubexm.templates import render
from kubexm.templates.context import STRUCTURED, Format

_UNTOLD = " (not shown: the file is private)"
"""Of a file that not everyone may read: whoever sees a dry run may not be one of those who may."""


@step("file")
class FilePresent(Step):
    """A file is at `path`; content, mode, owner and group are as given, or left alone.

    ```yaml
    - name: motd
      file:
        path: /etc/motd
        content: |
          Welcome to ${host.name}.
        mode: "0644"
    ```
    """

    path: str
    """Where the file is: an absolute path."""
    content: str | None = None
    """All that the file holds; without it, what is there stays, and a new file is empty."""
    content_base64: str | None = None
    """The same in base64, for what is no text."""
    source: str | None = None
    """A file of the machine that runs kubexm, in place of `content`: its path, beside the pipeline
    file unless it begins with `/`. It may be large: above 64 KiB it is sent in a stream, which
    goes on where it was cut off, and the plan holds its checksum in place of its content."""
    sha256: str | None = field(default=None, metadata=PLANNED)
    """The checksum that `source` has to have."""
    mode: Mode = None
    """Octal digits in quotes, such as `"0644"`; left alone unless given, `0644` for a new file;
    `0600` if a secret value is in it."""
    owner: str | None = None
    """The user it belongs to, by name or number; left alone unless given."""
    group: str | None = None
    """Its group, by name or number; left alone unless given."""
    secret: bool = False
    """Never show what differs in the content; always so if a secret value is in it."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    takes_secrets = ("content", "content_base64")

    def __post_init__(self) -> None:
        require_absolute(path=self.path)
        require_mode(self.mode)
        require_at_most_one(
            content=self.content, content_base64=self.content_base64, source=self.source
        )
        require_absolute(source=self.source)
        if (self.source is None) != (self.sha256 is None):
            raise ValueError("`source` needs `sha256`")
        if self.content_base64 is not None:
            require_base64(content_base64=self.content_base64)

    def summary(self) -> str:
        return f"file {self.path}"

    @classmethod
    def with_secret(cls, params: Values) -> Values:
        return _private(params)

    def writes(self) -> tuple[str, ...]:
        return (self.path,)

    def probe(self, host: Host) -> Sequence[Command]:
        look = files.stat_command(host, self.path, sudo=self.sudo)
        if not self._has_content:
            return (look,)
        if self._is_compared:
            read = files.content_command(host, self.path, files.SHOWN + 1, sudo=self.sudo)
        else:
            read = files.checksum_command(host, self.path, sudo=self.sudo)
        return look, read

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        found = files.seen(answers[0])
        if found is None:
            return Verdict.needed("does not exist", "+", self._diff(None))
        if found.kind != "file" and (found.kind != "link" or not self._has_content):
            raise files.unlike(self.path, found, "file")
        if found.kind == "link":
            return Verdict.needed("is a link, want a file", "~")
        reasons = differences(found, mode_bits(self.mode), self.owner, self.group)
        diff = ""
        if self._differs(answers):
            untold = files.is_private(found) and not self.secret
            reasons.insert(0, "content differs" + _UNTOLD * untold)
            diff = "" if untold else self._diff(answers[1].stdout)
        return Verdict.needed("; ".join(reasons), "~", diff) if reasons else Verdict.holds()

    async def run(self, ctx: StepContext) -> None:
        await _remember(ctx, self.path, private=self.secret, sudo=self.sudo)
        attributes: Any = {"mode": mode_bits(self.mode), "owner": self.owner, "group": self.group}
        content = self._wanted
        if self.source is not None and self.sha256 is not None:
            attributes |= {"sudo": self.sudo, "progress": progress_of(ctx)}
            await files.send(ctx.host, self.source, self.sha256, self.path, **attributes)
        elif content is None and await files.exists(ctx.host, self.path, sudo=self.sudo):
            await files.set_attributes(ctx.host, self.path, **attributes, sudo=self.sudo)
        else:
            await files.write(ctx.host, self.path, content or b"", **attributes, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        await _restored(ctx, self.path, self.sudo)
        if self.source is not None:
            await files.remove_part(ctx.host, self.path, sudo=self.sudo)

    @property
    def _has_content(self) -> bool:
        return self.source is not None or self._wanted is not None

    @property
    def _wanted(self) -> bytes | None:
        if self.content_base64 is not None:
            return b64decode(self.content_base64)
        return None if self.content is None else self.content.encode()

    @property
    def _is_compared(self) -> bool:
        """Whether the content itself is looked at, and not only its checksum."""
        is_short = self.source is None and len(self._wanted or b"") <= files.SHOWN
        return is_short and not self.secret

    def _differs(self, answers: Sequence[Completed]) -> bool:
        if not self._has_content:
            return False
        if self._is_compared:
            return files.content(answers[1], self.path) != self._wanted
        wanted = self.sha256 or sha256(self._wanted or b"").hexdigest()
        return files.checksum_of(answers[1], self.path) != wanted

    def _diff(self, old: bytes | None) -> str:
        if self._wanted is None or not self._is_compared:
            return ""
        return text.diff(self.path, old, self._wanted)


@step("template")
class Rendered(Step):
    """A file is at `path` with a template filled in; one of the program's, or `text`.

    It is Jinja with its usual settings: a line with nothing but `{% … %}` leaves an empty one,
    unless `{%- … %}` or `{% … -%}` takes the white space away, and the line end of the text stays.
    Nothing is escaped, a template can only read its data, and an undefined name is an error.

    ```yaml
    - name: unit
      template:
        path: /etc/systemd/system/shop.service
        template: systemd/service
        data: {command: [/usr/bin/shop, serve], user: shop}
    ```
    """

    path: str
    """Where the file is: an absolute path."""
    template: str | None = None
    """The name of a template that comes with the program, such as `systemd/service`."""
    text: str | None = None
    """The template itself, in Jinja; give this or `template`."""
    data: dict[str, Any] = field(default_factory=dict)
    """What the template may use, by name; one that it uses and is not given is an error."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Values that win over what comes out, by key: mappings are merged, all else is replaced, and
    `null` takes a key out. For `manifests` each stands under the `kind` that it is about, or under
    `kind/name`; in those of kubeadm, lists of entries with a `name` are merged by it."""
    format: Format = "text"
    """What the file is; `overrides` need `yaml`, `manifests`, `json` or `toml`."""
    mode: Mode = None
    """Octal digits in quotes, such as `"0644"`; left alone unless given, `0644` for a new file;
    `0600` if a secret value is in it."""
    owner: str | None = None
    """The user it belongs to, by name or number; left alone unless given."""
    group: str | None = None
    """Its group, by name or number; left alone unless given."""
    secret: bool = False
    """Never show what differs in the content; always so if a secret value is in it."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    takes_secrets = ("data", "text")

    def __post_init__(self) -> None:
        require_absolute(path=self.path)
        require_mode(self.mode)
        require_one(template=self.template, text=self.text)
        require_structure(self.format, self.overrides)

    def summary(self) -> str:
        return f"file {self.path} from {self.template or 'a template'}"

    @classmethod
    def with_secret(cls, params: Values) -> Values:
        return _private(params)

    def writes(self) -> tuple[str, ...]:
        return (self.path,)

    def probe(self, host: Host) -> Sequence[Command]:
        return self.file().probe(host)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        return self.file().judge(answers)

    async def run(self, ctx: StepContext) -> None:
        await self.file().run(ctx)

    async def rollback(self, ctx: StepContext) -> None:
        await _restored(ctx, self.path, self.sudo)

    def file(self) -> FilePresent:
        """The file as it is wanted, the template filled in."""
        return FilePresent(
            path=self.path,
            content=self._content(),
            mode=self.mode,
            owner=self.owner,
            group=self.group,
            secret=self.secret,
            sudo=self.sudo,
        )

    def _content(self) -> str:
        if self.template is None:
            return render.merged(self.text or "", self.data, self.overrides, self.format)
        source, what = render.source(self.template), f"template `{self.template}`"
        return render.merged(source, self.data, self.overrides, self.format, what=what)


@step("absent")
class Absent(Step):
    """Nothing is at `path`; a directory goes only with `recursive`, and all that is in it.

    ```yaml
    - name: default-site
      absent: {path: /etc/nginx/sites-enabled/default}
    ```
    """

    path: str
    """What must not be there: an absolute path."""
    recursive: bool = False
    """Remove a directory too, with all that is in it."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True

    def __post_init__(self) -> None:
        require_absolute(path=self.path)

    def summary(self) -> str:
        return f"nothing at {self.path}"

    def writes(self) -> tuple[str, ...]:
        return (self.path,)

    def probe(self, host: Host) -> Sequence[Command]:
        return (files.stat_command(host, self.path, sudo=self.sudo),)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        found = files.seen(answers[0])
        if found is None:
            return Verdict.holds()
        if found.kind == "directory" and not self.recursive:
            raise StepFailed(
                f"`{self.path}` is a directory",
                hint="set `recursive: true` to remove it with all that is in it",
            )
        if found.kind == "other":
            raise priors.lost_if_removed(self.path)
        return Verdict.needed(f"a {found.kind} is there", "-")

    async def run(self, ctx: StepContext) -> None:
        found = await files.stat(ctx.host, self.path, sudo=self.sudo)
        if found is not None and found.kind == "directory":
            await _remember_tree(ctx, self.path, self.sudo)
        else:
            await _remember(ctx, self.path, private=False, sudo=self.sudo)
        await files.remove(ctx.host, self.path, recursive=self.recursive, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        await _restored(ctx, self.path, self.sudo)


@step("directory")
class Directory(Step):
    """A directory is at `path`, and all above it; mode, owner and group are its own.

    ```yaml
    - name: data
      directory: {path: /var/lib/shop, mode: "0750", owner: shop}
    ```
    """

    path: str
    """Where the directory is: an absolute path."""
    mode: Mode = None
    """Octal digits in quotes, such as `"0755"`; left alone unless given."""
    owner: str | None = None
    """The user it belongs to, by name or number; left alone unless given."""
    group: str | None = None
    """Its group, by name or number; left alone unless given."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True

    def __post_init__(self) -> None:
        require_absolute(path=self.path)
        require_mode(self.mode)

    def summary(self) -> str:
        return f"directory {self.path}"

    def probe(self, host: Host) -> Sequence[Command] | None:
        return (files.stat_command(host, self.path, sudo=self.sudo),)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        found = files.seen(answers[0])
        if found is None:
            return Verdict.needed("does not exist", "+")
        if found.kind != "directory":
            raise files.unlike(self.path, found, "directory")
        reasons = differences(found, mode_bits(self.mode), self.owner, self.group)
        return Verdict.needed("; ".join(reasons), "~") if reasons else Verdict.holds()

    async def run(self, ctx: StepContext) -> None:
        await ctx.ledger.capture(self.resources[0], partial(self._prior, ctx))
        mode = mode_bits(self.mode)
        await files.make_directory(ctx.host, self.path, mode=mode, sudo=self.sudo)
        await files.set_attributes(
            ctx.host, self.path, mode=mode, owner=self.owner, group=self.group, sudo=self.sudo
        )

    async def rollback(self, ctx: StepContext) -> str | None:
        prior = ctx.ledger.recall(self.resources[0])
        if prior is None:
            return None
        if prior["kind"] == "directory":
            await priors.restore(ctx.host, self.path, prior, sudo=self.sudo)
            return None
        for path in prior["made"]:
            # What others have put there meanwhile is not ours: such a directory stays.
            if not await files.remove_empty(ctx.host, path, sudo=self.sudo):
                return f"`{path}` is not empty"
        return None

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"directory:{self.path}",)

    async def _prior(self, ctx: StepContext, copy: str) -> Prior:
        if made := await files.missing(ctx.host, self.path, sudo=self.sudo):
            return {"kind": "absent", "made": made}
        return await priors.capture(ctx.host, self.path, copy, sudo=self.sudo)


def _private(params: Values) -> Values:
    """A file with a secret in it: for its owner alone unless a mode is given, and never shown."""
    return {**params, "secret": True, "mode": params.get("mode") or PRIVATE_MODE}


def require_structure(form: Format, overrides: Mapping[str, Any]) -> None:
    """Single values can be changed only in a file that is data."""
    if overrides and form not in STRUCTURED:
        raise BadParameter(
            f"`overrides` beside `format: {form}`, want one of {', '.join(STRUCTURED)}",
            "say what the file is, or change the template",
        )


def differences(
    found: FileStat, mode: int | None, owner: str | None, group: str | None
) -> list[str]:
    """How a path differs from what is wanted, found and wanted."""
    reasons = []
    if mode is not None and found.mode != mode:
        reasons.append(f"mode {found.mode:04o}, want {mode:04o}")
    if owner is not None and not found.owned_by(owner):
        reasons.append(f"owner {found.owner}, want {owner}")
    if group is not None and not found.in_group(group):
        reasons.append(f"group {found.group}, want {group}")
    return reasons


async def _remember(ctx: StepContext, path: str, *, private: bool, sudo: bool | None) -> None:
    look = partial(priors.capture, ctx.host, path, private=private, sudo=sudo)
    await ctx.ledger.capture(f"file:{path}", look)


async def _remember_tree(ctx: StepContext, path: str, sudo: bool | None) -> None:
    look = partial(priors.capture_tree, ctx.host, path, sudo=sudo)
    await ctx.ledger.capture(f"file:{path}", look)


async def _restored(ctx: StepContext, path: str, sudo: bool | None) -> None:
    prior = ctx.ledger.recall(f"file:{path}")
    if prior is not None:
        await priors.restore(ctx.host, path, prior, sudo=sudo)
