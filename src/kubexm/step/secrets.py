"""Steps that write secrets: graphs hold references, the values are known only while they run.

Their prechecks need those values, so they are coroutines and never fused with others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.files import FilePresent, Rendered, require_structure
from kubexm.step.parameters import (
    PRIVATE_MODE,
    Mode,
    require_absolute,
    require_mode,
    require_one,
    require_references,
)
from kubexm.step.registry import step
from kubexm.templates.context import Format


@step("secret-file")
class SecretFile(Step):
    """A file is at `path` whose whole content is a secret, given as a reference.

    ```yaml
    - name: token
      secret-file: {path: /etc/shop/token, content: "env://SHOP_TOKEN", owner: shop}
    ```
    """

    path: str
    """Where the file is: an absolute path."""
    content: str
    """The reference: `env://NAME` or `file:///PATH`."""
    mode: Mode = PRIVATE_MODE
    """Octal digits in quotes, such as `"0640"`."""
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
        require_references(content=self.content)

    def summary(self) -> str:
        return f"file {self.path} from {self.content}"

    def writes(self) -> tuple[str, ...]:
        return (self.path,)

    async def precheck(self, ctx: StepContext) -> Verdict:
        return await self._file(ctx.reveal(self.content)).precheck(ctx)

    async def run(self, ctx: StepContext) -> None:
        await self._file(ctx.reveal(self.content)).run(ctx)

    async def rollback(self, ctx: StepContext) -> None:
        await FilePresent(self.path, sudo=self.sudo).rollback(ctx)

    def _file(self, content: str) -> FilePresent:
        return FilePresent(
            path=self.path,
            content=content,
            mode=self.mode,
            owner=self.owner,
            group=self.group,
            secret=True,
            sudo=self.sudo,
        )


@step("secret-template")
class RenderedSecret(Step):
    """A template filled in with secrets too: values of references, under the names given.

    ```yaml
    - name: settings
      secret-template:
        path: /etc/shop/settings.ini
        text: |
          password = {{ password }}
        secrets: {password: "env://SHOP_PASSWORD"}
    ```
    """

    path: str
    """Where the file is: an absolute path."""
    secrets: Mapping[str, str | dict[str, str]]
    """References to secrets, by the names that the template has for them; a mapping of them is one
    there too."""
    template: str | None = None
    """The name of a template that comes with the program, such as `systemd/service`."""
    text: str | None = None
    """The template itself, in Jinja; give this or `template`."""
    data: dict[str, Any] = field(default_factory=dict)
    """What the template may use, by name; one that it uses and is not given is an error."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Values that win over what comes out, as for `template`."""
    format: Format = "text"
    """What the file is; `overrides` need `yaml`, `manifests`, `json` or `toml`."""
    mode: Mode = PRIVATE_MODE
    """Octal digits in quotes, such as `"0640"`."""
    owner: str | None = None
    """The user it belongs to, by name or number; left alone unless given."""
    group: str | None = None
    """Its group, by name or number; left alone unless given."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    takes_secrets = ("data", "text")

    def __post_init__(self) -> None:
        require_absolute(path=self.path)
        require_mode(self.mode)
        require_one(template=self.template, text=self.text)
        require_structure(self.format, self.overrides)
        require_references(**{f"secrets.{name}": uri for name, uri in self._references()})

    def summary(self) -> str:
        return f"file {self.path} from {self.template or 'a template'}"

    def writes(self) -> tuple[str, ...]:
        return (self.path,)

    async def precheck(self, ctx: StepContext) -> Verdict:
        return await self._file(self._revealed(ctx)).precheck(ctx)

    async def run(self, ctx: StepContext) -> None:
        await self._file(self._revealed(ctx)).run(ctx)

    async def rollback(self, ctx: StepContext) -> None:
        await FilePresent(self.path, sudo=self.sudo).rollback(ctx)

    def _references(self) -> Iterator[tuple[str, str]]:
        for name, held in self.secrets.items():
            if isinstance(held, str):
                yield name, held
            else:
                yield from ((f"{name}.{key}", uri) for key, uri in held.items())

    def _revealed(self, ctx: StepContext) -> Mapping[str, Any]:
        return {
            name: ctx.reveal(held)
            if isinstance(held, str)
            else {key: ctx.reveal(uri) for key, uri in held.items()}
            for name, held in self.secrets.items()
        }

    def _file(self, secrets: Mapping[str, Any]) -> FilePresent:
        return Rendered(
            path=self.path,
            template=self.template,
            text=self.text,
            data={**self.data, **secrets},
            overrides=self.overrides,
            format=self.format,
            mode=self.mode,
            owner=self.owner,
            group=self.group,
            secret=True,
            sudo=self.sudo,
        ).file()
