"""How a simulated systemd starts and stops a unit: by its files, and by what its program needs."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import basename

import msgspec

from kubexm.sim import ports, standins, units
from kubexm.sim.daemons import Condition, Daemon, Ended, Start
from kubexm.sim.registered import DAEMONS
from kubexm.sim.shell import Shell
from kubexm.sim.state import Service, Socket
from kubexm.sim.units import Unit

_PLAIN = Daemon()
_NEEDS = ("Requires", "BindsTo")
_STOPS_WITH = ("Requires", "BindsTo", "PartOf")
_RESTARTS = frozenset(("always", "on-failure", "on-abnormal"))
_CHECKED = frozenset(("notify", "notify-reload", "exec", "forking", "oneshot", "dbus"))
"""Types of which systemd learns that a start has failed, before it answers who asked for it."""
_SUFFIX, _TIMER = ".service", ".timer"


class Failed(msgspec.Struct, frozen=True):
    """Why a unit does not run, and whether whoever wanted it to is told."""

    why: str
    told: bool = True


def known(shell: Shell, unit: str) -> Service | None:
    """A unit as systemd has it, or as it would load it now."""
    return shell.service(unit) or _unloaded(shell, unit)


def set_service(shell: Shell, unit: str, service: Service, *, starts: bool = False) -> None:
    """Keep a unit's new state; a start counts."""
    if starts:
        count = shell.state.get(f"starts:{unit}")
        shell.state.set(f"starts:{unit}", (count if isinstance(count, int) else 0) + 1)
    key = f"service:{unit}"
    # systemd forgets a unit that neither runs nor is enabled, and reads it again when asked.
    idle = service in (_unloaded(shell, unit), Service()) and not shell.state.was_delivered(key)
    if idle and shell.state.get(key) is None and not starts:
        return
    shell.state.set(key, None if idle else service)


def condition(shell: Shell, service: Service | None) -> Condition | str:
    """How a unit is, in the words of systemd."""
    if service is None:
        return "inactive"
    if service.active:
        return DAEMONS.get(service.program, _PLAIN).condition(shell)
    if service.retrying:
        return "activating"
    return "failed" if service.failed else "inactive"


def start(shell: Shell, unit: str) -> Failed | None:
    """Start a unit that does not run, and those that it requires."""
    service = known(shell, unit)
    if service is None:
        return Failed(f"Unit {unit} not found.")
    if service.active:
        return None
    # One that has no file is what the settings of the world say of it.
    described = units.load(shell, unit) or Unit(unit, {})
    if not _conditions_hold(shell, described):
        return None
    if unit.endswith(_TIMER) and known(shell, triggered := _triggered(described)) is None:
        return Failed(f"{unit}: Refusing to start, unit {triggered} to trigger not loaded.")
    return _required(shell, described) or _carried_out(shell, described, service)


def _triggered(timer: Unit) -> str:
    """The unit that a timer starts: the one it names, or the service of the same name."""
    return timer.one("Unit") or f"{timer.name.removesuffix(_TIMER)}{_SUFFIX}"


def stop(shell: Shell, unit: str) -> None:
    """Stop a unit, and those that can't be without it."""
    service = shell.service(unit)
    if service is None:
        return
    _end(shell, unit, service)
    for other in _dependents(shell, unit):
        stop(shell, other)


def restart(shell: Shell, unit: str) -> Failed | None:
    """Start a unit anew, and those that run and can't be without it."""
    service = shell.service(unit)
    others = _dependents(shell, unit)
    if service is not None:
        _end(shell, unit, service)
    failed = start(shell, unit)
    for other in others:
        restart(shell, other)
    return failed


def boot(shell: Shell) -> None:
    """Start the units anew that start with the host, and only these."""
    found = [key.removeprefix("service:") for key in sorted(shell.state.keys("service:"))]
    for unit in found:
        if (service := shell.service(unit)) is not None and (service.active or service.failed):
            _end(shell, unit, service)
    for unit in found:
        if (service := shell.service(unit)) is not None and service.enabled:
            start(shell, unit)


def _unloaded(shell: Shell, unit: str) -> Service | None:
    if loaded := units.digest(shell, unit):
        return Service(loaded=loaded)
    # A package that nothing is said about has a unit of its own name, if it is asked for one.
    return Service() if shell.version(unit.removesuffix(_SUFFIX)) is not None else None


def _end(shell: Shell, unit: str, service: Service) -> None:
    if service.active:
        DAEMONS.get(service.program, _PLAIN).stops(shell, unit)
        _clear_up(shell, units.load(shell, unit) or Unit(unit, {}))
    rest = msgspec.structs.replace(
        service, active=False, failed="", retrying=False, sockets=(), program=""
    )
    set_service(shell, unit, rest)


