"""The steps: importing this package registers every one, so that stored graphs load."""

from kubexm.step import (
    archives,
    checks,
    commands,
    edits,
    files,
    identity,
    kernel,
    packages,
    secrets,
    services,
    values,
    waits,
)

__all__ = [
    "archives",
    "checks",
    "commands",
    "edits",
    "files",
    "identity",
    "kernel",
    "packages",
    "secrets",
    "services",
    "values",
    "waits",
]
