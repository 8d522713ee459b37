"""What a graph says against itself, in the words of the file and at the steps it is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial

from kubexm.errors import Problem
from kubexm.spec.fields import Finding
from kubexm.spec.source import DataPath, Document

Origin = Mapping[str, DataPath]
"""Where the step of each node is written."""

_QUOTED = re.compile(r"`([^`]+)`")
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


def placed(
    found: Iterable[Problem], origin: Origin, document: Document
) -> tuple[list[Finding], list[Problem]]:
    """Problems of a graph at their steps, and those that are of no step."""
    findings: list[Finding] = []
    elsewhere: list[Problem] = []
    for problem in found:
        message = _QUOTED.sub(partial(_with_place, origin, document), _said(problem.message))
        hint = _said(problem.hint)
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
