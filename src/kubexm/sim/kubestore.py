"""What lies in one etcd: the objects of a cluster, in a journal of the world.

It survives a kill as hosts do, and knows nothing of who may reach it.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from kubexm.sim.kubedocs import Object
from kubexm.sim.kubekinds import BY_NAME, CRD, Kind, built_in, defined
from kubexm.sim.state import HostState

_OBJECT, _APPLIED, _NODE, _HELD = "object:", "applied:", "host-of:", "held:"


class Ref(msgspec.Struct, frozen=True):
    """An object by its kind and name; `namespace` is empty where the kind has none."""

    kind: Kind
    namespace: str
    name: str

    @property
    def key(self) -> str:
        """What tells it from all other objects."""
        return f"{self.kind.name}/{self.namespace}/{self.name}"

    @property
    def shown(self) -> str:
        """As kubectl writes it: `deployment.apps/coredns`."""
        return f"{self.kind.shown}/{self.name}"


class Cluster:
    """The objects of one cluster."""

    def __init__(self, state: HostState) -> None:
        self._state = state

    @property
    def id(self) -> str:
        """What tells it from other clusters of the world."""
        return self._state.name.removeprefix("@cluster-")

    # Objects.

    def get(self, ref: Ref) -> Object | None:
        """An object as it was stored."""
        found = self._state.get(_OBJECT + ref.key)
        return msgspec.json.decode(found, type=dict) if isinstance(found, str) else None

    def put(self, ref: Ref, new: Object) -> Object:
        """Store an object; what an API server adds to it comes by itself."""
        old = self.get(ref)
        if old is not None and _content(old) == _content(new):
            return old
        stored = self._stamped(ref, new, old)
        self._state.set(_OBJECT + ref.key, msgspec.json.encode(stored).decode())
        return stored

    def delete(self, ref: Ref) -> None:
        """Remove an object."""
        self._state.set(_OBJECT + ref.key, None)
        if self._state.get(_APPLIED + ref.key) is not None:
            self._state.set(_APPLIED + ref.key, None)

    def refs(self, kind: Kind, namespace: str = "") -> list[Ref]:
        """All objects of a kind, of one namespace or of all, by name."""
        prefix = f"{_OBJECT}{kind.name}/"
        found = sorted(self._state.keys(f"{prefix}{namespace}/" if namespace else prefix))
        parts = (key.removeprefix(prefix).partition("/") for key in found)
        return [Ref(kind, within, name) for within, _, name in parts]

    def all(self, kind: Kind, namespace: str = "") -> Iterator[tuple[Ref, Object]]:
        """The same with the objects themselves."""
        for ref in self.refs(kind, namespace):
            if (found := self.get(ref)) is not None:
                yield ref, found

    def in_namespace(self, namespace: str) -> list[Ref]:
        """All objects of a namespace, of any kind."""
        kinds = {**BY_NAME, **{kind.name: kind for kind in self.custom_kinds()}}
        parts = (key.removeprefix(_OBJECT).split("/") for key in self._state.keys(_OBJECT))
        return [
            Ref(kinds[kind], within, name) for kind, within, name in parts if within == namespace
        ]

    def applied(self, ref: Ref) -> Object:
        """What was said of an object when it was last applied."""
        found = self._state.get(_APPLIED + ref.key)
        return msgspec.json.decode(found, type=dict) if isinstance(found, str) else {}

    def set_applied(self, ref: Ref, said: Object) -> None:
        """Keep what was said of an object."""
        text = msgspec.json.encode(said, order="sorted").decode()
        if self._state.get(_APPLIED + ref.key) != text:
            self._state.set(_APPLIED + ref.key, text)

    # Kinds.

    def kind_of(self, api_version: str, kind: str) -> Kind | None:
        """The kind that a document names."""
        if (found := built_in(api_version, kind)) is not None:
            return found
        named = (one for one in self.custom_kinds() if one.kind == kind)
        return next((one for one in named if api_version in one.api_versions), None)

    def kind_called(self, word: str) -> Kind | None:
        """The kind that somebody means by a word, such as `deploy`."""
        for kind in BY_NAME.values():
            if kind.answers_to(word):
                return kind
        return next((one for one in self.custom_kinds() if one.answers_to(word)), None)

    def custom_kinds(self) -> list[Kind]:
        """The kinds that definitions of custom resources have added."""
        return [defined(crd) for _, crd in self.all(CRD)]

    # What is no object.

    def note(self, key: str) -> str:
        """What somebody has noted of the cluster."""
        found = self._state.get(key)
        return found if isinstance(found, str) else ""

    def set_note(self, key: str, value: str) -> None:
        """Note something of the cluster; an empty text is none."""
        if self.note(key) != value:
            self._state.set(key, value or None)

    def notes(self, prefix: str) -> dict[str, str]:
        """All notes whose keys begin like this, by the rest of their keys."""
        found = {key.removeprefix(prefix): self.note(key) for key in self._state.keys(prefix)}
        return dict(sorted(found.items()))

    def host_of(self, node: str) -> str:
        """The host that is a node."""
        return self.note(_NODE + node)

    def set_host_of(self, node: str, host: str) -> None:
        """Note which host a node is."""
        self.set_note(_NODE + node, host)

    def set_holder(self, host: str, path: str) -> None:
        """Where data of it lie; with the last such path all of it is gone."""
        self.set_note(_HELD + host, path)

    def holders(self) -> dict[str, str]:
        """Paths by host."""
        return self.notes(_HELD)

    def wipe(self) -> None:
        """Be as if it had never been."""
        for key in sorted(self._state.keys("")):
            if not self._state.was_delivered(key):
                self._state.set(key, None)

    def _stamped(self, ref: Ref, new: Object, old: Object | None) -> Object:
        # Neither time nor chance: worlds in which the same was done are equal.
        before = (old or {}).get("metadata", {})
        added = {"creationTimestamp": _BEGINNING, "uid": _uid(f"{self.id}/{ref.key}")}
        if "spec" in new:
            same = old is not None and old.get("spec") == new["spec"]
            added["generation"] = before.get("generation", 0) + (0 if same else 1)
        return {**new, "metadata": {**new.get("metadata", {}), **added}}


_BEGINNING = "2026-01-01T00:00:00Z"
_OF_THE_SERVER = ("creationTimestamp", "uid", "generation")


def _content(found: Object) -> Object:
    """An object without what the server adds."""
    said = found.get("metadata", {})
    bare = {key: value for key, value in said.items() if key not in _OF_THE_SERVER}
    return {**found, "metadata": bare}


def _uid(about: str) -> str:
    text = sha256(about.encode()).hexdigest()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:32]))
