"""Simulated systemctl: units that are known, run, and start with the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from kubexm.connector.base import Completed
from kubexm.sim import starting, units
from kubexm.sim.delivered import unit_name
from kubexm.sim.shell import OK, Program, Shell, failed, said
from kubexm.sim.starting import Failed, condition, known, set_service
from kubexm.sim.state import Service

_FLAGS = frozenset(("--now", "--no-block", "-q", "--quiet", "--no-pager", "--lines=20", "--force"))
_NOT_FOUND, _NOT_RUNNING = 5, 3
_NOT_FAILED = 1
_SWAPS = "*.swap"


def systemctl(shell: Shell, args: Sequence[str]) -> Completed:
    words = [arg for arg in args if not arg.startswith("-")]
    flags = {arg for arg in args if arg.startswith("-") and arg != "--"}
    if not words:
        raise shell.unexpected()
    verb, names = words[0], [unit_name(name) for name in words[1:]]
    if verb in _OF_THE_SYSTEM and not names:
        return _OF_THE_SYSTEM[verb](shell)
    if verb == "show" and words[1:] == [_SWAPS]:
        return _show_swaps(shell, flags)
    if verb == "show":
        return _show(shell, names, flags)
    if verb in _QUESTIONS:
        return _QUESTIONS[verb](shell, names, bool(flags & {"-q", "--quiet"}))
    if verb not in _CHANGES or not flags <= _FLAGS:
        raise shell.unexpected()
    for unit in names:
        if not (done := _changed(shell, verb, unit, "--now" in flags)).ok:
            return done
    return OK


def is_active(shell: Shell, unit: str) -> bool:
    """Whether a unit runs, by its whole name."""
    return condition(shell, shell.service(unit)) == "active"


def _changed(shell: Shell, verb: str, unit: str, now: bool) -> Completed:
    service = known(shell, unit)
    if service is None:
        return failed(f"Failed to {verb} {unit}: Unit {unit} not found.", _NOT_FOUND)
    if service.masked and verb in ("start", "restart", "reload-or-restart", "enable"):
        return failed(f"Failed to {verb} {unit}: Unit {unit} is masked.")
    problem = _CHANGES[verb](shell, unit, service, now)
    if problem is None or not problem.told:
        return OK
    hint = f'See "systemctl status {unit}" and "journalctl -xeu {unit}" for details.'
    return failed(
        f"Job for {unit} failed because the control process exited with error code.\n"
        f"{hint}\n{problem.why}"
    )


def _start(shell: Shell, unit: str, _service: Service, _now: bool) -> Failed | None:
    return starting.start(shell, unit)


def _restart(shell: Shell, unit: str, _service: Service, _now: bool) -> Failed | None:
    return starting.restart(shell, unit)


def _restart_running(shell: Shell, unit: str, service: Service, _now: bool) -> Failed | None:
    return starting.restart(shell, unit) if service.active else None


def _stop(shell: Shell, unit: str, _service: Service, _now: bool) -> None:
    starting.stop(shell, unit)


def _reload(shell: Shell, unit: str, service: Service, _now: bool) -> Failed | None:
    if not service.active:
        return Failed(f"{unit} is not active, cannot reload.")
    # What it reads then is what it would read when started anew.
    return starting.restart(shell, unit)


def _enable(shell: Shell, unit: str, service: Service, now: bool) -> Failed | None:
    set_service(shell, unit, msgspec.structs.replace(service, enabled=True))
    return starting.start(shell, unit) if now else None


def _disable(shell: Shell, unit: str, service: Service, now: bool) -> None:
    if now and service.active:
        starting.stop(shell, unit)
        service = known(shell, unit) or Service()
    set_service(shell, unit, msgspec.structs.replace(service, enabled=False))


def _mask(shell: Shell, unit: str, service: Service, _now: bool) -> None:
    set_service(shell, unit, msgspec.structs.replace(service, masked=True))


def _unmask(shell: Shell, unit: str, service: Service, _now: bool) -> None:
    set_service(shell, unit, msgspec.structs.replace(service, masked=False))


def _reset(shell: Shell, unit: str, service: Service, _now: bool) -> None:
    if service.failed and not service.active:
        calm = msgspec.structs.replace(service, failed="", retrying=False)
        set_service(shell, unit, calm)


_CHANGES: Mapping[str, Callable[[Shell, str, Service, bool], Failed | None]] = {
    "disable": _disable,
    "enable": _enable,
    "mask": _mask,
    "reload": _reload,
    "reload-or-restart": _restart,
    "reset-failed": _reset,
    "restart": _restart,
    "start": _start,
    "stop": _stop,
    "try-restart": _restart_running,
    "unmask": _unmask,
}


def _read_anew(shell: Shell) -> Completed:
    for key in sorted(shell.state.keys("service:")):
        unit = key.removeprefix("service:")
        service, digest = shell.service(unit), units.digest(shell, unit)
        if service is not None and digest != service.loaded:
            set_service(shell, unit, msgspec.structs.replace(service, loaded=digest))
    return OK


def _is_system_running(shell: Shell) -> Completed:
    services = (shell.service(key.removeprefix("service:")) for key in shell.state.keys("service:"))
    if any(condition(shell, service) == "failed" for service in services):
        return Completed(1, b"degraded\n")
    return said("running\n")


def _forget_failures(shell: Shell) -> Completed:
    for key in sorted(shell.state.keys("service:")):
        unit = key.removeprefix("service:")
        if (service := shell.service(unit)) is not None:
            _reset(shell, unit, service, False)
    return OK


_OF_THE_SYSTEM: Mapping[str, Callable[[Shell], Completed]] = {
    "daemon-reload": _read_anew,
    "is-system-running": _is_system_running,
    "reset-failed": _forget_failures,
}


def _is_active(shell: Shell, names: Sequence[str], quiet: bool) -> Completed:
    states = [condition(shell, shell.service(unit)) for unit in names]
    text = "" if quiet else "".join(f"{state}\n" for state in states)
    return Completed(0 if "active" in states else _NOT_RUNNING, text.encode())


def _is_failed(shell: Shell, names: Sequence[str], quiet: bool) -> Completed:
    states = [condition(shell, shell.service(unit)) for unit in names]
    text = "" if quiet else "".join(f"{state}\n" for state in states)
    return Completed(0 if "failed" in states else _NOT_FAILED, text.encode())


def _is_enabled(shell: Shell, names: Sequence[str], quiet: bool) -> Completed:
    states = [_enabled_word(known(shell, unit)) for unit in names]
    text = "" if quiet else "".join(f"{state}\n" for state in states)
    return Completed(0 if "enabled" in states else 1, text.encode())


def _status(shell: Shell, names: Sequence[str], _quiet: bool) -> Completed:
    lines, states = [], set()
    for unit in names:
        service = shell.service(unit)
        states.add(state := condition(shell, service))
        lines.append(f"{unit} - {state}\n")
        lines += [f"    {service.failed}\n"] if service is not None and service.failed else []
    return Completed(0 if states == {"active"} else _NOT_RUNNING, "".join(lines).encode())


_QUESTIONS: Mapping[str, Callable[[Shell, Sequence[str], bool], Completed]] = {
    "is-active": _is_active,
    "is-enabled": _is_enabled,
    "is-failed": _is_failed,
    "status": _status,
}


def _show(shell: Shell, names: Sequence[str], flags: set[str]) -> Completed:
    wanted = [flag.removeprefix("--property=") for flag in flags if flag.startswith("--property=")]
    if len(wanted) != 1 or len(names) != 1 or len(flags) != 1:
        raise shell.unexpected()
    unit = names[0]
    service = known(shell, unit)
    properties = {
        "LoadState": _load_word(service),
        "ActiveState": condition(shell, service),
        "UnitFileState": "" if service is None else _enabled_word(service),
        "NeedDaemonReload": "yes" if _is_stale(shell, unit, service) else "no",
    }
    asked = wanted[0].split(",")
    if not properties.keys() >= set(asked):
        raise shell.unexpected()
    return said("".join(f"{name}={properties[name]}\n" for name in asked))


def _show_swaps(shell: Shell, flags: set[str]) -> Completed:
    """Units of swap beside those of the table of file systems, which nobody asks for here."""
    names = (key.removeprefix("service:") for key in sorted(shell.state.keys("service:")))
    blocks = []
    for unit in (name for name in names if name.endswith(".swap")):
        service = known(shell, unit)
        properties = {
            "Id": unit,
            "LoadState": _load_word(service),
            "ActiveState": condition(shell, service),
            "UnitFileState": _enabled_word(service),
            "FragmentPath": f"/run/systemd/generator/{unit}",
            "SourcePath": "",
        }
        if flags != {f"--property={','.join(properties)}"}:
            raise shell.unexpected()
        blocks.append("".join(f"{name}={value}\n" for name, value in properties.items()))
    return said("\n".join(blocks))


def _is_stale(shell: Shell, unit: str, service: Service | None) -> bool:
    return service is not None and service.loaded != units.digest(shell, unit)


def _load_word(service: Service | None) -> str:
    if service is None:
        return "not-found"
    return "masked" if service.masked else "loaded"


def _enabled_word(service: Service | None) -> str:
    if service is None:
        return "not-found"
    if service.masked:
        return "masked"
    return "enabled" if service.enabled else "disabled"


PROGRAMS: Mapping[str, Program] = {"systemctl": systemctl}
