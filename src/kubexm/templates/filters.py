"""How values become words of the files that we write, so that no value can be read as more."""

from __future__ import annotations

import json
import re
import shlex
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

_BREAKS_UNIT = frozenset(" \t\n\"'\\;")
_CONTROL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
"""Letters that JSON leaves as they are, and YAML or TOML does not take."""
_BARE_KEY = re.compile("[A-Za-z0-9_-]+")


def unit_word(value: object) -> str:
    """One word of a systemd unit: quoted if it has to be, with its specifiers escaped."""
    text = str(value).replace("%", "%%")
    if text and not set(text) & _BREAKS_UNIT:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def command_word(value: object) -> str:
    """One word of a command in a unit, where `$` would else stand for a variable."""
    return unit_word(value).replace("$", "$$")


def env_value(value: object) -> str:
    """The value of a variable in a file of systemd's `EnvironmentFile=`."""
    escaped = re.sub(r'([\\"`$])', r"\\\1", str(value))
    return f'"{escaped}"'


def shell_word(value: object) -> str:
    """One word of a shell script."""
    return shlex.quote(str(value))


def yaml_value(value: Any) -> str:
    """Any value as YAML in one line, which is JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def toml_value(value: Any) -> str:
    """Any value as TOML in one line; what is nothing has no form there."""
    if isinstance(value, bool | str | int | float):
        return yaml_value(value)
    if isinstance(value, Mapping):
        pairs = (f"{_toml_key(key)} = {toml_value(part)}" for key, part in value.items())
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    raise ValueError(f"TOML can't say {value!r}")


def base64(text: str) -> str:
    """A text in base64, as headers have it."""
    return b64encode(text.encode()).decode()


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else yaml_value(key)


FILTERS: Mapping[str, Callable[[Any], str]] = {
    "base64": base64,
    "command_word": command_word,
    "env_value": env_value,
    "shell_word": shell_word,
    "toml": toml_value,
    "unit_word": unit_word,
    "yaml": yaml_value,
}
