"""Values that are secrets: refused where they would be seen, private where they may stand."""

from __future__ import annotations

import itertools

import pytest
from tests.spec.texts import nodes, pipeline, planned, with_steps

from kubexm.errors import InvalidPipeline, Problem
from kubexm.plan import Key, StepSpec
from kubexm.spec.exposure import exposed, kept_private, secret_values
from kubexm.spec.parameters import parameters_of
from kubexm.step import registry

SECRET = "- {name: pw, value: {key: pw, argv: [cat, /pw], secret: true, scope: host}}\n"
OPEN = SECRET.replace("secret: true, ", "")
NEVER_SHOWN = "keep it to `env` or `stdin`: that is never shown"
ELSEWHERE = "take a value that is no secret, or hand it to a `command` by its `env` or `stdin`"


def refused(text: str) -> tuple[Problem, ...]:
    with pytest.raises(InvalidPipeline) as caught:
        nodes(text)
    return caught.value.problems


@pytest.mark.parametrize(
    ("step", "parameter", "hint"),
    [
        ("command: {argv: [x, '--password=${values.pw}']}", "argv", NEVER_SHOWN),
        ("command: {argv: [x], creates: '/a/${values.pw}'}", "creates", NEVER_SHOWN),
        ("command: {argv: [x], unless: [y, '${values.pw}']}", "unless", NEVER_SHOWN),
        ("command: {argv: [x], onlyIf: [y, '${values.pw}']}", "onlyIf", NEVER_SHOWN),
        ("command: {argv: [x], user: '${values.pw}'}", "user", NEVER_SHOWN),
        ("command: {argv: [x], cwd: '/${values.pw}'}", "cwd", NEVER_SHOWN),
        ("command: {argv: [x], undo: [y, '${values.pw}']}", "undo", NEVER_SHOWN),
        ("command: {argv: [x], secretEnv: {A: '${values.pw}'}}", "secretEnv", NEVER_SHOWN),
        ("command: {argv: [x], secretStdin: '${values.pw}'}", "secretStdin", NEVER_SHOWN),
        ("command: {argv: [x], sudo: '${values.pw}'}", "sudo", NEVER_SHOWN),
        ("command: {argv: [x], expect: '${values.pw}'}", "expect", NEVER_SHOWN),
        ("command: {argv: [x], uninterruptible: '${values.pw}'}", "uninterruptible", NEVER_SHOWN),
        ("value: {key: v, argv: [x, '${values.pw}'], scope: host}", "argv", "keep it to `env`"),
        ("mint: {key: v, argv: [x, '${values.pw}'], scope: host}", "argv", "keep it to `env`"),
        ("wait: {command: [x, '${values.pw}']}", "command", ELSEWHERE),
        ("wait: {url: 'https://x/?token=${values.pw}'}", "url", ELSEWHERE),
        ("assert: {argv: [x, '${values.pw}']}", "argv", ELSEWHERE),
        ("assert: {that: facts.cpus > 0, message: '${values.pw}'}", "message", ELSEWHERE),
        ("pause: {question: 'is it ${values.pw}?'}", "question", ELSEWHERE),
        ("noop: {text: '${values.pw}'}", "text", ELSEWHERE),
        ("package: {names: ['${values.pw}']}", "names", ELSEWHERE),
        ("service: {unit: '${values.pw}'}", "unit", ELSEWHERE),
        ("directory: {path: '/a/${values.pw}'}", "path", ELSEWHERE),
        ("absent: {path: '/a/${values.pw}'}", "path", ELSEWHERE),
        ("file: {path: '/a/${values.pw}', content: x}", "path", "keep it to `content`"),
        ("file: {path: /a, content: x, owner: '${values.pw}'}", "owner", "keep it to `content`"),
        ("template: {path: '/${values.pw}', text: x}", "path", "keep it to `data` or `text`"),
        ("template: {path: /a, template: '${values.pw}'}", "template", "keep it to `data`"),
        ("block: {path: /a, content: x, marker: '${values.pw}'}", "marker", "keep it to `content`"),
        ("line: {path: /a, line: x, match: '${values.pw}'}", "match", "keep it to `line`"),
        ("secret-file: {path: /a, content: '${values.pw}'}", "content", "use `file`"),
        ("secret-file: {path: '/${values.pw}', content: 'env://A'}", "path", ELSEWHERE),
        (
            "secret-template: {path: /a, text: x, secrets: {a: '${values.pw}'}}",
            "secrets",
            "name it under `data`",
        ),
    ],
)
def test_it_is_refused_where_it_would_be_seen(step: str, parameter: str, hint: str) -> None:
    (problem,) = refused(with_steps(f"{SECRET}- {{name: s, {step}}}"))

    said = f"`${{values.pw}}` is a secret, and `{parameter}` is no place for one"
    assert problem.message.endswith(said)
    assert problem.hint.startswith(hint)


