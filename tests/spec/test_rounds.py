"""All problems of a file come in one round, whatever their kinds, and none that only follows."""

import re
from functools import cache
from itertools import combinations
from typing import Any

import pytest
from tests.spec.texts import pipeline, planned, with_steps

from kubexm.errors import InvalidPipeline
from kubexm.spec.pipeline import pipeline_from
from kubexm.spec.planner import plan

MORE = "more may be found when these are mended"
HOSTS = [
    {"name": "a", "roles": ["web"]},
    {"name": "b", "roles": ["web"]},
    {"name": "c", "roles": ["db"]},
]


def a_value(key: str, **params: Any) -> dict[str, Any]:
    return {"value": {"key": key, "argv": ["id"], "scope": "host", **params}}


def a_file(content: str) -> dict[str, Any]:
    return {"file": {"path": "/a", "content": content}}


STEPS: dict[str, dict[str, Any]] = {
    "an unknown key": {"retires": 3, "noop": None},
    "a bad duration": {"timeout": "never", "noop": None},
    "a missing parameter": {"file": {"content": "x"}},
    "an unknown parameter": {"file": {"path": "/a", "contnt": "x"}},
    "a misspelt kind": {"comand": {"argv": ["x"]}},
    "a misplaced secret": a_file("env://X"),
    "a plain secret": {"command": {"argv": ["x"], "secretEnv": {"A": "plain"}}},
    "a plain secret by variable": {"command": {"argv": ["x"], "secretEnv": {"A": "${vars.fine}"}}},
    "after nobody": {"after": ["nobody"], "noop": None},
    "a broken condition": {"when": "1 +", "noop": None},
    "no name": {"name": None, "noop": None},
    "an unknown role": {"runOnRoles": ["wbe"], "noop": None},
    "no list to go over": {"forEach": "${vars.fine}", "noop": None},
    "no such source": {"file": {"path": "/a", "source": "none.txt"}},
    "an unreadable template": {"template": {"path": "/a", "text": "{{ x"}},
    "a template without data": {"template": {"path": "/a", "text": "{{ x }}"}},
    "a value that nobody leaves": a_file("${values.none}"),
    "a negative time to live": a_value("short", ttl=-1),
    "a run value of many hosts": a_value("many", scope="run"),
    "a broken provider": a_value("broken", sope="host"),
    "no such variable": a_file("${vars.missing}"),
    "a wrong type by variable": {"command": {"argv": "${vars.fine}"}},
}
TASKS: dict[str, dict[str, Any]] = {
    "an unknown key of a task": {"lnk": "barrier"},
    "an unknown link": {"link": "sideways"},
    "roles as text": {"runOnRoles": "web"},
    "an unknown role of a task": {"runOnRoles": ["wbe"]},
    "no steps": {"steps": []},
    "a name twice": {"steps": [{"name": "s", "noop": None}, {"name": "s", "noop": None}]},
    "a ring of steps": {
        "steps": [{"name": "s", "after": ["r"], "noop": None}, {"name": "r", "noop": None}]
    },
    "two providers": {
        "steps": [{"name": "s", **a_value("double")}, {"name": "r", **a_value("double")}]
    },
}
BODIES: dict[str, dict[str, Any]] = {
    "a secret written out": {"vars": {"password": "hunter2"}},
    "a variable that names a fact": {"vars": {"cpus": "${facts.cpus}"}},
    "a ring of variables": {"vars": {"ra": "${vars.rb}", "rb": "${vars.ra}"}},
    "a variable that names nothing": {"vars": {"rn": "${vars.nope}"}},
    "a group of nobody": {"groups": {"g": {"roles": ["nobody"], "minimum": 1}}},
    "a group that is too large": {"groups": {"h": {"roles": ["web"], "minimum": 9}}},
    "an unknown policy": {"onFailure": "panic"},
}
HIDDEN = ("a value that nobody leaves", "no steps")
"""The steps that are yet to be written may leave it."""
MISTAKES = [*STEPS, *TASKS, *BODIES]


