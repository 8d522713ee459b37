"""Where state, data and caches of kubexm lie on the machine it runs on."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from kubexm.errors import InvalidInput


class Home(msgspec.Struct, frozen=True):
    """The directories of one installation: `KUBEXM_HOME`, or the XDG base directories."""

    state: Path
    data: Path
    cache: Path

    @classmethod
    def from_environment(cls) -> Home:
        """Follow `KUBEXM_HOME` if it is set, else the XDG variables and their defaults."""
        if home := os.environ.get("KUBEXM_HOME"):
            root = Path(home).expanduser().absolute()
            return cls(root / "state", root / "data", root / "cache")
        return cls(
            _xdg("XDG_STATE_HOME", ".local/state"),
            _xdg("XDG_DATA_HOME", ".local/share"),
            _xdg("XDG_CACHE_HOME", ".cache"),
        )

    @property
    def database(self) -> Path:
        """The SQLite file that holds all runs."""
        return self.state / "kubexm.db"

    @property
    def digests(self) -> Path:
        """What is known of large files."""
        return self.cache / "digests"

    @property
    def artifacts(self) -> Path:
        """The store of programs, images and charts that were fetched."""
        return self.data / "artifacts"

    @property
    def clusters(self) -> Path:
        """What is kept of each cluster, in a directory of its name."""
        return self.data / "clusters"

    @property
    def brought(self) -> Path:
        """Notes of which files of kubectl clusters were brought into."""
        return self.data / "brought"

    @property
    def worlds(self) -> Path:
        """Where simulated worlds lie unless the user says otherwise."""
        return self.data / "worlds"


def _xdg(variable: str, default: str) -> Path:
    # The XDG specification says that a relative value is to be ignored.
    value = os.environ.get(variable, "")
    base = Path(value) if value.startswith("/") else _home() / default
    return base / "kubexm"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:  # of a user that this machine does not know
        raise InvalidInput(
            "there is no home directory to keep runs in", hint="set KUBEXM_HOME to a directory"
        ) from error
