"""Variables: whose win, what they may hold, where a missing one is reported."""

import pytest
from tests.spec.texts import HOSTS, nodes, pipeline, planned, with_steps

from kubexm.errors import InvalidInput, InvalidPipeline
from kubexm.spec.overrides import parse_overrides
from kubexm.spec.pipeline import parse_pipeline
from kubexm.spec.planner import plan

BODY = """
hosts:
  - {name: a, vars: {port: 81, zone: x}}
  - {name: b}
vars: {port: 80, app: {name: shop, replicas: 2}}
"""
STEP = "- {name: s, noop: }"


def variables(text: str, *overrides: str) -> dict[str, dict[str, object]]:
    return {host.name: host.vars for host in planned(text, *overrides).hosts}


def problem_of(text: str, *overrides: str) -> str:
    with pytest.raises(InvalidPipeline) as caught:
        planned(text, *overrides)
    (problem,) = caught.value.problems
    assert problem.hint
    return str(problem)


def test_the_host_wins_over_the_pipeline_and_the_command_line_over_both() -> None:
    text = with_steps(STEP, BODY)

    assert variables(text)["a"]["port"] == 81
    assert variables(text)["b"]["port"] == 80
    assert {host["port"] for host in variables(text, "port=82").values()} == {82}


def test_hosts_without_variables_of_their_own_share_one_object() -> None:
    found = variables(with_steps(STEP, BODY))

    assert found["b"] is found["control-node"]


def test_a_part_of_a_variable_can_be_set_alone() -> None:
    found = variables(with_steps(STEP, BODY), "app.replicas=3", "app.image.tag=v2")

    assert found["b"]["app"] == {"name": "shop", "replicas": 3, "image": {"tag": "v2"}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=1", 1),
        ("a=true", True),
        ("a=no", "no"),
        ("a=", ""),
        ("a=0644", "0644"),
        ("a=x=y", "x=y"),
        ("a=hello: world", "hello: world"),
        ("a=[1, x]", [1, "x"]),
        ('a={"b": null}', {"b": None}),
        ("a='1'", "1"),
        ("a=env://TOKEN", "env://TOKEN"),
    ],
)
def test_values_of_the_command_line_are_read_as_in_a_file(text: str, value: object) -> None:
    (override,) = parse_overrides([text])

    assert override.value == value


@pytest.mark.parametrize("text", ["a", "=1", "a b=1", ".a=1", "a=[1", "a={b: 0644}"])
def test_what_sets_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_overrides([text])

    assert caught.value.hint


def test_setting_a_variable_that_nobody_knows_is_refused() -> None:
    assert problem_of(with_steps(STEP, BODY), "prot=1") == (
        "--set prot: the pipeline has no variable `prot`"
    )


def test_a_part_of_what_has_no_parts_cant_be_set() -> None:
    with pytest.raises(InvalidInput, match="`port` is no mapping"):
        planned(with_steps(STEP, BODY), "port.x=1")


@pytest.mark.parametrize(
    "step",
    [
        "file: {path: '/x/${vars.extra}'}",
        "when: vars.extra\n  noop:",
        "forEach: ${vars.extra}\n  noop:",
    ],
)
def test_a_variable_may_come_from_the_command_line_alone(step: str) -> None:
    text = with_steps(f"- name: s\n  {step}", BODY)

    assert "`vars` has no `extra`" in problem_of(text)
    value = {"f": "x", "w": "true"}.get(step[0]) if not step.startswith("forEach") else "[x]"
    assert planned(text, f"extra={value}").graph.nodes


def test_variables_may_name_each_other_and_the_host() -> None:
    text = with_steps(
        STEP,
        f"{HOSTS}\nvars: {{base: /opt, bin: '${{vars.base}}/bin', all: ['${{vars.bin}}'], "
        "who: '${host.name}', literal: '$${x}'}",
    )

    found = variables(text)["b"]

    assert found == {
        "base": "/opt",
        "bin": "/opt/bin",
        "all": ["/opt/bin"],
        "who": "b",
        "literal": "${x}",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{a: '${vars.a}'}", "variables name each other: a → a"),
        ("{a: '${vars.b.c}', b: {x: 1}}", "`vars.b` has no `c`"),
        ("{a: '${host.labels.nope}'}", "`host.labels` has no `nope`"),
    ],
)
def test_a_variable_that_names_nothing_is_refused_with_its_place(text: str, said: str) -> None:
    found = problem_of(with_steps(STEP, f"hosts: []\nvars: {text}"))

    assert found.startswith("p.yaml:6:13: spec.vars.a: ")
    assert said in found


