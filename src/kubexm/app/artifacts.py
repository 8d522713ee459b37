"""The check `artifacts`: whether all that a cluster needs is in its bundle, or can be had."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kubexm.app import bills
from kubexm.app.bills import Billed, BillParams, billed
from kubexm.app.params import ClusterParams
from kubexm.app.remembered import Facts
from kubexm.common.checks import CHECKS, Finding, Kind
from kubexm.common.counting import few
from kubexm.common.paths import Home
from kubexm.common.roles import CONTROL_NODE, REGISTRY
from kubexm.common.threads import in_thread
from kubexm.config.cluster import Cluster
from kubexm.errors import Problem
from kubexm.resource import bundle, images, keys
from kubexm.resource.asking import Answer, Asking, asking
from kubexm.resource.bundle_gather import machines
from kubexm.resource.materials import BillOfMaterials, Binary, Chart, Image
from kubexm.resource.store import Store
from kubexm.runtime.secrets import SecretVault

CHECK = "artifacts"
NOT_SIMULATED = f"the check `{CHECK}` is left out of a simulation: nobody real is asked"
_OWN_REGISTRY = "registry"
"""The component that serves images, which no registry serves yet."""
_FILE = "name another address of it in a catalog of yours (`--catalog`), or bring a bundle"
_CHART = "look at its repository and version, or name the path of its archive"
_IMAGE = "push it there, name a mirror in `containerRuntime.registries`, or bring a bundle"
_ASK = "see yourself that the hosts get it there, or let this machine ask too"


class Sought(msgspec.Struct, frozen=True):
    """For which cluster things are wanted, what its hosts told, and where all may come from."""

    cluster: ClusterParams
    facts: Facts = {}
    """By these the architectures are known that the file does not declare."""
    bundle: Path | None = None


async def lacking(sought: Sought, home: Home, vault: SecretVault) -> list[Finding]:
    """What can't be had, or not be asked for; nothing if the file leaves the check out."""
    wanted = await in_thread(_billed, sought)
    assert wanted.cluster is not None
    if CHECK in wanted.cluster.declared.spec.preflight.skip:
        return []
    if sought.bundle is not None:
        missing = await in_thread(in_bundle, sought.bundle, wanted.bill)
        return [_finding(problem.message, CHECKS[CHECK].remedy) for problem in missing]
    return await _not_outside(wanted.bill, wanted.cluster, Store(home.artifacts), vault)


def in_bundle(path: Path, wanted: BillOfMaterials) -> list[Problem]:
    """What a bundle lacks of a bill; `InvalidFile` if it is none."""
    return bundle.missing(bundle.contents(path), wanted)


def foretold(sought: Sought) -> list[Problem]:
    """What a bundle lacks, for who only plans; nothing if there is no bundle."""
    if sought.bundle is None:
        return []
    missing = in_bundle(sought.bundle, (wanted := _billed(sought)).bill)
    assert wanted.cluster is not None
    if CHECK in wanted.cluster.declared.spec.preflight.skip:
        return []
    where, hint = f"the bundle `{sought.bundle}`", CHECKS[CHECK].remedy
    return [Problem(problem.message, where, hint) for problem in missing]


def as_problems(found: Iterable[Finding], *kinds: Kind) -> list[Problem]:
    """What was found, as one is told of it where no table of checks is shown."""
    return [Problem(each.message, each.check, each.remedy) for each in found if each.kind in kinds]


def _billed(sought: Sought) -> Billed:
    params = sought.cluster
    wanted = BillParams(
        file=params.file,
        catalogs=params.catalogs,
        allow_literal_secrets=params.allow_literal_secrets,
    )
    return billed(wanted, sought.facts, is_bundled=sought.bundle is not None)


async def _not_outside(
    wanted: BillOfMaterials, cluster: Cluster, store: Store, vault: SecretVault
) -> list[Finding]:
    """What neither the store nor anybody outside has; all are asked at once."""
    try:
        return await _asked(wanted, cluster, store, vault)
    except ExceptionGroup as failures:  # of the store, so all have the same
        raise failures.exceptions[0] from None


