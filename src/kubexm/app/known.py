"""The clusters that the store knows, by what was done with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, NoReturn

import msgspec

from kubexm.app import places
from kubexm.app.stored import StoredOptions
from kubexm.common.about import About
from kubexm.common.nearest import did_you_mean
from kubexm.common.paths import Home
from kubexm.common.roles import CONTROL_NODE
from kubexm.errors import InvalidInput
from kubexm.spec.inventory import InventoryHost
from kubexm.step.kubeadm import MEMBERSHIP
from kubexm.store import Run, Store

State = Literal["creating", "deleting", "created", "degraded", "unfinished", "half deleted"]
MOST_RUNS = 10_000


class KnownCluster(msgspec.Struct, frozen=True, rename="camel"):
    """A cluster that was made, or begun, and not deleted since."""

    name: str
    state: State
    about: About
    hosts: Sequence[InventoryHost]
    since: datetime
    """When it was begun."""
    task: str
    """What was done with it last."""
    made_by: str
    """The run that has the whole plan of it."""
    world: str | None = None
    """The simulated world that it lies in; the real one if there is none."""
    is_begun: bool = False
    """Whether a control plane is there, or was begun: what the cluster stands on is settled."""


class _Done(msgspec.Struct, frozen=True):
    """A run on a cluster."""

    run: Run
    options: StoredOptions

    @property
    def is_creation(self) -> bool:
        operation = self.options.operation
        return operation is not None and operation.operation == "create-cluster"

    @property
    def ends_it(self) -> bool:
        """Whether nothing is left of the cluster after this run."""
        is_whole = self.run.status == "Success" and not self.run.degraded
        return not self.is_creation and is_whole


def clusters(home: Home) -> list[KnownCluster]:
    """All clusters, by name; those of simulated worlds after the real one of the same name."""
    found: list[KnownCluster] = []
    for store in places.stores(home, _raised):
        found += _of_store(store)
    return sorted(found, key=lambda one: (one.name, one.world or ""))


def cluster(home: Home, name: str) -> KnownCluster:
    """The cluster of a name, the real one first; `InvalidInput` if there is none."""
    found = clusters(home)
    return _named(found, name) or _refuse(found, name)


def cluster_of(home: Home, name: str, world: Path | None) -> KnownCluster:
    """The cluster of a name in one simulated world, or else in the real one."""
    found = clusters(home)
    where = str(world) if world is not None else None
    there = [one for one in found if one.world == where]
    if where is None and not _named(there, name) and _named(found, name):
        message = f"the cluster `{name}` is simulated"
        raise InvalidInput(message, hint="say that you mean that one with `--simulate`")
    return _named(there, name) or _refuse(there, name)


def made(home: Home, run: Run) -> KnownCluster:
    """The cluster that a run has made, in the store of that run."""
    world = Path(run.world) if run.world is not None else None
    with places.open_store(places.database_path(home, world)) as store:
        done = _since_it_is_there(store, store.runs(run.name, limit=MOST_RUNS))
        return _known(store, run.name, [*done])


def begun(home: Home, name: str, world: Path | None) -> KnownCluster | None:
    """The cluster of a name if it has a control plane already; None if there is none such."""
    where = str(world) if world is not None else None
    there = [one for one in clusters(home) if one.world == where and one.is_begun]
    return _named(there, name)


def _named(found: Sequence[KnownCluster], name: str) -> KnownCluster | None:
    return next((one for one in found if one.name == name), None)


def _refuse(found: Sequence[KnownCluster], name: str) -> NoReturn:
    names = [one.name for one in found]
    hint = did_you_mean(name, names) if names else "`kubexm create cluster -f FILE` makes one"
    raise InvalidInput(f"no cluster `{name}` is known", hint=hint)


def _raised(error: Exception) -> None:
    raise error


def _of_store(store: Store) -> Iterator[KnownCluster]:
    by_name: dict[str, list[Run]] = {}
    for run in store.runs(limit=MOST_RUNS):
        by_name.setdefault(run.name, []).append(run)
    for name, runs in by_name.items():
        done = [*_since_it_is_there(store, runs)]
        if any(one.is_creation for one in done):
            yield _known(store, name, done)


def _since_it_is_there(store: Store, newest_first: Sequence[Run]) -> Iterator[_Done]:
    """What was done with a cluster, the last first, as far back as it was there."""
    for run in newest_first:
        options = msgspec.json.decode(store.options(run.id), type=StoredOptions)
        done = _Done(run, options)
        if options.operation is None or options.about is None:
            continue
        if done.ends_it:
            return
        yield done


def _known(store: Store, name: str, done: Sequence[_Done]) -> KnownCluster:
    creations = [one for one in done if one.is_creation]
    made = next((one for one in creations if not one.run.selected), creations[0])
    assert made.options.about is not None
    hosts = msgspec.json.decode(store.documents(made.run.id).spec, type=list[InventoryHost])
    return KnownCluster(
        name=name,
        state=_state(done[0]),
        about=made.options.about,
        hosts=[host for host in hosts if host.name != CONTROL_NODE],
        since=creations[-1].run.created,
        task=done[0].run.id,
        made_by=made.run.id,
        world=made.run.world,
        is_begun=any(MEMBERSHIP in found for found in store.in_ledger(name).values()),
    )


def _state(last: _Done) -> State:
    run = last.run
    if run.holder is not None:
        return "creating" if last.is_creation else "deleting"
    if not last.is_creation:
        return "half deleted"
    if run.status != "Success":
        return "unfinished"
    return "degraded" if run.degraded else "created"
