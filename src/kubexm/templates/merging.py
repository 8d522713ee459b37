"""Settings of the operator over what a template says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubexm.common.nearest import did_you_mean
from kubexm.errors import InvalidInput, Problem
from kubexm.templates import formats
from kubexm.templates.context import STRUCTURED, Format

_KUBEADM = "kubeadm.k8s.io/"


def changed(text: str, overrides: Mapping[str, Any], form: Format) -> str:
    """A file with other values: mappings are merged, all else is replaced, and `null` takes a key
    out. Of `manifests` they are told apart by `Kind` or `Kind/name`; in those of kubeadm lists of
    things with names, such as flags, are merged by these."""
    if form not in STRUCTURED:
        raise InvalidInput(
            f"a file of the format `{form}` takes no single values",
            hint="change its template: `kubexm templates show` has it",
        )
    data = formats.parsed(text, form)
    if form == "manifests":
        return formats.written(_each(data, overrides), form)
    return formats.written(merged(data, overrides), form)


def merged(value: Any, over: Any, *, by_name: bool = False) -> Any:
    """A value with another one laid over it; `by_name` if lists of things with names are not
    replaced either."""
    if isinstance(over, Mapping):
        return _mapping(value, over, by_name)
    if by_name and _are_named(value) and _are_named(over):
        return _by_name(value, over)
    return over


def _mapping(value: Any, over: Mapping[str, Any], by_name: bool) -> dict[str, Any]:
    kept = dict(value) if isinstance(value, Mapping) else {}
    for key, part in over.items():
        if part is None:
            kept.pop(key, None)
        else:
            kept[key] = merged(kept.get(key), part, by_name=by_name)
    return kept


def _are_named(items: Any) -> bool:
    """Whether this is a list of things with names; an empty one takes all away."""
    is_list = isinstance(items, Sequence) and not isinstance(items, str) and bool(items)
    return is_list and all(isinstance(item, Mapping) and "name" in item for item in items)


def _by_name(items: Sequence[Any], over: Sequence[Any]) -> list[Any]:
    """The first without those that the second has; that may have a flag several times."""
    said = [item["name"] for item in over]
    return [*(item for item in items if item["name"] not in said), *over]


def _each(documents: Sequence[Any], overrides: Mapping[str, Any]) -> list[Any]:
    known = {name for document in documents for name in _names(document)}
    problems = [
        Problem(f"values for `{name}`, which is not in the file", hint=did_you_mean(name, known))
        for name in overrides
        if name not in known
    ]
    if problems:
        raise InvalidInput("values for what is not there", problems=problems)
    return [_laid_over(document, overrides) for document in documents]


def _laid_over(document: Any, overrides: Mapping[str, Any]) -> Any:
    # Whoever sets one flag of a component means to keep the others.
    by_name = str(document.get("apiVersion", "")).startswith(_KUBEADM)
    for name in _names(document):
        document = merged(document, overrides.get(name, {}), by_name=by_name)
    return document


def _names(document: Any) -> Iterator[str]:
    """What a document is called by: its kind, and more exactly with its name."""
    kind = str(document.get("kind", ""))
    metadata = document.get("metadata")
    yield kind
    if isinstance(metadata, Mapping) and "name" in metadata:
        yield f"{kind}/{metadata['name']}"
