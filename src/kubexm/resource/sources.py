"""Where an artifact may come from: a web server, a bucket, or a file of this machine."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from kubexm.errors import InvalidInput

_HINT = "write `https://…`, `s3://bucket/key`, `file:///path` or a path"


class WebSource(msgspec.Struct, frozen=True):
    """An address of a web server."""

    url: str

    def __str__(self) -> str:
        """Without its query: that may be a signature."""
        return self.url.partition("?")[0] + ("?…" if "?" in self.url else "")


class BucketSource(msgspec.Struct, frozen=True):
    """An object of an S3-compatible store."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


class FileSource(msgspec.Struct, frozen=True):
    """A file of this machine."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


Source = WebSource | BucketSource | FileSource


def parse(text: str) -> Source:
    """The source that a text names; `InvalidInput` if it names none."""
    if "://" not in text:
        if not text or "\0" in text:
            raise InvalidInput("found an empty source", hint=_HINT)
        return FileSource(Path(text))
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 what is no number is refused when it is asked for
    except ValueError as error:
        raise InvalidInput("found a source whose host or port can't be read", hint=_HINT) from error
    match parts.scheme:
        case "http" | "https":
            return _web(text, parts)
        case "s3":
            return _in_bucket(parts)
        case "file":
            return _file(parts)
    raise InvalidInput(f"found a source of the scheme `{parts.scheme}`", hint=_HINT)


def _web(text: str, parts: SplitResult) -> WebSource:
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            f"found a login in the address of a source at `{parts.hostname}`",
            hint="take it out, and give the login of that host by reference",
        )
    if not parts.hostname:
        raise InvalidInput("found a web source without a host", hint=_HINT)
    return WebSource(text.partition("#")[0])


def _in_bucket(parts: SplitResult) -> BucketSource:
    key = parts.path.removeprefix("/")
    if not parts.netloc or not key or parts.query or parts.fragment:
        raise InvalidInput(
            f"found the bucket `{parts.netloc}` and the key `{key}`, want one of each alone",
            hint="write `s3://bucket/key`",
        )
    return BucketSource(parts.netloc, key)


def _file(parts: SplitResult) -> FileSource:
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or not path.startswith("/"):
        raise InvalidInput(
            f"found a file source at `{parts.netloc}`, want a file of this machine",
            hint="write `file:///path` with three slashes",
        )
    return FileSource(Path(path))
