"""The sound part of a file that is wrong elsewhere: planned too, so that all problems come at once.

What is wrong is not planned. A stand-in keeps its place and its name, so that paths stay those of
the file, and nobody misses what is only wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec

from kubexm.document.findings import Finding
from kubexm.document.source import DataPath
from kubexm.spec import references
from kubexm.spec.model import HookSpec, PipelineSpec, StepSpec, kind_key

Written = Mapping[str, Any]
Part = Callable[[Any, DataPath], dict[str, Any]]
Wrong = set[str | int | None]

_REFERENCE = r"\$\{[^{}]*\}"
_NAME_OF_A_VALUE = "key"
_STAND_IN = "noop"
_MOMENTS = ("pre", "post", "onFailure", "always")
_HARMLESS = frozenset(("retry", "limits", "timeout", "tolerance", "ignoreErrors", "tags"))
"""What changes neither where a step runs nor when nor with what: it is planned without."""
_WHERE_AND_WHEN = frozenset(("runOnRoles", "runOnOneOf", "after"))
_OF_STEPS = _HARMLESS | {"name", "hooks", None}
_STEP_KEYS = StepSpec.aliases() | HookSpec.aliases()
_OF_SCOPES = _OF_STEPS | {"compensate"}
_OF_THE_BODY = _OF_SCOPES - {"name"} | {
    "modules", "hosts", "vars", "pools", "groups", "onFailure", "simulate", "ssh"
}  # fmt: skip
_OF_GROUPS = frozenset(("minimum", "sudo", "labels", "vars", "ssh"))
_OF_HOSTS = frozenset(("address", "connection", "sudo", "labels", "vars", "facts", "ssh"))


class Gaps(msgspec.Struct, frozen=True):
    """What of a file can't be judged before its mistakes are mended."""

    left_out: frozenset[DataPath] = frozenset()
    """Steps and hooks that only have a stand-in."""
    unsettled: frozenset[DataPath] = frozenset()
    """Scopes and steps of which it is not known where or after what they run."""
    variables: frozenset[str] = frozenset()
    """Variables that have no value."""
    hosts: bool = False
    """Whether it is not known which hosts there are, and what they are for."""
    blanks: bool = False
    """Whether steps are left out that don't say what they do, and so may leave any value."""
    connections: bool = False
    """Whether settings of connections are left out, so that nobody knows the way to a host."""

    @property
    def paths(self) -> frozenset[DataPath]:
        """All places from which a step, or a value that it leaves, may be missing."""
        return self.left_out | self.unsettled


NO_GAPS = Gaps()


def sound_part(data: Any, found: Iterable[Finding]) -> tuple[PipelineSpec, Gaps] | None:
    """What can be planned of a file in which this was found; None if nothing can."""
    mended = _Mended(found)
    spec, _ = PipelineSpec.read(mended.whole(data))
    return (spec, mended.gaps()) if spec is not None else None


class Leavings:
    """The values that steps which could not be planned may leave: whatever they name."""

    def __init__(self, data: Any, paths: Iterable[DataPath], *, anything: bool = False) -> None:
        self._anything = anything
        texts = [found for path in paths for found in _texts(data, path)]
        self._texts = frozenset(text for _, text in texts)
        # Only the name of a value is worth the question what its references may come to.
        names = {text for key, text in texts if key == _NAME_OF_A_VALUE and "${" in text}
        self._patterns = [_pattern(name) for name in names]

    def __contains__(self, name: object) -> bool:
        if self._anything or name in self._texts:
            return True
        return isinstance(name, str) and any(one.fullmatch(name) for one in self._patterns)


def _pattern(text: str) -> re.Pattern[str]:
    """What a text with references in it may come to."""
    return re.compile(".*".join(map(re.escape, re.split(_REFERENCE, text))), re.DOTALL)


