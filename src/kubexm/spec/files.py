"""Files beside a pipeline that its steps name: read when planning, part of the graph by content."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from kubexm.spec import references

SOURCE = "source"
MAX_BYTES = 4 * 1024 * 1024


class BadFile(ValueError):
    """A file that can't become part of a graph; `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Target:
    """Where the content of a file goes: as text, or, where a step takes it, as base64."""

    text: str
    binary: str | None = None


TARGETS = {
    "file": Target("content", "contentBase64"),
    "template": Target("text"),
    "secret-template": Target("text"),
}
"""The kinds of step that take a `source`, and the parameters it stands for."""


class ExternalFiles:
    """Reads files relative to a pipeline; remembers a digest of each."""

    def __init__(self, directory: Path | None) -> None:
        self.digests: dict[str, str] = {}
        self._directory = directory
        self._contents: dict[str, bytes] = {}

    def embedded(self, kind: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters with a `source` replaced by what the file holds."""
        if kind not in TARGETS or SOURCE not in params:
            return params
        name = params[SOURCE]
        given = {key: value for key, value in params.items() if key != SOURCE}
        return {**given, **_parameter(TARGETS[kind], self._content(name), name)}

    def _content(self, name: str) -> bytes:
        if name not in self._contents:
            content = _read(self._path(name), name)
            self._contents[name] = content
            self.digests[f"file:{name}"] = sha256(content).hexdigest()
        return self._contents[name]

    @staticmethod
    def placeholder(kind: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters as they will be, for whoever asks before any file is read."""
        if kind not in TARGETS or SOURCE not in params:
            return params
        given = {key: value for key, value in params.items() if key != SOURCE}
        return {**given, TARGETS[kind].text: ""}

    def _path(self, name: str) -> Path:
        if self._directory is None:
            raise BadFile(f"`{name}` is beside no file", "this pipeline did not come from a disk")
        return self._directory / name


def _read(path: Path, name: str) -> bytes:
    hint = "a relative path starts beside the pipeline file"
    try:
        if not path.is_file():
            raise BadFile(f"there is no file `{name}`", hint)
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadFile(f"can't read `{name}`: {error.strerror}", hint) from error
    if len(content) > MAX_BYTES:
        hint = "let the host fetch it with a command"
        raise BadFile(f"`{name}` is larger than {MAX_BYTES // 2**20} MiB", hint)
    return content


def _parameter(target: Target, content: bytes, name: str) -> Mapping[str, str]:
    try:
        return {target.text: references.escaped(content.decode())}
    except UnicodeDecodeError as error:
        if target.binary is None:
            raise BadFile(f"`{name}` is not UTF-8 text", "save it in the UTF-8 encoding") from error
        return {target.binary: b64encode(content).decode()}
