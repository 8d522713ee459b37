"""The nearest right spelling of a wrong word."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like this one, if any is like it at all."""
    from difflib import get_close_matches  # noqa: PLC0415 who makes no mistake needs none

    words = list(known)
    # One that is written right but for its case is alike in few letters: `podCidr`, `podCIDR`.
    if same := [name for name in words if name.lower() == word.lower()]:
        return same[0]
    # Half of a word that begins otherwise is most often another word.
    alike = [name for name in words if name[:1] == word[:1]]
    found = get_close_matches(word, words, n=1, cutoff=0.7)
    found = found or get_close_matches(word, alike, n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or lists a few of them."""
    words = sorted(set(known))
    if (match := nearest(word, words)) is not None:
        return f"did you mean `{match}`?"
    shown = ", ".join(f"`{name}`" for name in words[:8])
    return f"known: {shown}{', …' if len(words) > 8 else ''}" if words else ""
