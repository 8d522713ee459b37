"""Use cases of templates: what there is, what each may use, and those of the operator."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubexm.common.nearest import did_you_mean
from kubexm.errors import InvalidInput
from kubexm.templates import overlays, registry, render
from kubexm.templates.context import Format
from kubexm.templates.described import Field, fields
from kubexm.templates.overlays import Overlays
from kubexm.templates.registry import TEMPLATES


class Listed(msgspec.Struct, frozen=True):
    """A template, and whether the operator has one in its place."""

    name: str
    format: Format
    path: str
    """Where it goes."""
    about: str
    overlaid: bool


class Shown(msgspec.Struct, frozen=True):
    """All that is known of a template."""

    name: str
    format: Format
    path: str
    about: str
    overlaid: bool
    text: str
    """The template itself: that of the operator, if there is one."""
    fields: Sequence[Field]
    """What it may use."""
    sample: dict[str, Any]
    """Values for these."""
    outcome: str
    """What comes out of the sample."""


class Difference(msgspec.Struct, frozen=True):
    """How a template of the operator differs from ours."""

    name: str
    diff: str
    """As a unified diff; empty if they are alike."""


def listed(directory: Path | None = None) -> list[Listed]:
    """Every template by name."""
    own = _own(directory)
    return [
        Listed(name, one.format, one.path, one.about, own.text(name) is not None)
        for name, one in sorted(TEMPLATES.items())
    ]


def shown(name: str, directory: Path | None = None) -> Shown:
    """One template: its text, what it may use, and what comes out of it."""
    found = registry.template(name)
    own = _own(directory).text(name)
    text = render.source(name) if own is None else own
    sample = found.samples[0].data()
    return Shown(
        name=name,
        format=found.format,
        path=found.path,
        about=found.about,
        overlaid=own is not None,
        text=text,
        fields=[*fields(found.context)],
        sample=sample,
        outcome=render.render_text(text, sample),
    )


def differences(directory: Path, name: str | None = None) -> list[Difference]:
    """How the templates of a directory differ from ours, also those that can't be used."""
    texts = overlays.texts(directory)
    if name is not None and name not in texts:
        raise InvalidInput(f"no template `{name}` in `{directory}`", hint=did_you_mean(name, texts))
    return [
        Difference(one, _diff(one, texts[one], directory))
        for one in sorted(texts)
        if name in (None, one)
    ]


def checked(directory: Path) -> list[str]:
    """The names of the templates of a directory, all sound; `InvalidInput` with all problems."""
    return sorted(overlays.read(directory).texts)


def _own(directory: Path | None) -> Overlays:
    return Overlays() if directory is None else overlays.read(directory)


def _diff(name: str, text: str, directory: Path) -> str:
    file = f"{name}{render.SUFFIX}"
    lines = difflib.unified_diff(
        render.source(name).splitlines(keepends=True),
        text.splitlines(keepends=True),
        f"kubexm/{file}",
        str(directory / file),
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at the end\n" for line in lines
    )
