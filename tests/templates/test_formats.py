"""Files are read to see that they are whole, and lines are named in which they are not."""

from __future__ import annotations

import pytest

from kubexm.errors import InvalidInput
from kubexm.templates import formats
from kubexm.templates.context import Format


@pytest.mark.parametrize(
    ("form", "text", "data"),
    [
        ("yaml", "a: [1, b]\n", {"a": [1, "b"]}),
        ("json", '{"a": null}', {"a": None}),
        ("toml", "a = 1\n[b]\nc = 2\n", {"a": 1, "b": {"c": 2}}),
        ("manifests", "# c\n---\na: 1\n--- # c\n\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("manifests", "a: |\n  --- no start\n", [{"a": "--- no start\n"}]),
    ],
)
def test_data_are_read_and_written_again(form: Format, text: str, data: object) -> None:
    found = formats.parsed(text, form)

    assert found == data
    assert formats.parsed(formats.written(found, form), form) == data


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("yaml", "a: 1\na: 2\n", "line 2: the key `a` is there twice"),
        ("yaml", "a: 0644\n", "line 1: `0644` is a number with a leading zero"),
        ("yaml", "a: [\n", "line 2: not YAML"),
        ("yaml", "- a\n", "found list, want a mapping"),
        ("yaml", "a: 1\n---\nb: 1\n", "line 2: a second document"),
        ("manifests", "a: 1\n---\nb: 1\nb: 2\n", "line 4: the key `b` is there twice"),
        ("json", '{\n"a": }', "line 2: not JSON: Expecting value"),
        ("toml", "a = 1\nb = \n", "line 2: not TOML: invalid value"),
        ("toml", "a = 1\nb = [", "end of document: not TOML"),
        ("unit", "a=1\n", r"line 1: found `a=1`, want a section such as `\[Service\]` first"),
        ("unit", "[Servce]\n", "want one of the sections Unit"),
        ("unit", "[Unit]\n# c\n\nA=b \\\n  c\nd\n", "line 6: found `d`, want `Name=value`"),
        ("env", "A=1\nB='\n", 'line 2: found `B=\'`, want `NAME="value"`'),
        ("env", "A B=1\n", "line 1"),
        ("env", "A=$(id)\n", "line 1"),
        ("script", "echo\n", "line 1: found `echo`, want `#!`"),
        ("nginx", "a {\n}\n}\n", "line 3: found `}`, want no brace"),
        ("keepalived", "a {\nb {\n}\n", "line 1: a brace that nothing closes"),
    ],
)
def test_what_is_no_such_file_is_told_with_its_line(form: Format, text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        formats.check(text, form)


def test_what_a_format_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidInput, match="found `null` in a list, which TOML does not have"):
        formats.written({"a": [1, None]}, "toml")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("unit", "; c\n[Unit]\nAfter=a \\\n  b\n[Service]\nExecStart=\nExecStart=/a 'b c'\n"),
        ("env", '# c\nA=1\nB="x \\" y"\nC=\'z $\'\nD=\n'),
        ("script", "#!/bin/sh\n"),
        ("nginx", "# {\na {\n  b { c; }\n}\n"),
        ("haproxy", "anything\n"),
        ("text", ""),
    ],
)
def test_a_file_that_is_whole_is_let_pass(form: Format, text: str) -> None:
    formats.check(text, form)
