"""The page about the command line is what the commands say."""

from pathlib import Path

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


def test_every_option_says_what_it_is_for() -> None:
    rows = [line for line in reference.render().splitlines() if line.startswith("| `-")]

    assert [row for row in rows if row.endswith("|  |")] == []
