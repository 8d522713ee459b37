"""Steps about who a host is and who works on it: its name, its users."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from kubexm.runner import files, hostname, priors, users
from kubexm.runner.host import Command, Completed, Host
from kubexm.runner.priors import Prior
from kubexm.runner.users import User
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.parameters import BadParameter, require_absolute, require_names
from kubexm.step.registry import step

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
_HOSTNAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LONGEST_HOSTNAME = 64


@step("hostname")
class Hostname(Step):
    """A host calls itself by this name, now and after a boot.

    ```yaml
    - name: own-name
      hostname: {name: "${host.name}"}
    ```
    """

    name: str
    """Letters, digits and dashes, in parts with dots in between."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    verifies = True

    def __post_init__(self) -> None:
        if len(self.name) > _LONGEST_HOSTNAME or not _HOSTNAME.fullmatch(self.name):
            raise BadParameter(
                f"`name` is `{self.name}`, want the name of a host",
                "write letters, digits and dashes, 64 at most, with dots between its parts",
            )

    def summary(self) -> str:
        return f"the host is called {self.name}"

    def writes(self) -> tuple[str, ...]:
        return (hostname.PATH,)

    def probe(self, host: Host) -> Sequence[Command]:
        return hostname.name_commands(host, sudo=self.sudo)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        names = hostname.names_of(answers)
        reasons = []
        if names.now != self.name:
            reasons.append(f"is called {names.now}, want {self.name}")
        if names.at_boot != self.name:
            reasons.append(f"would be called {names.at_boot or 'nothing'} after a boot")
        return Verdict.needed("; ".join(reasons)) if reasons else Verdict.holds()

    async def run(self, ctx: StepContext) -> None:
        names = await hostname.names(ctx.host, sudo=self.sudo)
        await ctx.ledger.remember("hostname", {"name": names.now})
        look = partial(priors.capture, ctx.host, hostname.PATH, sudo=self.sudo)
        await ctx.ledger.capture(f"file:{hostname.PATH}", look)
        await hostname.set_at_boot(ctx.host, self.name, sudo=self.sudo)
        await hostname.set_now(ctx.host, self.name, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        file = ctx.ledger.recall(f"file:{hostname.PATH}")
        if file is not None:
            await priors.restore(ctx.host, hostname.PATH, file, sudo=self.sudo)
        prior = ctx.ledger.recall("hostname")
        if (
            prior is not None
            and prior["name"] != (await hostname.names(ctx.host, sudo=self.sudo)).now
        ):
            await hostname.set_now(ctx.host, prior["name"], sudo=self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return ("hostname", f"file:{hostname.PATH}")


@step("user")
class UserPresent(Step):
    """There is a user of this name; what is given of it is so, and all else is left alone.

    A new user gets a group of its own name. A rollback removes it, with the home made for it.

    ```yaml
    - name: owner
      user: {name: shop, uid: 1500, shell: /usr/sbin/nologin, groups: [adm]}
    ```
    """

    name: str
    """The name of the user."""
    uid: int | None = None
    """Its number; for a new user any that is free unless given."""
    home: str | None = None
    """Its home, an absolute path; a new user gets one in `/home`, one of the system none."""
    shell: str | None = None
    """The program it logs in with, an absolute path."""
    groups: tuple[str, ...] = ()
    """Groups that it is in beside its own; it stays in all others."""
    system: bool = False
    """Whether a new user is one of the system, with a low number and without a home."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    verifies = True

    def __post_init__(self) -> None:
        require_names((self.name, *self.groups), "user or group")
        require_absolute(home=self.home, shell=self.shell)
        if ":" in self.name + (self.home or "") + (self.shell or ""):
            raise ValueError("`name`, `home` and `shell` can't have a `:`")
        if any("," in group or ":" in group for group in self.groups):
            raise ValueError("`groups` has a name with `,` or `:`, want one group in each entry")

    def summary(self) -> str:
        return f"user {self.name}"

    def probe(self, host: Host) -> Sequence[Command]:
        return users.user_commands(host, self.name, sudo=self.sudo)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        found = users.user_of(answers, self.name)
        if found is None:
            return Verdict.needed("does not exist", "+")
        pairs = ((name, getattr(found, name), getattr(self, name)) for name in _ATTRIBUTES)
        reasons = [
            f"{name} is {now}, want {wanted}"
            for name, now, wanted in pairs
            if wanted not in (None, now)
        ]
        reasons += [f"is not in {group}" for group in self._missing(found)]
        return Verdict.needed("; ".join(reasons)) if reasons else Verdict.holds()

    async def run(self, ctx: StepContext) -> None:
        found = await users.find(ctx.host, self.name, sudo=self.sudo)
        await ctx.ledger.capture(self.resources[0], partial(self._prior, ctx, found))
        if found is None:
            await self._add(ctx)
            return
        changed = {
            name: wanted
            for name in _ATTRIBUTES
            if (wanted := getattr(self, name)) not in (None, getattr(found, name))
        }
        if missing := self._missing(found):
            changed["groups"] = (*found.groups[1:], *missing)
        await users.change(ctx.host, self.name, **changed, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        prior, found = (
            ctx.ledger.recall(self.resources[0]),
            await users.find(ctx.host, self.name, sudo=self.sudo),
        )
        if prior is None or found is None:
            return
        if prior["user"] is None:
            await users.remove(ctx.host, self.name, with_home=prior["makes_home"], sudo=self.sudo)
            for path in prior.get("made_above", ()):
                await files.remove_empty(ctx.host, path, sudo=self.sudo)
            return
        changed = {
            name: old
            for name, old in prior["user"].items()
            if old != (list(found.groups[1:]) if name == "groups" else getattr(found, name))
        }
        await users.change(ctx.host, self.name, **changed, sudo=self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"user:{self.name}",)

    async def _add(self, ctx: StepContext) -> None:
        own = await users.find_group(ctx.host, self.name, sudo=self.sudo) is not None
        await users.add(
            ctx.host,
            self.name,
            uid=self.uid,
            home=self.home,
            shell=self.shell,
            group=self.name if own else None,
            groups=self.groups,
            system=self.system,
            sudo=self.sudo,
        )

    def _missing(self, found: User) -> list[str]:
        return [group for group in self.groups if group not in found.groups]

    async def _prior(self, ctx: StepContext, found: User | None, _copy: str) -> Prior:
        if found is None:
            home = self.home or f"/home/{self.name}"
            made = await files.missing(ctx.host, home, sudo=self.sudo)
            return {"user": None, "makes_home": bool(made), "made_above": made[1:]}
        known = {name: getattr(found, name) for name in _ATTRIBUTES}
        return {"user": {**known, "groups": list(found.groups[1:])}}


_ATTRIBUTES = ("uid", "home", "shell")
