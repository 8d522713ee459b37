"""The words and numbers of files: names, addresses, paths, durations, shares."""

from __future__ import annotations

import ipaddress
import re
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec

from kubexm.document import ranges
from kubexm.document.findings import shown
from kubexm.document.forms import After, BadValue, Before, Filled, Range, Said
from kubexm.document.ranges import BadRange, Pattern

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_DNS_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_USER = re.compile(r"[^\s-]\S*")
_LONGEST_NAME = 100
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")
_SECONDS = (86400.0, 3600.0, 60.0, 1.0, 0.001)
_UNITS = {"d": 86400, "h": 3600, "m": 60}
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)%")
_LONGEST = 366 * 86400.0
_BY_REFERENCE = "write `env://NAME`, `file:///PATH` or `prompt://WHAT`"
_ALONE = "write it alone: no port, no user, no `https://`, and numbers without zeros in front"
_A_DURATION = "write `30s`, `5m`, `1h30m` or seconds"


def _name(text: str) -> str:
    _named(text, text)
    return text


def _host_name(text: str) -> str:
    _named(_pattern(text).last, text)
    return text


def _address(text: str) -> str:
    _addressed(_pattern(text), text)
    return text


def _addressed(pattern: Pattern, text: str) -> None:
    """Each end of the ranges is an address; what lies between them is one, too."""
    for one in (pattern.first, pattern.last):
        if as_ip(unbracketed(one)) is None and not is_dns_name(one):
            raise BadValue(f"found {shown(text)}, want an IP address or a DNS name", _ALONE)


def as_ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address in a text as all hosts know it: a zone (`%eth0`) is one host's own."""
    try:
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def is_dns_name(text: str) -> bool:
    """Whether a text is a name, as hosts files and DNS have it, and no address with a mistake."""
    is_number = text.rpartition(".")[2].isdecimal()
    return not is_number and _DNS_NAME.fullmatch(text) is not None


def unbracketed(text: str) -> str:
    """An IPv6 address without the brackets that it may be written in."""
    return text[1:-1] if text.startswith("[") and text.endswith("]") else text


def _pattern(text: str) -> Pattern:
    try:
        return ranges.parse(text)
    except BadRange as error:
        raise BadValue(str(error), error.hint) from None


def _one_address(text: str) -> str:
    pattern = _pattern(text)
    if pattern.has_ranges:
        raise BadValue(f"found `{text[:40]}`, want one address", "write it without a range")
    _addressed(pattern, text)
    return text


def _user(text: str) -> str:
    if _USER.fullmatch(text):
        return text
    hint = "use no blanks, and no `-` in front"
    raise BadValue(f"found {shown(text)}, want the name of a user", hint)


def _path(value: Any) -> str:
    hint = "write the path of the file"
    if not isinstance(value, str) or not value:
        raise BadValue(f"found {shown(value) if value else 'an empty text'}, want a path", hint)
    if "\n" in value or value.startswith("-----BEGIN"):
        raise BadValue("found a key written out, want a path", hint)
    if "://" in value:
        raise BadValue(f"found {shown(value)}, want a path", f"{hint}: a file is read where it is")
    return value


def _path_or_false(value: Any) -> str | Literal[False]:
    return False if value is False else _path(value)


def _secret(value: Any) -> str:
    """A reference, or a secret that was written out, which is told elsewhere."""
    if isinstance(value, str) and value:
        return value
    # A number may be the secret itself.
    raise BadValue("found no text, want a reference to a secret", _BY_REFERENCE)


def _named(name: str, text: str) -> None:
    if len(name) <= _LONGEST_NAME and _NAME.fullmatch(name):
        return
    raise BadValue(
        f"found `{text[:40]}`, want a name",
        f"use letters, digits, `.`, `_`, `-`, at most {_LONGEST_NAME}, none of `._-` at an end",
    )


def seconds(text: str) -> float | None:
    """The seconds in a text such as `1h30m`, or None if it is no duration."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    parts = zip(found.groups(), _SECONDS, strict=True)
    return sum(float(number) * unit for number, unit in parts if number)


def duration_text(duration: float) -> str:
    """So many seconds as people write them: `365d`, `1h30m`, `10ms`."""
    rest, found = Decimal(repr(duration)), ""
    for unit, size in _UNITS.items():
        count, rest = divmod(rest, size)
        found += f"{count}{unit}" if count else ""
    if not found and 0 < rest < 1 and not (thousandths := rest * 1000) % 1:
        return f"{int(thousandths)}ms"
    return f"{found}{rest.normalize():f}s" if rest or not found else found


def _duration(value: Any) -> float:
    number = seconds(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise BadValue(f"found {shown(value)}, want a duration", _A_DURATION)
    if not 0 <= number <= _LONGEST:
        raise BadValue(f"found {shown(value)}, want a duration from 0 to 366 days", _A_DURATION)
    return float(number)


def _positive_duration(value: Any) -> float:
    number = seconds(value) if isinstance(value, str) else value
    if isinstance(number, int | float) and not isinstance(number, bool) and number <= 0:
        message = f"found {shown(value)}, want a duration above zero"
        raise BadValue(message, f"{_A_DURATION}, or leave it out for no limit")
    return _duration(value)


def percent(text: str) -> float | None:
    """The number in a text such as `20%`, or None if it is none."""
    found = _PERCENT.fullmatch(text)
    number = float(found[1]) if found else None
    return number if number is not None and number <= 100 else None


def _share(value: Any) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and percent(value) is not None:
        return value
    raise BadValue(f"found {shown(value)}, want a number of hosts or a share", "write `2` or `20%`")


class InSchema(msgspec.Struct, frozen=True):
    """What a JSON Schema says of a value that its annotation can't tell."""

    schema: str


DURATION_SCHEMA = InSchema(
    '{"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern":'
    ' "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9.]+s)?([0-9]+ms)?$"}]}'
)
_SHARE_SCHEMA = InSchema(
    '{"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern":'
    ' "^[0-9]{1,3}([.][0-9]+)?%$"}]}'
)

Text = Annotated[str, Filled()]
Name = Annotated[str, After(_name)]
HostName = Annotated[str, After(_host_name)]
Address = Annotated[str, Filled(), After(_address)]
OneAddress = Annotated[str, Filled(), After(_one_address)]
UserName = Annotated[str, After(_user)]
Port = Annotated[int, Range(1, 65535)]
FilePath = Annotated[str, Before(_path)]
PathOrFalse = Annotated[str | Literal[False], Before(_path_or_false)]
SecretText = Annotated[str, Before(_secret)]
Count = Annotated[int, Range(1, 1_000_000)]
SAID_AS_DURATION = Said(duration_text)
Duration = Annotated[float, Before(_duration), SAID_AS_DURATION, DURATION_SCHEMA]
PositiveDuration = Annotated[float, Before(_positive_duration), SAID_AS_DURATION, DURATION_SCHEMA]
Share = Annotated[int | str, Before(_share), _SHARE_SCHEMA]
