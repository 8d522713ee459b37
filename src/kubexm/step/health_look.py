"""How hosts of a cluster tell of its health: the API, the way to it, etcd.

Each look asks one host and changes nothing.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from kubexm.common import layout
from kubexm.errors import KubexmError
from kubexm.runner import kubectl
from kubexm.runner.host import Completed, Host

Grade = Literal["well", "warning", "ill"]
SECONDS = "5"
"""For one answer."""
_ETCD_CLIENT = f"{layout.ETCD_PKI}/healthcheck-client"
_GREET = 'exec 3<>"/dev/tcp/$0/$1"; cat >&3; head -c 1 <&3 | od -An -tx1'
"""The first word of a conversation by TLS, and how the answer begins; bash is everywhere, and a
worker has nothing else that could ask."""
_HANDSHAKE = "16"
"""How whoever speaks TLS begins, if he goes on with it."""
_API_HINT = "look at it on the host: `crictl ps -a`, `journalctl -u kubelet`"
_ENDPOINT_HINTS: Mapping[str, str] = {
    "haproxy": "look at the balancer of the host: `journalctl -u kubexm-haproxy`",
    "nginx": "look at the balancer of the host: `journalctl -u kubexm-nginx`",
    "keepalived": "look at the load-balancer hosts: `journalctl -u keepalived -u haproxy`",
    "kube-vip": "look at what holds the address on control planes: `crictl ps -a --name kube-vip`",
    "external": "look at the load balancer of the site, and at the way to it from this host",
    "single": "look at the way from this host to the control plane",
}


class Told(msgspec.Struct, frozen=True):
    """What was found in one place."""

    check: str
    where: str
    grade: Grade
    what: str
    hint: str = ""


async def api(host: Host, server: str) -> list[Told]:
    """Whether the API server of a host is ready for everybody."""
    return [_ready("api", host.name, server, await _asked(host, server), _API_HINT)]


async def endpoint(host: Host, server: str, kind: str) -> list[Told]:
    """Whether a control plane finds the API ready where all nodes look for it."""
    # Where every node has a balancer of its own, a control plane is its own.
    hint = _API_HINT if kind in ("haproxy", "nginx") else _ENDPOINT_HINTS[kind]
    return [_ready("endpoint", host.name, server, await _asked(host, server), hint)]


async def endpoint_of_worker(host: Host, server: str, kind: str) -> list[Told]:
    """The same of a worker: whether somebody who speaks TLS answers there.

    Who that is, its kubelet sees, which is not ready without.
    """
    there = urlsplit(server)
    name, port = there.hostname or "", there.port or 443
    words = ("timeout", SECONDS, "bash", "-c", _GREET, name, str(port))
    answer = await host.ask(*words, sudo=False, stdin=greeting(name))
    if answer.text.strip() == _HANDSHAKE:
        return [Told("endpoint", host.name, "well", f"{server} answers")]
    why = _greeted(answer)
    return [Told("endpoint", host.name, "ill", f"{server}: {why}", _ENDPOINT_HINTS[kind])]


def greeting(name: str) -> bytes:
    """How a client begins to talk by TLS with somebody of this name."""
    written = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client = context.wrap_bio(ssl.MemoryBIO(), written, server_hostname=name)
    with suppress(ssl.SSLWantReadError):  # the answer comes to the host, not here
        client.do_handshake()
    return written.read()


def _greeted(answer: Completed) -> str:
    """Why that was no answer."""
    if answer.error_text.strip():
        return last_line(answer.error_text)
    if not answer.ok:
        return f"no answer within {SECONDS} s"
    if answer.text.strip():
        return "somebody answers who does not go on by TLS"
    return "takes connections, but nobody behind it answers"


async def etcd(host: Host) -> list[Told]:
    """Whether the member of etcd of a host answers, and can write."""
    words = (
        f"{layout.BINARIES}/etcdctl",
        *("--endpoints", "https://127.0.0.1:2379", "--cacert", f"{layout.ETCD_PKI}/ca.crt"),
        *("--cert", f"{_ETCD_CLIENT}.crt", "--key", f"{_ETCD_CLIENT}.key"),
        *("--command-timeout", f"{SECONDS}s", "endpoint", "health"),
    )
    answer = await host.ask(*words)
    if answer.ok:
        return [Told("etcd", host.name, "well", "the member answers")]
    hint = "look at its log on the host: `crictl ps -a` or `journalctl -u etcd`"
    return [Told("etcd", host.name, "ill", last_line(answer.error_text), hint)]


def failed(check: str, where: str, error: KubexmError) -> Told:
    """A look that could not be taken."""
    return Told(check, where, "ill", error.message, error.hint)


def not_understood(check: str, where: str, error: Exception) -> Told:
    """A look at something that is not as anybody would expect it."""
    what = f"what it says can't be understood: {type(error).__name__}: {error}"
    return Told(check, where, "ill", what, "see whether somebody has changed its files by hand")


def last_line(text: str) -> str:
    """The end of what a program has said, where it tells why."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no answer"


async def _asked(host: Host, server: str) -> Completed:
    words = ("get", "--raw", "/readyz", "--server", server, "--request-timeout", f"{SECONDS}s")
    return await host.ask(*kubectl.as_administrator(*words))


def _ready(check: str, where: str, server: str, answer: Completed, hint: str) -> Told:
    if answer.ok and answer.text.strip() == "ok":
        return Told(check, where, "well", f"{server} is ready")
    said = answer.error_text.strip() or answer.text.strip()
    return Told(check, where, "ill", f"{server}: {last_line(said)}", hint)
