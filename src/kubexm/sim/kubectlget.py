"""`kubectl get`: objects by name, by label, by field, or those of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kubexm.connector.base import Completed
from kubexm.sim import kubeobjects, kubeworkloads
from kubexm.sim.kubectlwords import Words
from kubexm.sim.kubedocs import Object, documents, part, section
from kubexm.sim.kubekinds import EVENT, POD, Kind
from kubexm.sim.kubeready import Standing
from kubexm.sim.kubescheduling import selected
from kubexm.sim.kubestore import Ref
from kubexm.sim.shell import said

Found = tuple[Ref, Object]


def get(words: Words) -> Completed:
    """Show objects, as JSON or by their names."""
    standing = Standing(words.api)
    asked, single = list(_asked(words, standing)), _is_single(words)
    if words.option("-o") == "name":
        return said("".join(f"{ref.shown}\n" for ref, _ in asked))
    if words.option("-o") != "json":
        raise words.unexpected()
    shown = [kubeworkloads.shown(standing, ref, found) for ref, found in asked]
    if single:
        return _json(shown[0]) if shown else said("")
    if not shown and words.option("-f"):
        return said("")
    return _json({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": shown})


def _asked(words: Words, standing: Standing) -> Iterator[Found]:
    if words.option("-f"):
        given = (kubeobjects.ref_of(words.api, one) for one in documents(words.stdin))
        yield from _present(words, given)
        return
    kind, names = words.resource()
    if names:
        yield from _present(words, (words.ref(kind, name) for name in names))
        return
    for ref, found in _every(words, standing, kind):
        if _is_meant(words, found):
            yield ref, found


def _present(words: Words, refs: Iterable[Ref]) -> Iterator[Found]:
    for ref in refs:
        found = words.api.cluster.get(ref)
        if found is not None:
            yield ref, found
        elif not words.has("--ignore-not-found"):
            raise kubeobjects.not_found(ref)


def _every(words: Words, standing: Standing, kind: Kind) -> Iterator[Found]:
    namespace = "" if words.has("-A") else words.namespace
    if kind == POD:
        for pod in kubeworkloads.pods(standing, namespace):
            yield Ref(POD, pod["metadata"]["namespace"], pod["metadata"]["name"]), pod
    if kind == EVENT:
        for event in kubeworkloads.events(standing, namespace):
            yield Ref(EVENT, event["metadata"]["namespace"], event["metadata"]["name"]), event
    yield from words.api.cluster.all(kind, namespace if kind.namespaced else "")


def _is_meant(words: Words, found: Object) -> bool:
    if not selected(section(found, "metadata", "labels"), words.option("-l")):
        return False
    for term in filter(None, words.option("--field-selector").split(",")):
        path, _, value = term.partition("=")
        if str(part(found, *path.split(".")) or "") != value:
            return False
    return True


def _is_single(words: Words) -> bool:
    if words.option("-f"):
        return len(documents(words.stdin)) == 1
    return len(words.resource()[1]) == 1


def _json(value: object) -> Completed:
    return Completed(0, msgspec.json.format(msgspec.json.encode(value), indent=4) + b"\n")
