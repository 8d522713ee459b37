"""The import contracts hold on the sources, and each of them bites when it is broken."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# One deliberate violation per rule: the module to write it into, and what it says.
VIOLATIONS = {
    "a lower layer imports a higher one": ("plan/bad.py", "import kubexm.engine"),
    "neighbours import each other": ("store/bad.py", "import kubexm.engine"),
    "a package nobody listed": ("utils/__init__.py", ""),
    "the engine knows a step": ("engine/bad.py", "from kubexm.step import files"),
    "the plan runs something": ("plan/bad.py", "import asyncio"),
    "the plan needs a library": ("plan/bad.py", "import yaml"),
    "the plan logs": ("plan/bad.py", "import kubexm.logger"),
    "the engine uses the runner": ("engine/bad.py", "import kubexm.runner"),
    "the simulation uses the runner": ("sim/bad.py", "import kubexm.runner"),
    "a step reaches a channel": ("step/bad.py", "import kubexm.connector"),
    "a use case speaks SQL": ("app/bad.py", "import sqlalchemy.orm"),
    "a use case opens SQLite": ("app/bad.py", "import sqlite3"),
    "a use case encrypts": ("app/bad.py", "from cryptography.fernet import Fernet"),
    "a use case fetches": ("app/bad.py", "import httpx"),
    "certificates reach a host": ("pki/bad.py", "import kubexm.runner"),
    "a step dials": ("step/bad.py", "import asyncssh"),
    "a use case prints": ("app/bad.py", "from rich.console import Console"),
    "a use case parses arguments": ("app/bad.py", "import cyclopts"),
    "a use case configures the log": ("app/bad.py", "import structlog"),
    "a step renders for itself": ("step/bad.py", "import jinja2"),
    "a step reads a user's file": ("step/bad.py", "import yaml"),
}


def lint_imports(sources: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [command, "--no-logo", "--no-cache", "--config", ROOT / ".importlinter"],
        cwd=sources,
        env={"PYTHONPATH": str(sources), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_sources_keep_every_contract() -> None:
    done = lint_imports(ROOT / "src")

    assert done.returncode == 0, done.stdout
    assert " 0 broken" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("violation", VIOLATIONS)
def test_contracts_refuse(violation: str, tmp_path: Path) -> None:
    module, text = VIOLATIONS[violation]
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    bad = tmp_path / "src" / "kubexm" / module
    bad.parent.mkdir(exist_ok=True)
    bad.write_text(text)

    done = lint_imports(tmp_path / "src")

    assert done.returncode == 1
    assert "BROKEN" in done.stdout
