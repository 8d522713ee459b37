"""Simulated kubectl: it reaches an API server as the real one would, and says what that answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from kubexm.connector.base import Completed
from kubexm.sim import apiserver, kubectlchange, kubectlwords, kubenodes, kubeworkloads
from kubexm.sim.etcdmembers import Unanswered
from kubexm.sim.kubectlget import get
from kubexm.sim.kubectlwords import Words
from kubexm.sim.kubedocs import Unreadable, part
from kubexm.sim.kubekinds import DAEMON_SET, NODE
from kubexm.sim.kubeobjects import Rejected, not_found
from kubexm.sim.kubeready import Standing
from kubexm.sim.shell import Program, Shell, failed, said

_FAILED_TO_DIFFER = 2


def kubectl(shell: Shell, args: Sequence[str]) -> Completed:
    match list(args):
        case ["--kubeconfig", path, "get", "--raw", "/readyz", "--server", server, *_]:
            return _readiness(shell, path, server)
        case ["--kubeconfig", path, verb, *rest] if verb in _VERBS:
            pass
        case _:
            raise shell.unexpected()
    code = _FAILED_TO_DIFFER if verb == "diff" else 1
    try:
        api = apiserver.administrator(shell, path)
        return _VERBS[verb](kubectlwords.read(shell, api, rest))
    except (Rejected, Unanswered) as error:
        return failed(str(error), code)
    except Unreadable as error:
        return failed(f"error: error parsing STDIN: {error}", code)


def _readiness(shell: Shell, path: str, server: str) -> Completed:
    """Whether an API server is ready: whoever gets through to one finds it so."""
    try:
        apiserver.connected(shell, replace(apiserver.access(shell, path), server=server))
    except Unanswered as error:
        return failed(str(error))
    return said("ok")


def drain(words: Words) -> Completed:
    """Have a node rest; its pods go elsewhere by themselves."""
    words.require("--ignore-daemonsets")
    return kubectlchange.cordon(words)


def rollout(words: Words) -> Completed:
    """Only `rollout status`: nothing changes while somebody waits, so what is not yet fails."""
    if words.operands[:1] != ("status",):
        raise words.unexpected()
    named = Words(words.shell, words.api, words.operands[1:], words.options)
    kind, (name,) = named.resource()
    ref = named.ref(kind, name)
    found = words.api.cluster.get(ref)
    if found is None:
        raise not_found(ref)
    shown = kubeworkloads.awaited(Standing(words.api), ref, found)
    daemon = kind == DAEMON_SET
    wanted = part(shown, "status", "desiredNumberScheduled" if daemon else "replicas")
    ready = part(shown, "status", "numberAvailable" if daemon else "availableReplicas")
    if wanted is None or ready != wanted:
        return failed("error: timed out waiting for the condition")
    return said(f'{ref.shown} "{name}" successfully rolled out\n')


def wait(words: Words) -> Completed:
    """Only for nodes to be ready."""
    kind, names = words.resource()
    if kind != NODE or words.option("--for") != "condition=Ready":
        raise words.unexpected()
    standing = Standing(words.api)
    for name in names:
        if name not in standing.nodes:
            raise not_found(kubenodes.ref(name))
        if standing.node_obstacle(name):
            return failed(f"error: timed out waiting for the condition on nodes/{name}")
    return said("".join(f"node/{name} condition met\n" for name in names))


_VERBS: Mapping[str, Callable[[Words], Completed]] = {
    "annotate": kubectlchange.annotate,
    "apply": kubectlchange.apply,
    "cordon": kubectlchange.cordon,
    "delete": kubectlchange.delete,
    "diff": kubectlchange.diff,
    "drain": drain,
    "get": get,
    "label": kubectlchange.label,
    "patch": kubectlchange.patch,
    "rollout": rollout,
    "taint": kubectlchange.taint,
    "uncordon": kubectlchange.uncordon,
    "wait": wait,
}
PROGRAMS: Mapping[str, Program] = {"kubectl": kubectl}
