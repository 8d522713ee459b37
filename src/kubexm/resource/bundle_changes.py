"""In what two bundles differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from kubexm.resource import images
from kubexm.resource.bundle_manifest import Manifest

Kind = Literal["file", "chart", "image"]
_Parts = dict[tuple[Kind, str], dict[str, str]]
"""What there is, by its kind and its name: the digest of each version."""


class Difference(msgspec.Struct, frozen=True):
    """Something that is there in other versions, or with another content."""

    kind: Kind
    name: str
    before: tuple[str, ...]
    """The versions that are no longer there, or no longer the same."""
    after: tuple[str, ...]
    """Those that are new."""

    @property
    def sign(self) -> Literal["+", "-", "~"]:
        if self.before and self.after:
            return "~"
        return "+" if self.after else "-"


def differences(old: Manifest, new: Manifest) -> list[Difference]:
    """All of them, in a fixed order."""
    before, after = _parts(old), _parts(new)
    found = (
        Difference(
            *part,
            _without(before.get(part, {}), after.get(part, {})),
            _without(after.get(part, {}), before.get(part, {})),
        )
        for part in sorted(before.keys() | after.keys())
    )
    return [each for each in found if each.before or each.after]


def _without(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(name for name, digest in one.items() if other.get(name) != digest))


def _parts(manifest: Manifest) -> _Parts:
    found: _Parts = {}
    for kind, name, version, digest in (*_files(manifest), *_images(manifest)):
        found.setdefault((kind, name), {})[version] = digest
    return found


def _files(manifest: Manifest) -> Iterator[tuple[Kind, str, str, str]]:
    for key, file in manifest.artifacts.items():
        first, _, rest = key.partition("/")
        if first == "chart":
            name, _, version = rest.rpartition("/")
            yield "chart", name, version, file.sha256
        else:
            version, _, what = rest.partition("/")
            yield "file", f"{first}/{what}", version, file.sha256


def _images(manifest: Manifest) -> Iterator[tuple[Kind, str, str, str]]:
    for text, image in manifest.images.items():
        name = images.parse(text)
        yield "image", f"{name.registry}/{name.repository}", name.wanted, image.root.digest
