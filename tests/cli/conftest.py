"""The command line in this very process: arguments in; exit code, output and errors out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.answers import Answer, Kubexm

from kubexm.cli.main import guarded


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBEXM_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def kubexm(home: Path, capsys: pytest.CaptureFixture[str]) -> Kubexm:
    def call(*arguments: str | Path) -> Answer:
        code = guarded([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def pipeline(tmp_path: Path) -> Callable[..., Path]:
    def write(steps: str, *, name: str = "site", hosts: str = "", more: str = "") -> Path:
        path = tmp_path / f"{name}.yaml"
        listed = hosts or "    - {name: n1, roles: [web]}\n    - {name: n2, roles: [db]}\n"
        path.write_text(
            "apiVersion: kubexm.io/v1alpha1\nkind: Pipeline\n"
            f"metadata: {{name: {name}}}\nspec:\n{more}  hosts:\n{listed}"
            "  modules:\n    - name: base\n      tasks:\n        - name: setup\n          steps:\n"
            + "".join(f"            {line}\n" for line in steps.strip("\n").splitlines())
        )
        return path

    return write
