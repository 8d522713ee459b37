"""Graphs and results become JSON and come back; what can't is refused with its place."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import graphs, results

from kubexm.errors import InvalidGraph, InvalidInput, UnsupportedFormat
from kubexm.plan import (
    Allowance,
    Compensation,
    ExecutionGraph,
    ExecutionNode,
    GraphExecutionResult,
    Hook,
    HostGroup,
    HostResult,
    Join,
    Key,
    NodeResult,
    Pool,
    ResourceConstraints,
    RetryPolicy,
    StepSpec,
    Tolerance,
    build,
    codec,
)

GOLDEN = Path(__file__).parent / "golden"


def everything() -> ExecutionGraph:
    """A graph that has all there is, once."""
    return build(
        "demo",
        [
            ExecutionNode(
                "demo/@pre-1/ask", "ask", StepSpec("pause"), ("n1", "n2"), hook=Hook("demo", "pre")
            ),
            ExecutionNode(
                "demo/token",
                "a join token",
                StepSpec("token", provides=(Key("token", secret=True, ttl=60),)),
                ("n1", "n2"),
                one_of=True,
                after=("demo/@start",),
            ),
            ExecutionNode(
                "demo/join",
                "join",
                StepSpec("joined", {"role": "worker", "n": {"b": 1, "a": [2.5, None]}}, ("token",)),
                ("n1", "n2"),
                after=("demo/token",),
                after_same_host=("demo/@pre-1/ask",),
                retry=RetryPolicy(3, delay=5, exponential_backoff=True),
                limits=ResourceConstraints(1, 2, ("packages",)),
                timeout=30,
                tolerance=Tolerance(failed=Allowance(percent=10)),
                when="facts.os == 'debian'",
                ignore_errors=True,
                tags=("slow",),
            ),
        ],
        joins=[Join("demo/@start", (), ("demo/@pre-1/ask",))],
        hosts=("n1", "n2"),
        groups=(HostGroup("workers", ("n1", "n2"), 1),),
        pools={"packages": Pool(1, "host")},
        on_failure="rollback",
        digests={"template:x": "abc"},
        compensations=(
            Compensation(
                "demo",
                (ExecutionNode("demo/@compensate/reset", "reset", StepSpec("reset"), ("n1",)),),
            ),
        ),
    )


def document(**changes: Any) -> str:
    return json.dumps({**json.loads(codec.encode(everything())), **changes})


@given(graphs(details=True))
def test_a_graph_comes_back_bit_for_bit(graph: ExecutionGraph) -> None:
    written = codec.encode(graph)

    read = codec.decode(written)

    assert read == graph
    assert list(read.nodes) == list(graph.nodes)
    assert codec.encode(read) == written
    assert codec.digest(read) == codec.digest(graph)


@given(results())
def test_a_result_comes_back_bit_for_bit(result: GraphExecutionResult) -> None:
    written = codec.encode_result(result)

    read = codec.decode_result(written)

    assert read == result
    assert codec.encode_result(read) == written


def test_the_document_of_a_graph_has_the_names_users_see() -> None:
    written = json.loads(codec.encode(everything()))

    golden = json.loads((GOLDEN / "everything.json").read_text())
    assert written == golden
    assert codec.decode((GOLDEN / "everything.json").read_bytes()) == everything()


def test_whole_numbers_given_for_floats_are_floats_in_the_document() -> None:
    graph = everything()

    assert b'"timeout":30.0' in codec.encode(graph)
    assert codec.encode(codec.decode(codec.encode(graph))) == codec.encode(graph)


def test_the_document_of_a_result_has_the_names_users_see() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC)
    host = HostResult("n1", "Success", "done", start_time=moment, end_time=moment, attempts=1)
    node = NodeResult("install", "package", "Success", host_results={"n1": host})

    written = json.loads(
        codec.encode_result(GraphExecutionResult("demo", "Success", {"demo/install": node}, moment))
    )

    assert written == {
        "formatVersion": 1,
        "kind": "GraphExecutionResult",
        "graphName": "demo",
        "startTime": "2026-01-02T03:04:05.678900Z",
        "endTime": None,
        "status": "Success",
        "dryRun": False,
        "nodeResults": {
            "demo/install": {
                "nodeName": "install",
                "stepName": "package",
                "status": "Success",
                "message": "",
                "startTime": None,
                "endTime": None,
                "changed": False,
                "hostResults": {
                    "n1": {
                        "hostName": "n1",
                        "status": "Success",
                        "message": "done",
                        "stdout": "",
                        "stderr": "",
                        "startTime": "2026-01-02T03:04:05.678900Z",
                        "endTime": "2026-01-02T03:04:05.678900Z",
                        "skipped": False,
                        "changed": False,
                        "attempts": 1,
                        "failure": None,
                        "cause": None,
                        "sign": "",
                        "diff": "",
                    }
                },
            }
        },
    }


def test_equal_graphs_have_equal_documents_however_their_words_were_made() -> None:
    word = "isolate and more"[:7]
    node = ExecutionNode("a", "a", StepSpec("command"), ("n1",))
    spelled = build("g", [node], hosts=("n1",), on_failure=word)

    assert codec.encode(spelled) == codec.encode(build("g", [node], hosts=("n1",)))


def test_equal_graphs_have_equal_digests_whatever_their_order() -> None:
    first = ExecutionNode("a", "a", StepSpec("command", {"x": 1, "y": 2}), ("n1",))
    second = ExecutionNode("b", "b", StepSpec("command"), ("n1",))
    turned = ExecutionNode("a", "a", StepSpec("command", {"y": 2, "x": 1}), ("n1",))
    graph = build("g", [first, second], hosts=("n1",))

    assert codec.digest(graph) == codec.digest(build("g", [second, turned], hosts=("n1",)))
    assert codec.digest(graph) != codec.digest(build("g", [first], hosts=("n1",)))


def test_a_renamed_step_kind_is_read_under_its_new_name() -> None:
    graph = codec.decode(document(), renamed={"pause": "wait"})

    assert graph.nodes["demo/@pre-1/ask"].step.kind == "wait"
    assert graph.nodes["demo/join"].step.kind == "joined"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": (1, 2)}, "parameter `a` of type tuple can't be stored in a graph"),
        ({"a": [0, {"b": float("inf")}]}, "parameter `a[1].b` = inf can't be stored in a graph"),
        ({"a": {1: "x"}}, "parameter `a` with the key 1 can't be stored in a graph"),
        ({"a": b"x"}, "parameter `a` of type bytes can't be stored in a graph"),
    ],
)
def test_parameters_that_json_would_change_are_refused(value: dict[str, Any], said: str) -> None:
    node = ExecutionNode("g/a", "a", StepSpec("command", value), ("n1",))
    graph = build("g", [node], hosts=("n1",))

    with pytest.raises(InvalidGraph) as caught:
        codec.encode(graph)

    (problem,) = caught.value.problems
    assert str(problem) == f"g/a: {said}"
    assert problem.hint.startswith("use text, finite numbers")


def test_text_that_is_not_unicode_is_refused() -> None:
    result = GraphExecutionResult("g", "Failed", {}, message="caf\udce9")

    with pytest.raises(InvalidInput, match="is not Unicode text"):
        codec.encode_result(result)


def test_parameters_nested_too_deep_are_refused() -> None:
    value: list[Any] = []
    for _ in range(50_000):
        value = [value]
    node = ExecutionNode("g/a", "a", StepSpec("command", {"a": value}), ("n1",))

    with pytest.raises(InvalidGraph, match="nested too deep"):
        codec.encode(build("g", [node], hosts=("n1",)))


def test_a_newer_format_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnsupportedFormat) as caught:
        codec.decode(document(formatVersion=2, somethingNew=True))

    assert str(caught.value) == (
        "$.formatVersion: the document has format 2, this kubexm reads up to 1"
    )
    assert caught.value.hint == "use the version of kubexm that wrote it, or a newer one"


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "nothing": (b"", "this is no JSON: Input data was truncated"),
    "cut off": (document()[:-20], "this is no JSON: Input data was truncated"),
    "not JSON": (b"kind: Pipeline", "this is no JSON: JSON is malformed: inv"),
    "not text": (b'{"formatVersion":1,"kind":"\xff"}', "this is no JSON: 'utf-8' codec"),
    "too deep": (b'{"x":' * 100_000, "the document is nested too deep"),
    "not an object": (b"[]", "$: expected `object`, got `array`"),
    "no version": (b"{}", "$: object missing required field `formatVersion`"),
    "version zero": (document(formatVersion=0), "$.formatVersion: format 0 does not exist, want 1"),
    "version word": (document(formatVersion="1"), "$.formatVersion: expected `int`, got `str`"),
    "other kind": (document(kind="Pipeline"), "$.kind: the document holds `Pipeline`, want `Exec"),
    "unknown field": (document(colour="red"), "$: object contains unknown field `colour`"),
    "wrong type": (document(hosts="n1"), "$.hosts: expected `array`, got `str`"),
    "wrong word": (document(onFailure="panic"), "$.onFailure: invalid enum value 'panic'"),
    "a number beyond": (document(name=1), "$.name: expected `str`, got `int`"),
}  # fmt: skip


@pytest.mark.parametrize("damage", BROKEN)
def test_a_damaged_document_is_refused_with_its_place(damage: str) -> None:
    text, said = BROKEN[damage]

    with pytest.raises(UnsupportedFormat) as caught:
        codec.decode(text)

    assert str(caught.value).startswith(said)
    assert caught.value.hint


def with_node(**changes: Any) -> str:
    nodes = json.loads(document())["nodes"]
    nodes[2] |= changes
    return document(nodes=nodes)


BROKEN_NODES = {
    "unknown field": (with_node(tries=3), "$.nodes[2]: object contains unknown field `tries`"),
    "unknown setting": (
        with_node(retryPolicy={"tries": 3}),
        "$.nodes[2].retryPolicy: object contains unknown field `tries`",
    ),
    "unknown scope": (
        with_node(dependencies=[{"node": "demo/token", "scope": "rack"}]),
        "$.nodes[2].dependencies[0].scope: invalid enum value 'rack'",
    ),
    "no hosts": (with_node(hosts=None), "$.nodes[2].hosts: expected `array`, got `null`"),
}  # fmt: skip


@pytest.mark.parametrize("damage", BROKEN_NODES)
def test_a_damaged_node_is_refused_with_its_place(damage: str) -> None:
    text, said = BROKEN_NODES[damage]

    with pytest.raises(UnsupportedFormat) as caught:
        codec.decode(text)

    assert str(caught.value) == said


def test_a_graph_that_was_made_invalid_by_hand_is_refused_like_any_other() -> None:
    with pytest.raises(InvalidGraph) as caught:
        codec.decode(with_node(hosts=["n3"]))

    assert [str(problem) for problem in caught.value.problems] == ["demo/join: unknown host `n3`"]


def test_a_node_that_is_there_twice_is_refused() -> None:
    nodes = json.loads(document())["nodes"]

    with pytest.raises(InvalidGraph, match="two nodes have the id `demo/join`"):
        codec.decode(document(nodes=[*nodes, nodes[-1]]))


WHOLE = codec.encode(everything())


@given(st.binary() | st.text())
@example(b"null")
def test_any_bytes_give_a_graph_or_an_error_of_ours(text: bytes | str) -> None:
    with pytest.raises(UnsupportedFormat):
        codec.decode(text)


@given(st.integers(0, len(WHOLE) - 1), st.binary(max_size=3), st.integers(0, 40))
def test_any_damage_gives_a_graph_or_an_error_of_ours(at: int, put: bytes, cut: int) -> None:
    damaged = WHOLE[:at] + put + WHOLE[at + cut :]

    try:
        read = codec.decode(damaged)
    except InvalidInput:
        return
    assert codec.decode(codec.encode(read)) == read
