"""References in texts: resolved with their type, escaped, and found with their place."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubexm.spec import references
from kubexm.spec.references import BadReference, Reference, parse, resolved, scan, with_item

SCOPE = {
    "vars": {"port": 80, "on": True, "none": None, "list": [1, {"x": "y"}], "a-b": "c", "t": "x"},
    "host": {"name": "h1"},
}


def resolve(data: Any) -> Any:
    return resolved(data, lambda reference: references.in_scope(reference, SCOPE))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${vars.port}", 80),
        ("${vars.on}", True),
        ("${vars.none}", None),
        ("${vars.list}", [1, {"x": "y"}]),
        ("${vars.list.1.x}", "y"),
        ("${vars.list[1].x}", "y"),
        ("${vars.a-b}", "c"),
        ("port ${vars.port}", "port 80"),
        ("${vars.on}${vars.none}", "truenull"),
        ("${vars.list}!", '[1,{"x":"y"}]!'),
        ("${host.name}:${vars.t}", "h1:x"),
        ("$${vars.port}", "${vars.port}"),
        ("a $${b} ${vars.t}", "a ${b} x"),
        ("$$${vars.t}", "$${vars.t}"),
        ("$vars.port $(x) $$ {}", "$vars.port $(x) $$ {}"),
    ],
)
def test_a_whole_reference_keeps_its_type_and_an_embedded_one_is_written_out(
    text: str, value: object
) -> None:
    assert resolve(text) == value
    assert resolve({"k": [text]}) == {"k": [value]}


@pytest.mark.parametrize(
    "text",
    [
        "${HOME}",
        "${}",
        "${vars}",
        "${vars.}",
        "${vars.a b}",
        "${vars.a",
        "${vars.a.}",
        "${ vars.a }",
    ],
)
def test_what_is_no_reference_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(BadReference) as caught:
        parse(text)

    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        (
            "${vars.prot}",
            "`vars` has no `prot`",
            "declare `prot` under `spec.vars`, or give `--set prot=…`; did you mean `port`?",
        ),
        (
            "${vars.list.7}",
            "`vars.list` has no entry 7, but 2 in all",
            "the last is `vars.list[1]`",
        ),
        ("${vars.list.x}", "`vars.list` is a list and has no `x`", "write `vars.list[0]`"),
        (
            "${vars.port.x}",
            "`vars.port` is a number, which has no parts",
            "name `vars.port` as a whole",
        ),
        ("${facts.x}", "`${facts.x}` is not known here", ""),
    ],
)
def test_what_names_nothing_says_what_there_is(text: str, said: str, hint: str) -> None:
    with pytest.raises(BadReference) as caught:
        resolve(text)

    assert (str(caught.value), caught.value.hint) == (said, hint)


def test_references_are_found_with_their_place() -> None:
    data = {"a": ["x", "${vars.b} ${values.c.d}"], "e": "${oops}", "${vars.f}": "g"}

    found = dict(scan(data))

    assert [reference for path, reference in scan(data) if path == ("a", 1)] == [
        Reference("vars", ("b",)),
        Reference("values", ("c", "d")),
    ]
    assert isinstance(found["e",], BadReference)
    assert isinstance(found["${vars.f}",], BadReference)


def test_an_item_is_put_in_and_the_rest_left_for_later() -> None:
    item = {"n": 1, "evil": "${vars.port}"}

    data = with_item(["${item.n}", "${item.n}-${vars.port}-$${x}", "${item.evil}", "plain"], item)

    assert data == [1, "1-${vars.port}-$${x}", "$${vars.port}", "plain"]
    assert resolve(data) == [1, "1-80-${x}", "${vars.port}", "plain"]


def test_a_text_can_not_grow_without_bound() -> None:
    big = {"vars": {"big": "x" * 1_000_000}}

    with pytest.raises(BadReference, match="characters"):
        resolved("${vars.big}" * 100, lambda reference: references.in_scope(reference, big))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_escaped_data_resolves_to_itself(data: Any) -> None:
    assert resolve(references.escaped(data)) == data


@given(st.text(alphabet="${}.avrs[]0 "))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parts = parse(text)
    except BadReference:
        return
    assert all(isinstance(part, str | Reference) for part in parts)
