"""Texts become plain data that knows where it was written, or one clear error."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from kubexm.document import source
from kubexm.document.source import parse, read
from kubexm.errors import InvalidFile, Problem


def problem_of(text: str | bytes, file: str = "f.yaml") -> str:
    problems = problems_of(text, file)
    assert all(problem.where and problem.hint for problem in problems)
    return str(problems[0])


def problems_of(text: str | bytes, file: str) -> Sequence[Problem]:
    try:
        return [note.problem for note in parse(text, file).notes]
    except InvalidFile as error:
        return error.problems


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("Off", "Off"),
        ("22:22", "22:22"),
        ("1_000", "1_000"),
        ("2026-11-15", "2026-11-15"),
        ("0b11", "0b11"),
        ("1.2.3", "1.2.3"),
        ("=", "="),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("+12", 12),
        ("-0", 0),
        ("0o17", 15),
        ("0xfF", 255),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("'12'", "12"),
        ('"true"', "true"),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_words_mean_what_yaml_1_2_says(word: str, value: object) -> None:
    found = parse(f"a: {word}").data["a"]

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "word", ["0644", "-007", "9223372036854775808", "1" * 5000, ".inf", "-.INF", ".nan", "1e999"]
)
def test_numbers_that_are_not_what_they_look_like_are_refused(word: str) -> None:
    assert problem_of(f"a: {word}").startswith("f.yaml:1:4: ")


def test_every_value_and_key_knows_its_place() -> None:
    document = parse("a:\n  - b: [x, ü, y]\n    long key: 1\n", "f.yaml")

    assert str(document.at(("a", 0, "b", 2))) == "f.yaml:2:15"
    assert str(document.key_at(("a", 0, "long key"))) == "f.yaml:3:5"
    assert str(document.at(("a", 0, "missing"))) == "f.yaml:2:5"
    assert str(document.at(())) == "f.yaml:1:1"


def test_an_alias_has_the_place_of_what_it_stands_for() -> None:
    document = parse("a: &x {k: 1}\nb: *x\n", "f.yaml")

    assert document.data == {"a": {"k": 1}, "b": {"k": 1}}
    assert str(document.at(("b", "k"))) == "f.yaml:1:11"


def test_json_is_read_the_same_way() -> None:
    text = '{\n\t"a": ["\\ud83d\\ude00 \\\\ud83d \\/", 1.5, true, null],\n\t"b":{}}'

    document = parse(text, "f.json")

    assert document.data == {"a": ["😀 \\ud83d /", 1.5, True, None], "b": {}}
    assert str(document.at(("b",))) == "f.json:3:6"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a: b\xff", "f.yaml:1:5: not UTF-8 text"),
        ("ä: x\n b: \x07", "f.yaml:2:5: control character U+0007"),
        (b"\x00\x01\x02", "f.yaml:1:1: control character U+0000"),
        ("a: \ud800", "f.yaml:1:4: control character U+D800"),
        ('a: "\\x00"', "f.yaml:1:4: a text with a zero byte in it"),
        ("a: 'b", "f.yaml:1:6: not YAML"),
        ("%YAML 3.0\n---\na: b", "f.yaml:1:1: not YAML"),
        ("a: b\n...\n---\nc: d", "f.yaml:3:1: a second document"),
        ("&a [x, *a]", "f.yaml:1:8: `*a` holds itself"),
        ("*a : b", "f.yaml:1:1: an alias as a key"),
        ("x" * (source.MAX_BYTES + 1), "f.yaml:1:1: longer than 8 MiB"),
    ],
)
def test_what_is_no_text_of_ours_is_refused_with_its_place(text: str | bytes, said: str) -> None:
    assert problem_of(text).startswith(said)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert parse(b"\xef\xbb\xbfa: 1").data == {"a": 1}
    assert str(parse("\ufeffa: 1").at(("a",))) == "<text>:1:4"


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 1000, "? " * 1000])
def test_depth_is_bounded(text: str) -> None:
    assert "nested deeper" in problem_of(text) or "no text" in problem_of(text)


def test_aliases_that_double_are_bounded_in_number() -> None:
    lines = ["a: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines.extend(f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))

    assert "more than 1000000 values" in problem_of("\n".join(lines))


def test_aliases_that_nest_are_bounded_in_depth() -> None:
    lines = [f"a: &a0 {'[' * 30}{']' * 30}"]
    lines.extend(f"b{n}: &a{n} {'[' * 30}*a{n - 1}{']' * 30}" for n in range(1, 4))

    assert "nested deeper" in problem_of("\n".join(lines))


def test_the_pure_python_parser_would_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: [1, 'x', {b: |\n    two\n    lines\n  }]\n".replace(
        "|\n    two\n    lines\n  ", '"y"'
    )
    fast = parse(text)

    monkeypatch.setattr(source, "_Loader", yaml.SafeLoader)

    assert parse(text) == fast


def test_all_problems_of_the_form_come_at_once() -> None:
    problems = problems_of("a: 0644\nb: !x y\na: 1\n<<: {}\n", "f.yaml")

    places = [problem.where for problem in problems]
    assert places == ["f.yaml:1:4", "f.yaml:2:4", "f.yaml:3:1", "f.yaml:4:1"]


@pytest.mark.parametrize("path", ["nowhere.yaml", ".", "nul\0.yaml"])
def test_a_file_that_cant_be_read_is_an_invalid_pipeline(path: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="can't read"):
        read(tmp_path / path)
