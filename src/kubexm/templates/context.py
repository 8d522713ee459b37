"""What a template is filled in with, and what is known of a template beside its text."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Format = Literal[
    "yaml", "manifests", "json", "toml", "unit", "env", "script", "text",
    "haproxy", "nginx", "keepalived",
]  # fmt: skip
"""What the file is; `manifests` is several YAML documents, each with its `kind`."""
STRUCTURED: tuple[Format, ...] = ("yaml", "manifests", "json", "toml")
"""Those that are data, of which single values can be changed."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What one template may use, by name: its fields, and nothing else."""

    def data(self) -> dict[str, Any]:
        """The fields as a graph holds them: plain data."""
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return plain


class Template(msgspec.Struct, frozen=True):
    """A template of a file on the hosts of a cluster."""

    name: str
    """That of its file, without `.j2`: `containerd/config`."""
    context: type[Context]
    """What it is filled in with."""
    format: Format
    """What the file is that comes out."""
    about: str
    """What the file is for, in a few words."""
    path: str
    """Where it goes: a path, of which words in braces differ from host to host or from file to
    file, or `the cluster`."""
    samples: tuple[Context, ...]
    """Contexts that together take every way through the template."""
