"""Blocks and lines of ours in files of others, as pure functions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubexm.errors import StepFailed
from kubexm.runner import text

TEXTS = st.lists(st.sampled_from(["", "a", "b", "port = 1", "port = 2", "  a"]), max_size=6).map(
    "\n".join
)
LINES = st.sampled_from(["a", "port = 1", "port = 3"])
MATCHES = st.sampled_from(["", "^port", "a"])


def test_a_block_goes_to_the_end_or_stays_in_its_place() -> None:
    once = text.with_block("x\n", "m", "body\n")
    again = text.with_block(f"{once}y\n", "m", "other")

    assert once == "x\n# BEGIN kubexm: m\nbody\n# END kubexm: m\n"
    assert again == "x\n# BEGIN kubexm: m\nother\n# END kubexm: m\ny\n"
    assert text.replaced_block(again, "m", []) == "x\ny\n"


def test_an_empty_block_is_two_marks() -> None:
    assert text.with_block("", "m", "") == "# BEGIN kubexm: m\n# END kubexm: m\n"


def test_blocks_of_other_names_are_not_ours() -> None:
    both = text.with_block(text.with_block("", "one", "1"), "two", "2")

    assert text.replaced_block(both, "one", []) == text.with_block("", "two", "2")


def test_a_block_without_an_end_is_an_error_with_its_line() -> None:
    with pytest.raises(StepFailed, match="block `m` begins in line 2"):
        text.with_block("x\n# BEGIN kubexm: m\nbody\n", "m", "body")


@given(TEXTS, st.sampled_from(["", "body", "two\nlines\n"]))
def test_a_block_is_written_once_and_taken_back_exactly(old: str, body: str) -> None:
    new = text.with_block(old, "m", body)

    assert text.with_block(new, "m", body) == new
    assert text.replaced_block(new, "m", []) in (old, f"{old}\n")


def test_a_line_stands_for_all_that_match_where_the_first_was() -> None:
    new, taken = text.with_line("1\nport = 1\n2\nport = 2\n", "port = 3", "^port")

    assert new == "1\nport = 3\n2\n"
    assert taken == [(1, "port = 1"), (3, "port = 2")]


def test_a_line_that_is_there_stays_where_it_is() -> None:
    new, taken = text.with_line("port = 1\nport = 2\n", "port = 2", "^port")

    assert new == "port = 2\n"
    assert taken == [(0, "port = 1")]


@given(TEXTS, LINES, MATCHES)
def test_a_line_is_there_afterwards_and_nothing_else_that_matches(
    old: str, line: str, match: str
) -> None:
    new, _ = text.with_line(old, line, match)

    again, taken = text.with_line(new, line, match)
    assert line in text.split(new)
    assert (again, taken) == (new, [])


@given(TEXTS, LINES, MATCHES)
def test_lines_that_were_taken_out_go_back_to_their_places(old: str, line: str, match: str) -> None:
    new, taken = text.without_lines(old, line, match)

    assert text.without_lines(new, line, match) == (new, [])
    assert text.lines_of(old, line, match) == taken
    # Where nothing was left, nobody knows whether the last line had a newline.
    assert text.with_lines(new, line, match, taken) in (old, f"{old}\n")


def test_bytes_that_are_no_text_survive() -> None:
    data = b"\xff\xfe\r\nodd\x0b\x85\n"

    assert text.encoded(text.decoded(data)) == data


@pytest.mark.parametrize("new", [b"", b"one\n", b"one", b"one\ntwo\n", b"one\n\nthree"])
def test_a_new_file_is_shown_as_a_diff_against_nothing(new: bytes) -> None:
    from difflib import unified_diff

    lines = new.decode().splitlines(keepends=True)
    plain = [line.rstrip("\n") for line in unified_diff([], lines, "/dev/null", "/f")]
    shown = text.diff("/f", None, new).splitlines()

    assert [line for line in shown if not line.startswith("\\")] == plain


def test_a_diff_shows_what_is_text_and_only_mentions_what_is_not() -> None:
    assert text.diff("/f", b"a\n", b"b\n") == "--- /f\n+++ /f\n@@ -1 +1 @@\n-a\n+b\n"
    assert text.diff("/f", b"\0", b"b\n") == "binary content of /f differs\n"
    assert text.diff("/f", b"\xff\n", None).endswith("-\ufffd\n")
    assert text.diff("/f", b"", b"x\n" * 3000) == "/f: 0 lines become 3000 lines\n"


def test_additions_show_no_line_that_is_there() -> None:
    old, new = b"a\nsecret\nb\nc\n", b"a\nb\nC\nd\n"

    shown = text.additions("/f", old, new)

    assert [line for line in shown.splitlines() if line[0] not in "+-"] == [
        "@@ -2 +1,0 @@",
        "@@ -4 +3,2 @@",
    ]
    assert "secret" not in shown
    assert shown.endswith("-(1 line, not shown: the file is private)\n+C\n+d\n")
    assert text.additions("/f", b"\0", b"b\n") == "binary content of /f differs\n"
