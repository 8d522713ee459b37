"""A plain command line means the same whether the parser reads it or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubexm.cli import quick
from kubexm.cli.commands import app

OPTIONS = st.sampled_from((
    "-f", "--file", "-o", "--output", "--set", "--only", "--from", "--skip", "--hosts", "--check",
    "--dry-run", "--simulate", "--require-all-hosts", "--allow-literal-secrets", "--debug",
    "--world", "--parallelism", "--on-failure", "--break", "--no-check", "--help", "-h",
))  # fmt: skip
VALUES = st.sampled_from((
    "a.yaml", "x=1", "json", "yaml", "text", "xml", "", "-", "--", "[1]", "{}", "n*", "null",
    "true", "1", "~/x", "a b", "-f=x", "é",
))  # fmt: skip
LINES = st.lists(
    st.one_of(st.tuples(OPTIONS, VALUES), st.tuples(OPTIONS), st.tuples(VALUES)), max_size=4
).map(lambda parts: ["-f", "a.yaml", *(word for part in parts for word in part)])
COMMANDS = st.sampled_from((["run"], ["hosts", "check"]))


def parsed(words: list[str]) -> dict[str, Any]:
    """What the parser reads out of a command line."""
    _command, bound, _ignored = app.parse_args(words, exit_on_error=False, print_error=False)
    return dict(bound.arguments)


@given(COMMANDS, LINES)
@example(["run"], ["-f", "a", "-o", "json", "--set", "x=1", "--set", "y=2", "--check"])
@example(["hosts", "check"], ["-f", "a", "--hosts", "n1", "--hosts", "n2", "--simulate"])
def test_what_is_read_means_the_same_to_the_parser(command: list[str], words: list[str]) -> None:
    found = quick.read([*command, *words])

    assert found is None or found.options == parsed([*command, *words])


@pytest.mark.parametrize(
    "words",
    [
        "run -f a.yaml",
        "run --file a.yaml --check",
        "run -f a.yaml --set x=1 --set y=2 --hosts n1 -o json",
        "hosts check -f a.yaml --hosts n1 -o yaml",
        "run --only a --from b --skip c --require-all-hosts --dry-run -f a.yaml",
    ],
)
def test_the_usual_ones_are_plain(words: str) -> None:
    found = quick.read(words.split())

    assert found is not None
    assert found.options["file"] == Path("a.yaml")


@pytest.mark.parametrize(
    "words",
    [
        "",
        "plan -f a",
        "hosts",
        "hosts check",
        "hosts check -f a --check",
        "run",
        "run a",
        "run -f",
        "run -f a -f b",
        "run -f a -o xml",
        "run -f a -h",
    ],
)
def test_what_is_not_plain_is_left_to_the_parser(words: str) -> None:
    assert quick.read(words.split()) is None
