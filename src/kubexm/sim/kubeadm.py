"""Simulated kubeadm: it begins clusters, joins them and leaves them, as the real one would."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

from kubexm.common import layout
from kubexm.connector.base import Completed
from kubexm.sim import (
    apiserver,
    kubeadmconfig,
    kubeadminit,
    kubeadmjoin,
    kubeadmobjects,
    kubeadmreset,
    standins,
)
from kubexm.sim.etcdmembers import Unanswered
from kubexm.sim.kubeadmcerts import Failed
from kubexm.sim.kubeadmconfig import ClusterConfiguration, InitConfiguration
from kubexm.sim.kubeadmimages import control_plane
from kubexm.sim.kubeadmpreflight import Refused
from kubexm.sim.kubedocs import Unreadable
from kubexm.sim.shell import OK, Program, Shell, failed, said

_QUIET = "--skip-token-print"
_OPTIONS = ("config", "ignore-preflight-errors", "skip-phases")
Given = Mapping[str, str]


def kubeadm(shell: Shell, args: Sequence[str]) -> Completed:
    if not args or args[0] not in _COMMANDS:
        raise shell.unexpected()
    try:
        return _COMMANDS[args[0]](shell, args[1:])
    except Refused as error:
        return failed(str(error))
    except (Failed, Unreadable, Unanswered) as error:
        return failed(f"error: {error}\nTo see the stack trace of this error execute with --v=5")


def begins(shell: Shell, args: Sequence[str]) -> None:
    """What others see of a command before it is carried out."""
    if not args or args[0] != "join":
        return
    try:
        given = _given(shell, args[1:], *_OPTIONS)
        kubeadmjoin.begins(shell, kubeadmconfig.read(shell, given.get("config", "")))
    except (Failed, Unreadable):
        return  # it says so when it is carried out


def _init(shell: Shell, args: Sequence[str]) -> Completed:
    if args[:1] and args[0] == "phase":
        return _phase(shell, args[1:])
    given = _given(shell, [word for word in args if word != _QUIET], *_OPTIONS)
    kubeadminit.init(_run(shell, given), _listed(given, "skip-phases"))
    return said("Your Kubernetes control-plane has initialized successfully!\n")


def _phase(shell: Shell, args: Sequence[str]) -> Completed:
    words = list(takewhile(lambda word: not word.startswith("-"), args))
    name = "/".join(words)
    if name not in kubeadminit.SINGLE:
        raise shell.unexpected()
    kubeadminit.SINGLE[name](_run(shell, _given(shell, args[len(words) :], "config")))
    return OK


def _join(shell: Shell, args: Sequence[str]) -> Completed:
    given = _given(shell, args, *_OPTIONS)
    ignored, skipped = (_listed(given, name) for name in _OPTIONS[1:])
    read = kubeadmconfig.read(shell, given.get("config", ""))
    kubeadmjoin.join(shell, read, _version(shell), ignored, skipped)
    return said("This node has joined the cluster\n")


def _reset(shell: Shell, args: Sequence[str]) -> Completed:
    # Without it somebody is asked, and nobody is there to answer.
    if "--force" not in args:
        raise shell.unexpected()
    rest = [word for word in args if word != "--force"]
    given = _given(shell, rest, "cri-socket", "skip-phases")
    kubeadmreset.reset(shell, _listed(given, "skip-phases"))
    return OK


def _run(shell: Shell, given: Given) -> kubeadminit.Run:
    documents = kubeadmconfig.read(shell, given.get("config", ""))
    for kind in (ClusterConfiguration, InitConfiguration):
        if kind.__name__ not in documents.own:
            raise Failed(f"no {kind.__name__} in {given.get('config')}")
    said = documents.the(InitConfiguration).node_registration.ignore_preflight_errors
    ignored = (*_listed(given, "ignore-preflight-errors"), *said)
    return kubeadminit.Run(shell, documents, _version(shell), ignored)


def _token(shell: Shell, args: Sequence[str]) -> Completed:
    if not args or args[0] != "create":
        raise shell.unexpected()
    given = _given(shell, args[1:], "ttl", "kubeconfig")
    api = apiserver.administrator(shell, given.get("kubeconfig", layout.ADMIN_CONFIG))
    lifetime = kubeadmobjects.seconds(given.get("ttl", "24h0m0s"))
    return said(f"{kubeadmobjects.new_token(api.cluster, lifetime)}\n")


def _config(shell: Shell, args: Sequence[str]) -> Completed:
    match list(args):
        case ["images", "list", "--config", path]:
            return _images(shell, path)
        case ["validate", "--config", path]:
            kubeadmconfig.read(shell, path)
            return said("ok\n")
    raise shell.unexpected()


def _images(shell: Shell, path: str) -> Completed:
    cluster = kubeadmconfig.read(shell, path).the(ClusterConfiguration)
    return said("".join(f"{image}\n" for image in control_plane(shell, cluster)))


def _shown_version(shell: Shell, args: Sequence[str]) -> Completed:
    version = _version(shell)
    match list(args):
        case ["-o", "short"]:
            return said(f"{version}\n")
        case ["-o", "json"]:
            return said(json.dumps({"clientVersion": {"gitVersion": version}}) + "\n")
    raise shell.unexpected()


def _version(shell: Shell) -> str:
    found = standins.found(shell, shell.command.argv[0]) or standins.found(shell, "kubeadm")
    if found is None or not found.version:
        raise Failed("this kubeadm does not know its version")
    return found.version


def _given(shell: Shell, args: Sequence[str], *names: str) -> dict[str, str]:
    """Options with their values; any other is unexpected."""
    rest, given = list(args), dict[str, str]()
    while rest:
        word = rest.pop(0)
        name, sign, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in names or (not sign and not rest):
            raise shell.unexpected()
        given[name] = value if sign else rest.pop(0)
    return given


def _listed(given: Given, name: str) -> tuple[str, ...]:
    return tuple(filter(None, given.get(name, "").split(",")))


_COMMANDS: Mapping[str, Callable[[Shell, Sequence[str]], Completed]] = {
    "config": _config,
    "init": _init,
    "join": _join,
    "reset": _reset,
    "token": _token,
    "version": _shown_version,
}
PROGRAMS: Mapping[str, Program] = {"kubeadm": kubeadm}
