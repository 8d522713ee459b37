"""YAML of other programs is read as helm and kubectl read it, or it is said where it can't be."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.templates import programs

from kubexm.document import foreign
from kubexm.errors import InvalidFile

VALUES = {
    "yes": True,
    "No": False,
    "ON": True,
    "off": False,
    "y": True,
    "N": False,
    "yEs": "yEs",
    "0644": 420,
    "-0644": -420,
    "0_644": 420,
    "1_000": 1000,
    "1_0.5": 10.5,
    "_1": "_1",
    "10_a": "10_a",
    "0b11": 3,
    "-0B11": -3,
    "0o17": 15,
    "-0x1F": -31,
    "0x": "0x",
    "00": 0,
    "1e3": 1000.0,
    ".5": 0.5,
    "22:22": "22:22",
    "2001-01-01": "2001-01-01",
    "9223372036854775807": 2**63 - 1,
    "~": None,
    "'yes'": "yes",
    '"0644"': "0644",
    "!!str 5": "5",
    "!!str yes": "yes",
    '!!int "5"': 5,
    "!!int 0644": 420,
    "!!float 5": 5.0,
    "!!bool yes": True,
    "!!null ''": None,
    "!!binary aGVsbG8=": "hello",
    "!!seq [1]": [1],
    "!!map {a: 1}": {"a": 1},
    "{<<: {a: 1, b: 2}, a: 3}": {"a": 3, "b": 2},
    "{<<: [{a: 1}, {a: 2, b: 2}]}": {"a": 1, "b": 2},
    '{"<<": {a: 1}}': {"<<": {"a": 1}},
    "{5: 1, true: 2, 1.5: 3}": {"5": 1, "true": 2, "1.5": 3},
}
REFUSED = {
    "0899": "`0899` is a number with a leading zero",
    "9223372036854775808": "`9223372036854775808` is a number that can't be kept exactly",
    "0" + "7" * 90: "is a number that can't be kept exactly",
    ".inf": "`.inf` is a number that can't be kept exactly",
    "!!int x": "`x` as a `!!int`",
    "!!bool 5": "`5` as a `!!bool`",
    "!!null 5": "`5` as a `!!null`",
    "!!float x": "`x` as a `!!float`",
    "!!binary /w==": "`!!binary` with what is no base64 of a text",
    "!mine 5": "the tag `!mine`",
    "!!set {a}": "the tag `tag:yaml.org,2002:set`",
    "{a: 1, a: 2}": "the key `a` is there twice",
    "{a: 1, <<: {a: 2}}": "`<<` brings `a` again, which stands before it",
    "{<<: 5}": "`<<` with what is no mapping",
    "{on: 1}": "`on` is read as `true`",
    "{0644: 1}": "`0644` is read as `420`",
    "{~: 1}": "`~` is read as `null`",
    "{? [a] : 1}": "a key that is no text",
}


@pytest.mark.parametrize("text", VALUES)
def test_words_mean_what_those_kubectlstake_them_for(text: str) -> None:
    document = foreign.parse(f"w: {text}\n")

    assert document.notes == ()
    assert (found := document.data["w"]) == VALUES[text]
    assert type(found) is type(VALUES[text])


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_what_it_looks_like_is_told_with_its_place(text: str) -> None:
    try:
        problems = [note.problem for note in foreign.parse(f"a: 1\nw: {text}\n", "f").notes]
    except InvalidFile as error:
        problems = [*error.problems]

    (problem,) = problems
    assert problem.where.startswith("f:2:")
    assert REFUSED[text] in problem.message
    assert problem.hint


def test_a_mapping_that_is_named_brings_its_keys_and_keeps_its_own() -> None:
    found = foreign.parse("a: &x {b: 1, c: {d: 1}}\ne: {<<: *x, b: 2}\nf:\n  <<: *x\n").data

    assert found == {
        "a": {"b": 1, "c": {"d": 1}},
        "e": {"b": 2, "c": {"d": 1}},
        "f": {"b": 1, "c": {"d": 1}},
    }


def test_kubectl_reads_the_same(tmp_path: Path) -> None:
    if not (kubectls := programs.every("kubectl")):
        pytest.skip("no kubectl is at hand: python -m lab software")
    words = "".join(f"- {text}\n" for text in VALUES)
    file = tmp_path / "a.yaml"
    file.write_text(f"apiVersion: v1\nkind: A\nmetadata: {{name: a}}\nwords:\n{words}")
    asked = ("label", "--local", "-f", str(file), "-o", "json", "a=b")
    env = {"KUBECONFIG": "/dev/null", "HOME": str(tmp_path), "PATH": "/usr/bin:/usr/local/bin"}

    for kubectl in kubectls:
        said = subprocess.run([kubectl, *asked], capture_output=True, check=True, env=env).stdout
        found: Any = json.loads(said)["words"]

        assert found == [*VALUES.values()], kubectl
