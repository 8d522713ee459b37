"""Steps about units of systemd."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kubexm.common.quoting import typed
from kubexm.errors import StepFailed
from kubexm.runner import files, host_evidence, network, services
from kubexm.runner.diagnosis import report
from kubexm.runner.host import Command, Completed, Host
from kubexm.runner.services import UnitState
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.parameters import require_absolute, require_argv, require_names
from kubexm.step.registry import step

_SECONDS = 60.0
"""Systemd gives what ends at its start, such as a kubelet, another try or more meanwhile."""
_INTERVAL = 0.5
_HERE = "127.0.0.1"


@step("service")
class Service(Step):
    """A unit runs and starts with the host, or not; `null` leaves either alone.

    With `restarts_on`, it runs with these files as they are: it is started anew when they
    differ from those of its last start, which the host keeps a record of.

    ```yaml
    - name: nginx
      service: {unit: nginx, restartsOn: [/etc/nginx/nginx.conf]}
    ```
    """

    unit: str
    """The name of the unit, such as `nginx` or `backup.timer`."""
    running: bool | None = True
    """Whether it runs."""
    enabled: bool | None = True
    """Whether it starts with the host; ignored for a unit that can't be enabled."""
    restarts_on: tuple[str, ...] = ()
    """Absolute paths of files that it reads when it starts."""
    restarts: bool = True
    """Whether it is started anew when these differ; else another step does that."""
    port: int | None = None
    """The TCP port of 127.0.0.1 that it opens: a start is through when that is open."""
    answers: tuple[str, ...] | None = None
    """The command that succeeds once it is well: a start is through when it does."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    verifies = True

    def __post_init__(self) -> None:
        require_names((self.unit,), "unit")
        require_absolute(**{f"restarts_on[{i}]": path for i, path in enumerate(self.restarts_on)})
        if self.running is None and self.enabled is None:
            raise ValueError("give `running` or `enabled`: else there is nothing to do")
        if self.restarts_on and not self.running:
            raise ValueError("`restarts_on` needs `running: true`")
        if self.port is not None and not (self.running and 0 < self.port < 65536):
            raise ValueError(f"`port` is {self.port}, want 1 to 65535, and `running: true`")
        if self.answers is not None:
            require_argv(answers=self.answers)

    def summary(self) -> str:
        words = {True: ("running", "enabled"), False: ("stopped", "disabled")}
        wanted = [
            words[value][place]
            for place, value in enumerate((self.running, self.enabled))
            if value is not None
        ]
        return f"{self.unit} {', '.join(wanted)}"

    def probe(self, host: Host) -> Sequence[Command]:
        state = services.state_command(host, self.unit, sudo=self.sudo)
        if not self.restarts_on:
            return (state,)
        record = services.digest_commands(host, self.unit, self.restarts_on, sudo=self.sudo)
        return (state, *record)

    def follows(self) -> tuple[str, ...]:
        name = self.unit if "." in self.unit else f"{self.unit}.service"
        follows = self.running and self.restarts
        return (*self.restarts_on, f"/etc/systemd/system/{name}") if follows else ()

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        state = services.state_of(answers[0], self.unit)
        self._require_usable(state)
        reasons = [*self._state_reasons(state), *self._restart_reasons(state, answers)]
        return Verdict.needed("; ".join(reasons)) if reasons else Verdict.holds()

    async def run(self, ctx: StepContext) -> None:
        state, files_now, recorded = await self._look(ctx)
        prior = {
            "active": state.is_active,
            "failed": state.has_failed,
            "enabled": state.is_enabled,
            "record": recorded,
        }
        await ctx.ledger.remember(self.resources[0], prior)
        if state.stale:
            await services.daemon_reload(ctx.host, sudo=self.sudo)
        if self.enabled is not None and self._is_enabled_wrongly(state):
            await self._set_enabled(ctx, self.enabled)
        if self.running is not None:
            outdated = self.restarts and (files_now != recorded or state.stale)
            await self._set_running(ctx, state, outdated)
        if self.restarts_on and (self.restarts or not state.is_active):
            await services.record(ctx.host, self.unit, files_now, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        prior = ctx.ledger.recall(self.resources[0])
        if prior is None:
            return
        state, _, _ = await self._look(ctx)
        if prior["enabled"] != state.is_enabled and state.can_be_enabled and state.is_known:
            await self._set_enabled(ctx, prior["enabled"])
        if not _runs_as_wanted(state, prior["active"]) and state.is_known:
            start_or_stop = services.start if prior["active"] else services.stop
            await start_or_stop(ctx.host, self.unit, sudo=self.sudo)
        if not prior.get("failed") and (await self._look(ctx))[0].has_failed:
            # Systemd would remember a unit that failed for ever, even without its file.
            await services.reset_failed(ctx.host, self.unit, sudo=self.sudo)

    async def settle(self, ctx: StepContext) -> bool:
        """Its files are put back by now: have systemd read them, and the unit run with them."""
        state, files_now, recorded = await self._look(ctx)
        prior = ctx.ledger.recall(self.resources[0]) or {}
        if state.stale:
            await services.daemon_reload(ctx.host, sudo=self.sudo)
        outdated = state.stale or recorded != files_now
        if outdated and state.is_active:
            await services.restart(ctx.host, self.unit, sudo=self.sudo)
        if recorded != prior.get("record", ""):
            await self._record_again(ctx, prior.get("record", ""))
        return outdated

    async def _record_again(self, ctx: StepContext, record: str) -> None:
        if record:
            await services.record(ctx.host, self.unit, record, sudo=self.sudo)
        else:
            await services.forget(ctx.host, self.unit, sudo=self.sudo)

    async def diagnose(self, ctx: StepContext) -> str:
        return report(await host_evidence.of_service(ctx.host, self.unit, ctx.took, sudo=self.sudo))

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"service:{self.unit}",)

    def _require_usable(self, state: UnitState) -> None:
        if not state.is_known and (self.running or self.enabled):
            raise StepFailed(
                f"the host knows no unit `{self.unit}`",
                hint="install its package or write its unit file in a step before this one",
            )
        if state.is_masked and (self.running or self.enabled):
            raise StepFailed(
                f"unit `{self.unit}` is masked", hint=f"run `systemctl unmask {self.unit}`"
            )

    def _state_reasons(self, state: UnitState) -> list[str]:
        reasons = []
        if self.running is not None and not _runs_as_wanted(state, self.running):
            reasons.append(f"is {state.active}, want {'active' if self.running else 'inactive'}")
        if self._is_enabled_wrongly(state):
            found = state.file or "not enabled"
            reasons.append(f"is {found}, want {'enabled' if self.enabled else 'disabled'}")
        return reasons

    def _is_enabled_wrongly(self, state: UnitState) -> bool:
        return self.enabled not in (None, state.is_enabled) and state.can_be_enabled

    def _restart_reasons(self, state: UnitState, answers: Sequence[Completed]) -> list[str]:
        reasons: list[str] = []
        if not self.restarts:
            return reasons
        if self.running and state.stale:
            reasons.append("its unit file was changed since systemd read it")
        if self.restarts_on and state.is_active:
            recorded = files.content(answers[2], self.unit).decode()
            if recorded != services.digest_of(answers[1]):
                changed = "were changed since its last start" if recorded else "have no record"
                reasons.append(f"files it restarts on {changed}")
        return reasons

    async def _look(self, ctx: StepContext) -> tuple[UnitState, str, str]:
        """The unit, the digest of its files now, and that of its last start."""
        answers = await ctx.host.batch(self.probe(ctx.host))
        state = services.state_of(answers[0], self.unit)
        if not self.restarts_on:
            return state, "", ""
        recorded = files.content(answers[2], self.unit).decode()
        return state, services.digest_of(answers[1]), recorded

    async def _set_enabled(self, ctx: StepContext, enabled: bool) -> None:
        change = services.enable if enabled else services.disable
        await change(ctx.host, self.unit, sudo=self.sudo)

    async def _set_running(self, ctx: StepContext, state: UnitState, outdated: bool) -> None:
        if not self.running:
            if not state.is_stopped:
                await services.stop(ctx.host, self.unit, sudo=self.sudo)
        elif not state.is_active:
            await services.start(ctx.host, self.unit, sudo=self.sudo)
            await self._await_start(ctx)
        elif outdated:
            await services.restart(ctx.host, self.unit, sudo=self.sudo)
            await self._await_start(ctx)

    async def _await_start(self, ctx: StepContext) -> None:
        """Return once it has got through its start: systemd takes it for running before that."""
        why = ""
        try:
            async with asyncio.timeout(_SECONDS):
                while True:
                    if not (why := await self._held_up(ctx.host)):
                        return
                    await asyncio.sleep(_INTERVAL)
        except TimeoutError:
            state = await services.state(ctx.host, self.unit, sudo=self.sudo)
            what = f"{_SECONDS:g} s after its start {why}"
            raise StepFailed(f"{what}; the unit is {state.active}") from None

    async def _held_up(self, host: Host) -> str:
        """What does not answer yet; nothing once all does."""
        if self.port is not None and not await network.reaches(host, _HERE, self.port):
            return f"port {self.port} is closed"
        if self.answers is None:
            return ""
        (answer,) = await host.batch((host.command(*self.answers, sudo=self.sudo),))
        return "" if answer.ok else f"`{typed(self.answers)}` exits with {answer.exit}"


def _runs_as_wanted(state: UnitState, running: bool) -> bool:
    return state.is_active if running else state.is_stopped
