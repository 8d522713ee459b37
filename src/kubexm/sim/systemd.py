"""Simulated systemd: units that are known, run, and start with the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from kubexm.connector.base import Completed
from kubexm.sim.delivered import unit_name
from kubexm.sim.shell import OK, Program, Shell, failed, said
from kubexm.sim.state import Service

_UNIT_DIRECTORIES = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")


def systemctl(shell: Shell, args: Sequence[str]) -> Completed:
    words = [arg for arg in args if not arg.startswith("-")]
    flags = {arg for arg in args if arg.startswith("-") and arg != "--"}
    if not words:
        raise shell.unexpected()
    verb, units = words[0], [unit_name(name) for name in words[1:]]
    if verb == "daemon-reload":
        return _reload_all(shell)
    if verb == "show":
        return _show(shell, units, flags)
    if verb in _QUESTIONS:
        return _QUESTIONS[verb](shell, units, bool(flags & {"-q", "--quiet"}))
    if verb not in _CHANGES or not flags <= {"--now", "--no-block", "-q", "--quiet"}:
        raise shell.unexpected()
    for unit in units:
        if (service := _known(shell, unit)) is None:
            return failed(f"Failed to {verb} {unit}: Unit {unit} not found.", 5)
        if service.masked and verb in ("start", "restart", "enable"):
            return failed(f"Failed to {verb} {unit}: Unit {unit} is masked.", 1)
        _CHANGES[verb](shell, unit, service, "--now" in flags)
    return OK


def _known(shell: Shell, unit: str) -> Service | None:
    """The unit as systemd has it, or as it would load it now."""
    return shell.service(unit) or _unloaded(shell, unit)


def _unloaded(shell: Shell, unit: str) -> Service | None:
    if loaded := _file_digest(shell, unit):
        return Service(loaded=loaded)
    # A package that nothing is said about has a unit of its own name, if it is asked for one.
    return Service() if shell.version(unit.removesuffix(".service")) is not None else None


def _file_digest(shell: Shell, unit: str) -> str:
    for directory in _UNIT_DIRECTORIES:
        if shell.files.lookup(f"{directory}/{unit}") is not None:
            return shell.files.digest(f"{directory}/{unit}")
    return ""


def set_service(shell: Shell, unit: str, service: Service, *, starts: bool = False) -> None:
    """Keep a unit's new state; a start counts."""
    if starts:
        count = shell.state.get(f"starts:{unit}")
        shell.state.set(f"starts:{unit}", (count if isinstance(count, int) else 0) + 1)
    key = f"service:{unit}"
    # systemd forgets a unit that neither runs nor is enabled, and reads it again when asked.
    idle = service == _unloaded(shell, unit) and not shell.state.was_delivered(key)
    shell.state.set(key, None if idle else service)


def _start(shell: Shell, unit: str, service: Service, _now: bool) -> None:
    if not service.active:
        _restart(shell, unit, service, _now)


def _restart(shell: Shell, unit: str, service: Service, _now: bool) -> None:
    set_service(shell, unit, msgspec.structs.replace(service, active=True), starts=True)


def _stop(shell: Shell, unit: str, service: Service, _now: bool) -> None:
    set_service(shell, unit, msgspec.structs.replace(service, active=False))


def _reload(shell: Shell, unit: str, service: Service, _now: bool) -> None:
    set_service(shell, unit, service)


def _enable(shell: Shell, unit: str, service: Service, now: bool) -> None:
    starts = now and not service.active
    enabled = msgspec.structs.replace(service, enabled=True, active=service.active or now)
    set_service(shell, unit, enabled, starts=starts)


def _disable(shell: Shell, unit: str, service: Service, now: bool) -> None:
    changed = msgspec.structs.replace(service, enabled=False, active=service.active and not now)
    set_service(shell, unit, changed)


def _mask(shell: Shell, unit: str, service: Service, _now: bool) -> None:
    set_service(shell, unit, msgspec.structs.replace(service, masked=True))


def _unmask(shell: Shell, unit: str, service: Service, _now: bool) -> None:
    set_service(shell, unit, msgspec.structs.replace(service, masked=False))


_CHANGES: Mapping[str, Callable[[Shell, str, Service, bool], None]] = {
    "disable": _disable,
    "enable": _enable,
    "mask": _mask,
    "reload": _reload,
    "restart": _restart,
    "start": _start,
    "stop": _stop,
    "unmask": _unmask,
}


def _reload_all(shell: Shell) -> Completed:
    for key in sorted(shell.state.keys("service:")):
        unit = key.removeprefix("service:")
        service, digest = shell.service(unit), _file_digest(shell, unit)
        if service is not None and digest != service.loaded:
            set_service(shell, unit, msgspec.structs.replace(service, loaded=digest))
    return OK


def _is_active(shell: Shell, units: Sequence[str], quiet: bool) -> Completed:
    states = [_active_word(shell.service(unit)) for unit in units]
    text = "" if quiet else "".join(f"{state}\n" for state in states)
    return Completed(0 if "active" in states else 3, text.encode())


def _is_enabled(shell: Shell, units: Sequence[str], quiet: bool) -> Completed:
    states = [_enabled_word(_known(shell, unit)) for unit in units]
    text = "" if quiet else "".join(f"{state}\n" for state in states)
    return Completed(0 if "enabled" in states else 1, text.encode())


def _status(shell: Shell, units: Sequence[str], _quiet: bool) -> Completed:
    states = [_active_word(shell.service(unit)) for unit in units]
    lines = (f"{unit} - {state}\n" for unit, state in zip(units, states, strict=True))
    return Completed(0 if set(states) == {"active"} else 3, "".join(lines).encode())


_QUESTIONS: Mapping[str, Callable[[Shell, Sequence[str], bool], Completed]] = {
    "is-active": _is_active,
    "is-enabled": _is_enabled,
    "status": _status,
}


def _show(shell: Shell, units: Sequence[str], flags: set[str]) -> Completed:
    wanted = [flag.removeprefix("--property=") for flag in flags if flag.startswith("--property=")]
    if len(wanted) != 1 or len(units) != 1 or len(flags) != 1:
        raise shell.unexpected()
    unit = units[0]
    service = _known(shell, unit)
    properties = {
        "LoadState": _load_word(service),
        "ActiveState": _active_word(service),
        "UnitFileState": "" if service is None else _enabled_word(service),
        "NeedDaemonReload": "yes" if _is_stale(shell, unit, service) else "no",
    }
    names = wanted[0].split(",")
    if not properties.keys() >= set(names):
        raise shell.unexpected()
    return said("".join(f"{name}={properties[name]}\n" for name in names))


def _is_stale(shell: Shell, unit: str, service: Service | None) -> bool:
    return service is not None and service.loaded != _file_digest(shell, unit)


def _load_word(service: Service | None) -> str:
    if service is None:
        return "not-found"
    return "masked" if service.masked else "loaded"


def _active_word(service: Service | None) -> str:
    return "active" if service is not None and service.active else "inactive"


def _enabled_word(service: Service | None) -> str:
    if service is None:
        return "not-found"
    if service.masked:
        return "masked"
    return "enabled" if service.enabled else "disabled"


PROGRAMS: Mapping[str, Program] = {"systemctl": systemctl}
