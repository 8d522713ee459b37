"""What the API server encrypts, as its configuration names it: one entry may stand for others."""

from __future__ import annotations

from collections.abc import Iterable

ALL = "*.*"


def covers(one: str, other: str) -> bool:
    """Whether what is encrypted by an entry, such as `*.apps`, is all of another one's."""
    resource, _, group = one.partition(".")
    return one in (other, ALL) or (resource == "*" and group == other.partition(".")[2])


def fewest(entries: Iterable[str]) -> list[str]:
    """Entries that come to the same and of which none covers another: no others are taken."""
    found = [*dict.fromkeys(entries)]
    return [one for one in found if not any(other != one and covers(other, one) for other in found)]
