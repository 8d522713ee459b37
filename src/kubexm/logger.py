"""Logging: one structured line per event, as text for people or JSON for programs.

Lines go to standard error; secrets are redacted by value, whatever field they are in. What writes
them takes long to load, and most runs log nothing: it is loaded for the first line that is wanted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

if TYPE_CHECKING:
    import structlog

Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]
Redact = Callable[[str], str]

_WEIGHTS: Mapping[Level, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_everywhere: ContextVar[Mapping[str, str]] = ContextVar("log fields", default={})  # noqa: B039 read-only


class Log:
    """Writes lines, each with the same fields."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields

    def debug(self, event: str, **fields: Any) -> None:
        self._write("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write("error", event, fields)

    def _write(self, level: Level, event: str, fields: Mapping[str, Any]) -> None:
        if _output.wants(level):
            _output.write(level, event, {**_everywhere.get(), **self._fields, **fields})


class _Output:
    """Where the lines of this process go, and how they look."""

    def __init__(self) -> None:
        self.set("text", "warning", None, lambda text: text)

    def set(self, style: Format, level: Level, stream: TextIO | None, redact: Redact) -> None:
        self._style, self._level, self._stream, self._redact = style, level, stream, redact
        self._lines: structlog.typing.WrappedLogger | None = None

    def wants(self, level: Level) -> bool:
        return _WEIGHTS[level] >= _WEIGHTS[self._level]

    def write(self, level: Level, event: str, fields: Mapping[str, Any]) -> None:
        if self._lines is None:
            self._lines = self._loaded()
        getattr(self._lines, level)(event, **fields)

    def _loaded(self) -> structlog.typing.WrappedLogger:
        import structlog  # noqa: PLC0415

        return structlog.wrap_logger(
            structlog.PrintLogger(cast("TextIO", _Patient(self._stream or sys.stderr))),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.format_exc_info,
                _redacted(self._redact),
                _renderer(self._style),
            ],
            wrapper_class=structlog.BoundLogger,
        )


_output = _Output()


def configure(
    style: Format = "text",
    level: Level = "warning",
    *,
    stream: TextIO | None = None,
    redact: Redact = lambda text: text,
) -> None:
    """Set up logging for this process."""
    _output.set(style, level, stream, redact)


def get(**bound: str) -> Log:
    """A logger with these fields on every line: `task_id`, `step_name`, `hostname`."""
    return Log(bound)


def bind(**fields: str) -> None:
    """Put these fields on every line from here on in this context, such as `task_id`."""
    _everywhere.set({**_everywhere.get(), **fields})


class _Patient:
    """A stream that may be lost: a line that nobody can read must not end a run."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            return self._stream.write(text)
        return 0

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()


def _renderer(style: Format) -> structlog.typing.Processor:
    import structlog  # noqa: PLC0415

    if style == "json":
        return structlog.processors.JSONRenderer(sort_keys=True)
    return structlog.dev.ConsoleRenderer(colors=False)


def _redacted(redact: Redact) -> structlog.typing.Processor:
    def process(_logger: Any, _method: str, event: structlog.typing.EventDict) -> Any:
        return {key: _clean(value, redact) for key, value in event.items()}

    return process


def _clean(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _clean(item, redact) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item, redact) for item in value]
    return value
