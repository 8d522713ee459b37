"""Making the parts that are missing: programs from Go modules, Debian's packages, a little C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lab.software import golang, parts, programs, recipe, versions
from lab.software.choosing import Choice, Choices
from lab.software.debian import Archive
from lab.software.progress import Progress, Step, Told

_RECIPE = 1
"""Counts up when the same recipe is followed in another way."""
_AT_ONCE = 2
"""While one part is fetched or linked, another is compiled."""
_PAUSE = Path(__file__).with_name("pause.c")
_CRICTL = """#!/bin/sh
if [ "$1" = --version ]; then
    echo "crictl version {version}"
    exit 0
fi
echo "crictl: the lab can't build it; look by \\`ctr --namespace k8s.io containers list\\`" >&2
exit 1
"""


@dataclass(frozen=True, slots=True)
class Job:
    """Something that is made, and where it goes."""

    title: str
    place: Path
    build: Callable[[Path, Step], None]


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where parts lie, and what they are made from."""

    root: Path
    choices: Choices
    archive: Archive

    @property
    def debian(self) -> Path:
        """The packages of Debian, unpacked into one root."""
        name = f"debian-{recipe.SUITE}-{parts.digest(_RECIPE, self.choices.packages)}"
        return self.root / "parts" / name

    def part(self, choice: Choice) -> Path:
        """The programs of a component."""
        made = recipe.GO.get(choice.component) or (_PAUSE.read_text(), _CRICTL)
        key = parts.digest(_RECIPE, made)
        return self.root / "parts" / f"{choice.component}-{choice.version}-{key}"

    def make(self, told: Told) -> None:
        """Have all parts."""
        jobs = self._jobs()
        lacking = [job for job in jobs if not job.place.exists()]
        told(f"{len(jobs)} parts, {len(jobs) - len(lacking)} of them are there")
        progress = Progress(told, len(lacking))
        # Others are linked with what is in these packages.
        first = [job for job in lacking if job.place == self.debian]
        _run(first, progress)
        _run([job for job in lacking if job not in first], progress)

    def _jobs(self) -> list[Job]:
        built = [each for each in self.choices.all if not each.package]
        # The longest comes first, so that it does not run alone at the end.
        order = [*recipe.GO, "pause", "crictl"]
        built.sort(key=lambda each: order.index(each.component))
        return [
            Job(f"Debian {recipe.SUITE}", self.debian, self._unpack),
            *(Job(_title(each), self.part(each), self._builder(each)) for each in built),
        ]

    def _unpack(self, into: Path, _step: Step) -> None:
        self.archive.update()
        self.archive.unpack(self.choices.packages, into)

    def _builder(self, choice: Choice) -> Callable[[Path, Step], None]:
        if choice.component == "pause":
            return _build_pause
        if choice.component == "crictl":
            return lambda into, _step: _write_crictl(into, choice.version)
        part, version = recipe.GO[choice.component], f"v{versions.bare(choice.version)}"
        return lambda into, step: golang.build(part, version, self.debian, into, step)


def _title(choice: Choice) -> str:
    return f"{choice.component} {choice.version}"


def _run(jobs: Sequence[Job], progress: Progress) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        running = [pool.submit(_make, job, progress) for job in jobs]
        try:
            for each in running:
                each.result()
        except BaseException:
            # What has not begun need not: somebody has to look at the failure first.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _make(job: Job, progress: Progress) -> None:
    step = progress.begin(job.title)
    parts.make(job.place, lambda half: job.build(half, step))
    step.end()


def _build_pause(into: Path, _step: Step) -> None:
    programs.run("gcc", "-Os", "-Wall", "-Werror", "-static", "-s", "-o", into / "pause", _PAUSE)


def _write_crictl(into: Path, version: str) -> None:
    program = into / "crictl"
    program.write_text(_CRICTL.format(version=version))
    program.chmod(0o755)
