"""Steps that leave a value for others: read from a host, or made there."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from kubexm.common.quoting import typed
from kubexm.errors import CommandFailed, StepFailed
from kubexm.plan.node import Key
from kubexm.runner.host import Completed
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Minter, Outcome, Reader, Step, Verdict
from kubexm.step.parameters import require_argv, require_references
from kubexm.step.registry import step

Parse = Literal["text", "lines", "json"]


@dataclass(frozen=True)
class Output(Step):
    """What a command writes becomes the value `key`."""

    key: str
    """The name in `${values.NAME}`."""
    argv: tuple[str, ...]
    """The program and its arguments; no shell stands in between."""
    parse: Parse = "text"
    """How to read what the command writes: as it is, as a list of the lines that are not blank, or
    as JSON."""
    scope: Literal["run", "host"] = "run"
    """`run`: one value for all hosts, made on one. `host`: each host makes its own."""
    ttl: float | None = None
    """Seconds it is good for; who needs it later has it made again. For ever if not given."""
    secret: bool = False
    """Mask the value in all output, encrypt it in the journal, and never show what the command
    says, also where it fails."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""
    user: str | None = None
    """Run as this user, whatever `sudo` says."""
    cwd: str | None = None
    """The directory the command runs in."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the command."""
    secret_env: dict[str, str] = field(default_factory=dict)
    """The same with values that are references to secrets."""

    takes_secrets = ("env",)

    def __post_init__(self) -> None:
        require_argv(argv=self.argv)
        require_references(**{f"secret_env.{name}": uri for name, uri in self.secret_env.items()})
        if not self.key.isidentifier():
            raise ValueError(f"`key` is `{self.key}`, want a name of letters, digits and _")
        if self.ttl is not None and self.ttl <= 0:
            raise ValueError(f"`ttl` is {self.ttl:g}, want more than 0")

    def summary(self) -> str:
        return f"value {self.key} from `{typed(self.argv)}`"

    def provides(self) -> tuple[Key, ...]:
        return (Key(self.key, self.scope, self.secret, self.ttl),)

    async def precheck(self, ctx: StepContext) -> Verdict:
        return Verdict.needed("is asked for every time")

    async def produce(self, ctx: StepContext, *, changes: bool) -> Any:
        """Run the command and read what it wrote; its output goes to no log."""
        secrets = {name: ctx.reveal(uri) for name, uri in self.secret_env.items()}
        done = await ctx.host.ask(
            *self.argv,
            changes=changes,
            sudo=self.sudo,
            user=self.user,
            cwd=self.cwd,
            env={**self.env, **secrets},
        )
        if not done.ok:
            raise self._failure(done)
        return self._parsed(done.text)

    def _failure(self, done: Completed) -> StepFailed:
        if not self.secret:
            return CommandFailed(self.argv, done.exit, stderr=done.error_text)
        # What a command says of a secret that it could not make may well be the secret.
        return StepFailed(
            f"`{typed(self.argv)}` exited with {done.exit}; its output is not shown: it is secret",
            hint="run it by hand on the host",
        )

    def _parsed(self, text: str) -> Any:
        if self.parse == "lines":
            return [line for line in text.splitlines() if line.strip()]
        if self.parse == "text":
            return text
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            what = f"`{typed(self.argv)}` did not write JSON: {error.msg}"
            raise StepFailed(f"{what}, line {error.lineno} column {error.colno}") from None


@step("value")
class FetchValue(Output, Reader):
    """A value was read from the host; nothing is changed.

    ```yaml
    - name: version
      value: {key: version, argv: [shop, --version], scope: host}
    ```
    """

    async def run(self, ctx: StepContext) -> Outcome:
        return Outcome(changed=False, values={self.key: await self.produce(ctx, changes=False)})


@step("mint")
class Minted(Output, Minter):
    """A value was made on the host, such as a token, because something needs it.

    ```yaml
    - name: token
      runOnOneOf: [control-node]
      mint: {key: join_token, argv: [shop, token, create], ttl: 3600, secret: true}
    ```
    """

    declares_intent = True

    async def run(self, ctx: StepContext) -> Outcome:
        return Outcome(values={self.key: await self.produce(ctx, changes=True)})
