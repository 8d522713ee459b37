"""Values that are secrets: refused where they would be seen, kept private where they may go.

A step class says which of its fields may hold one. A command line is seen by every user of its
host, and a path, a name or a message is part of what views and logs show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kubexm.document.findings import Finding
from kubexm.document.source import DataPath
from kubexm.plan import StepSpec
from kubexm.spec import parameters, references
from kubexm.spec.references import Reference
from kubexm.step import registry

_INSTEAD = {
    ("secret-file", "content"): "use `file`, which takes values and keeps this one private",
    ("secret-template", "secrets"): "name it under `data`, which takes values",
}
_ELSEWHERE = "take a value that is no secret, or hand it to a `command` by its `env` or `stdin`"


def secret_values(steps: Iterable[StepSpec]) -> frozenset[str]:
    """The names of the values that any of these steps leaves as a secret."""
    return frozenset(key.name for step in steps for key in step.provides if key.secret)


def exposed(step: StepSpec, secret: frozenset[str]) -> Iterator[Finding]:
    """References to secret values in parameters that are no place for one."""
    for (field, *inner), reference in _held(step, secret):
        if field not in registry.find(step.kind).takes_secrets:
            name = _written(step.kind, str(field))
            message = f"`{reference.written_out}` is a secret, and `{name}` is no place for one"
            hint = _INSTEAD.get((step.kind, name)) or _kept_to(step.kind)
            yield Finding((name, *inner), message, hint, excerpt=reference.written_out)


def kept_private(step: StepSpec, secret: frozenset[str]) -> StepSpec:
    """The step as its class wants it where it holds a secret value; else the very same."""
    if not any(True for _ in _held(step, secret)):
        return step
    params = registry.find(step.kind).with_secret(step.params)
    return msgspec.structs.replace(step, params=dict(params))


def _held(step: StepSpec, secret: frozenset[str]) -> Iterator[tuple[DataPath, Reference]]:
    if not step.references or secret.isdisjoint(step.needs):
        return
    for path, found in references.scan(step.params):
        if isinstance(found, Reference) and found.root == "values" and found.path[0] in secret:
            yield path, found


def _kept_to(kind: str) -> str:
    taken = registry.find(kind).takes_secrets
    names = " or ".join(f"`{_written(kind, field)}`" for field in taken)
    return f"keep it to {names}: that is never shown" if taken else _ELSEWHERE


def _written(kind: str, field: str) -> str:
    known = parameters.parameters_of(kind).items()
    return next(name for name, parameter in known if parameter.field == field)
