"""References to secrets: what plans, journals and logs hold in place of the value."""

from __future__ import annotations

from dataclasses import dataclass

PROMPT = "prompt"
SCHEMES = ("env", "file", PROMPT)


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A secret by reference, such as `env://TOKEN`, `file:///etc/token` or `prompt://token`."""

    uri: str

    @property
    def scheme(self) -> str:
        return self.uri.partition("://")[0]

    @property
    def location(self) -> str:
        return self.uri.partition("://")[2]

    def __str__(self) -> str:
        return self.uri


def is_reference(text: str) -> bool:
    """Whether this text is a reference of a known scheme."""
    scheme, separator, location = text.partition("://")
    return bool(separator and location) and scheme in SCHEMES
