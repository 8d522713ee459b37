"""The clusters that the store knows, by what was done with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Literal, NoReturn

import msgspec

from kubexm.app import places
from kubexm.app.stored import StoredOptions
from kubexm.common.about import About
from kubexm.common.nearest import did_you_mean, nearest
from kubexm.common.paths import Home
from kubexm.common.roles import CONTROL_NODE, CONTROL_PLANE
from kubexm.errors import InvalidInput, StoreError
from kubexm.spec.inventory import InventoryHost
from kubexm.step.kubeadm import MEMBERSHIP
from kubexm.step.services import Service
from kubexm.store import Run, Store

State = Literal["creating", "deleting", "created", "degraded", "unfinished", "half deleted"]
MOST_RUNS = 10_000
(_ETCD,) = Service("etcd").resources


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
    has_etcd: bool = False
    """Whether an etcd of its own was begun, without which there may be no control plane yet."""
    members: frozenset[str] = frozenset()
    """Hosts that were let in, or that kubeadm at least began to."""
    strays: frozenset[str] = frozenset()
    """Members of what a deletion has left without a control plane, and did not come to itself."""


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


def clusters(home: Home, unusable: Callable[[StoreError], None]) -> list[KnownCluster]:
    """All clusters, by name; those of simulated worlds after the real one of the same name.

    `unusable` is told of stores that can't be read; what the others have is there nevertheless.
    """
    found: list[KnownCluster] = []
    for store in places.stores(home, unusable):
        try:
            found += [*_of_store(store)]
        except StoreError as error:  # of one that could be opened, but is damaged further on
            unusable(error)
    return sorted(found, key=lambda one: (one.name, one.world or ""))


def cluster(home: Home, name: str) -> KnownCluster:
    """The cluster of a name, the real one first; `InvalidInput` if there is none."""
    unusable: list[StoreError] = []
    found = clusters(home, unusable.append)
    if (one := _named(found, name)) is None and unusable:
        raise unusable[0]  # where it may be
    return one or _refuse(found, name)


def cluster_of(home: Home, name: str, world: Path | None) -> KnownCluster:
    """The cluster of a name in one simulated world, or else in the real one."""
    if (one := _named(_in(home, world), name)) is not None:
        return one
    found = clusters(home, lambda _: None)
    if world is not None:
        found.reverse()  # who looks in a world means a simulated one sooner than a real one
    if (other := _named(found, name)) is None:
        return _refuse_near(home, found, name, world)
    kind, way = _told_apart(home, other, world)
    raise InvalidInput(f"the cluster `{name}` is {kind}", hint=f"if you mean that one, {way}")


def made(home: Home, run: Run) -> KnownCluster:
    """The cluster that a run has made, in the store of that run."""
    world = Path(run.world) if run.world is not None else None
    with places.open_store(places.database_path(home, world)) as store:
        done = _since_it_is_there(store, store.runs(run.name, limit=MOST_RUNS))
        return _known(store, run.name, [*done])


def there(home: Home, name: str, world: Path | None) -> KnownCluster | None:
    """The same; None if there is none."""
    return _named(_in(home, world), name)


def _in(home: Home, world: Path | None) -> list[KnownCluster]:
    """The clusters of one world; whatever is wrong with another does not matter."""
    database = places.database_path(home, world)
    if not database.exists():
        return []
    with places.open_store(database) as store:
        return [*_of_store(store)]


def _named(found: Sequence[KnownCluster], name: str) -> KnownCluster | None:
    return next((one for one in found if one.name == name), None)


def _refuse_near(
    home: Home, found: Sequence[KnownCluster], name: str, world: Path | None
) -> NoReturn:
    """Refuse a name that no cluster has; the one that may be meant may lie elsewhere."""
    near = _named(found, nearest(name, (one.name for one in found)) or "")
    if near is None or _is_found(home, near, name, world):
        _refuse(found, name)
    kind, way = _told_apart(home, near, world)
    hint = f"did you mean `{near.name}`? It is {kind}: {way}"
    raise InvalidInput(_unknown(name), hint=hint)


def _is_found(home: Home, one: KnownCluster, instead: str, world: Path | None) -> bool:
    """Whether its name in place of another one is all that it wants to be found."""
    is_usual = world == places.world_path(home, instead, None)
    place = places.world_path(home, one.name, None) if is_usual else world
    return one.world == (None if place is None else str(place))


def _told_apart(home: Home, one: KnownCluster, world: Path | None) -> tuple[str, str]:
    """What a cluster is to somebody who looks in this world, and the way to name that one."""
    if one.world is None:
        return "real", "leave out `--simulate`"
    usual = one.world == str(places.world_path(home, one.name, None))
    kind = "simulated" if world is None else "in another simulated world"
    if usual:
        return kind, "give `--simulate`" if world is None else "leave out `--world`"
    return kind, f"give `--simulate --world {one.world}`"


def _refuse(found: Sequence[KnownCluster], name: str) -> NoReturn:
    names = [one.name for one in found]
    hint = did_you_mean(name, names) if names else "`kubexm create cluster -f FILE` makes one"
    raise InvalidInput(_unknown(name), hint=hint)


def _unknown(name: str) -> str:
    return f"no cluster `{name}` is known"


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
    makers = store.makers(name)
    let_in = _let_in(makers)
    is_begun, strays = _standing(let_in, done, made.options.about)
    return KnownCluster(
        name=name,
        state=_state(done),
        about=made.options.about,
        hosts=[host for host in hosts if host.name != CONTROL_NODE],
        since=creations[-1].run.created,
        task=done[0].run.id,
        made_by=made.run.id,
        world=made.run.world,
        is_begun=is_begun,
        has_etcd=any(_ETCD in noted for noted in makers.values()),
        members=frozenset(let_in) - strays,
        strays=strays,
    )


def _let_in(makers: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """Who was let in, and by which run, as the ledger has it."""
    return {host: noted[MEMBERSHIP] for host, noted in makers.items() if MEMBERSHIP in noted}


def _standing(
    let_in: Mapping[str, str], done: Sequence[_Done], about: About
) -> tuple[bool, frozenset[str]]:
    """Whether there is a control plane, and who is a member of one that is no more."""
    since = {one.run.id for one in takewhile(lambda one: one.is_creation, done)}
    old = frozenset(host for host, run in let_in.items() if run not in since)
    control_planes = {*about.roles[CONTROL_PLANE]}
    # A deletion that came to its first control plane has left none that anybody could go on with.
    is_begun = control_planes <= let_in.keys() or old != let_in.keys()
    is_same = is_begun and not old.isdisjoint(control_planes)
    return is_begun, frozenset() if is_same else old


def _state(done: Sequence[_Done]) -> State:
    busy = next((one for one in done if one.run.holder is not None), None)
    if busy is not None:
        return "creating" if busy.is_creation else "deleting"
    # A part that was selected tells nothing of the rest, whether it was made or not.
    whole = next((one for one in done if not one.run.selected), None)
    if whole is None:
        return "unfinished"
    if not whole.is_creation:
        return "half deleted"
    return _outcome(whole.run)


def _outcome(creation: Run) -> State:
    if creation.status != "Success":
        return "unfinished"
    return "degraded" if creation.degraded else "created"