def _texts(data: Any, path: DataPath) -> Iterator[tuple[str, str]]:
    """Every text that is written at a path or below it, with the key before it."""
    for part in path:
        try:
            data = data[part]
        except (LookupError, TypeError):
            return
    waiting = [("", data)]
    for key, value in waiting:
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, Mapping):
            waiting.extend(value.items())
        elif isinstance(value, list):
            waiting.extend((key, part) for part in value)


class _Mended:
    """Writes a file once more, without what is wrong in it."""

    def __init__(self, found: Iterable[Finding]) -> None:
        self._wrong: dict[DataPath, Wrong] = {}
        for path in {finding.path for finding in found}:
            for depth, part in enumerate((*path, None)):
                self._wrong.setdefault(path[:depth], set()).add(part)
        self._left_out: set[DataPath] = set()
        self._unsettled: set[DataPath] = set()
        self._variables: set[str] = set()
        self._hosts = False
        self._blanks = False
        self._connections = any("ssh" in keys for keys in self._wrong.values())

    def gaps(self) -> Gaps:
        """What is not in the file that was written."""
        return Gaps(
            frozenset(self._left_out),
            frozenset(self._unsettled),
            frozenset(self._variables),
            self._hosts,
            self._blanks,
            self._connections,
        )

    def whole(self, data: Any) -> dict[str, Any]:
        written = _mapping(data)
        name = _mapping(written.get("metadata")).get("name")
        sound = not self._at(("metadata",)) and isinstance(name, str)
        return {
            "apiVersion": get_args(PipelineSpec.fields()["api_version"].annotation)[0],
            "kind": "Pipeline",
            "metadata": {"name": name if sound else "unnamed"},
            "spec": self._body(_mapping(written.get("spec")), ("spec",)),
        }

    def _body(self, body: Written, path: DataPath) -> dict[str, Any]:
        # A key that nobody knows may be meant for the hosts, their roles or the variables.
        self._hosts = bool(self._at(path) - _OF_THE_BODY) or None in self._at((*path, "hosts"))
        return {
            **self._scope(body, path, "modules", self._module, _OF_THE_BODY),
            "hosts": self._entries(body.get("hosts"), (*path, "hosts"), self._host),
            "vars": self._vars(body.get("vars", {}), (*path, "vars")),
            "pools": self._pools(_mapping(body.get("pools")), self._at((*path, "pools"))),
            "groups": dict(self._groups(_mapping(body.get("groups")), (*path, "groups"))),
        }

    def _module(self, entry: Any, path: DataPath) -> dict[str, Any]:
        return self._named_scope(_mapping(entry), path, "tasks", self._task)

    def _task(self, entry: Any, path: DataPath) -> dict[str, Any]:
        return self._named_scope(_mapping(entry), path, "steps", self._step)

    def _named_scope(self, entry: Written, path: DataPath, key: str, part: Part) -> dict[str, Any]:
        name = {"name": self._name(entry, path)}
        return self._scope(entry, path, key, part, _OF_SCOPES | {key}) | name

    def _scope(
        self, entry: Written, path: DataPath, key: str, part: Part, known: frozenset[str | None]
    ) -> dict[str, Any]:
        wrong = self._at(path)
        if wrong - known:
            self._unsettled.add(path)
        inner = (*path, key)
        return {
            **_without(entry, wrong),
            "hooks": self._hooks(_mapping(entry.get("hooks")), (*path, "hooks")),
            "compensate": self._entries(entry.get("compensate"), (*path, "compensate"), self._step),
            key: self._entries(entry.get(key), inner, part) or [part({}, (*inner, 0))],
        }

    def _step(self, entry: Any, path: DataPath) -> dict[str, Any]:
        written, wrong = _mapping(entry), self._at(path)
        if self._is_left_out(written, path):
            after = {} if wrong & {"after"} else {"after": written.get("after", [])}
            return {**self._stand_in(written, path), **after}
        hooks = self._hooks(_mapping(written.get("hooks")), (*path, "hooks"))
        return {**_without(written, wrong), "name": self._name(written, path), "hooks": hooks}

    def _hook(self, entry: Any, path: DataPath) -> dict[str, Any]:
        written = _mapping(entry)
        if self._is_left_out(written, path):
            return self._stand_in(written, path)
        return {**_without(written, self._at(path)), "name": self._name(written, path)}

    def _is_left_out(self, entry: Written, path: DataPath) -> bool:
        wrong = self._at(path) - _OF_STEPS
        if kind_key(entry) is None or wrong - _WHERE_AND_WHEN:
            return True
        if wrong:
            self._unsettled.add(path)
        return False

    def _stand_in(self, entry: Written, path: DataPath) -> dict[str, Any]:
        self._left_out.add(path)
        self._blanks |= entry.keys() <= _STEP_KEYS
        return {"name": self._name(entry, path), _STAND_IN: None}

    def _hooks(self, hooks: Written, path: DataPath) -> dict[str, Any]:
        if self._at(path) - set(_MOMENTS):
            self._left_out.add(path)
        return {
            moment: self._entries(hooks.get(moment), (*path, moment), self._hook)
            for moment in _MOMENTS
        }

    def _host(self, entry: Any, path: DataPath) -> dict[str, Any]:
        written, wrong = _mapping(entry), self._at(path)
        if wrong - _OF_HOSTS or None in self._at((*path, "labels")):
            self._hosts = True
        return {
            **_without(written, wrong),
            "name": self._name(written, path),
            "labels": self._labels(_mapping(written.get("labels")), (*path, "labels")),
            "vars": self._vars(written.get("vars", {}), (*path, "vars")),
        }

    def _groups(self, groups: Written, path: DataPath) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, entry in groups.items():
            inner = (*path, name)
            written, wrong = _mapping(entry), self._at(inner)
            # Without its roles, or with a key that nobody knows, it may be for any host.
            if wrong - _OF_GROUPS and (wrong - {"roles"} or written.keys() & {"labels", "vars"}):
                self._hosts = True
            if name in self._at(path) and (wrong - _OF_GROUPS or not isinstance(entry, Mapping)):
                continue
            labels = self._labels(_mapping(written.get("labels")), (*inner, "labels"))
            variables = self._vars(written.get("vars", {}), (*inner, "vars"))
            yield name, {**_without(written, wrong), "labels": labels, "vars": variables}

    def _labels(self, labels: Written, path: DataPath) -> dict[str, str]:
        # What a label names may be what is wrong with it; that it is there counts.
        wrong = self._at(path)
        return {
            key: str(references.escaped(str(label)) if key in wrong else label)
            for key, label in labels.items()
        }

    def _vars(self, variables: Any, path: DataPath) -> Any:
        wrong = self._at(path)
        self._variables.update(name for name in wrong if isinstance(name, str))
        return _without(variables, wrong) if isinstance(variables, Mapping) else variables

    def _pools(self, pools: Written, wrong: Wrong) -> dict[str, Any]:
        # Steps take slots from it, whatever its size.
        return {name: 1 if name in wrong else pool for name, pool in pools.items()}

    def _entries(self, listed: Any, path: DataPath, part: Part) -> list[dict[str, Any]]:
        if isinstance(listed, list):
            return [part(entry, (*path, number)) for number, entry in enumerate(listed)]
        if listed is not None:
            self._left_out.add(path)
        return []

    def _name(self, entry: Written, path: DataPath) -> str:
        if "name" in entry and "name" not in self._at(path):
            return str(entry["name"])
        return f"unnamed-{path[-1]}"

    def _at(self, path: DataPath) -> Wrong:
        """The keys under which something is wrong; None if it is the value at the path itself."""
        return self._wrong.get(path, set())


def _without(entry: Written, wrong: Wrong) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in wrong}


def _mapping(value: Any) -> Written:
    return value if isinstance(value, Mapping) else {}
