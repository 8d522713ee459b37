"""Simulated helm: releases of charts, kept in the cluster, with the objects that they make."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from kubexm.connector.base import Completed
from kubexm.sim import apiserver, kubeobjects, kubeworkloads
from kubexm.sim.apiserver import Api
from kubexm.sim.etcdmembers import Unanswered
from kubexm.sim.helmcharts import Chart, objects, read
from kubexm.sim.kubedocs import Object, Unreadable, document
from kubexm.sim.kubekinds import NAMESPACE
from kubexm.sim.kubeobjects import Rejected
from kubexm.sim.kubeready import Standing
from kubexm.sim.kubestore import Ref
from kubexm.sim.shell import Program, Shell, failed, said

_VALUED = frozenset(("-f", "-n", "-o", "--filter", "--kubeconfig", "--timeout"))
_FLAGS = frozenset(
    (
        *("--create-namespace", "--deployed", "--failed", "--install", "--pending"),
        *("--reset-values", "--wait"),
    )
)


class Revision(msgspec.Struct, frozen=True):
    """One state of a release."""

    status: str
    chart: str
    version: str
    app_version: str
    values: Object
    made: list[Object]
    """The objects that it is made of."""


class Release(msgspec.Struct, frozen=True):
    """A release with all that it was, the last revision last."""

    revisions: list[Revision]


class Words(msgspec.Struct, frozen=True):
    """What a command says."""

    shell: Shell
    api: Api
    operands: tuple[str, ...]
    options: Mapping[str, str]

    @property
    def namespace(self) -> str:
        """Where the release is."""
        return self.options.get("-n", "default")

    @property
    def key(self) -> str:
        """Under what the cluster keeps it."""
        return f"release:{self.namespace}/{self.operands[0]}"

    def release(self) -> Release | None:
        """The release; None if there is none."""
        found = self.api.cluster.note(self.key)
        return msgspec.json.decode(found, type=Release) if found else None

    def existing(self) -> Release:
        """The release; `Rejected` if there is none."""
        if (found := self.release()) is None:
            raise Rejected("Error: release: not found")
        return found

    def keep(self, release: Release) -> None:
        """Have the cluster keep it."""
        self.api.cluster.set_note(self.key, msgspec.json.encode(release).decode())


def helm(shell: Shell, args: Sequence[str]) -> Completed:
    operands, options = _parsed(shell, args)
    verb = " ".join(operands[:2]) if operands[:1] == ["get"] else "".join(operands[:1])
    if verb not in _VERBS or "--kubeconfig" not in options:
        raise shell.unexpected()
    rest = tuple(operands[len(verb.split()) :])
    try:
        api = apiserver.administrator(shell, options["--kubeconfig"])
        return _VERBS[verb](Words(shell, api, rest, options))
    except Unanswered as error:
        return failed(f"Error: Kubernetes cluster unreachable: {error}")
    except (Rejected, Unreadable) as error:
        return failed(str(error))


def listed(words: Words) -> Completed:
    """Show the releases of a namespace whose names match."""
    prefix = f"release:{words.namespace}/"
    found = []
    for name, text in words.api.cluster.notes(prefix).items():
        revisions = msgspec.json.decode(text, type=Release).revisions
        if re.search(words.options.get("--filter", ""), name):
            found.append(_described(name, words.namespace, revisions))
    return Completed(0, msgspec.json.encode(found) + b"\n")


def values(words: Words) -> Completed:
    """Show the values that a release was given."""
    last = words.existing().revisions[-1]
    return Completed(0, msgspec.json.encode(last.values or None) + b"\n")


def upgrade(words: Words) -> Completed:
    """Install a release, or change it, and wait for it."""
    if words.options.get("-f") != "-" or "--install" not in words.options:
        raise words.shell.unexpected()
    _, path = words.operands
    chart = read(words.shell, path)
    given = document(words.shell.command.stdin)
    _require_namespace(words)
    made = objects(chart, given)
    earlier = words.release() or Release([])
    return _deployed(words, earlier, _revision(chart, given, made))


def rollback(words: Words) -> Completed:
    """Go back to an earlier revision."""
    release = words.existing()
    number = int(words.operands[1]) if words.operands[1:] else len(release.revisions) - 1
    if not 1 <= number <= len(release.revisions):
        raise Rejected("Error: release has no such version")
    return _deployed(words, release, release.revisions[number - 1])


def uninstall(words: Words) -> Completed:
    """Remove a release with all that it has made."""
    _remove(words, words.existing().revisions[-1].made, [])
    words.api.cluster.set_note(words.key, "")
    return said(f'release "{words.operands[0]}" uninstalled\n')


def _deployed(words: Words, release: Release, wanted: Revision) -> Completed:
    for one in wanted.made:
        ref = kubeobjects.ref_of(words.api, one, words.namespace)
        kubeobjects.apply(words.api, ref, one)
    if release.revisions:
        _remove(words, release.revisions[-1].made, wanted.made)
    waiting = _unready(words, wanted.made) if "--wait" in words.options else ""
    status = "failed" if waiting else "deployed"
    now = msgspec.structs.replace(wanted, status=status)
    past = [msgspec.structs.replace(one, status="superseded") for one in release.revisions]
    words.keep(Release([*past, now]))
    if waiting:
        return failed(f"Error: resource {waiting} not ready: context deadline exceeded")
    return said(f'Release "{words.operands[0]}" has been upgraded. Happy Helming!\n')


def _revision(chart: Chart, given: Object, made: list[Object]) -> Revision:
    return Revision("deployed", chart.name, chart.version, chart.app_version, given, made)


def _require_namespace(words: Words) -> None:
    ref = Ref(NAMESPACE, "", words.namespace)
    if words.api.cluster.get(ref) is not None:
        return
    if "--create-namespace" not in words.options:
        raise Rejected(f'Error: create: failed to create: namespaces "{ref.name}" not found')
    said = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ref.name}}
    words.api.cluster.put(ref, said)


def _remove(words: Words, old: Sequence[Object], new: Sequence[Object]) -> None:
    """Remove what a revision made and another one does not."""
    kept = {kubeobjects.ref_of(words.api, one, words.namespace).key for one in new}
    for one in old:
        ref = kubeobjects.ref_of(words.api, one, words.namespace)
        if ref.key not in kept and words.api.cluster.get(ref) is not None:
            kubeobjects.delete(words.api, ref)


def _unready(words: Words, made: Sequence[Object]) -> str:
    """The first object that is not ready; nothing if all are."""
    standing = Standing(words.api)
    for one in made:
        ref = kubeobjects.ref_of(words.api, one, words.namespace)
        found = words.api.cluster.get(ref)
        if ref.kind in kubeworkloads.WORKLOADS and found is not None:
            status = kubeworkloads.awaited(standing, ref, found)["status"]
            if not status or status.get("numberUnavailable") or status.get("unavailableReplicas"):
                return f"{ref.kind.kind}/{ref.namespace}/{ref.name}"
    return ""


def _described(name: str, namespace: str, revisions: Sequence[Revision]) -> Object:
    last = revisions[-1]
    return {
        "name": name,
        "namespace": namespace,
        "revision": str(len(revisions)),
        "status": last.status,
        "chart": f"{last.chart}-{last.version}",
        "app_version": last.app_version,
    }


def _parsed(shell: Shell, args: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    operands: list[str] = []
    options: dict[str, str] = {}
    rest = list(args)
    while rest:
        word = rest.pop(0)
        if word in _VALUED and rest:
            options[word] = rest.pop(0)
        elif word in _FLAGS:
            options[word] = ""
        elif word.startswith("-"):
            raise shell.unexpected()
        else:
            operands.append(word)
    return operands, options


_VERBS: Mapping[str, Callable[[Words], Completed]] = {
    "get values": values,
    "list": listed,
    "rollback": rollback,
    "uninstall": uninstall,
    "upgrade": upgrade,
}
PROGRAMS: Mapping[str, Program] = {"helm": helm}
