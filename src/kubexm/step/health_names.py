"""Whether pods of a host find services by their names."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from kubexm.common import layout
from kubexm.errors import StepFailed
from kubexm.runner import files
from kubexm.runner.host import Completed, Host
from kubexm.step.health_look import Told, last_line
from kubexm.templates import formats

Way = Literal["UDP", "TCP"]
ASK: Mapping[Way, str] = {
    "UDP": 'exec 3<>"/dev/udp/$0/$1"; cat >&3; head -c 12 <&3 | od -An -tx1',
    "TCP": 'exec 3<>"/dev/tcp/$0/$1"; cat >&3; head -c 14 <&3 | od -An -tx1',
}
"""A question, and the head of its answer; bash can do that, and is everywhere."""
_NETWORKS = "/run/netns"
_PORT = "53"
_SECONDS = "2"
_TRIES = 3
"""How often somebody is asked who does not answer: a packet may get lost, a pod may end."""
_HEAD = 12
_NAME = "kubernetes.default.svc"
_A, _AAAA = 1, 28
_HINT = "look at CoreDNS: kubectl logs -n kube-system -l k8s-app=kube-dns"


async def names(host: Host) -> list[Told]:
    """Whether a pod of a host finds a service by its name; nothing if it has no pod to ask from."""
    server, domain = await _settings(host)
    inside = await _networks(host)
    if not inside:
        return []
    name = f"{_NAME}.{domain}"
    for way in ASK:
        if why := await _amiss(host, inside, way, server, name):
            return [Told("dns", host.name, "ill", why, _HINT)]
    return [Told("dns", host.name, "well", f"a pod finds {name} by {server}")]


async def _settings(host: Host) -> tuple[str, str]:
    """Whom pods ask for names, and the domain of services."""
    written = await files.read(host, layout.KUBELET_CONFIG)
    said: Mapping[str, Any] = {}
    if written is not None:
        said = formats.parsed(written.decode(errors="replace"), "yaml")
    servers, domain = said.get("clusterDNS"), said.get("clusterDomain")
    if isinstance(servers, list) and servers and isinstance(domain, str):
        return str(servers[0]), domain
    message = f"`{layout.KUBELET_CONFIG}` does not say whom pods ask for names"
    raise StepFailed(message, hint="write it anew: kubexm create cluster -f FILE")


async def _networks(host: Host) -> list[str]:
    """The networks of pods."""
    listed = await host.ask("ls", "-1", _NETWORKS)
    return [f"{_NETWORKS}/{one}" for one in listed.text.split() if one.startswith("cni-")]


async def _amiss(host: Host, inside: Sequence[str], way: Way, server: str, name: str) -> str:
    """What is wrong with the answers of a server; nothing if it knows an address."""
    # A service of one family alone has no address of the other.
    for kind in (_AAAA, _A) if ":" in server else (_A, _AAAA):
        answer = await _asked(host, inside, way, server, question(name, kind, way))
        head = _head(answer)
        if len(head) < _HEAD:
            why = f": {last_line(answer.error_text)}" if answer.error_text.strip() else ""
            return f"a pod gets no answer from {server} by {way}{why}"
        if code := head[3] & 0x0F:
            return f"{server} does not know {name} (code {code}, by {way})"
        if struct.unpack("!H", head[6:8])[0]:
            return ""
    return f"{server} knows no address of {name} (by {way})"


async def _asked(
    host: Host, inside: Sequence[str], way: Way, server: str, asked: bytes
) -> Completed:
    """The first answer to a question that is asked out of several networks in turn."""
    answer = Completed(0)
    for number in range(_TRIES):
        network = f"--net={inside[number % len(inside)]}"
        words = ("nsenter", network, "bash", "-c", ASK[way], server, _PORT)
        answer = await host.ask("timeout", _SECONDS, *words, stdin=asked)
        if len(_head(answer)) == _HEAD:
            break
    return answer


def question(name: str, kind: int, way: Way) -> bytes:
    """What a name is asked for by: one kind of its addresses."""
    labels = b"".join(bytes((len(part),)) + part.encode() for part in name.split("."))
    head = struct.pack("!HHHHHH", secrets.randbelow(1 << 16), 0x0100, 1, 0, 0, 0)
    message = head + labels + b"\0" + struct.pack("!HH", kind, 1)
    return message if way == "UDP" else struct.pack("!H", len(message)) + message


def _head(answer: Completed) -> bytes:
    """The head of an answer; by TCP its length stands before it."""
    return bytes.fromhex("".join(answer.text.split()))[-_HEAD:]
