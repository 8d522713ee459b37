"""What files must hold that a cluster file names; damage would come out on hosts, or nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from kubexm.errors import InvalidInput
from kubexm.templates import formats

Judge = Callable[[str], None]
"""Looks at the text of a file; `InvalidInput` if it is not what it has to be."""
_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
_POLICY_HINT = "write `apiVersion: audit.k8s.io/v1`, `kind: Policy` and a list of `rules`"
_FIELDS_HINT = "write fields of the pod, such as `spec: {containers: […]}`"
_OPERATIONS_HINT = "write a list, such as `[{op: add, path: /metadata/labels/a, value: b}]`"


def patch(text: str, kind: str, target: str) -> None:
    """Patches of a pod in the form of their kind: `strategic`, `merge` or `json`.

    `target`: the only container of the pod, by whose name it is called too.
    """
    is_one, hint = (
        (_is_operations, _OPERATIONS_HINT) if kind == "json" else (_is_fields, _FIELDS_HINT)
    )
    found = _documents(text, hint)
    if not found or not all(map(is_one, found)):
        wanted = "a list of operations" if kind == "json" else "a mapping"
        raise InvalidInput(f"no patch, want {wanted}", hint=hint)
    if kind != "json":
        # A list of a merge patch takes the place of all that is there.
        known = "" if kind == "merge" else target
        for container in chain.from_iterable(map(_containers, found)):
            _require_image(container, known, target)


def _containers(patch: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Those that a patch changes or adds; not those that it takes away."""
    spec = patch.get("spec")
    for kind in ("initContainers", "containers"):
        found = spec.get(kind) if isinstance(spec, Mapping) else None
        for one in found if isinstance(found, list) else ():
            if isinstance(one, Mapping) and "$patch" not in one:
                yield one


def _require_image(container: Mapping[str, Any], known: str, target: str) -> None:
    name = container.get("name")
    if container.get("image") or (known and name == known):
        return
    called = f"a container `{name}`" if name else "a container without a name"
    there = f"the container of the pod is `{target}`"
    hint = f"write `name: {target}`" if known else "write the whole container"
    raise InvalidInput(f"{called} that has no `image`; {there}", hint=f"{hint}, or an `image`")


def _is_fields(one: Any) -> bool:
    return isinstance(one, dict)


def _is_operations(one: Any) -> bool:
    return isinstance(one, list) and all(
        isinstance(entry, dict) and {"op", "path"} <= entry.keys() for entry in one
    )


def policy(text: str) -> None:
    """A policy of what the API server writes down."""
    found = _documents(text, _POLICY_HINT)
    one = found[0] if len(found) == 1 and isinstance(found[0], dict) else {}
    if {key: one.get(key) for key in _POLICY} != _POLICY:
        raise InvalidInput("no `Policy` of `audit.k8s.io/v1`", hint=_POLICY_HINT)
    if not isinstance(one.get("rules"), list) or not one["rules"]:
        # The API server would not start with it.
        raise InvalidInput("a policy without `rules`", hint=_POLICY_HINT)


def certificates(text: str) -> None:
    """Certificates as PEM."""
    from kubexm.pki import reading  # few files name any

    try:
        reading.parsed(text.encode())
    except InvalidInput as error:
        raise InvalidInput("no certificate that can be read", hint=error.hint) from error


def _documents(text: str, hint: str) -> list[Any]:
    try:
        return formats.documents(text)
    except InvalidInput as error:
        line = f" in {error.where}" if error.where else ""
        said = f"what can't be read{line}: {error.message}"
        raise InvalidInput(said, hint=error.hint or hint) from error
