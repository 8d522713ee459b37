"""How this process logs, as its command line asks for it."""

from __future__ import annotations

import sys

from kubexm import logger


def prepare(style: logger.Format | None, level: logger.Level | None) -> bool:
    """Set up logging; whether the user asked for a log."""
    logged = style is not None or level is not None
    usual: logger.Format = "text" if sys.stderr.isatty() else "json"
    logger.configure(style or usual, level or ("info" if logged else "warning"))
    return logged
