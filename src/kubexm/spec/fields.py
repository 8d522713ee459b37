"""The words and numbers of a pipeline file: names, durations, shares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from kubexm.common.roles import ALL, CONTROL_NODE
from kubexm.spec import ranges
from kubexm.spec.forms import After, BadValue, Before, Filled, Range
from kubexm.spec.ranges import BadRange, Pattern
from kubexm.spec.source import DataPath

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_USER = re.compile(r"[^\s-]\S*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
_LONGEST_NAME = 100
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")
_SECONDS = (86400.0, 3600.0, 60.0, 1.0, 0.001)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)%")
_LONGEST = 366 * 86400.0
_BY_REFERENCE = "write `env://NAME`, `file:///PATH` or `prompt://WHAT`"
_A_DURATION = "write `30s`, `5m`, `1h30m` or seconds"


class Finding(msgspec.Struct, frozen=True):
    """Something wrong at a path; `at_key` if it is the key there and not its value."""

    path: DataPath
    message: str
    hint: str = ""
    at_key: bool = False
    excerpt: str = ""
    """The part of a text of several lines that it is about."""
    of_host: bool = False
    """Whether hosts differ in it: they are named, even if it is all of them."""

    def under(self, *path: str | int) -> Finding:
        """The same, seen from further out."""
        return replace(self, path=(*path, *self.path))


def _name(text: str) -> str:
    _named(text, text)
    return text


def _host_name(text: str) -> str:
    _named(_pattern(text).last, text)
    return text


def _address(text: str) -> str:
    _pattern(text)
    return text


def _pattern(text: str) -> Pattern:
    try:
        return ranges.parse(text)
    except BadRange as error:
        raise BadValue(str(error), error.hint) from None


def _one_address(text: str) -> str:
    if _pattern(text).has_ranges:
        raise BadValue(f"found `{text[:40]}`, want one address", "write it without a range")
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


def _variable(text: str) -> str:
    if _VARIABLE.fullmatch(text):
        return text
    hint = "use letters, digits, `_` and `-`, a letter first: dots lead down into a variable"
    raise BadValue(f"found `{text[:40]}`, want the name of a variable", hint)


def _own_role(text: str) -> str:
    if text in (ALL, CONTROL_NODE):
        raise BadValue(f"the role `{text}` is made by the program", "leave it out")
    return text


def seconds(text: str) -> float | None:
    """The seconds in a text such as `1h30m`, or None if it is no duration."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    parts = zip(found.groups(), _SECONDS, strict=True)
    return sum(float(number) * unit for number, unit in parts if number)


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


def _condition(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value:
        return value
    found = "an empty text" if value == "" else shown(value)
    hint = "write one that is true or false, such as `vars.count > 0`, or leave it out"
    raise BadValue(f"found {found}, want an expression", hint)


def _entries(value: Any) -> Any:
    if isinstance(value, list | str):
        return value
    hint = "write a list, or `${vars.NAME}` for a variable that holds one"
    raise BadValue(f"found {shown(value)}, want a list", hint)


def written_path(path: Sequence[str | int]) -> str:
    """A path as people write it: `spec.modules[0].name`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def shown(value: Any) -> str:
    """A found value as a reader knows it from the file."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        # In full or not at all: it may be the value of a secret, of which a piece is not hidden.
        return f"the text `{value}`" if len(value) <= 40 else f"a text of {len(value)} characters"
    if isinstance(value, int | float):
        return f"the number {value}"
    return "a list" if isinstance(value, list | tuple) else "a mapping"


class InSchema(msgspec.Struct, frozen=True):
    """What a JSON Schema says of a value that its annotation can't tell."""

    schema: str


_DURATION_SCHEMA = InSchema(
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
VariableName = Annotated[str, After(_variable)]
OwnRole = Annotated[str, After(_name), After(_own_role)]
Count = Annotated[int, Range(1, 1_000_000)]
Duration = Annotated[float, Before(_duration), _DURATION_SCHEMA]
PositiveDuration = Annotated[float, Before(_positive_duration), _DURATION_SCHEMA]
Condition = Annotated[str, Before(_condition), InSchema('{"type": ["string", "boolean"]}')]
Entries = Annotated[list[Any] | str, Before(_entries)]
Share = Annotated[int | str, Before(_share), _SHARE_SCHEMA]
