"""The script that completes commands, in a real shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.cli.answers import Kubexm

ASK = """
source "$1"
COMP_WORDS=(kubexm "${@:2}")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_kubexm
echo "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["ta"], "task"),
        (["task", "re"], "resume retry"),
        (["hosts", "c"], "check"),
        (["run", "--sim"], "--simulate"),
    ],
)
def test_bash_completes_commands_and_options(
    kubexm: Kubexm, tmp_path: Path, typed: list[str], completed: str
) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(kubexm("completion", "bash").out)

    asked = ["bash", "-c", ASK, "bash", str(script), *typed]
    answer = subprocess.run(asked, capture_output=True, text=True, check=True)

    assert answer.stdout.split() == completed.split()


def test_zsh_loads_the_script_by_the_name_that_the_guide_gives_it(kubexm: Kubexm) -> None:
    guide = (Path(__file__).parents[2] / "docs/howto/complete-commands.md").read_text()
    script = kubexm("completion", "zsh").out

    assert script.startswith("#compdef kubexm\n")
    assert "_cyclopts_kubexm() {" in script
    assert "completions/_cyclopts_kubexm\n" in guide