async def _asked(
    wanted: BillOfMaterials, cluster: Cluster, store: Store, vault: SecretVault
) -> list[Finding]:
    ways, unusable = bills.registries(bills.declared_registries(cluster), vault)
    through_us, by_hosts = _parted(wanted.images, cluster)
    async with asking(bills.usual_options(), ways) as ask, asyncio.TaskGroup() as group:
        tasks = [group.create_task(_file(ask, store, file)) for file in wanted.binaries]
        tasks += [group.create_task(_chart(ask, store, chart)) for chart in wanted.charts]
        tasks += [group.create_task(_stored(ask, store, image)) for image in through_us]
        known = [image for image in by_hosts if _registry(image) not in unusable]
        pulled = [(image, group.create_task(_pulled(ask, image))) for image in known]
    found = [finding for task in tasks if (finding := task.result()) is not None]
    silent = [(image, answer) for image, task in pulled if (answer := task.result()) is not None]
    return [*found, *_of_images(silent), *_unasked(by_hosts, unusable)]


def _parted(wanted: Sequence[Image], cluster: Cluster) -> tuple[list[Image], list[Image]]:
    """Images that this machine fetches, and those that hosts pull themselves."""
    is_own = bool(cluster.declared.having(REGISTRY))
    ours = [image for image in wanted if is_own or image.component == _OWN_REGISTRY]
    return ours, [image for image in wanted if image not in ours]


async def _file(ask: Asking, store: Store, file: Binary) -> Finding | None:
    if await in_thread(_is_kept, store, file):
        return None
    return _judged(f"`{keys.of_file(file)}`", await ask.file(file.urls), _FILE)


def _is_kept(store: Store, file: Binary) -> bool:
    found = store.find(keys.of_file(file))
    if found is not None and file.sha256 in (None, found):
        return True
    return file.sha256 is not None and store.has(file.sha256)


async def _chart(ask: Asking, store: Store, chart: Chart) -> Finding | None:
    if await in_thread(store.find, keys.of_chart(chart)) is not None:
        return None
    what = f"the chart `{chart.name}` `{chart.version or 'newest'}` of {chart.repository}"
    return _judged(what, await ask.chart(chart), _CHART)


async def _stored(ask: Asking, store: Store, image: Image) -> Finding | None:
    name = images.parse(image.name)
    if (await in_thread(machines, name, store)).issuperset(image.architectures):
        return None
    return _judged(f"the image `{image.name}`", await ask.image(name), _IMAGE)


async def _pulled(ask: Asking, image: Image) -> Answer | None:
    answer = await ask.image(images.parse(image.pulled_as))
    return answer if answer.word != "has" else None


def _judged(what: str, answer: Answer, remedy: str) -> Finding | None:
    """What comes of an answer for a thing that this machine fetches itself."""
    if answer.word == "has":
        return None
    kind: Kind = "warning" if answer.word == "unsure" else "refusal"
    return _finding(f"{what} can't be had: {answer.why}", remedy, kind)


def _of_images(answers: Sequence[tuple[Image, Answer]]) -> Iterator[Finding]:
    """Hosts may reach who does not answer here, so only who says no is believed."""
    silent: dict[str, list[tuple[str, str]]] = {}
    for image, answer in answers:
        if answer.word == "lacks":
            yield _finding(f"the image `{image.pulled_as}` can't be had: {answer.why}", _IMAGE)
        else:
            silent.setdefault(_registry(image), []).append((image.pulled_as, answer.why))
    for registry, told in silent.items():
        yield _not_asked(registry, [name for name, _ in told], told[0][1])


def _unasked(
    by_hosts: Sequence[Image], unusable: Mapping[str, Sequence[Problem]]
) -> Iterator[Finding]:
    """Registries that this machine can't speak to as the file says."""
    for registry, problems in unusable.items():
        names = [image.pulled_as for image in by_hosts if _registry(image) == registry]
        if names:
            yield _not_asked(registry, names, "; ".join(map(str, problems)))


def _not_asked(registry: str, names: Sequence[str], why: str) -> Finding:
    what = f"`{registry}` can't be asked from here whether it has {few(names)}"
    return _finding(f"{what}: {why}", _ASK, "warning")


def _registry(image: Image) -> str:
    return images.parse(image.pulled_as).registry


def _finding(what: str, remedy: str, kind: Kind = "refusal") -> Finding:
    return Finding(CHECK, (CONTROL_NODE,), what, remedy=remedy, kind=kind)
