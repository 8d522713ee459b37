"""The words and numbers of a cluster file: versions, networks, names as Kubernetes has them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import urlsplit

from kubexm.common.secrets import is_reference
from kubexm.document import ranges
from kubexm.document.fields import (
    DURATION_SCHEMA,
    SAID_AS_DURATION,
    Address,
    FilePath,
    InSchema,
    UserName,
    as_ip,
    is_dns_name,
    seconds,
    unbracketed,
)
from kubexm.document.findings import shown
from kubexm.document.forms import After, BadValue, Before, Filled

_DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_DOMAIN = rf"(?=.{{1,253}}$){_DNS_LABEL}(?:\.{_DNS_LABEL})*"
_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_VERSION = re.compile(r"v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)")
_WHOLE_VERSION = "write all three numbers, such as `v1.36.3`"
_ZONE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}")
_BELOW_ROOT = r"(?:/(?!\.{1,2}(?:/|$))[^\s/]+)+/?"
_MOST_ASKED = 15
_LONGEST = 100 * 366 * 86400.0
_TEXT_OR_LIST = InSchema(
    '{"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}'
)


def _in_one_line(text: str) -> str:
    """What was found, also where an end of a line is what is wrong with it."""
    return shown(text.replace("\r", "\\r").replace("\n", "\\n"))


def _matching(pattern: str, wanted: str, hint: str) -> After:
    """Text of which all matches a pattern."""
    compiled = re.compile(pattern)

    def judge(text: str) -> str:
        if compiled.fullmatch(text):
            return text
        raise BadValue(f"found {_in_one_line(text)}, want {wanted}", hint)

    return After(judge)


def _parsed(parse: Callable[[str], object], wanted: str, hint: str) -> After:
    """Text that can be read as something, in the form that this has."""

    def judge(text: str) -> str:
        try:
            return str(parse(text))
        except ValueError:
            raise BadValue(f"found {_in_one_line(text)}, want {wanted}", hint) from None

    return After(judge)


def _version(text: str) -> str:
    found = _VERSION.fullmatch(text)
    if found is None:
        raise BadValue(f"found {shown(text)}, want a version", _WHOLE_VERSION)
    return f"v{found[1]}"


def _no_number(value: Any) -> Any:
    """`1.36` is a number to YAML; in quotes it would be no version either."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise BadValue(f"found {shown(value)}, want a version", _WHOLE_VERSION)
    return value


def _address(text: str) -> object:
    if (found := as_ip(text)) is None:
        raise ValueError("no address, or one with a zone")
    return found


def _addresses(text: str) -> object:
    """One address, or a range; brackets around one of IPv6 are left."""
    pattern = ranges.parse(text)
    if None in (as_ip(unbracketed(one)) for one in (pattern.first, pattern.last)):
        raise ValueError("a name, or a number too large")
    return text


def _host_name(text: str) -> object:
    if not is_dns_name(text):
        raise ValueError("no name")
    return text


def _time_zone(text: str) -> str:
    from zoneinfo import available_timezones  # noqa: PLC0415 few files name a zone

    known = available_timezones()
    # A machine without a list of zones can't tell; a host will.
    if not _ZONE.fullmatch(text) or (known and text not in known):
        hint = "write one such as `Europe/Berlin`; `timedatectl list-timezones` has all of them"
        raise BadValue(f"found {_in_one_line(text)}, want a time zone", hint)
    return text


def _network(text: str) -> object:
    if "/" not in text:
        raise ValueError("a single address")
    return ipaddress.ip_network(text)


def _name_or_address(text: str) -> object:
    if re.fullmatch(_DOMAIN, text) and not text.rpartition(".")[2].isdecimal():
        return text
    return _address(text)


def _certified(text: str) -> object:
    """A name or an address of a certificate, which may be for all names of a domain."""
    domain = text.removeprefix("*.")
    found = _name_or_address(domain)
    if domain != text and as_ip(domain) is not None:
        raise ValueError("all names of an address")
    return text if domain != text else found


def _url(*schemes: str) -> Callable[[str], object]:
    def parse(text: str) -> object:
        parts = urlsplit(text)
        # A port that is none is told when it is asked for.
        if parts.scheme not in schemes or not parts.hostname or parts.port == 0:
            raise ValueError("another scheme, no host, or no port")
        if any(letter.isspace() for letter in text):
            raise ValueError("a blank")
        return text

    return parse


def _registry_url(text: str) -> str:
    if not {"?", "#"}.isdisjoint(text):
        # What follows may be a token: it is not repeated.
        hint = "leave out `?` and `#` with all that follows"
        raise BadValue("found more than the address of a registry", hint)
    return text


def _etcd_url(text: str) -> object:
    # Without a port it would be asked at that of HTTPS.
    if urlsplit(text).port is None:
        raise ValueError("no port")
    return _url("https")(text)


def _proxy_url(text: str) -> str:
    try:
        parts = urlsplit(str(_url("http", "https")(text)))
        is_one = parts.netloc.count("@") <= 1 and parts.path in ("", "/") and not parts.query
        if is_one and _is_host(parts.hostname or ""):
            return text
    except ValueError:
        pass  # told below
    # What was written may hold a password: it is not repeated.
    hint = "write one such as `http://proxy.example.com:3128`"
    raise BadValue("found no address of a proxy, want one with `http://` or `https://`", hint)


def _is_host(text: str) -> bool:
    return as_ip(text) is not None or is_dns_name(text)


def _asked(servers: tuple[str, ...]) -> tuple[str, ...]:
    if len(servers) > _MOST_ASKED:
        message = f"found {len(servers)} servers, want {_MOST_ASKED} at most"
        raise BadValue(message, "name fewer: CoreDNS takes no more of them")
    return servers


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


