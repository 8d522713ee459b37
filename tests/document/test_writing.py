"""Data become YAML that every reader takes alike."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubexm.document import source, writing

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS.filter(lambda key: key != "<<"), PLAIN, min_size=1))
def test_what_is_written_is_read_again_by_the_rules_of_either_version(data: Any) -> None:
    text = writing.dumped(data)

    assert yaml.safe_load(text) == data
    assert source.parse(text).data == data


@pytest.mark.parametrize("text", ["1e3", "0o17", "y", "N", "yes", "0644", "1:30", "null", ".5"])
def test_a_text_that_some_reader_takes_for_more_is_quoted(text: str) -> None:
    assert writing.dumped({"a": text}).split(": ", 1)[1][0] in "'\""


def test_lines_stay_lines_and_no_part_is_an_alias_of_another() -> None:
    shared = ["x"]

    assert writing.dumped({"a": "b\nc\n", "d": shared, "e": shared}) == (
        "a: |\n  b\n  c\nd:\n- x\ne:\n- x\n"
    )
