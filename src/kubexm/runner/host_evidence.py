"""Why something of a cluster does not run on a host, as far as the host can tell.

There may be no crictl: containers are asked for by ctr, and their logs are where the kubelet has
them written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename

import msgspec

from kubexm.common import layout
from kubexm.connector.base import C_LOCALE
from kubexm.runner.diagnosis import Section, complaints
from kubexm.runner.host import Command, Host

KUBERNETES = ("kubelet", "containerd")
"""Units without which no pod runs."""
_JOURNAL_LINES = 400
_LOG_BYTES = 8192
_MOST_LOGS = 4
_BEFORE = 60.0
"""Seconds: what was said shortly before counts too."""
_CTR = (f"{layout.BINARIES}/ctr", "-n", "k8s.io")
_NOTHING = "-- No entries --"
_LOG = re.compile(r"(?P<pod>[^/]+)_[^/_]+/(?P<container>[^/]+)/(?P<start>\d+)\.log$")
_LINE = re.compile(r"^\S+ (?:stdout|stderr) [FP] ?(.*)$")


class _Log(msgspec.Struct, frozen=True):
    """What one start of a container has written."""

    path: str
    pod: str
    """Its namespace, `_` and its name."""
    container: str
    start: int


async def of_units(
    host: Host, units: Sequence[str], seconds: float, *, sudo: bool | None = None
) -> list[Section]:
    """What units complained of in the last seconds, or said last."""
    found = await _journals(host, units, seconds, sudo)
    return [_told(unit, complaints(lines)) for unit, lines in found.items()]


async def of_service(
    host: Host, unit: str, seconds: float, *, sudo: bool | None = None
) -> list[Section]:
    """How a unit is, what it complained of, and with what runs pods what these did."""
    words = ("systemctl", "status", "--no-pager", "--lines=0", "--", unit)
    (state,) = await host.batch((host.command(*words, sudo=sudo, env=C_LOCALE),))
    found = Section("status", state.text.splitlines())
    if unit in KUBERNETES:
        return [found, *await of_kubernetes(host, seconds, sudo=sudo)]
    return [found, *await of_units(host, (unit,), seconds, sudo=sudo)]


async def of_pods(host: Host, seconds: float, *, sudo: bool | None = None) -> list[Section]:
    """Containers that do not run, and what those said that ended in the last seconds."""
    minutes = math.ceil((seconds + _BEFORE) / 60)
    deep = ("-mindepth", "3", "-maxdepth", "3", "-name", "*.log", "-mmin", f"-{minutes}")
    looks = (
        (*_CTR, "containers", "ls"),
        (*_CTR, "tasks", "ls"),
        ("find", layout.POD_LOGS[0], *deep),
    )
    answers = await host.batch([host.command(*argv, sudo=sudo, env=C_LOCALE) for argv in looks])
    containers, tasks, paths = (answer.text.splitlines() for answer in answers)
    idle = _idle(containers[1:], tasks[1:])
    logs = _ended(paths, {_component(image) for image in idle})
    return [
        Section("containers that do not run", [f"of {image}" for image in idle]),
        *await _logs(host, logs, sudo),
    ]


async def of_kubernetes(host: Host, seconds: float, *, sudo: bool | None = None) -> list[Section]:
    """Both, of all that runs pods on a host."""
    pods = await of_pods(host, seconds, sudo=sudo)
    found = await _journals(host, KUBERNETES, seconds, sudo)
    bad = {unit: complaints(lines, or_last=False) for unit, lines in found.items()}
    return [*pods, *(_told(unit, lines) for unit, lines in bad.items())]


async def _journals(
    host: Host, units: Sequence[str], seconds: float, sudo: bool | None
) -> dict[str, list[str]]:
    answers = await host.batch([_journal(host, unit, seconds, sudo) for unit in units])
    return {
        unit: [line for line in answer.text.splitlines() if answer.ok and line != _NOTHING]
        for unit, answer in zip(units, answers, strict=True)
    }


def _journal(host: Host, unit: str, seconds: float, sudo: bool | None) -> Command:
    # By the clock of the host, which need not be ours.
    since = f"--since=-{math.ceil(seconds + _BEFORE)}s"
    most = ("--lines", str(_JOURNAL_LINES), "--no-pager", "--output", "cat")
    return host.command("journalctl", "--unit", unit, since, *most, sudo=sudo, env=C_LOCALE)


def _told(unit: str, lines: Sequence[str]) -> Section:
    return Section(f"journal of {unit}", lines)


def _idle(containers: Iterable[str], tasks: Iterable[str]) -> list[str]:
    """Images of which there are containers, and none that runs."""
    running = {words[0] for line in tasks if (words := line.split()) and words[-1] == "RUNNING"}
    rows = [words for line in containers if len(words := line.split()) > 1]
    used = {image for id, image, *_ in rows if id in running}
    return sorted({image for _, image, *_ in rows} - used)


def _component(image: str) -> str:
    """What the container of a static pod is called."""
    return basename(image).partition("@")[0].partition(":")[0]


def _ended(paths: Iterable[str], idle: set[str]) -> list[list[_Log]]:
    """By container that ended its last logs: of this start, and of the one before."""
    found: dict[tuple[str, str], list[_Log]] = {}
    for log in _parsed(paths):
        found.setdefault((log.pod, log.container), []).append(log)
    return [
        sorted(logs, key=lambda log: log.start)[-2:]
        for (_, container), logs in sorted(found.items())
        if container in idle or any(log.start for log in logs)
    ][:_MOST_LOGS]


def _parsed(paths: Iterable[str]) -> Iterator[_Log]:
    for path in paths:
        if found := _LOG.search(path):
            yield _Log(path, found["pod"], found["container"], int(found["start"]))


async def _logs(host: Host, logs: Iterable[Sequence[_Log]], sudo: bool | None) -> list[Section]:
    """The last bytes of each, as what its container complained of."""
    flat = [log for some in logs for log in some]
    tails = [("tail", "-c", str(_LOG_BYTES), "--", log.path) for log in flat]
    answers = await host.batch([host.command(*argv, sudo=sudo) for argv in tails])
    said: dict[tuple[str, str], list[str]] = {}
    for log, answer in zip(flat, answers, strict=True):
        said.setdefault((log.pod, log.container), []).extend(_spoken(answer.text))
    return [
        Section(f"log of {container} in {pod.replace('_', '/', 1)}", complaints(lines))
        for (pod, container), lines in said.items()
    ]


def _spoken(log: str) -> Iterator[str]:
    """What was written, without when and where to; a line that was cut off is none."""
    return (found[1] for line in log.splitlines() if (found := _LINE.match(line)))
