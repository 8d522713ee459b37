"""Values of the operator win over what a template says, and nothing else changes."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubexm.errors import InvalidInput
from kubexm.templates import formats, merging, render

VALUES = st.recursive(
    st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)
MAPPINGS = st.dictionaries(st.text(), VALUES)
TWO = "kind: A\nmetadata: {name: one}\nx: 1\n---\nkind: A\nmetadata: {name: two}\nx: 1\n"


@pytest.mark.parametrize(
    ("value", "over", "outcome"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({"a": 1}, {"b": None}, {"a": 1}),
        ({"a": 1}, {"a": {"b": {"c": None, "d": 2}}}, {"a": {"b": {"d": 2}}}),
        ({"a": {"b": 1}}, {"a": "text"}, {"a": "text"}),
    ],
)
def test_mappings_merge_and_all_else_is_replaced(value: Any, over: Any, outcome: Any) -> None:
    assert merging.merged(value, over) == outcome


KUBEADM = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: A
args: [{name: a, value: x}, {name: b, value: x}]
taints: [{key: a}]
sans: [one]
"""


def in_kubeadms(text: str, over: Any) -> Any:
    (found,) = formats.parsed(render.merged(text, {}, {"A": over}, "manifests"), "manifests")
    return found


def test_in_documents_of_kubeadm_things_with_names_are_merged_by_them() -> None:
    over = {"args": [{"name": "c", "value": "y"}, {"name": "b", "value": "y"}]}

    assert in_kubeadms(KUBEADM, over)["args"] == [
        {"name": "a", "value": "x"},
        {"name": "c", "value": "y"},
        {"name": "b", "value": "y"},
    ]


def test_what_the_operator_names_twice_stays_twice() -> None:
    twice = [{"name": "b", "value": "y"}, {"name": "b", "value": "z"}]

    assert in_kubeadms(KUBEADM, {"args": twice})["args"] == [{"name": "a", "value": "x"}, *twice]


@pytest.mark.parametrize(
    ("key", "over"),
    [
        ("args", []),
        ("args", ["a"]),
        ("args", [{"name": "c"}, {"value": "y"}]),
        ("taints", [{"key": "b"}]),
        ("sans", ["two"]),
        ("sans", [{"name": "two"}]),
    ],
)
def test_other_lists_of_kubeadm_are_replaced(key: str, over: Any) -> None:
    assert in_kubeadms(KUBEADM, {key: over})[key] == over


def test_in_other_documents_every_list_is_replaced() -> None:
    other = KUBEADM.replace("kubeadm.k8s.io/v1beta4", "v1")

    assert in_kubeadms(other, {"args": [{"name": "c"}]})["args"] == [{"name": "c"}]


@given(MAPPINGS, MAPPINGS)
def test_what_is_laid_over_is_there_and_laying_it_again_changes_nothing(
    value: Any, over: Any
) -> None:
    once = merging.merged(value, over)

    assert merging.merged(once, over) == once
    named = merging.merged(value, over, by_name=True)
    assert merging.merged(named, over, by_name=True) == named
    assert merging.merged(value, {}) == value
    assert merging.merged({}, over) == over
    assert set(once) == set(value) | set(over)


def test_toml_is_changed_as_data() -> None:
    found = render.merged(
        "# mine\nroot = {{ root | toml }}\n[a.b]\nc = 1\n",
        {"root": "/x"},
        {"a": {"b": {"c": None, "d": [1]}}, "grpc": {"uid": 1}},
        "toml",
    )

    assert tomllib.loads(found) == {"root": "/x", "a": {"b": {"d": [1]}}, "grpc": {"uid": 1}}


def test_without_values_the_text_stays_comments_and_all() -> None:
    assert render.merged("# mine\na: {{ b }}\n", {"b": 1}, {}, "yaml") == "# mine\na: 1\n"


def test_manifests_are_told_apart_by_kind_and_by_name() -> None:
    found = render.merged(TWO, {}, {"A": {"x": 2}, "A/two": {"x": 3, "y": 4}}, "manifests")

    assert [(one["x"], one.get("y")) for one in formats.parsed(found, "manifests")] == [
        (2, None),
        (3, 4),
    ]


def test_values_for_what_is_not_there_are_all_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        render.merged(TWO, {}, {"B": {"x": 2}, "A/tow": {"x": 3}}, "manifests", what="mine")

    assert caught.value.where == "mine"
    assert [(problem.message, problem.hint) for problem in caught.value.problems] == [
        ("values for `B`, which is not in the file", "known: `A`, `A/one`, `A/two`"),
        ("values for `A/tow`, which is not in the file", "did you mean `A/two`?"),
    ]


def test_a_file_that_is_no_data_takes_no_values() -> None:
    with pytest.raises(InvalidInput, match="a file of the format `unit` takes no single values"):
        render.merged("[Unit]\n", {}, {"a": 1}, "unit")


def test_a_file_that_can_not_be_read_is_named_with_its_line() -> None:
    with pytest.raises(InvalidInput, match="template `x`, line 2: not TOML"):
        render.merged("a = 1\nb = {{ c }}\n", {"c": "?"}, {"a": 2}, "toml", what="template `x`")
