"""Steps that write secrets: graphs hold references, the values are known only while they run.

Their prechecks need those values, so they are coroutines and never fused with others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from kubexm.common.secrets import SecretRef
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.files import FilePresent, Rendered
from kubexm.step.parameters import (
    Mode,
    require_absolute,
    require_mode,
    require_one,
    require_references,
)
from kubexm.step.registry import step


@step("secret-file")
class SecretFile(Step):
    """A file is at `path` whose whole content is a secret, given as a reference."""

    path: str
    content: str
    mode: Mode = "0600"
    owner: str | None = None
    group: str | None = None
    sudo: bool | None = None

    declares_intent = True

    def __post_init__(self) -> None:
        require_absolute(path=self.path)
        require_mode(self.mode)
        require_references(content=self.content)

    def summary(self) -> str:
        return f"file {self.path} from {self.content}"

    async def precheck(self, ctx: StepContext) -> Verdict:
        return await self._file(_reveal(ctx, self.content)).precheck(ctx)

    async def run(self, ctx: StepContext) -> None:
        await self._file(_reveal(ctx, self.content)).run(ctx)

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
    """A template filled in with secrets too: values of references, under the names given."""

    path: str
    secrets: dict[str, str]
    template: str | None = None
    text: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    mode: Mode = "0600"
    owner: str | None = None
    group: str | None = None
    sudo: bool | None = None

    declares_intent = True

    def __post_init__(self) -> None:
        require_absolute(path=self.path)
        require_mode(self.mode)
        require_one(template=self.template, text=self.text)
        require_references(**{f"secrets.{name}": uri for name, uri in self.secrets.items()})

    def summary(self) -> str:
        return f"file {self.path} from {self.template or 'a template'}"

    async def precheck(self, ctx: StepContext) -> Verdict:
        return await self._file(self._revealed(ctx)).precheck(ctx)

    async def run(self, ctx: StepContext) -> None:
        await self._file(self._revealed(ctx)).run(ctx)

    async def rollback(self, ctx: StepContext) -> None:
        await FilePresent(self.path, sudo=self.sudo).rollback(ctx)

    def _revealed(self, ctx: StepContext) -> Mapping[str, str]:
        return {name: _reveal(ctx, uri) for name, uri in self.secrets.items()}

    def _file(self, secrets: Mapping[str, str]) -> FilePresent:
        return Rendered(
            path=self.path,
            template=self.template,
            text=self.text,
            data={**self.data, **secrets},
            mode=self.mode,
            owner=self.owner,
            group=self.group,
            secret=True,
            sudo=self.sudo,
        ).file()


def _reveal(ctx: StepContext, uri: str) -> str:
    return ctx.secrets.reveal(SecretRef(uri))
