"""What parameters of steps have to look like; a `ValueError` says what is wrong with one."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Sequence

from kubexm.common.secrets import SCHEMES, is_reference

Mode = str | int | None


def require_absolute(**paths: str | None) -> None:
    """Each path begins at the root and names something there."""
    for name, path in paths.items():
        if path is not None and (not path.startswith("/") or not path.strip("/")):
            raise ValueError(f"`{name}` is `{path}`, want an absolute path below `/`")


def require_argv(**commands: Sequence[str]) -> None:
    """Each command has a program."""
    for name, argv in commands.items():
        if not argv or not argv[0]:
            raise ValueError(f"`{name}` is empty, want a program and its arguments as a list")


def require_one(**choices: object) -> None:
    """Exactly one of them is given."""
    given = [name for name, value in choices.items() if value is not None]
    if len(given) != 1:
        found = " and ".join(f"`{name}`" for name in given) or "none"
        raise ValueError(f"give one of {_listed(choices)}; found {found}")


def require_at_most_one(**choices: object) -> None:
    """No two of them are given."""
    given = [name for name, value in choices.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"give only one of {_listed(given)}")


def require_mode(mode: Mode) -> None:
    """A mode is octal digits as text: a bare 644 is a number, and another one than 0644."""
    if isinstance(mode, int):
        raise ValueError(f'`mode` is the number {mode}, want text in quotes such as "0644"')
    if mode is not None and not re.fullmatch("0?[0-7]{3,4}", mode):
        raise ValueError(f'`mode` is `{mode}`, want three or four octal digits such as "0644"')


def mode_bits(mode: Mode) -> int | None:
    """The mode as the system knows it."""
    return None if mode is None else int(str(mode), 8)


def require_base64(**texts: str) -> None:
    """Each can be decoded."""
    for name, text in texts.items():
        try:
            b64decode(text, validate=True)
        except ValueError as error:
            raise ValueError(f"`{name}` is not base64: {error}") from None


def require_references(**references: str | None) -> None:
    """Each is a reference to a secret, not a secret."""
    for name, text in references.items():
        if text is not None and not is_reference(text):
            known = ", ".join(f"`{scheme}://…`" for scheme in SCHEMES)
            # What was given may be the secret itself: it is not repeated.
            raise ValueError(f"`{name}` is no reference to a secret, want one of {known}")


def require_names(names: Iterable[str], what: str) -> None:
    """Names that can't be taken for options."""
    for name in names:
        if not name or name.startswith("-") or any(letter.isspace() for letter in name):
            raise ValueError(f"`{name}` is no name of a {what}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
