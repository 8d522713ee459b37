"""The words and numbers of a cluster file: versions, networks, names as Kubernetes has them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import urlsplit

from kubexm.document.fields import InSchema, seconds
from kubexm.document.findings import shown
from kubexm.document.forms import After, BadValue, Before, Filled

_DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_DOMAIN = rf"(?=.{{1,253}}$){_DNS_LABEL}(?:\.{_DNS_LABEL})*"
_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_VERSION = re.compile(r"v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)")
_LONGEST = 100 * 366 * 86400.0
_TEXT_OR_LIST = InSchema(
    '{"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}'
)


def _matching(pattern: str, wanted: str, hint: str) -> After:
    """Text of which all matches a pattern."""
    compiled = re.compile(pattern)

    def judge(text: str) -> str:
        if compiled.fullmatch(text):
            return text
        raise BadValue(f"found {shown(text)}, want {wanted}", hint)

    return After(judge)


def _parsed(parse: Callable[[str], object], wanted: str, hint: str) -> After:
    """Text that can be read as something, in the form that this has."""

    def judge(text: str) -> str:
        try:
            return str(parse(text))
        except ValueError:
            raise BadValue(f"found {shown(text)}, want {wanted}", hint) from None

    return After(judge)


def _version(text: str) -> str:
    found = _VERSION.fullmatch(text)
    if found is None:
        hint = "write all three numbers, such as `v1.36.3`"
        raise BadValue(f"found {shown(text)}, want a version", hint)
    return f"v{found[1]}"


def _network(text: str) -> object:
    if "/" not in text:
        raise ValueError("a single address")
    return ipaddress.ip_network(text)


def _name_or_address(text: str) -> object:
    if re.fullmatch(_DOMAIN, text) and not text.rpartition(".")[2].isdecimal():
        return text
    return ipaddress.ip_address(text)


def _url(*schemes: str) -> Callable[[str], object]:
    def parse(text: str) -> object:
        parts = urlsplit(text)
        if parts.scheme not in schemes or not parts.hostname:
            raise ValueError("another scheme, or no host")
        return text

    return parse


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _long_duration(value: Any) -> float:
    number = seconds(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise BadValue(f"found {shown(value)}, want a duration", "write `365d` or `8760h`")
    if not 3600 <= number <= _LONGEST:
        raise BadValue(
            f"found {shown(value)}, want a duration from an hour to a hundred years",
            "write `365d` or `8760h`",
        )
    return float(number)


Version = Annotated[str, After(_version)]
KubeName = Annotated[
    str,
    _matching(
        _DNS_LABEL,
        "a name that Kubernetes takes",
        "use small letters, digits and `-`, at most 63, no `-` at an end",
    ),
]
DomainName = Annotated[
    str, _matching(_DOMAIN, "a domain name", "use small letters, digits, `-` and `.`")
]
LabelKey = Annotated[
    str,
    _matching(
        rf"(?:(?:{_DNS_LABEL})(?:\.{_DNS_LABEL})*/)?{_WORD}",
        "the key of a label",
        "write a word such as `zone`, or `example.com/zone`",
    ),
]
LabelValue = Annotated[
    str,
    _matching(
        rf"(?:{_WORD})?",
        "the value of a label",
        "use letters, digits, `.`, `_`, `-`, at most 63, none of `._-` at an end",
    ),
]
IpAddress = Annotated[
    str,
    _parsed(ipaddress.ip_address, "an IP address", "write one such as `10.0.0.10` or `fd00::1`"),
]
Cidr = Annotated[
    str,
    _parsed(
        _network, "a network", "write one such as `10.233.64.0/18`, with no bits beyond its prefix"
    ),
]
Cidrs = Annotated[tuple[Cidr, ...], Before(_as_list), Filled(), _TEXT_OR_LIST]
DnsNameOrAddress = Annotated[
    str, _parsed(_name_or_address, "a name or an IP address", "write it without a port or a scheme")
]
HttpsUrl = Annotated[
    str,
    _parsed(_url("https"), "an address with `https://`", "write one such as `https://HOST:2379`"),
]
RegistryUrl = Annotated[
    str,
    _parsed(
        _url("https", "http"), "the address of a registry", "write one such as `https://HOST:5000`"
    ),
]
RegistryHost = Annotated[
    str,
    _matching(
        rf"(?:{_DNS_LABEL}(?:\.{_DNS_LABEL})*|\[[0-9a-f:]+\])(?::\d{{1,5}})?",
        "the host of a registry",
        "write it as image names do, such as `docker.io` or `registry.internal:5000`",
    ),
]
AbsolutePath = Annotated[
    str,
    _matching(r"/(?:[^\s/]+/?)*", "an absolute path", "write one that begins with `/`, no blanks"),
]
Interface = Annotated[
    str, _matching(r"[^\s/]{1,15}", "the name of an interface", "write one such as `eth0`")
]
SysctlKey = Annotated[
    str,
    _matching(
        r"[a-z][a-z0-9_]*(?:\.[A-Za-z0-9_*-]+)+",
        "a setting of the kernel",
        "write one such as `net.ipv4.ip_forward`",
    ),
]
ModuleName = Annotated[
    str,
    _matching(r"[A-Za-z0-9_-]{1,56}", "a module of the kernel", "write one such as `nf_conntrack`"),
]
TimeZone = Annotated[
    str,
    _matching(
        r"[A-Za-z]+(?:/[A-Za-z0-9_+-]+){0,2}", "a time zone", "write one such as `Europe/Berlin`"
    ),
]
LongDuration = Annotated[float, Before(_long_duration)]
