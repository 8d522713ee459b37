"""Server-side apply: what becomes of an object when one manager says what it wants of it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Any

from kubexm.sim.kubedocs import Object, section, text

_KEYS = ("name", "mountPath", "containerPort", "devicePath", "ip")
"""What tells the entries of a list apart, where they are merged one by one."""


def merged(live: Object | None, wanted: Object, before: Object) -> Object:
    """The object as it is, with what is wanted; what was wanted before and is not now, is gone."""
    wanted = _plain(wanted)
    whole: Object = _merged(live or {}, wanted, before)
    return whole


def difference(name: str, live: Object | None, new: Object) -> str:
    """How an object would change, as a unified diff; empty if it would not."""
    old = _lines(live) if live is not None else []
    return "".join(unified_diff(old, _lines(new), f"LIVE/{name}", f"MERGED/{name}"))


def _plain(wanted: Object) -> Object:
    """As the server stores it: the texts of a secret are encoded."""
    if wanted.get("kind") != "Secret" or "stringData" not in wanted:
        return wanted
    encoded = {
        key: b64encode(str(value).encode()).decode()
        for key, value in section(wanted, "stringData").items()
    }
    rest = {key: value for key, value in wanted.items() if key != "stringData"}
    return {**rest, "data": {**section(wanted, "data"), **encoded}}


def _merged(live: Any, wanted: Any, before: Any) -> Any:
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        return _merged_mappings(live, wanted, before if isinstance(before, Mapping) else {})
    if isinstance(wanted, list) and isinstance(live, list) and (key := _key(wanted, live)):
        return _merged_lists(live, wanted, before if isinstance(before, list) else [], key)
    return wanted


def _merged_mappings(
    live: Mapping[str, Any], wanted: Mapping[str, Any], before: Mapping[str, Any]
) -> Object:
    kept = {key: value for key, value in live.items() if key in wanted or key not in before}
    for key, value in wanted.items():
        kept[key] = _merged(live[key], value, before.get(key)) if key in live else value
    return kept


def _merged_lists(
    live: Sequence[Any], wanted: Sequence[Any], before: Sequence[Any], key: str
) -> list[Any]:
    """Entries that have a name of their own are merged with those of the same name."""
    now = {one[key]: one for one in live}
    said = {one[key]: one for one in before if isinstance(one, Mapping) and key in one}
    names = {one[key] for one in wanted}
    own = [_merged(now.get(one[key], {}), one, said.get(one[key], {})) for one in wanted]
    others = [one for name, one in now.items() if name not in names and name not in said]
    return own + others


def _key(*lists: Sequence[Any]) -> str:
    """What tells the entries of lists apart; empty if nothing does: then one list is one value."""
    for key in _KEYS:
        if all(_is_told_apart(entries, key) for entries in lists):
            return key
    return ""


def _is_told_apart(entries: Sequence[Any], key: str) -> bool:
    values = [one.get(key) if isinstance(one, Mapping) else None for one in entries]
    return None not in values and len(set(values)) == len(values)


def _lines(found: Object) -> list[str]:
    return text(found).splitlines(keepends=True)