def file_with(*mistakes: str) -> dict[str, Any]:
    tasks = [
        {
            "name": f"t{number}",
            "steps": [{"name": "s", **STEPS.get(mistake, {"noop": None})}],
            **TASKS.get(mistake, {}),
        }
        for number, mistake in enumerate(mistakes)
    ]
    parts = [BODIES.get(mistake, {}) for mistake in mistakes]
    merged: dict[str, Any] = {"vars": {"fine": 1}, "groups": {}}
    for part in parts:
        for key, value in part.items():
            merged[key] = {**merged[key], **value} if isinstance(value, dict) else value
    return {
        "apiVersion": "kubexm.io/v1alpha1",
        "kind": "Pipeline",
        "metadata": {"name": "p"},
        "spec": {"hosts": HOSTS, **merged, "modules": [{"name": "m", "tasks": tasks}]},
    }


def said(data: dict[str, Any]) -> set[str]:
    """The messages, whatever task they are about."""
    with pytest.raises(InvalidPipeline) as caught:
        plan(pipeline_from(data))
    messages = [problem.message for problem in caught.value.problems]
    assert len(set(messages)) == len(messages)
    return {re.sub(r"tasks\[\d\]|/t\d/", "", message) for message in messages}


@cache
def said_alone(mistake: str) -> set[str]:
    return said(file_with(mistake))


@pytest.mark.parametrize("first", MISTAKES)
def test_every_two_mistakes_of_a_file_are_found_together(first: str) -> None:
    for one, other in combinations(MISTAKES, 2):
        if one == first and (one, other) != HIDDEN:
            assert said(file_with(one, other)) == said_alone(one) | said_alone(other)


def found(text: str, *overrides: str) -> tuple[list[str], str]:
    """What is said of a text in the order it is said, and what to do at last."""
    with pytest.raises(InvalidPipeline) as caught:
        planned(text, *overrides)
    places = [problem.where.split(":")[1:] for problem in caught.value.problems]
    assert places == sorted(places, key=lambda place: list(map(int, place)))
    messages = [problem.message.split(": ", 1)[-1] for problem in caught.value.problems]
    return messages, caught.value.hint


FOLLOWERS = """
- {name: x, BROKEN}
- {name: y, after: [x], file: {path: /a, content: "${values.v}"}}
- {name: z, runOnRoles: [web], when: values.v == 'a', noop: }
"""


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("value: {key: v, argv: [id], sope: host}", "unknown parameter `sope`"),
        ("vlaue: {key: v, argv: [id]}", "unknown key `vlaue`"),
        ("when: 1 +, value: {key: v, argv: [id]}", "not an expression: invalid syntax"),
        ("retry: {attempts: 1}", "no kind of step"),
        ("runOnRoles: [wbe], value: {key: v, argv: [id]}", "no host has the role `wbe`"),
        ("runOnRoles: web, value: {key: v, argv: [id]}", "found the text `web`, want a list"),
        ("forEach: '${vars.n}', value: {key: '${item}', argv: [id]}", "want a list"),
        ("value: {key: '${vars.w}', argv: [id]}", "depends on a reference"),
        ("hooks: {before: [{name: h, value: {key: v, argv: [id]}}]}, noop: ", "unknown key"),
    ],
)
def test_what_waits_for_a_broken_step_or_needs_its_value_is_not_blamed(
    broken: str, message: str
) -> None:
    text = with_steps(
        FOLLOWERS.replace("BROKEN", broken),
        "hosts: [{name: a, roles: [web]}, {name: b, roles: [web]}]\nvars: {n: 1, w: v}",
    )

    (problem,), hint = found(text)

    assert message in problem
    assert hint.endswith(MORE)


