"""What a graph says against itself, in the words of the file and at the steps it is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from kubexm.document.findings import Finding
from kubexm.document.source import DataPath, Document
from kubexm.errors import Problem
from kubexm.plan.values import NotAwaited
from kubexm.spec.model import Link, ModuleSpec, PipelineBody, TaskSpec

Origin = Mapping[str, DataPath]
"""Where the step of each node is written."""

_QUOTED = r"`([^`]+)`"
_IN_FILES = (
    ("`one_of` them", "one of them by `runOnOneOf`"),
    ("a `one_of` node", "a step with `runOnOneOf`"),
    ("give the value host scope", "say `scope: host`"),
    ("give the value run scope", "say `scope: run` where it is provided by one host"),
    ("put a step that provides it", "put a `value` or `mint` step with this `key`"),
    (": behind a barrier for a value of the run, along same-host edges for one of each host", ""),
    ("depend on it with a barrier", "say `after` with its name and `scope: all`"),
)
"""What graphs and what files call the same thing."""
_LEVELS = {"modules": "module", "tasks": "task", "steps": "step", "compensate": "step"}
_LINKS: Mapping[str, Link] = {
    "modules": PipelineBody.fields()["link"].default,
    "tasks": ModuleSpec.fields()["link"].default,
    "steps": TaskSpec.fields()["link"].default,
}


def placed(
    found: Iterable[Problem], origin: Origin, document: Document
) -> tuple[list[Finding], list[Problem]]:
    """Problems of a graph at their steps, and those that are of no step."""
    findings: list[Finding] = []
    elsewhere: list[Problem] = []
    for problem in found:
        with_place = partial(_with_place, origin, document)
        message = re.sub(_QUOTED, with_place, _said(problem.message))
        hint = _hint(problem, origin, document)
        if (path := origin.get(problem.where)) is not None:
            findings.append(Finding(path, message, hint))
        else:
            elsewhere.append(Problem(message, problem.where, hint))
    return findings, elsewhere


def _said(text: str) -> str:
    for ours, theirs in _IN_FILES:
        text = text.replace(ours, theirs)
    return text


def _with_place(origin: Origin, document: Document, found: re.Match[str]) -> str:
    """The path of a node, and where its step is written."""
    path = origin.get(found[1])
    return found[0] if path is None else f"{found[0]} ({document.at(path)})"


def _hint(problem: Problem, origin: Origin, document: Document) -> str:
    if isinstance(problem, NotAwaited):
        user, provider = origin.get(problem.where), origin.get(problem.provider)
        if user is not None and provider is not None:
            return _awaiting(user, provider, document.data, same_host=problem.same_host)
    return _said(problem.hint)


def _awaiting(user: DataPath, provider: DataPath, data: Any, *, same_host: bool) -> str:
    """What to write so that one step waits for another, at the level where they part."""
    pairs = enumerate(zip(user, provider, strict=False))
    at = next((number for number, (mine, other) in pairs if mine != other), None)
    if at is None:
        return _OTHERWISE
    if user[at - 1] in _LEVELS:
        return _Parting.of(user, provider, data, at).hint(same_host=same_host)
    if provider[at : at + 2] == ("hooks", "pre"):
        return f"say `barrier: true` in the hook `{_name(data, provider[: at + 3])}`"
    if user[at] == "hooks" and user[at + 1] != "pre" and provider[at] != "hooks":
        return "say `barrier: true` in this hook"
    return _OTHERWISE


_OTHERWISE = "put a `value` or `mint` step with this `key` before this one"


class _Parting(msgspec.Struct, frozen=True):
    """Two entries of one list: the step that misses a value is in one, who leaves it in another."""

    level: str
    link: Link
    user: str
    provider: str
    is_later: bool
    """Whether the provider stands after the user."""

    @classmethod
    def of(cls, user: DataPath, provider: DataPath, data: Any, at: int) -> _Parting:
        key = str(user[at - 1])
        around: Mapping[str, Any] = _at(data, user[: at - 1])
        link: Link = around.get("link", _LINKS[key]) if key in _LINKS else "per-host"
        names = (_name(data, user[: at + 1]), _name(data, provider[: at + 1]))
        return cls(_LEVELS[key], link, *names, is_later=int(provider[at]) > int(user[at]))

    def hint(self, *, same_host: bool) -> str:
        edge = f"`after: [{{name: {self.provider}, scope: all}}]`"
        if self.link == "parallel" or not self.is_later:
            return f"say {edge} in {self.level} `{self.user}`"
        move = f"move {self.level} `{self.provider}` before {self.level} `{self.user}`"
        apart = self.link == "per-host" and not same_host
        return f"{move}, and say {edge} in the latter" if apart else move


def _name(data: Any, path: DataPath) -> str:
    """What an entry is called; a file that lacks the name is told so beside this."""
    return str(_at(data, path).get("name", f"{path[-2]}[{path[-1]}]"))


def _at(data: Any, path: DataPath) -> Any:
    for key in path:
        data = data[key]
    return data
