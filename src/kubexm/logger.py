"""Logging: one structured line per event, as text for people or JSON for programs.

Lines go to standard error; secrets are redacted by value, whatever field they are in.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, TextIO, cast

import structlog

Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]
Redact = Callable[[str], str]


def configure(
    style: Format = "text",
    level: Level = "warning",
    *,
    stream: TextIO | None = None,
    redact: Redact = lambda text: text,
) -> None:
    """Set up logging for this process."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redacted(redact),
            _renderer(style),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_number(level)),
        logger_factory=lambda *_: structlog.PrintLogger(
            cast("TextIO", _Patient(stream or sys.stderr))
        ),
        cache_logger_on_first_use=False,
    )


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


Log = structlog.typing.FilteringBoundLogger


def get(**bound: str) -> Log:
    """A logger with these fields on every line: `task_id`, `step_name`, `hostname`."""
    logger: Log = structlog.get_logger(**bound)
    return logger


def bind(**fields: str) -> None:
    """Put these fields on every line from here on in this context, such as `task_id`."""
    structlog.contextvars.bind_contextvars(**fields)


def _number(level: Level) -> int:
    return {
        "debug": logging.DEBUG,
        "info": logging.INFO,
        "warning": logging.WARNING,
        "error": logging.ERROR,
    }[level]


def _renderer(style: Format) -> structlog.typing.Processor:
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
