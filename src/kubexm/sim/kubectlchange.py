"""What kubectl changes: objects of a file, labels, taints and annotations, and rest for nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kubexm.connector.base import Completed
from kubexm.sim import kubeapply, kubeobjects, kubeproxy
from kubexm.sim.kubectlwords import Words
from kubexm.sim.kubedocs import Object, documents, entries, section
from kubexm.sim.kubekinds import NODE
from kubexm.sim.kubeobjects import Rejected
from kubexm.sim.kubestore import Ref
from kubexm.sim.shell import said

_DIFFERS = 1
_OURS = ("--server-side", "--force-conflicts", "--field-manager")


def apply(words: Words) -> Completed:
    """Have objects be as documents say; what can't be done does not keep the others back."""
    words.require(*_OURS)
    done, refused = [], []
    known = [_known(words, one) for one in documents(words.stdin)]
    for found, document in known:
        if isinstance(found, Rejected):
            refused.append(str(found))
            continue
        try:
            applied = kubeobjects.apply(words.api, found, document)
            done.append(f"{applied.ref.shown} serverside-applied\n")
        except Rejected as error:
            refused.append(str(error))
    complaint = "".join(f"{one}\n" for one in refused).encode()
    return Completed(1 if refused else 0, "".join(done).encode(), complaint)


def diff(words: Words) -> Completed:
    """Show how objects would change."""
    words.require(*_OURS)
    shown = []
    for found, document in [_known(words, one) for one in documents(words.stdin)]:
        if isinstance(found, Rejected):
            raise found
        applied = kubeobjects.apply(words.api, found, document, dry=True)
        name = f"{found.kind.name}.{found.namespace}.{found.name}"
        shown.append(kubeapply.difference(name, applied.live, applied.new))
    text = "".join(shown)
    return Completed(_DIFFERS if text else 0, text.encode())


def delete(words: Words) -> Completed:
    """Remove objects."""
    if words.option("-f"):
        refs = [kubeobjects.ref_of(words.api, one) for one in documents(words.stdin)]
    else:
        kind, names = words.resource()
        refs = [words.ref(kind, name) for name in names]
    done = []
    for ref in refs:
        if words.api.cluster.get(ref) is not None:
            kubeobjects.delete(words.api, ref)
            done.append(f'{ref.kind.shown} "{ref.name}" deleted\n')
        elif not words.has("--ignore-not-found"):
            raise kubeobjects.not_found(ref)
    return said("".join(done))


def label(words: Words) -> Completed:
    """Set labels, `key=value`, or remove them, `key-`."""
    return _changed(words, lambda found, terms: _marked(found, "labels", terms), "labeled")


def annotate(words: Words) -> Completed:
    """The same with annotations."""
    return _changed(words, lambda found, terms: _marked(found, "annotations", terms), "annotated")


def patch(words: Words) -> Completed:
    """Lay a part of an object over it; only `--type merge`."""
    kind, (name,) = words.resource()
    ref, found = _existing(words, words.ref(kind, name))
    if words.option("--type") != "merge" or not words.option("-p"):
        raise words.unexpected()
    words.api.cluster.put(ref, _laid_over(found, json.loads(words.option("-p"))))
    if ref == kubeproxy.POD:
        kubeproxy.begin(words.api.cluster)
    return said(f"{ref.shown} patched\n")


def _laid_over(found: Any, part: Any) -> Any:
    """As RFC 7386 has it: what is null goes."""
    if not isinstance(part, Mapping):
        return part
    there = dict(found) if isinstance(found, Mapping) else {}
    for key, value in part.items():
        if value is None:
            there.pop(key, None)
        else:
            there[key] = _laid_over(there.get(key), value)
    return there


def taint(words: Words) -> Completed:
    """Set taints, `key=value:Effect`, or remove them, `key:Effect-`."""
    return _changed(words, _tainted, "tainted")


def cordon(words: Words) -> Completed:
    """Have no more pods come onto a node."""
    return _rest(words, resting=True)


def uncordon(words: Words) -> Completed:
    """Let pods come onto a node again."""
    return _rest(words, resting=False)


def _rest(words: Words, *, resting: bool) -> Completed:
    for name in words.operands:
        ref, found = _existing(words, Ref(NODE, "", name))
        spec = {key: value for key, value in found["spec"].items() if key != "unschedulable"}
        if resting:
            spec["unschedulable"] = True
        words.api.cluster.put(ref, {**found, "spec": spec})
    return said("".join(f"node/{name} changed\n" for name in words.operands))


def _known(words: Words, document: Object) -> tuple[Ref | Rejected, Object]:
    """Which object a document is about, as it is known before any of them is changed."""
    try:
        return kubeobjects.ref_of(words.api, document, words.option("-n")), document
    except Rejected as error:
        return error, document


def _existing(words: Words, ref: Ref) -> tuple[Ref, Object]:
    found = words.api.cluster.get(ref)
    if found is None:
        raise kubeobjects.not_found(ref)
    return ref, found


Change = Callable[[Object, Sequence[str]], Object]


def _changed(words: Words, change: Change, done: str) -> Completed:
    """Change one object that is named before the terms: `node NAME TERM…`."""
    kind, (name, *terms) = words.resource()
    ref, found = _existing(words, words.ref(kind, name))
    words.require("--overwrite")
    words.api.cluster.put(ref, change(found, terms))
    return said(f"{ref.shown} {done}\n")


def _marked(found: Object, place: str, terms: Sequence[str]) -> Object:
    marks = dict(section(found, "metadata", place))
    for term in terms:
        key, sign, value = term.partition("=")
        if sign:
            marks[key] = value
        else:
            marks.pop(key.removesuffix("-"), None)
    return {**found, "metadata": {**found["metadata"], place: marks}}


def _tainted(found: Object, terms: Sequence[str]) -> Object:
    taints = list(entries(found, "spec", "taints"))
    for term in terms:
        said, _, effect = term.removesuffix("-").rpartition(":")
        key, _, value = said.partition("=")
        taints = list(_without(taints, key, effect))
        if not term.endswith("-"):
            taints.append({"key": key, **({"value": value} if value else {}), "effect": effect})
    spec = {key: value for key, value in section(found, "spec").items() if key != "taints"}
    return {**found, "spec": {**spec, **({"taints": taints} if taints else {})}}


def _without(taints: Sequence[Object], key: str, effect: str) -> Iterator[Object]:
    for taint in taints:
        if (taint.get("key"), taint.get("effect")) != (key, effect):
            yield taint