USERS = """
- {name: s, file: {path: /a, content: "${vars.x} ${host.labels.zone}"}}
- {name: r, when: vars.x == 1, noop: }
- {name: q, forEach: "${vars.x}", noop: }
- {name: p, runOnRoles: [db], limits: {pools: [slow]}, noop: }
- {name: o, file: {path: /a, content: "${vars.y}"}}
"""


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("vars: {x: '${facts.cpus}', y: '${vars.x}'}\nhosts: [HOST]", "in a variable"),
        ("vars: {x: '${vars.x}', y: 1}\nhosts: [HOST]", "variables name each other"),
        ("vars: {y: 1}\nhosts: [{name: a, vras: {x: [1]}}, HOST]", "unknown key `vras`"),
        ("vars: {x: [1], y: 1}\nhosts: [{name: a, lables: {zone: k}, roles: [db]}]", "`lables`"),
        ("vars: {x: [1], y: 1}\nhosts: [{name: a, labels: {zone: k}, roles: db}]", "want a list"),
        ("vars: {x: [1], y: 1}\nhosts: [{labels: {zone: k}, roles: [db]}]", "`name` is missing"),
    ],
)
def test_who_uses_a_broken_variable_or_host_is_not_blamed(spec: str, message: str) -> None:
    host = "{name: h, roles: [db], labels: {zone: k}}"
    text = with_steps(USERS, spec.replace("HOST", host) + "\npools: {slow: 1}")

    (problem,), hint = found(text)

    assert message in problem
    assert hint.endswith(MORE)


def test_who_takes_slots_from_a_broken_pool_is_not_blamed() -> None:
    text = with_steps(
        "- {name: s, limits: {pools: [slow]}, noop: }", "hosts: [{name: a}]\npools: {slow: 0}"
    )

    (problem,), hint = found(text)

    assert "want at least 1" in problem
    assert not hint.endswith(MORE)


@pytest.mark.parametrize("key", ["roling: {batch: 1}", "link: sideways", "runOnRoles: web"])
def test_a_broken_scope_is_looked_into_and_what_leaves_it_is_not_missed(key: str) -> None:
    text = pipeline(f"""
        hosts: [{{name: a, roles: [web]}}, {{name: b, roles: [db]}}]
        modules:
          - name: m
            tasks:
              - name: t
                {key}
                steps:
                  - {{name: v, value: {{key: v, argv: [id]}}}}
                  - {{name: s, file: {{path: /a, source: none.txt}}}}
              - {{name: u, after: [t], steps: [{{name: s, file: {{path: "${{values.v}}"}}}}]}}
        """)

    problems, _ = found(text)

    assert len(problems) == 2
    assert "`none.txt` is beside no file" in problems[1]


def test_a_variable_that_only_a_broken_step_names_may_be_set() -> None:
    text = with_steps("- {name: s, retires: 3, file: {path: '${vars.x}'}}")

    assert found(text, "x=1")[0] == ["unknown key `retires`"]


def test_one_step_may_have_mistakes_of_both_kinds() -> None:
    problems, _ = found(
        with_steps("""
        - {name: s, timeout: never, after: [nobody], file: {path: /a, source: none.txt}}
        - {name: s, file: {path: /a, content: "env://X ${vars.nope}"}}
        """)
    )

    assert len(problems) == 6
    assert "the name `s` is there twice" in problems[3]


def test_what_rolls_over_no_host_is_looked_at_too() -> None:
    text = with_steps("- {name: s, file: {path: '${vars.nope}'}}").replace(
        "- name: t\n", "- name: t\n          rolling: {batch: 1}\n          runOnRoles: [wbe]\n"
    )

    assert [message for message in found(text)[0] if "nope" in message]


def test_nothing_more_is_promised_where_all_was_judged() -> None:
    text = with_steps("- {name: s, timeout: never, noop: }")

    assert found(text)[1] == "correct the places named above; nothing was changed"


def test_a_file_of_which_nothing_can_be_planned_says_that_there_may_be_more() -> None:
    problems, hint = found(pipeline("vars: [1]\nmodules: []"))

    assert problems == ["found a list, want a mapping", "found an empty list"]
    assert hint.endswith(MORE)
