"""SELinux: what it does now, and what it will do after the next boot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from kubexm.connector.base import C_LOCALE
from kubexm.errors import StepFailed
from kubexm.runner import files, text
from kubexm.runner.host import Command, Completed, Host

Mode = Literal["enforcing", "permissive", "disabled"]
CONFIG = "/etc/selinux/config"
_ENFORCE = "/sys/fs/selinux/enforce"
_NOW: dict[str, Mode] = {"1": "enforcing", "0": "permissive"}
_MODES: dict[str, Mode] = {mode: mode for mode in ("enforcing", "permissive", "disabled")}
_LINE = r"^\s*SELINUX\s*="


class Modes(msgspec.Struct, frozen=True):
    """Both of them."""

    now: Mode
    at_boot: Mode


def mode_commands(host: Host, *, sudo: bool | None = None) -> tuple[Command, Command]:
    """Ask for both modes; `modes_of` reads the answers."""
    paths = (_ENFORCE, CONFIG)
    now, boot = (host.command("cat", path, sudo=sudo, env=C_LOCALE) for path in paths)
    return now, boot


def modes_of(answers: Sequence[Completed]) -> Modes:
    """Both modes; a host without SELinux has it disabled."""
    now, config = answers
    pairs = (line.partition("=") for line in config.text.splitlines())
    told = {name.strip(): value.strip() for name, _, value in pairs}
    boot = _MODES.get(told.get("SELINUX", ""), "disabled")
    return Modes(_NOW.get(now.text.strip(), "disabled"), boot)


async def modes(host: Host, *, sudo: bool | None = None) -> Modes:
    """Both modes."""
    return modes_of(await host.batch(mode_commands(host, sudo=sudo)))


async def set_now(host: Host, mode: Mode, *, sudo: bool | None = None) -> None:
    """Change what it does until the next boot."""
    found = (await modes(host, sudo=sudo)).now
    if found == mode:
        return
    if "disabled" in (found, mode):
        raise StepFailed(
            f"SELinux is {found}, want {mode}: that takes a boot",
            hint="set the mode for the next boot, and boot the host",
        )
    await host.run("setenforce", "1" if mode == "enforcing" else "0", sudo=sudo)


async def set_at_boot(host: Host, mode: Mode, *, sudo: bool | None = None) -> None:
    """Change what it does after the next boot."""
    old = await files.read(host, CONFIG, sudo=sudo)
    if old is None:
        if mode == "disabled":
            return
        raise StepFailed(
            f"there is no `{CONFIG}`, want SELinux {mode}",
            hint="install the packages of SELinux first",
        )
    new, _ = text.with_line(text.decoded(old), f"SELINUX={mode}", _LINE)
    if text.encoded(new) != old:
        await files.write(host, CONFIG, text.encoded(new), sudo=sudo)