def test_every_parameter_of_a_command_but_two_is_tried_above() -> None:
    marks = test_it_is_refused_where_it_would_be_seen.pytestmark  # type: ignore[attr-defined]
    cases = itertools.chain(*(mark.args[1] for mark in marks))

    tried = {parameter for step, parameter, _ in cases if step.startswith("command:")}

    assert tried == parameters_of("command").keys() - {"env", "stdin"}


@pytest.mark.parametrize(
    "step",
    [
        "command: {argv: [x], env: {A: '${values.pw}'}, stdin: 'a ${values.pw}'}",
        "value: {key: v, argv: [x], env: {A: '${values.pw}'}, scope: host}",
        "mint: {key: v, argv: [x], env: {A: '${values.pw}'}, scope: host}",
        "file: {path: /a, content: '${values.pw}'}",
        "file: {path: /a, contentBase64: '${values.pw}'}",
        "template: {path: /a, text: 'a ${values.pw} {{ b.c }}', data: {b: {c: '${values.pw}'}}}",
        "secret-template: {path: /a, text: x, data: {a: '${values.pw}'}, secrets: {}}",
        "block: {path: /a, content: '${values.pw}'}",
        "line: {path: /a, line: 'a ${values.pw}'}",
        "noop: {}, when: values.pw != 'x'",
        "assert: {that: len(values.pw) > 8, message: it is long}",
        "command: {argv: [x, '$${values.pw}']}",
    ],
)
def test_it_may_stand_where_nobody_sees_it(step: str) -> None:
    assert "m/t/s" in nodes(with_steps(f"{SECRET}- {{name: s, {step}}}"))


def test_a_value_that_is_no_secret_may_stand_anywhere() -> None:
    found = nodes(with_steps(OPEN + "- {name: s, command: {argv: [x, '${values.pw}']}}"))

    assert found["m/t/s"].step.needs == ("pw",)


def test_all_are_named_at_once_each_at_its_place() -> None:
    problems = refused(
        with_steps(
            """
            - name: pw
              mint: {key: pw, argv: [pwgen], secret: true, scope: host}
            - name: s
              command:
                argv:
                  - sh
                  - -c
                  - |
                    set -e
                    login ${values.pw}
                undo: [logout, "${values.pw.old}"]
            - name: r
              noop: {text: "${vars.nothing}"}
            """
        )
    )

    assert [problem.where for problem in problems] == [
        "p.yaml:23:27",
        "p.yaml:24:32",
        "p.yaml:26:28",
    ]
    assert problems[0].message == (
        "spec.modules[0].tasks[0].steps[1].command.argv[2]: "
        "`${values.pw}` is a secret, and `argv` is no place for one"
    )
    assert "`${values.pw.old}` is a secret, and `undo` is no place for one" in problems[1].message


def test_it_does_not_matter_where_in_the_file_the_value_is_left() -> None:
    text = pipeline("""
        hosts: [{name: a}]
        link: parallel
        modules:
          - name: late
            after: [early]
            tasks: [{name: t, steps: [{name: s, command: {argv: [x, "${values.pw}"]}}]}]
          - name: early
            tasks: [{name: t, steps: [{name: s, mint: {key: pw, argv: [x], secret: true}}]}]
    """)

    (problem,) = refused(text)

    assert problem.where == "p.yaml:10:63"


