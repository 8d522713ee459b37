"""Values become words of files, and can't be read as more than that."""

from __future__ import annotations

import shlex
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubexm.document import source
from kubexm.templates import render
from kubexm.templates.filters import FILTERS

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
PLAIN = st.recursive(
    st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=8,
)


@given(PLAIN)
def test_any_value_is_yaml_in_one_line(value: Any) -> None:
    text = FILTERS["yaml"](value)

    assert "\n" not in text
    # Some letters no file of people may hold, escaped or not.
    assert source.parse(f"a: {text}").data == {"a": value}


@given(PLAIN)
def test_any_value_is_toml_in_one_line(value: Any) -> None:
    text = FILTERS["toml"](value)

    assert "\n" not in text
    assert tomllib.loads(f"a = {text}") == {"a": value}


def test_what_is_nothing_has_no_form_in_toml() -> None:
    with pytest.raises(ValueError, match="TOML can't say None"):
        FILTERS["toml"]({"a": None})


@given(TEXTS)
def test_any_text_is_one_word_of_a_script(text: str) -> None:
    assert shlex.split(FILTERS["shell_word"](text)) == [text]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("plain", "plain"),
        ("", '""'),
        ("two words", '"two words"'),
        ("100%", "100%%"),
        ('say "hi"', '"say \\"hi\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("a\nb", '"a\\nb"'),
        (";", '";"'),
        ("$HOME", "$HOME"),
    ],
)
def test_words_of_units_are_quoted_if_they_have_to_be(text: str, word: str) -> None:
    assert FILTERS["unit_word"](text) == word


def test_a_dollar_in_a_command_of_a_unit_is_no_variable() -> None:
    assert FILTERS["command_word"]("a=$b c") == '"a=$$b c"'


def test_values_of_environment_files_are_quoted_for_systemd() -> None:
    assert FILTERS["env_value"]('a "b" $c `d` \\e') == '"a \\"b\\" \\$c \\`d\\` \\\\e"'


def test_templates_have_the_filters() -> None:
    assert render.render_text("{{ 'user:pass' | base64 }}", {}) == "dXNlcjpwYXNz"