def _clear_up(shell: Shell, unit: Unit) -> None:
    """Carry out what comes at the end of a unit; nobody learns whether it fails."""
    variables, _ = units.environment(shell, unit)
    for text in (*unit.all("ExecStop"), *unit.all("ExecStopPost")):
        shell.run(units.execution(text, variables).argv)


def _dependents(shell: Shell, unit: str) -> list[str]:
    """Units that run and are stopped with this one."""
    found = []
    for key in sorted(shell.state.keys("service:")):
        other = key.removeprefix("service:")
        service = shell.service(other)
        if service is not None and service.active and other != unit:
            described = units.load(shell, other)
            needs = {name for key in _STOPS_WITH if described for name in described.names(key)}
            found += [other] if unit in needs else []
    return found


def _conditions_hold(shell: Shell, unit: Unit) -> bool:
    """Whether all is so that the unit wants to be so; else it stays as it is, and nobody fails."""
    for key, sign in (("ConditionPathExists", "-e"), ("ConditionFileNotEmpty", "-s")):
        for value in unit.all(key):
            there = shell.run(("test", sign, value.lstrip("!"))).ok
            if there == value.startswith("!"):
                return False
    return True


def _required(shell: Shell, unit: Unit) -> Failed | None:
    for key in ("Wants", *_NEEDS):
        for other in unit.names(key):
            if not other.endswith(_SUFFIX) or (key == "Wants" and known(shell, other) is None):
                continue
            if start(shell, other) is not None and key != "Wants":
                return Failed(f"A dependency job for {unit.name} failed: {other} does not run.")
    return None


def _carried_out(shell: Shell, unit: Unit, service: Service) -> Failed | None:
    try:
        set_service(shell, unit.name, _running(shell, unit, service), starts=True)
    except Ended as error:
        retrying = unit.one("Restart") in _RESTARTS
        state = msgspec.structs.replace(service, failed=str(error), retrying=retrying)
        set_service(shell, unit.name, state, starts=True)
        return Failed(str(error), told=unit.one("Type", "simple") in _CHECKED)
    return None


def _running(shell: Shell, unit: Unit, service: Service) -> Service:
    """The unit once it has started; `Ended` if it can't."""
    begun = _prepared(shell, unit)
    if unit.one("Type") == "oneshot":
        _run_once(shell, unit)
        stays = unit.one("RemainAfterExit") in ("yes", "true", "1", "on")
        return msgspec.structs.replace(service, active=stays, failed="", retrying=False)
    sockets = () if begun is None else _begun(begun)
    _require_free(shell, [Socket(port) for port in service.ports])
    return msgspec.structs.replace(
        service,
        active=True,
        failed="",
        retrying=False,
        program="" if begun is None else begun.program,
        sockets=tuple(sockets),
    )


def _begun(start: Start) -> Sequence[Socket]:
    daemon = DAEMONS.get(start.program, _PLAIN)
    sockets = daemon.starts(start)
    try:
        _require_free(start.shell, sockets)
    except Ended:
        daemon.stops(start.shell, start.unit)
        raise
    return sockets


def _require_free(shell: Shell, sockets: Sequence[Socket]) -> None:
    for socket in sockets:
        if holder := ports.holder(shell, socket):
            where = f"{socket.address or '0.0.0.0'}:{socket.port}"  # noqa: S104  # said, not bound
            raise Ended(f"listen tcp {where}: bind: address already in use (by {holder})")


def _prepared(shell: Shell, unit: Unit) -> Start | None:
    """All that comes before the program itself; None if the unit names none."""
    variables, missing = units.environment(shell, unit)
    if missing:
        raise Ended(f"Failed to load environment files: {missing}: No such file or directory")
    for text in unit.all("ExecStartPre"):
        _execute(shell, text, variables)
    if not unit.all("ExecStart") or unit.one("Type") == "oneshot":
        return None
    argv = units.execution(unit.one("ExecStart"), variables).argv
    if basename(argv[0]) in standins.NEEDED and (refusal := standins.refusal(shell, argv[0])):
        raise Ended(f"{refusal.error_text} (code=exited, status=203/EXEC)")
    file = standins.found(shell, argv[0])
    name, version = (file.program, file.version) if file else (basename(argv[0]), "")
    return Start(shell, unit.name, name, tuple(argv[1:]), variables, version)


def _run_once(shell: Shell, unit: Unit) -> None:
    variables, _ = units.environment(shell, unit)
    for text in unit.all("ExecStart"):
        _execute(shell, text, variables)


def _execute(shell: Shell, text: str, variables: dict[str, str]) -> None:
    command = units.execution(text, variables)
    done = shell.run(command.argv)
    if not done.ok and not command.lenient:
        words = " ".join(command.argv)
        raise Ended(f"`{words}` exited with {done.exit}: {done.error_text or done.text}")
