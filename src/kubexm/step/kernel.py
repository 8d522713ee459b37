"""Steps about the kernel: its settings, its modules, and that it uses no swap."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from kubexm.errors import CommandFailed
from kubexm.runner import files, modules, priors, swap, sysctl, text
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.parameters import BadParameter, require_names
from kubexm.step.registry import step


@step("sysctl")
class KernelSettings(Step):
    """Settings of the kernel have these values, now and at each boot.

    What kubexm has set by the same file before and is not wanted any more goes back to what it was.

    ```yaml
    - name: forwarding
      sysctl:
        name: 90-kubernetes
        settings: {net.ipv4.ip_forward: 1, vm.swappiness: 10}
    ```
    """

    name: str
    """The file in `/etc/sysctl.d` that sets them at boot, without its `.conf`; it is ours alone."""
    settings: dict[str, str | int]
    """Values by name; one of several parts is text with blanks in between."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    verifies = True

    def __post_init__(self) -> None:
        _require_file_name(self.name)
        if not self.settings:
            raise ValueError("`settings` is empty, want at least one")
        require_names(self.settings, "setting")
        for key, value in self.settings.items():
            if "\n" in str(value) or "=" in key:
                raise ValueError(f"`settings.{key}` is more than a name and a value on one line")

    def summary(self) -> str:
        return ", ".join(f"{key} is {value}" for key, value in self._wanted.items())

    def writes(self) -> tuple[str, ...]:
        return (self._path,)

    def probe(self, host: Host) -> Sequence[Command]:
        values = [sysctl.value_command(host, key, sudo=self.sudo) for key in self.settings]
        return (*values, files.content_command(host, self._path, files.SHOWN, sudo=self.sudo))

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        *values, content = answers
        reasons = [
            f"{key} is {found}, want {wanted}" if found is not None else f"there is no {key} yet"
            for (key, wanted), answer in zip(self._wanted.items(), values, strict=True)
            if (found := sysctl.value_of(answer, key)) != wanted
        ]
        old, new = files.content(content, self._path), self._text
        if old == new:
            return Verdict.needed("; ".join(reasons)) if reasons else Verdict.holds()
        reasons += [f"{key} is not wanted any more" for key in self._unwanted(old)]
        reasons.append(f"`{self._path}` {'differs' if content.ok else 'does not exist'}")
        return Verdict.needed(
            "; ".join(reasons), "~", text.diff(self._path, old if content.ok else None, new)
        )

    async def run(self, ctx: StepContext) -> None:
        # All of them first: the kernel may change one setting with another.
        *answers, content = await ctx.host.batch(self.probe(ctx.host))
        for key, answer in zip(self.settings, answers, strict=True):
            await ctx.ledger.remember(f"sysctl:{key}", {"value": sysctl.value_of(answer, key)})
        for key in self._unwanted(files.content(content, self._path)):
            await self._give_back(ctx, key)
        await self._set(ctx.host, answers)
        # What was as wanted may be otherwise now, by what was set beside it.
        await self._set(ctx.host, (await ctx.host.batch(self.probe(ctx.host)))[:-1])
        await _write(ctx, self._path, self._text, self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        await _restore(ctx, self._path, self.sudo)
        (content,) = await ctx.host.batch(self.probe(ctx.host)[-1:])
        # The file of before names those that were not wanted any more.
        for key in (*self.settings, *self._unwanted(files.content(content, self._path))):
            await self._set_back(ctx, key, ctx.ledger.recall(f"sysctl:{key}"))

    async def _give_back(self, ctx: StepContext, key: str) -> None:
        """Have a setting be again as it was before any run, if it is one of ours."""
        if (prior := await ctx.ledger.recall_first(f"sysctl:{key}")) is None:
            return
        found = await sysctl.value(ctx.host, key, sudo=self.sudo)
        await ctx.ledger.remember(f"sysctl:{key}", {"value": found})
        await self._set_back(ctx, key, prior)

    async def _set_back(self, ctx: StepContext, key: str, prior: priors.Prior | None) -> None:
        if prior is None:
            return
        found = await sysctl.value(ctx.host, key, sudo=self.sudo)
        # A setting that came with a module may be gone with it, or not have been there.
        if None not in (prior["value"], found) and found != prior["value"]:
            await sysctl.set_now(ctx.host, key, prior["value"], sudo=self.sudo)

    def _unwanted(self, old: bytes) -> list[str]:
        """What the file sets that is there, and nobody wants any more."""
        return [key for key in sysctl.names_in(text.decoded(old)) if key not in self.settings]

    async def _set(self, host: Host, answers: Sequence[Completed]) -> None:
        """Set what is otherwise than wanted."""
        for (key, wanted), answer in zip(self._wanted.items(), answers, strict=True):
            if sysctl.value_of(answer, key) != wanted:
                await sysctl.set_now(host, key, wanted, sudo=self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return (*(f"sysctl:{key}" for key in self.settings), f"file:{self._path}")

    @property
    def _path(self) -> str:
        return sysctl.drop_in(self.name)

    @property
    def _wanted(self) -> dict[str, str]:
        return {key: sysctl.normal(str(value)) for key, value in self.settings.items()}

    @property
    def _text(self) -> bytes:
        return sysctl.drop_in_text(self._wanted).encode()


@step("kernel-module")
class KernelModule(Step):
    """A module of the kernel is loaded, now and at each boot.

    ```yaml
    - name: bridges
      kernel-module: {name: br_netfilter}
    ```
    """

    name: str
    """The name of the module."""
    at_boot: bool = True
    """Whether it is loaded at each boot too, by a file of its name in `/etc/modules-load.d`."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    verifies = True

    def __post_init__(self) -> None:
        require_names((self.name,), "module")
        _require_file_name(self.name)

    def summary(self) -> str:
        return f"kernel module {self.name} is loaded"

    def writes(self) -> tuple[str, ...]:
        return (modules.boot_file(self.name),) if self.at_boot else ()

    def probe(self, host: Host) -> Sequence[Command]:
        look = modules.loaded_command(host, self.name, sudo=self.sudo)
        paths = self.writes()
        return (look, *(files.content_command(host, path, 1024, sudo=self.sudo) for path in paths))

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        reasons = [] if modules.is_loaded(answers[0]) else ["is not loaded"]
        for path, answer in zip(self.writes(), answers[1:], strict=True):
            if files.content(answer, path) != self._text:
                reasons.append("is not loaded at boot")
        return Verdict.needed("; ".join(reasons)) if reasons else Verdict.holds()

    async def run(self, ctx: StepContext) -> None:
        loaded = await modules.loaded(ctx.host, self.name, sudo=self.sudo)
        await ctx.ledger.remember(f"kernel-module:{self.name}", {"loaded": loaded})
        if not loaded:
            await modules.load(ctx.host, self.name, sudo=self.sudo)
        for path in self.writes():
            await _write(ctx, path, self._text, self.sudo)

    async def rollback(self, ctx: StepContext) -> str | None:
        for path in self.writes():
            await _restore(ctx, path, self.sudo)
        prior = ctx.ledger.recall(f"kernel-module:{self.name}")
        if (
            prior is None
            or prior["loaded"]
            or not await modules.loaded(ctx.host, self.name, sudo=self.sudo)
        ):
            return None
        try:
            await modules.unload(ctx.host, self.name, sudo=self.sudo)
        except CommandFailed as error:
            return f"module `{self.name}` is in use: {error.stderr}"
        return None

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"kernel-module:{self.name}", *(f"file:{path}" for path in self.writes()))

    @property
    def _text(self) -> bytes:
        return f"{self.name}\n".encode()


_UNITS = "swap-units"
_Units = list[swap.SwapUnit]


@step("no-swap")
class NoSwap(Step):
    """The host uses no swap, now and after a boot.

    Lines in `/etc/fstab` are commented out; units that turn swap on without it, such as that of
    zram, are masked, and disabled where somebody has written them to `/etc/systemd/system`.

    ```yaml
    - name: memory-only
      no-swap: {}
    ```
    """

    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    verifies = True

    def summary(self) -> str:
        return "no swap"

    def writes(self) -> tuple[str, ...]:
        return (swap.FSTAB,)

    def probe(self, host: Host) -> Sequence[Command]:
        table = files.content_command(host, swap.FSTAB, files.EDITED, sudo=self.sudo)
        units = swap.units_command(host, sudo=self.sudo)
        return swap.areas_command(host, sudo=self.sudo), table, units

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        areas = swap.areas_of(answers[0])
        table = files.content(answers[1], swap.FSTAB)
        lines = swap.lines_of(text.decoded(table))
        reasons = [f"{path} is in use" for path in areas]
        reasons += [f"`{swap.FSTAB}` turns swap on at boot"] if lines else []
        units = swap.units_of(answers[2])
        reasons += [f"`{unit.name}` turns swap on at boot" for unit in units]
        if not reasons:
            return Verdict.holds()
        new = text.encoded(swap.commented(text.decoded(table)))
        return Verdict.needed("; ".join(reasons), "~", text.diff(swap.FSTAB, table, new))

    async def run(self, ctx: StepContext) -> None:
        areas, table, told = await ctx.host.batch(self.probe(ctx.host))
        lines = swap.lines_of(text.decoded(files.content(table, swap.FSTAB)))
        used, units = list(swap.areas_of(areas)), swap.units_of(told)
        await ctx.ledger.remember("swap", {"areas": used, "lines": lines})
        if units:
            await ctx.ledger.remember(_UNITS, {"units": msgspec.to_builtins(units)})
        await swap.turn_off_at_boot(ctx.host, sudo=self.sudo)
        for unit in units:
            await swap.keep_off(ctx.host, unit, sudo=self.sudo)
        if used:
            await swap.turn_off(ctx.host, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        for unit in msgspec.convert((ctx.ledger.recall(_UNITS) or {}).get("units", []), _Units):
            await swap.let_on(ctx.host, unit, sudo=self.sudo)
        if (prior := ctx.ledger.recall("swap")) is None:
            return
        await swap.turn_on_at_boot(ctx.host, prior["lines"], sudo=self.sudo)
        used = await swap.areas(ctx.host, sudo=self.sudo)
        for path in prior["areas"]:
            if path not in used:
                await swap.turn_on(ctx.host, path, sudo=self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return ("swap", _UNITS)


async def _write(ctx: StepContext, path: str, data: bytes, sudo: bool | None) -> None:
    await ctx.ledger.capture(f"file:{path}", partial(priors.capture, ctx.host, path, sudo=sudo))
    await files.write(ctx.host, path, data, sudo=sudo)


async def _restore(ctx: StepContext, path: str, sudo: bool | None) -> None:
    if (prior := ctx.ledger.recall(f"file:{path}")) is not None:
        await priors.restore(ctx.host, path, prior, sudo=sudo)


def _require_file_name(name: str) -> None:
    if not name or "/" in name or name.startswith("."):
        hint = "give a name without `/`, such as `90-kubernetes`"
        raise BadParameter(f"`name` is `{name}`, want the name of a file", hint)
