"""The page about the command line is what the commands say."""

import re
from pathlib import Path

import pytest
from cyclopts import App

import kubexm
from kubexm.cli import reference
from kubexm.cli.commands import app

PAGE = Path(__file__).parents[2] / "docs" / "reference" / reference.PAGE


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == reference.render(), "run `make docs-reference`"


def test_every_command_and_option_is_on_the_page() -> None:
    page = reference.render()
    commands = dict(reference.commands(app))

    assert {
        "kubexm run",
        "kubexm plan",
        "kubexm graph",
        "kubexm hosts check",
        "kubexm task resume",
    } <= commands.keys()
    for name, command in commands.items():
        assert f"## {name}\n" in page
        shown = [found for found in command.assemble_argument_collection() if found.show]
        assert [found.name for found in shown if f"`{found.name}`" not in page] == []


@pytest.mark.parametrize(("name", "command"), list(reference.commands(app)))
def test_the_help_of_a_command_speaks_of_no_option_that_it_does_not_have(
    name: str, command: App
) -> None:
    shown = [found for found in command.assemble_argument_collection() if found.show]
    told = " ".join(found.parameter.help or "" for found in shown)

    spoken_of = re.findall(r"(?<!\S)--[a-z-]+", re.sub("`[^`]*`", "", told))

    assert set(spoken_of) <= {each for found in shown for each in found.names}, name


def test_every_variable_that_is_asked_for_is_on_the_page() -> None:
    package = Path(kubexm.__file__).parent
    # Simulated hosts have an environment of their own.
    sources = (path for path in package.rglob("*.py") if "sim" not in path.parts)
    asked = r'environ(?:ment)?\.get\("([A-Z_0-9]+)"'
    names = {name for path in sources for name in re.findall(asked, path.read_text())}

    page = reference.render()

    assert "KUBEXM_HOME" in names
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


def test_every_option_says_what_it_is_for() -> None:
    rows = [line for line in reference.render().splitlines() if line.startswith("| `-")]

    assert [row for row in rows if row.endswith("|  |")] == []
