"""Steps that wait: for something to answer, for a time, for a person."""

from __future__ import annotations

from collections.abc import Sequence

from kubexm.common.quoting import typed
from kubexm.runner import host_evidence, network
from kubexm.runner.diagnosis import report
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import NotYet, Outcome, Step, Verdict
from kubexm.step.parameters import require_argv, require_names, require_one
from kubexm.step.registry import step


@step("wait")
class WaitFor(Step):
    """A port is open, a URL answers, or a command succeeds, as seen from the host.

    The step's `timeout` says how long to wait; between two looks it holds no slot.

    ```yaml
    - name: answers
      timeout: 2m
      wait: {url: "http://127.0.0.1:8080/health", interval: 5}
    ```
    """

    port: int | None = None
    """The TCP port that must be open."""
    url: str | None = None
    """The `http://` or `https://` URL that must answer."""
    command: tuple[str, ...] | None = None
    """The command that must succeed."""
    address: str = "127.0.0.1"
    """Where the port is."""
    status: int | None = None
    """What the URL must answer; by default anything from 200 to 399."""
    unit: str = ""
    """The unit whose journal tells why, if it does not come true."""
    interval: float = 2.0
    """Seconds between two looks."""
    sudo: bool | None = None
    """Run `command`, and look into the journal, as root through sudo; by default as `sudo` of the
    host says."""

    def __post_init__(self) -> None:
        require_one(port=self.port, url=self.url, command=self.command)
        if self.port is not None and not 0 < self.port < 65536:
            raise ValueError(f"`port` is {self.port}, want 1 to 65535")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"`url` is `{self.url}`, want http:// or https://")
        if self.command is not None:
            require_argv(command=self.command)
        if self.status is not None and self.url is None:
            raise ValueError("`status` needs `url`")
        if self.unit:
            require_names((self.unit,), "unit")
        if self.interval <= 0:
            raise ValueError(f"`interval` is {self.interval:g}, want more than 0")

    def summary(self) -> str:
        if self.port is not None:
            return f"port {self.port} of {self.address} is open"
        if self.url is not None:
            return f"{self.url} answers"
        return f"`{typed(self.command or ())}` succeeds"

    def probe(self, host: Host) -> Sequence[Command]:
        if self.port is not None:
            return (network.port_command(host, self.address, self.port),)
        if self.url is not None:
            return (network.url_command(host, self.url),)
        return (host.command(*(self.command or ()), sudo=self.sudo),)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        (answer,) = answers
        if self.url is not None:
            return self._judge_status(network.status_of(answer), answer)
        if answer.ok:
            return Verdict.holds()
        if self.port is not None:
            return _not_yet(f"port {self.port} of {self.address} is closed")
        return _not_yet(f"`{typed(self.command or ())}` exited with {answer.exit}")

    async def run(self, ctx: StepContext) -> Outcome | NotYet:
        verdict = await self.precheck(ctx)
        if verdict.satisfied:
            return Outcome(changed=False)
        return NotYet(self.interval, verdict.reason)

    async def diagnose(self, ctx: StepContext) -> str:
        units = (self.unit,) if self.unit else ()
        return report(await host_evidence.of_units(ctx.host, units, ctx.took, sudo=self.sudo))

    def _judge_status(self, status: int | None, answer: Completed) -> Verdict:
        if status is None:
            return _not_yet(f"{self.url} does not answer: {answer.error_text}")
        if status == self.status or (self.status is None and 200 <= status < 400):
            return Verdict.holds()
        return _not_yet(f"{self.url} answers {status}, want {self.status or '200 to 399'}")


def _not_yet(found: str) -> Verdict:
    """It may be there in time; waiting changes nothing."""
    return Verdict.needed(found, "?")


@step("pause")
class Pause(Step):
    """Some seconds have passed, or a person has said yes.

    While the seconds pass it holds no slot.

    ```yaml
    - name: approval
      runOnRoles: [control-node]
      pause: {question: "The first hosts are done. Go on?"}
    ```
    """

    seconds: float | None = None
    """How long to wait."""
    question: str | None = None
    """What a person is asked, once for each host; any answer but yes refuses the host."""

    def __post_init__(self) -> None:
        require_one(seconds=self.seconds, question=self.question)
        if self.seconds is not None and self.seconds < 0:
            raise ValueError(f"`seconds` is {self.seconds:g}, want 0 or more")

    def summary(self) -> str:
        return self.question or f"{self.seconds:g} seconds have passed"

    async def precheck(self, ctx: StepContext) -> Verdict:
        reason = "asks" if self.question is not None else f"takes {self.seconds:g} s"
        return Verdict.needed(reason, "=")

    async def run(self, ctx: StepContext) -> Outcome | NotYet:
        if self.question is not None:
            await ctx.confirm(self.question)
        left = (self.seconds or 0.0) - ctx.waited
        return NotYet(left, f"{left:g} s are left") if left > 0 else Outcome(changed=False)
