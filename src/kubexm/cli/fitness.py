"""What came of a preflight, as people and programs read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubexm.app.preflight import Preflight
from kubexm.cli.output import table
from kubexm.cli.tree import named
from kubexm.common.checks import CHECKS, Finding, Kind
from kubexm.common.counting import counted

_WORDS: Mapping[Kind, str] = {
    "refusal": "refused",
    "warning": "warning",
    "unknown": "unknown",
    "held": "held",
}
_MARKS: Mapping[Kind, str] = {"refusal": "✗", "warning": "!", "unknown": "?"}
_SKIPPED = "skipped"
_OK = "ok"
_LEAVE_OUT = "leave a check out with `preflight: {skip: [NAME]}` in the `spec` of the file"


def exit_code(found: Preflight) -> int:
    """0 fit, 1 refused, 5 fit without hosts that could not be asked."""
    if found.is_refused:
        return 1
    return 5 if found.missing else 0


def as_text(found: Preflight) -> str:
    """A table of checks and results, the worst first; then what was found, and what to do."""
    lines = [table(("CHECK", "RESULT", "HOSTS"), [*_rows(found)]), "", *_details(found)]
    lines += [f"note: {note}" for note in found.notes]
    lines.append(_counts(found))
    if found.is_refused:
        lines.append(f"hint: {_LEAVE_OUT}")
    return "\n".join(lines)


def _rows(found: Preflight) -> Iterator[tuple[str, str, str]]:
    for kind in ("refusal", "warning", "unknown"):
        yield from _of_kind(found, kind)
    yield from ((name, _SKIPPED, "-") for name in found.skipped)
    yield from _of_kind(found, "held")
    for name, hosts in found.made.items():
        told = {host for each in found.findings if each.check == name for host in each.hosts}
        if well := [host for host in hosts if host not in told]:
            yield name, _OK, named(well)


def _of_kind(found: Preflight, kind: Kind) -> Iterator[tuple[str, str, str]]:
    for name in CHECKS:
        some = [each for each in found.findings if (each.check, each.kind) == (name, kind)]
        if hosts := [*dict.fromkeys(host for each in some for host in each.hosts)]:
            yield name, _WORDS[kind], named(hosts)


def _details(found: Preflight) -> Iterator[str]:
    """Each thing that was found with the hosts that have it, and what to do about it."""
    for kind, mark in _MARKS.items():
        groups: dict[tuple[str, str, str], list[Finding]] = {}
        for each in found.findings:
            if each.kind == kind:
                groups.setdefault((each.check, each.found, each.remedy), []).append(each)
        for (check, what, remedy), group in groups.items():
            said, names = what, [_with_figure(each) for each in group]
            if len(group) == 1:
                said, names = group[0].message, [*group[0].hosts]
            yield f"{mark} {check}: {said}  [{named(names)}]"
            if remedy:
                yield f"    hint: {remedy}"
        if groups:
            yield ""


def _with_figure(each: Finding) -> str:
    names = " ".join(each.hosts)
    return f"{names} ({each.figure})" if each.figure else names


def _counts(found: Preflight) -> str:
    kinds = [each.kind for each in found.findings]
    told = [
        counted(kinds.count("refusal"), "refusal"),
        counted(kinds.count("warning"), "warning"),
        f"{len(found.skipped)} skipped",
    ]
    hosts, checks = counted(len(found.hosts), "host"), counted(len(found.made), "check")
    fit = "not fit" if found.is_refused else "fit"
    return f"{found.cluster}: {fit}; {hosts}, {checks}: {', '.join(told)}"


def as_data(found: Preflight) -> dict[str, Any]:
    """The same for programs."""
    return {
        "cluster": found.cluster,
        "fit": not found.is_refused,
        "hosts": [*found.hosts],
        "missing": [*found.missing],
        "notes": [*found.notes],
        "checks": [
            _check(found, name) for name in CHECKS if name in found.made or name in found.skipped
        ],
    }


def _check(found: Preflight, name: str) -> dict[str, Any]:
    check = CHECKS[name]
    findings = [each for each in found.findings if each.check == name]
    return {
        "name": name,
        "about": check.about,
        "severity": check.severity,
        "result": _SKIPPED if name in found.skipped else _worst(findings),
        "hosts": [*found.made.get(name, ())],
        "findings": [_finding(each) for each in findings],
    }


def _worst(findings: Sequence[Finding]) -> str:
    kinds = [each.kind for each in findings]
    return next((word for kind, word in _WORDS.items() if kind in kinds), _OK)


def _finding(each: Finding) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "hosts": [*each.hosts],
        "message": each.message,
        "hint": each.remedy,
    }
