"""A user who may become root without a password: whoever runs the tests, or one that root lends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RULES = Path("/etc/sudoers.d")


def obstacle() -> str:
    """Why nobody here can be such a user; nothing if somebody can."""
    tools = ["sudo", *(("useradd", "userdel", "setpriv") if os.geteuid() == 0 else ())]
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        return f"there is no {' and no '.join(missing)} here"
    if os.geteuid() != 0 and _done(["sudo", "-n", "true"]).returncode != 0:
        return "this user may not sudo without a password"
    return ""


@dataclass(frozen=True)
class Sudoer:
    """A user made for some tests; root repeats them in this name."""

    name: str

    def done(self, *command: str | Path, cwd: Path | None = None) -> tuple[int, str]:
        """Exit code and output of a command of this user's."""
        # The interpreter and the sources may lie where only root can look.
        looks = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
        who = ("--reuid", self.name, "--regid", self.name, "--init-groups")
        found = _done(["setpriv", *who, *looks, *command], cwd=cwd)
        return found.returncode, f"{found.stdout}{found.stderr}"

    def repeat(self, test: str, place: Path) -> None:
        """Run one test again as this user; it must pass, and not be left out."""
        shutil.chown(place, self.name)
        options = ("-q", "-p", "no:cacheprovider", "--basetemp", place / "tmp")
        code, said = self.done(sys.executable, "-B", "-m", "pytest", *options, test, cwd=ROOT)
        assert code == 0, said
        assert "1 passed" in said, said


@contextmanager
def lent() -> Iterator[Sudoer]:
    """A user for a while; only root can do that."""
    name = f"kubexm-{os.getpid()}"
    rule = RULES / name
    subprocess.run(["useradd", "--no-create-home", "--user-group", name], check=True)
    try:
        rule.write_text(f"{name} ALL=(ALL:ALL) NOPASSWD: ALL\n")
        rule.chmod(0o440)
        yield Sudoer(name)
    finally:
        rule.unlink(missing_ok=True)
        subprocess.run(["userdel", "--force", name], check=True, capture_output=True)


def _done(
    command: Sequence[str | Path], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