def _below_root(text: str) -> str:
    """A directory that is read with all that is in it."""
    if text.strip("/"):
        return text
    raise BadValue(f"found {shown(text)}, want a directory", "write the path of one below `/`")


def _reference(value: Any) -> str:
    """A reference alone: steps take this one to hosts, and plans hold no secret."""
    if isinstance(value, str) and is_reference(value):
        return value
    # What was written may be the secret itself: it is not repeated.
    hint = "write `env://NAME`, `file:///PATH` or `prompt://WHAT`"
    raise BadValue("found no reference to a secret, want one", hint)


Version = Annotated[str, Before(_no_number), After(_version)]
DirectoryPath = Annotated[FilePath, After(_below_root)]
SecretReference = Annotated[str, Before(_reference)]
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
    _parsed(_address, "an IP address", "write one such as `10.0.0.10` or `fd00::1`"),
]
IpAddresses = Annotated[
    Address,
    _parsed(_addresses, "an IP address", "write one such as `10.0.0.10`, or a range of them"),
]
NameServers = Annotated[tuple[IpAddress, ...], After(_asked)]
HostAlias = Annotated[
    str, _parsed(_host_name, "the name of a host", "use letters, digits, `-`, `_` and `.`")
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
CertifiedName = Annotated[
    str,
    _parsed(
        _certified,
        "a name or an IP address",
        "write it without a port or a scheme, or `*.` and a domain for all names of it",
    ),
]
EtcdUrl = Annotated[
    str,
    _parsed(
        _etcd_url,
        "an address with `https://` and a port",
        "write one such as `https://10.0.0.5:2379`",
    ),
]
ProxyUrl = Annotated[str, After(_proxy_url)]
ProxyExempt = Annotated[
    str,
    _matching(
        r"(?!.*//)[A-Za-z0-9.*:_/\[\]-]+",
        "a name, a domain, an address or a network",
        "write an entry for each, such as `.example.com` or `10.0.0.0/8`",
    ),
]
RegistryUrl = Annotated[
    str,
    After(_registry_url),
    _parsed(
        _url("https", "http"), "the address of a registry", "write one such as `https://HOST:5000`"
    ),
]
RegistryUser = Annotated[
    UserName,
    # What follows it is the password, to whoever is told both.
    _matching(r"[^:]*", "a name without `:`", "leave out the password: `password` refers to it"),
]
RegistryHost = Annotated[
    str,
    _matching(
        rf"(?:{_DNS_LABEL}(?:\.{_DNS_LABEL})*|\[[0-9a-f:]+\])(?::\d{{1,5}})?",
        "the host of a registry",
        "write it as image names do, such as `docker.io` or `registry.internal:5000`",
    ),
]
ChartUrl = Annotated[
    str,
    _parsed(
        _url("https", "http", "oci"),
        "the address of a repository of charts",
        "write one such as `https://charts.example.com` or `oci://registry.example.com/charts`",
    ),
]
ChartVersion = Annotated[
    str,
    _matching(
        r"v?\d+(?:\.\d+){0,2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?",
        "the version of a chart",
        "write one version, whole, such as `4.13.3`; `helm search repo NAME --versions` lists them",
    ),
]
AbsolutePath = Annotated[
    str,
    _matching(
        _BELOW_ROOT,
        "an absolute path below `/`",
        "write one such as `/var/lib/data`, without blanks, `.` and `..`",
    ),
]
ExportedPath = Annotated[
    str,
    _matching(
        rf"/|{_BELOW_ROOT}",
        "an absolute path",
        "write one that begins with `/`, without blanks, `.` and `..`",
    ),
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
    _matching(
        r"[A-Za-z0-9_][A-Za-z0-9_-]{0,55}",
        "a module of the kernel",
        "write one such as `nf_conntrack`",
    ),
]
PackageName = Annotated[
    str,
    _matching(
        r"[A-Za-z0-9@][A-Za-z0-9@.+_:~=/^*-]*",
        "the name of a package",
        "write one such as `nfs-common`, an entry for each, without blanks",
    ),
]
TimeZone = Annotated[str, After(_time_zone)]
Line = Annotated[
    str,
    # A tab stands between the parts of some settings of the kernel.
    _matching(
        r"[^\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]*", "a text of one line", "leave it in one line"
    ),
]
FlagName = Annotated[
    str,
    _matching(
        r"[A-Za-z0-9]+(?:[-._][A-Za-z0-9]+)*",
        "the name of a flag",
        "write it without `--` and without its value, such as `log-level`",
    ),
]
PreflightCheck = Annotated[
    str,
    # `all` is refused by kubeadm in a file, and commas stand between several on its command line.
    _matching(
        r"(?!(?i:all)$)[^\s,]+",
        "the name of one check of kubeadm",
        "write one such as `NumCPU`, an entry for each; there is no `all`",
    ),
]
EncryptedResource = Annotated[
    str,
    _matching(
        r"(?!apiserveripinfo$|serviceipallocations$|servicenodeportallocations$)"
        r"(?!.*\.(?:events\.k8s\.io|extensions)$)"
        rf"(?:\*\.(?:\*|{_DOMAIN})?|{_DNS_LABEL}(?:\.{_DOMAIN})?)",
        "resources that the API server encrypts",
        "write `secrets`, `deployments.apps`, `*.` for the core group, `*.apps`, or `*.*` for all",
    ),
]
FeatureGate = Annotated[
    str,
    _matching(
        r"[A-Za-z][A-Za-z0-9]*",
        "the name of a feature",
        "write one such as `ContextualLogging`",
    ),
]
LongDuration = Annotated[float, Before(_long_duration), SAID_AS_DURATION, DURATION_SCHEMA]
