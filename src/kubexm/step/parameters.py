"""What parameters of steps have to look like; a `ValueError` says what is wrong with one."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Sequence

from kubexm.common.secrets import SCHEMES, is_reference

Mode = str | int | None
PRIVATE_MODE = "0600"
"""Of a file with a secret in it, unless another is given."""
PLANNED = {"planned": True}
"""Of a field that no file has: planning fills it in."""
_OCTAL = re.compile("0?[0-7]{3,4}")
SECRETS = {
    "command": ("secret_env", "secret_stdin"),
    "value": ("secret_env",),
    "mint": ("secret_env",),
    "secret-file": ("content",),
    "secret-template": ("secrets",),
    "authorities": ("supplied_keys",),
    "image-pushed": ("password",),
}
"""The fields of each kind of step whose texts are references to secrets; no other resolves one."""


class BadParameter(ValueError):
    """A parameter that a step can't take; `hint` says what to write."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def require_absolute(**paths: str | None) -> None:
    """Each path begins at the root and names something there."""
    for name, path in paths.items():
        if path is not None and (not path.startswith("/") or not path.strip("/")):
            hint = "begin it with `/`: nothing says what it would be relative to"
            raise BadParameter(f"`{name}` is `{path}`, want an absolute path below `/`", hint)


def require_argv(**commands: Sequence[str]) -> None:
    """Each command has a program."""
    for name, argv in commands.items():
        if not argv or not argv[0]:
            raise BadParameter(
                f"`{name}` is empty, want a program and its arguments as a list",
                f"write `{name}: [PROGRAM, ARGUMENT]`",
            )


def require_one(**choices: object) -> None:
    """Exactly one of them is given."""
    given = [name for name, value in choices.items() if value is not None]
    if len(given) != 1:
        found = " and ".join(f"`{name}`" for name in given) or "none"
        hint = "keep one of them" if given else "add one of them"
        raise BadParameter(f"give one of {_listed(choices)}; found {found}", hint)


def require_at_most_one(**choices: object) -> None:
    """No two of them are given."""
    given = [name for name, value in choices.items() if value is not None]
    if len(given) > 1:
        raise BadParameter(f"give only one of {_listed(given)}", "keep one of them")


def require_mode(mode: Mode, name: str = "mode") -> None:
    """A mode is octal digits as text: a bare 644 is a number, and another one than 0644."""
    if isinstance(mode, int):
        message = f"`{name}` is the number {mode}, want octal digits as text in quotes"
        raise BadParameter(message, f'write `{name}: "{_meant(mode)}"`')
    if mode is not None and not _OCTAL.fullmatch(mode):
        message = f"`{name}` is `{mode}`, want three or four octal digits"
        raise BadParameter(message, f'write three or four of 0 to 7, such as `{name}: "0644"`')


def _meant(mode: int) -> str:
    """The text for a number: 420 is what `0o644` comes to, 644 was to be octal as it stands."""
    digits, octal = f"{mode:04}", f"{mode:04o}"
    if not _OCTAL.fullmatch(digits) or (_is_usual(octal) and not _is_usual(digits)):
        return octal if _OCTAL.fullmatch(octal) else "0644"
    return digits


def _is_usual(digits: str) -> bool:
    """Whether the owner may do all that others may."""
    owner, group, other = (int(digit) for digit in digits[-3:])
    return (owner | group | other) == owner


def mode_bits(mode: Mode) -> int | None:
    """The mode as the system knows it."""
    return None if mode is None else int(str(mode), 8)


def require_base64(**texts: str) -> None:
    """Each can be decoded."""
    for name, text in texts.items():
        try:
            b64decode(text, validate=True)
        except ValueError as error:
            hint = "write what `base64 -w0 FILE` prints"
            raise BadParameter(f"`{name}` is not base64: {error}", hint) from None


def require_references(**references: str | None) -> None:
    """Each is a reference to a secret, not a secret."""
    for name, text in references.items():
        if text is not None and not is_reference(text):
            known = ", ".join(f"`{scheme}://…`" for scheme in SCHEMES)
            # What was given may be the secret itself: it is not repeated.
            hint = "write `env://NAME` of an environment variable, or `file:///PATH` of a file"
            raise BadParameter(f"`{name}` is no reference to a secret, want one of {known}", hint)


def require_names(names: Iterable[str], what: str) -> None:
    """Names that can't be taken for options."""
    for name in names:
        if not name or name.startswith("-") or any(letter.isspace() for letter in name):
            message = f"`{name}` is no name of a {what}"
            raise BadParameter(message, "leave out blanks, and dashes at the beginning")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
