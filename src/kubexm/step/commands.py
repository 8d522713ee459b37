"""The step that runs a command of the user's, with guards that say whether it has to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from kubexm.common.quoting import typed
from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner.host import Command as HostCommand
from kubexm.runner.host import Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Outcome, Step, Values, Verdict
from kubexm.step.parameters import (
    require_absolute,
    require_argv,
    require_at_most_one,
    require_references,
)
from kubexm.step.registry import step

_CANT_RUN = (126, 127)


@step("command")
class Command(Step):
    """A command was run; with `creates`, `unless` or `only_if`, only where these say so.

    ```yaml
    - name: database
      command:
        argv: [shop, init, --data, /var/lib/shop]
        creates: /var/lib/shop/shop.db
        user: shop
        undo: [rm, -f, /var/lib/shop/shop.db]
    ```
    """

    argv: tuple[str, ...]
    """The program and its arguments; no shell stands in between."""
    creates: str | None = None
    """An absolute path; where something is there, the command does not run."""
    unless: tuple[str, ...] | None = None
    """A command; where it succeeds, this one does not run."""
    only_if: tuple[str, ...] | None = None
    """A command; where it fails, this one does not run."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""
    user: str | None = None
    """Run as this user, whatever `sudo` says."""
    cwd: str | None = None
    """The directory it runs in."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the command, its guards and its undo."""
    secret_env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the command alone, whose values are references to secrets."""
    stdin: str | None = None
    """What it reads from its standard input."""
    secret_stdin: str | None = None
    """The same as a reference to a secret."""
    expect: tuple[int, ...] = (0,)
    """The exit codes that are a success."""
    undo: tuple[str, ...] | None = None
    """A command that takes back what this one did; without one, a rollback leaves it."""
    uninterruptible: bool = False
    """A cancel, or a later run that takes over, waits for the command instead of ending it."""

    declares_intent = True
    takes_secrets = ("env", "stdin")

    def __post_init__(self) -> None:
        require_argv(argv=self.argv)
        for name in ("unless", "only_if", "undo"):
            if (argv := getattr(self, name)) is not None:
                require_argv(**{name: argv})
        require_absolute(creates=self.creates)
        require_at_most_one(stdin=self.stdin, secret_stdin=self.secret_stdin)
        references = {f"secret_env.{name}": uri for name, uri in self.secret_env.items()}
        require_references(secret_stdin=self.secret_stdin, **references)
        if not self.expect:
            raise ValueError("`expect` is empty, want the exit codes that are a success")
        object.__setattr__(self, "verifies", self.creates is not None)

    @classmethod
    def looked_at(cls, params: Values) -> Values:
        guards = {"unless", "only_if"}.intersection(params)
        names = {"creates", *guards, *(("user", "cwd", "env") if guards else ())}
        return {name: value for name, value in params.items() if name in names}

    def summary(self) -> str:
        return typed(self.argv)

    def probe(self, host: Host) -> Sequence[HostCommand]:
        exists = None if self.creates is None else ("test", "-e", self.creates)
        guards = (exists, self.unless, self.only_if)
        return [self._command(host, argv, self.env) for argv in guards if argv is not None]

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        rest = list(answers)
        if self.creates is not None and rest.pop(0).ok:
            return Verdict.holds(f"`{self.creates}` exists")
        if self.unless is not None and rest.pop(0).ok:
            return Verdict.holds(f"`{typed(self.unless)}` succeeds")
        if self.only_if is not None:
            return _condition(self.only_if, rest[0])
        return Verdict.needed(self._missing())

    async def run(self, ctx: StepContext) -> Outcome:
        secrets = {name: ctx.reveal(uri) for name, uri in self.secret_env.items()}
        stdin = self.stdin or ""
        if self.secret_stdin is not None:
            stdin = ctx.reveal(self.secret_stdin)
        command = self._command(ctx.host, self.argv, {**self.env, **secrets}, stdin=stdin.encode())
        done = await ctx.host.execute(command)
        if done.exit not in self.expect:
            raise CommandFailed(self.argv, done.exit, stdout=done.text, stderr=done.error_text)
        return Outcome(stdout=done.text, stderr=done.error_text)

    @property
    def can_be_undone(self) -> bool:
        return self.undo is not None

    async def rollback(self, ctx: StepContext) -> None:
        if self.undo is not None:
            command = self._command(ctx.host, self.undo, self.env)
            Host.checked(self.undo, await ctx.host.execute(command))

    def _missing(self) -> str:
        if self.creates is not None:
            return f"`{self.creates}` does not exist"
        if self.unless is not None:
            return f"`{typed(self.unless)}` fails"
        return "runs every time"

    def _command(
        self, host: Host, argv: Sequence[str], env: Mapping[str, str], **settings: Any
    ) -> HostCommand:
        return host.command(
            *argv,
            sudo=self.sudo,
            user=self.user,
            cwd=self.cwd,
            env=env,
            uninterruptible=self.uninterruptible,
            **settings,
        )


def _condition(argv: Sequence[str], answer: Completed) -> Verdict:
    text = typed(argv)
    if answer.exit in _CANT_RUN:
        raise StepFailed(f"can't ask `{text}`: {answer.error_text}")
    if answer.ok:
        return Verdict.needed(f"`{text}` succeeds")
    return Verdict.holds(f"`{text}` fails")