@pytest.mark.parametrize(
    "place",
    [
        "hooks: {onFailure: [STEP]}",
        "compensate: [STEP]",
    ],
)
def test_hooks_and_compensations_are_looked_at_too(place: str) -> None:
    step = "{name: h, command: {argv: [x, '${values.pw}']}}"
    text = with_steps(SECRET).replace("- name: t\n", f"- name: t\n          {place}\n")

    (problem,) = refused(text.replace("STEP", step))

    assert "`argv` is no place" in problem.message


def test_one_of_a_list_and_one_named_by_an_entry_are_found() -> None:
    steps = """
        - {name: pw, forEach: [one, two], value:
            {key: "${item}_pw", argv: [x], secret: true, scope: host}}
        - {name: s, forEach: [a, b], command: {argv: [x, "${item}", "${values.two_pw}"]}}
    """

    (problem,) = refused(with_steps(steps))

    assert "`${values.two_pw}` is a secret" in problem.message


@pytest.mark.parametrize("variable", ["'${values.pw}'", "'$${values.pw}'"])
def test_no_variable_brings_one_along(variable: str) -> None:
    steps = SECRET + "- {name: s, command: {argv: [x, '${vars.v}']}}"
    text = with_steps(steps, f"hosts: [{{name: a}}]\nvars: {{v: {variable}}}")

    if "$$" in variable:
        assert nodes(text)["m/t/s"].step.needs == ()
    else:
        (problem,) = refused(text)
        assert "`${values.pw}` in a variable" in problem.message


@pytest.mark.parametrize(
    ("step", "params"),
    [
        ("file: {path: /a, content: 'a ${values.pw}'}", {"secret": True, "mode": "0600"}),
        ("file: {path: /a, content: 'a ${values.pw}', secret: false}", {"secret": True}),
        ("file: {path: /a, content: '${values.pw}', mode: '0640'}", {"mode": "0640"}),
        (
            "template: {path: /a, text: '{{ a }}', data: {a: '${values.pw}'}}",
            {"secret": True, "mode": "0600"},
        ),
        ("block: {path: /a, content: '${values.pw}'}", {"secret": True}),
        ("line: {path: /a, line: '${values.pw}'}", {"secret": True}),
    ],
)
def test_a_file_that_holds_one_is_private(step: str, params: dict[str, object]) -> None:
    found = nodes(with_steps(f"{SECRET}- {{name: s, {step}}}"))["m/t/s"].step

    assert params.items() <= found.params.items()
    assert found.needs == ("pw",)


@pytest.mark.parametrize("place", ["hooks: {post: [STEP]}", "compensate: [STEP]"])
def test_a_file_of_a_hook_or_a_compensation_is_private_too(place: str) -> None:
    step = "{name: h, file: {path: /a, content: '${values.pw}'}}"
    text = with_steps(SECRET).replace("- name: t\n", f"- name: t\n          {place}\n")

    graph = planned(text.replace("STEP", step)).graph
    undone = [node for item in graph.compensations for node in item.nodes]
    (found,) = [node.step for node in (*graph, *undone) if node.step.kind == "file"]

    assert found.params["mode"] == "0600"


def test_a_file_without_one_stays_as_it_is() -> None:
    found = nodes(with_steps(OPEN + "- {name: s, file: {path: /a, content: '${values.pw}'}}"))

    assert found["m/t/s"].step.params == {"path": "/a", "content": "${values.pw}"}


def test_steps_made_by_code_are_judged_alike() -> None:
    provider = StepSpec("mint", {}, provides=(Key("pw", secret=True), Key("name")))
    seen = StepSpec("command", {"only_if": ["x", "${values.pw}"]}, ("pw",), references=True)
    text = StepSpec("command", {"only_if": ["x", "${values.pw}"]})
    kept = StepSpec("file", {"content": "${values.pw}"}, ("pw",), references=True)

    secret = secret_values([provider, seen])

    assert secret == {"pw"}
    assert [finding.path for finding in exposed(seen, secret)] == [("onlyIf", 1)]
    assert list(exposed(text, secret)) == []
    assert kept_private(kept, secret).params["secret"] is True
    assert kept_private(seen, frozenset({"name"})) is seen


def test_every_field_that_takes_secrets_is_one() -> None:
    for kind, cls in registry.kinds().items():
        known = {parameter.field for parameter in parameters_of(kind).values()}
        assert known.issuperset(cls.takes_secrets)
