"""Files beside a pipeline that its steps name: read when planning, part of the graph by content.

What is large stays where it is, and the graph has its digest: a run sends what was planned, or
says that it has changed. So it is with the files of a directory.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from kubexm.common.digests import LARGE, Digests
from kubexm.document.source import Document
from kubexm.spec import local, references
from kubexm.spec.local import SOURCE, BadFile

FILE, TREE, FETCH = "file", "tree", "fetch"
TO, BESIDE = "to", "beside"


class Target(msgspec.Struct, frozen=True):
    """Where the content of a file goes: as text, or, where a step takes it, as base64."""

    text: str
    binary: str | None = None


TARGETS = {
    FILE: Target("content", "contentBase64"),
    "template": Target("text"),
    "secret-template": Target("text"),
}
"""The kinds of step that take a file as `source`, and the parameters it stands for."""
NAMING = (*TARGETS, TREE)
"""All kinds whose `source` is read when planning."""


class ExternalFiles:
    """Reads files relative to a pipeline; remembers a digest of each."""

    def __init__(self, directory: Path | None, digests: Digests) -> None:
        self.digests: dict[str, str] = {}
        self._directory = directory
        self._digests = digests
        self._contents: dict[str, bytes] = {}
        self._trees: dict[str, Mapping[str, Any]] = {}

    def embedded(self, kind: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters with a `source` replaced by what it holds, or by where and what it is."""
        if kind == FETCH:
            return {**params, BESIDE: references.escaped(str(self._path("", TO)))}
        if kind not in NAMING or SOURCE not in params:
            return params
        name = params[SOURCE]
        given = {key: value for key, value in params.items() if key != SOURCE}
        if kind == TREE:
            return {**given, **self._tree(name)}
        if kind == FILE and local.size(self._path(name), name) > local.SHORT:
            return {**given, **self._streamed(name)}
        return {**given, **_parameter(TARGETS[kind], self._content(name), name)}

    def _streamed(self, name: str) -> Mapping[str, str]:
        path = self._path(name)
        if (digest := self.digests.get(f"file:{name}")) is None:
            digest = self.digests[f"file:{name}"] = local.digest(path, name, self._digests)
        return {SOURCE: references.escaped(str(path)), "sha256": digest}

    def _tree(self, name: str) -> Mapping[str, Any]:
        if name not in self._trees:
            path = self._path(name)
            contents, directories = local.listed(path, name, self._digests)
            source = references.escaped(str(path))
            found = {SOURCE: source, "contents": contents, "directories": directories}
            self._trees[name] = found
        return self._trees[name]

    def _content(self, name: str) -> bytes:
        if name not in self._contents:
            content = local.content(self._path(name), name)
            self._contents[name] = content
            self.digests[f"file:{name}"] = sha256(content).hexdigest()
        return self._contents[name]

    @staticmethod
    def placeholder(kind: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters as they will be, for whoever asks before any file is read."""
        if kind == FETCH:
            return {**params, BESIDE: "/x"}
        if kind == TREE and isinstance(params.get(SOURCE), str):
            return {**params, SOURCE: "/x"}
        if kind not in TARGETS or SOURCE not in params:
            return params
        given = {key: value for key, value in params.items() if key != SOURCE}
        return {**given, TARGETS[kind].text: ""}

    def _path(self, name: str, key: str = SOURCE) -> Path:
        if self._directory is None:
            hint = "this pipeline did not come from a disk"
            raise BadFile(f"`{name or key}` is beside no file", hint, key)
        return (self._directory / name).absolute()


def begin_reading(document: Document, digests: Digests) -> bool:
    """Have the large files that steps send read on other cores; whether there is any to read."""
    directory = document.directory or Path()
    paths = {directory / name for name in _sources(document.data)}
    large = [path for path in paths if path.is_file() and path.stat().st_size >= LARGE]
    begun = [digests.begin(path) for path in large]
    return any(begun)


def _sources(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        match data.get(FILE):
            case {"source": str(name)}:
                yield name
    parts = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    for part in parts:
        yield from _sources(part)


def _parameter(target: Target, content: bytes, name: str) -> Mapping[str, str]:
    try:
        return {target.text: references.escaped(content.decode())}
    except UnicodeDecodeError as error:
        if target.binary is None:
            raise BadFile(f"`{name}` is not UTF-8 text", "save it in the UTF-8 encoding") from error
        return {target.binary: b64encode(content).decode()}