def test_a_variable_of_the_command_line_may_be_named_by_another_one_alone() -> None:
    text = with_steps(STEP, "hosts: []\nvars: {url: '${vars.base}/x'}")

    assert variables(text, "base=b")["control-node"]["url"] == "b/x"


def test_variables_that_grow_without_bound_are_refused() -> None:
    doubled = "".join(f", v{n}: ['${{vars.v{n - 1}}}', '${{vars.v{n - 1}}}']" for n in range(1, 40))
    chained = "".join(f", v{n}: '${{vars.v{n + 1}}}'" for n in range(500)) + ", v500: 1"

    for many in (f"v0: x{doubled}", chained.removeprefix(", ")):
        with pytest.raises(InvalidPipeline, match=r"grows beyond|a chain of more than"):
            planned(with_steps(STEP, f"hosts: []\nvars: {{{many}}}"))


def test_a_variable_that_only_some_hosts_lack_names_them() -> None:
    text = with_steps("- {name: s, file: {path: '/x/${vars.zone}'}}", BODY)

    assert problem_of(text).endswith("`vars` has no `zone` on `b`")


@pytest.mark.parametrize(
    "condition", ["defined(vars.zone)", "host.name == 'a'", "host.name != 'b'"]
)
def test_a_host_that_the_condition_leaves_out_needs_no_variable(condition: str) -> None:
    step = f"- {{name: s, when: \"{condition}\", file: {{path: '/x/${{vars.zone}}'}}}}"

    assert planned(with_steps(step, BODY)).graph.nodes


@pytest.mark.parametrize(
    "condition",
    [
        "defined(vars.zone) and facts.cpus > 1",
        "facts.cpus > 1 and defined(vars.zone)",
        "facts.cpus > 1 and defined(vars.zone) and vars.zone == 'z'",
    ],
)
def test_a_guard_counts_though_the_rest_of_the_condition_is_not_known_yet(condition: str) -> None:
    step = f"- {{name: s, when: \"{condition}\", file: {{path: '/x/${{vars.zone}}'}}}}"

    assert planned(with_steps(step, BODY)).graph.nodes


@pytest.mark.parametrize("host", ["a", "b", "c"])
def test_a_step_is_checked_on_the_host_that_its_condition_chooses(host: str) -> None:
    step = f"- {{name: s, when: host.name == '{host}', file: {{path: '/x/${{vars.nope}}'}}}}"

    assert problem_of(with_steps(step)).endswith(f"`vars` has no `nope` on `{host}`")


def test_parameters_are_tried_with_the_variables_of_each_host() -> None:
    text = with_steps(
        "- {name: s, file: {path: '${vars.path}'}}",
        "hosts:\n  - {name: a, vars: {path: /ok}}\n  - {name: b, vars: {path: relative}}",
    )

    found = problem_of(text)

    assert "want an absolute path" in found
    assert found.endswith("on `b`")


def test_variables_stay_references_in_the_graph() -> None:
    found = nodes(with_steps("- {name: s, file: {path: '/x/${vars.port}'}}", BODY))

    assert found["m/t/s"].step.params == {"path": "/x/${vars.port}"}


def test_a_literal_secret_is_refused_unless_it_is_allowed() -> None:
    text = pipeline(
        "hosts: []\nvars: {dbPassword: hunter2, token: 'env://TOKEN'}\n"
        "modules: [{name: m, tasks: [{name: t, steps: [{name: s, noop: }]}]}]"
    )

    assert "a secret written out" in problem_of(text)
    with pytest.raises(InvalidPipeline) as caught:
        plan(parse_pipeline(text))
    assert caught.value.problems[0].hint == (
        "write `env://DB_PASSWORD` or `file:///PATH` in its place"
    )
    assert (
        parse_pipeline(text, allow_literal_secrets=True).spec.spec.vars["dbPassword"] == "hunter2"
    )
