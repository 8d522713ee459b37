"""How many random examples a property is tried on."""

from __future__ import annotations

from hypothesis import settings


def many(number: int) -> settings:
    """So many; a tenth of them where a quick look is asked for."""
    quick = settings.get_current_profile_name() == "quick"
    return settings(max_examples=max(25, number // 10) if quick else number)
