"""Whatever a file holds, it is planned or refused with place and remedy; nothing else ever."""

import copy
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import many

from kubexm.document import source
from kubexm.errors import InvalidFile
from kubexm.plan import ExecutionGraph, codec
from kubexm.spec.model import as_data
from kubexm.spec.pipeline import Pipeline, parse_pipeline, pipeline_from
from kubexm.spec.planner import plan
from kubexm.step import registry

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXTS = [path.read_text() for path in sorted(EXAMPLES.glob("*.yaml"))]
FRAGMENTS = [
    "\t", "\n", ": ", "- ", "[", "]", "{", "}", "${", "${vars.x}", "$${", "*a", "&a ", "!!x ", "'",
    '"', "|\n", "? ", "<<: ", "#", "null", "~", "0644", ".inf", "1e999", "\x00", "\ufeff", "ü",
    "---\n",
]  # fmt: skip
KEYS = st.sampled_from(
    ["name", "spec", "modules", "tasks", "steps", "hooks", "pre", "after", "when", "forEach",
     "vars", "hosts", "roles", "retry", "attempts", "tolerance", "failed", "limits", "pools",
     "rolling", "batch", "compensate", "simulate", "runOnRoles", "runOnOneOf", "link", "timeout",
     "groups", "labels", "address", "ssh", "jump", "keys", "become", "config",
     "password", "path", "argv", "content", "source", "that", "\0kind", *registry.kinds()]
)  # fmt: skip
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(
        [
            "${vars.x}",
            "${item}",
            "${values.x}",
            "a",
            "20%",
            "5s",
            "all",
            "x ${",
            "env://X",
            "n[1:3]",
            "[9:",
            "~x",
        ]
    )
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def refused_well(error: InvalidFile) -> bool:
    return bool(error.problems) and all(
        problem.message and problem.where and problem.hint for problem in error.problems
    )


def way_of(make: Callable[[], Pipeline]) -> tuple[Pipeline, ExecutionGraph] | InvalidFile:
    try:
        pipeline = make()
        return pipeline, plan(pipeline).graph
    except InvalidFile as error:
        return error


def planned_or_refused(make: Callable[[], Pipeline]) -> None:
    """The whole way of a file; what is planned survives its document."""
    found = way_of(make)
    if isinstance(found, InvalidFile):
        assert refused_well(found), found
        return
    pipeline, graph = found
    assert codec.decode(codec.encode(graph)) == graph
    assert pipeline_from(as_data(pipeline.spec)).spec == pipeline.spec


@cache
def example_data() -> list[Any]:
    return [source.parse(text).data for text in TEXTS]


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_random_text_and_bytes(text: str | bytes) -> None:
    planned_or_refused(lambda: parse_pipeline(text, directory=EXAMPLES))


@many(150)
@given(st.data())
def test_examples_with_scratches(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 12))
        text = (
            text[:start]
            + data.draw(st.sampled_from(FRAGMENTS) | st.just(""))
            + text[start + length :]
        )

    planned_or_refused(lambda: parse_pipeline(text, directory=EXAMPLES))


@many(150)
@given(st.data())
def test_examples_with_parts_replaced(data: st.DataObject) -> None:
    changed = copy.deepcopy(data.draw(st.sampled_from(example_data())))
    for _ in range(data.draw(st.integers(1, 3))):
        _replace_somewhere(changed, data)

    planned_or_refused(lambda: pipeline_from(changed))


@many(200)
@given(trees)
def test_random_bodies(body: Any) -> None:
    head = {"apiVersion": "kubexm.io/v1alpha1", "kind": "Pipeline", "metadata": {"name": "x"}}

    planned_or_refused(lambda: pipeline_from({**head, "spec": body}))
    planned_or_refused(lambda: pipeline_from(body))


@many(200)
@given(st.data())
def test_random_parameters_of_every_kind(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(registry.kinds())))
    step = {
        "name": "s",
        kind: data.draw(trees),
        **data.draw(st.dictionaries(KEYS, trees, max_size=2)),
    }
    spec = {
        "runOnRoles": ["control-node"],
        "vars": {"x": data.draw(leaves)},
        "modules": [{"name": "m", "tasks": [{"name": "t", "steps": [step]}]}],
    }
    head = {"apiVersion": "kubexm.io/v1alpha1", "kind": "Pipeline", "metadata": {"name": "x"}}

    planned_or_refused(lambda: pipeline_from({**head, "spec": spec}))


INVENTORY = """
hosts:
  - {name: "n[01:03]", address: "10.0.0.[1:3]", roles: [x], labels: {at: "${host.name}"}}
  - {name: b, roles: [x, y], sudo: true, ssh: {jump: {address: e, jump: c}, user: u}}
  - {name: c, roles: [y], vars: {own: 1}, ssh: {jump: false, config: false}}
groups:
  g: {roles: [x], minimum: 1, vars: {v: 1}, labels: {l: a}, ssh: {port: 22, keys: [/k]}}
  h: {roles: [y], vars: {w: "${vars.v}"}, ssh: {become: {way: su, password: "env://X"}}}
ssh: {jump: c, password: "prompt://p", knownHosts: [/k], trust: first-use, agent: true}
vars: {v: 0}
modules:
  - name: m
    tasks:
      - {name: t, steps: [{name: s, file: {path: /a, content: "${vars.v} ${host.name}"}}]}
"""


@many(300)
@given(st.data())
def test_inventories_with_parts_replaced(data: st.DataObject) -> None:
    spec = copy.deepcopy(source.parse(INVENTORY).data)
    for _ in range(data.draw(st.integers(1, 3))):
        _replace_somewhere(spec, data)
    head = {"apiVersion": "kubexm.io/v1alpha1", "kind": "Pipeline", "metadata": {"name": "x"}}

    planned_or_refused(lambda: pipeline_from({**head, "spec": spec}))


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=40))
def test_text_in_quotes_comes_back(text: str) -> None:
    quoted = '"' + "".join(f"\\U{ord(letter):08X}" for letter in text) + '"'

    with suppress(InvalidFile):
        assert source.parse(f"a: {quoted}").data == {"a": text}


def _replace_somewhere(tree: Any, data: st.DataObject) -> None:
    """Walk down at random, and put something else where the way ends."""
    here = tree
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        inner = here[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.integers(0, 4)) == 0:
            here[key] = data.draw(trees)
            return
        here = inner
