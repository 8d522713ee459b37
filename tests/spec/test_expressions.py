"""Conditions: what they may say, what they may not, and what they come to."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubexm.common.facts import FACTS
from kubexm.spec import kinds
from kubexm.spec.expressions import BadExpression, compile_expression, with_item
from kubexm.spec.model import FactsSpec, as_data
from kubexm.spec.references import Reference

SCOPE: dict[str, Any] = {
    "vars": {"n": 3, "on": True, "word": "Hello", "list": ["a", "b"], "a-b": 1, "map": {"k": [7]}},
    "facts": {"os": {"id": "debian"}, "cpus": 4},
    "values": {},
    "host": {"name": "web1", "roles": ["web"], "labels": {"zone": "x"}},
}


def holds(text: str) -> bool:
    return compile_expression(text).holds(SCOPE)


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "vars.on",
        "not false",
        "vars.n == 3 and facts.cpus >= 4",
        "vars.n == 4 or facts.os.id == 'debian'",
        "1 < vars.n <= 3",
        "'web' in host.roles",
        "'db' not in host.roles",
        "host.name in ['web1', \"web2\"]",
        "len(vars.list) == 2",
        "len(vars.word) > 4",
        "vars['a-b'] == 1",
        "vars.map.k[0] == 7",
        "vars.map['k'][0] == 7",
        "vars.list[0] == 'a'",
        "defined(vars.n) and not defined(vars.nope) and not defined(facts.gpu.count)",
        "vars.word.lower() == 'hello' and vars.word.startswith('He')",
        "vars.word.upper().endswith('LO')",
        "-vars.n < 0",
        "null == null",
        "vars.on == true",
        "(vars.n\n == 3)",
    ],
)
def test_it_is_true(text: str) -> None:
    assert holds(text) is True


def test_and_and_or_look_no_further_than_they_have_to() -> None:
    assert holds("false and vars.nope") is False
    assert holds("true or vars.nope") is True


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not an expression"),
        ("vars.n ==", "not an expression"),
        ("vars.n = 3", "not an expression"),
        ("vars.class == 1", "not an expression"),
        ("import os", "not an expression"),
        ("open('/etc/passwd')", "can't be called"),
        ("vars.word.format(1)", "can't be called"),
        ("vars.word.startswith()", "can't be called"),
        ("len(x=1)", "can't be called"),
        ("().__class__", "is not allowed"),
        ("[x for x in vars.list]", "is not allowed"),
        ("lambda: 1", "is not allowed"),
        ("vars.n + 1 == 4", "is not allowed"),
        ("f'{vars.n}'", "is not allowed"),
        ("b'x' == 'x'", "is not allowed"),
        ("1 if vars.on else 2", "is not allowed"),
        ("(x := 1)", "is not allowed"),
        ("{'a': 1}", "is not allowed"),
        ("vars.n is 3", "compares with `is`"),
        ("var.n == 3", "unknown name `var`"),
        ("debian == 'x'", "unknown name `debian`"),
        ("vars == 3", "`vars` without a name"),
        ("values[vars.n]", "`values` without a name"),
        ("item == 1", "`item` outside of `forEach`"),
        ("${vars.n} == 3", "a reference with"),
        ("'" + "x" * 20_000 + "'", "characters"),
        ("[" + "1," * 600 + "]", "parts"),
        ("(" * 300 + "1" + ")" * 300, "not an expression"),
        ("not " * 60 + "true", "nested too deep"),
        ("- " * 3000 + "1", "nested too deep"),
        ("1 + (" + "- " * 400 + "1)", "nested too deep"),
        ("f(" + "not " * 400 + "1)", "nested too deep"),
        ("vars" + ".a" * 60, "nested too deep"),
    ],
)
def test_it_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadExpression, match=said.replace("(", r"\(")) as caught:
        compile_expression(text)

    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vars.n", "`vars.n` is a number, want true or false"),
        ("vars.word and true", "`vars.word` is text, want true or false"),
        ("not vars.list", "`vars.list` is a list, want true or false"),
        ("vars.nope == 1", "`vars` has no `nope`"),
        ("facts.os.version == '12'", "`facts.os` has no `version`"),
        ("values.ticket == 1", "`values` has no `ticket`"),
        ("vars.word < 3", "`vars.word < 3` compares text with a number"),
        ("1 < 2 < vars.word", "`2 < vars.word` compares a number with text"),
        ("'a' in vars.n", "`'a' in vars.n` looks for text in a number"),
        ("len(vars.n) == 1", "which has no length"),
        ("-vars.word == 1", "`vars.word` is text, want a number"),
        ("vars.n.lower() == 'x'", "`vars.n` is a number, want text"),
        ("vars.list[facts.cpus] == 'a'", "`vars.list` has no entry 4, but 2 in all"),
    ],
)
def test_it_cant_be_decided(text: str, said: str) -> None:
    with pytest.raises(BadExpression, match=said):
        holds(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("vars.n", "compare it, such as `vars.n > 0`"),
        ("not vars.word", "compare it, such as `vars.word == '…'`"),
        ("vars.list", "ask for its length, such as `len(vars.list) > 0`"),
        ("null", "compare it, such as `null != null`"),
        ("'true'", "take it out of its quotes, or compare it: `'true' == 'true'`"),
        ("vars.n in vars.word", "look in a list, or for text in text"),
    ],
)
def test_what_is_no_decision_says_how_to_ask(text: str, hint: str) -> None:
    with pytest.raises(BadExpression) as caught:
        holds(text)

    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("facts.cpus", "`facts.cpus` is a number, want true or false"),
        ("-facts.cpus", "`-facts.cpus` is a number, want true or false"),
        ("facts.os", "`facts.os` is a mapping, want true or false"),
        ("facts.os.id and vars.on", "`facts.os.id` is text, want true or false"),
        ("facts.addresses[0]", "`facts.addresses[0]` is text, want true or false"),
        ("facts.arch.lower()", "`facts.arch.lower()` is text, want true or false"),
        ("len(values.x)", "`len(values.x)` is a number, want true or false"),
        ("[facts.cpus]", "`[facts.cpus]` is a list, want true or false"),
        ("facts.arch > 3", "`facts.arch > 3` compares text with a number"),
        ("facts.cpus > 1 and vars.n > 'x'", "`vars.n > 'x'` compares a number with text"),
        ("facts.cpus == vars.nope", "`vars` has no `nope`"),
        ("vars.nope[facts.arch]", "`vars` has no `nope`"),
        ("facts.cpus in facts.arch", "`facts.cpus in facts.arch` looks for a number in text"),
        ("len(facts.cpus) > 1", "`facts.cpus` is a number, which has no length"),
        ("-facts.arch > 1", "`facts.arch` is text, want a number"),
        ("facts.cpus.startswith('x')", "`facts.cpus` is a number, want text"),
    ],
)
def test_what_is_wrong_whatever_a_host_tells_is_known_before(text: str, said: str) -> None:
    with pytest.raises(BadExpression) as caught:
        compile_expression(text).judged({"vars": {"on": True, "n": 3}})

    assert str(caught.value) == said


@pytest.mark.parametrize(
    "text",
    [
        "values.x",
        "not values.x",
        "values.x > 3",
        "-values.x > 3",
        "values.x.startswith('a')",
        "facts.arch.startswith('x')",
        "facts.arch.upper() == 'X'",
        "3 in [facts.cpus]",
        "vars.hosts[facts.arch]",
        "'debian' in facts.os.like",
        "len(facts.addresses) > 1",
        "defined(facts.cpus)",
        "'tcp/22' in facts.ports",
        "facts.ports['tcp/80'] == 'nginx'",
        "facts.filesystems[0].free_mib > 1024",
        "facts.clock.offset_s < 0.5",
        "facts.swap_mib == 0 and facts.network.mtu >= 1400",
    ],
)
def test_what_may_be_right_on_a_host_is_left_open(text: str) -> None:
    assert compile_expression(text).judged({"vars": {"hosts": {}}}) is None


def test_every_fact_has_an_example_of_its_kind() -> None:
    examples = {name: kinds.fact([name]) for name in FACTS}

    declared, mistakes = FactsSpec.read(examples)

    assert declared is not None, mistakes
    assert as_data(declared) == examples
    assert set(examples["os"]) == set(FACTS["os"])


PARTLY = {"vars": {"on": True, "off": False, "n": 3}, "facts": {"os": {"id": "debian"}}}


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("facts.os.id == 'debian'", True),
        ("facts.os.id != 'debian'", False),
        ("facts.cpus > 1", None),
        ("facts.os.version == '12'", None),
        ("host.name == 'a'", None),
        ("values.ticket == 1", None),
        ("not facts.kernel.startswith('5')", None),
        ("facts.cpus > 1 and vars.off", False),
        ("vars.off and facts.cpus > 1", False),
        ("facts.cpus > 1 and vars.on", None),
        ("facts.cpus > 1 or vars.on", True),
        ("vars.on or facts.cpus > 1", True),
        ("facts.cpus > 1 or vars.off", None),
        ("not (facts.cpus > 1 and vars.off) and vars.on", True),
        ("defined(facts.os.id)", True),
        ("defined(facts.cpus)", None),
        ("defined(vars.nope)", False),
        ("defined(values.x)", None),
        ("vars.n", None),
        ("1 < facts.cpus < 3", None),
        ("facts.addresses[vars.n] == 'a'", None),
    ],
)
def test_a_part_that_is_unknown_leaves_it_open_unless_the_others_decide(
    text: str, decision: bool | None
) -> None:
    assert compile_expression(text).decided(PARTLY, partial=["facts"]) is decision


def test_a_fact_that_a_host_does_not_tell_is_missing_where_all_facts_are_known() -> None:
    assert compile_expression("not defined(facts.cpus)").decided(PARTLY) is True


def test_it_knows_what_it_reads_and_what_it_cant_do_without() -> None:
    expression = compile_expression("defined(vars.a) and values.b.c == facts.d")

    assert set(expression.references) == {
        Reference("vars", ("a",)),
        Reference("values", ("b", "c")),
        Reference("facts", ("d",)),
    }
    assert Reference("vars", ("a",)) not in expression.certain


@pytest.mark.parametrize(
    ("text", "item", "written"),
    [
        ("item == 'a'", "a", "'a' == 'a'"),
        ("item.port > 80 and vars.on", {"port": 81}, "81 > 80 and vars.on"),
        ("host.name in item.hosts", {"hosts": ["x", "y"]}, "host.name in ['x', 'y']"),
        ("vars.item == 1", 7, "vars.item == 1"),
        ("item['a b']", {"a b": True}, "True"),
    ],
)
def test_an_item_is_written_into_it(text: str, item: Any, written: str) -> None:
    assert with_item(text, item) == written
    compile_expression(with_item(text, item))


@pytest.mark.parametrize("text", ["item.nope == 1", "item == 1"])
def test_an_item_that_cant_be_written_is_refused(text: str) -> None:
    with pytest.raises(BadExpression):
        with_item(text, {"a": 1})


@given(st.text(alphabet="vars.host facts()[]'\"<>=!notandorin1234{}:,+-*\n", max_size=60))
def test_any_text_is_decided_or_refused(text: str) -> None:
    with suppress(BadExpression):
        assert compile_expression(text).holds(SCOPE) in (True, False)
