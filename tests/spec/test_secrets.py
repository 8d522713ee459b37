"""References to secrets: refused where nothing resolves them, and known before a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.spec.texts import nodes, planned, with_steps

from kubexm.errors import InvalidInput, InvalidPipeline
from kubexm.spec.parameters import parameters_of
from kubexm.spec.secrets import of_connections, uses
from kubexm.step import registry
from kubexm.step.parameters import SECRETS

VARS = """
hosts: [{name: a, roles: [web]}, {name: b, roles: [db], vars: {own: env://OWN}}]
vars: {dbPassword: "env://PW", keyPassword: "file:///pw", repo: "file:///srv", own: none}
"""


def refusals(steps: str) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidPipeline) as caught:
        nodes(with_steps(steps, VARS))
    return [
        (item.where, item.message.split(": ", 1)[1], item.hint) for item in caught.value.problems
    ]


@pytest.mark.parametrize(
    ("step", "instead"),
    [
        ("command: {argv: [x], env: {A: 'env://PW'}}", "secretEnv"),
        ("value: {key: k, scope: host, argv: [x], env: {A: 'env://PW'}}", "secretEnv"),
        ("command: {argv: [x], stdin: 'file:///pw'}", "secretStdin"),
        ("command: {argv: [x, '--token', 'vault://a#b']}", "secretEnv"),
        ("file: {path: /a, content: 'pw=env://PW'}", "secret-template"),
        ("template: {path: /a, text: x, data: {password: 'file:///pw'}}", "secret-template"),
        ("line: {path: /a, line: 'env://PW'}", "secret-template"),
        ("file: {path: /a, content: 'pw=${vars.dbPassword}'}", "secret-template"),
        ("file: {path: /a, content: 'pw=${vars.keyPassword}'}", "secret-template"),
        ("file: {path: /a, content: '${item}'}, forEach: ['env://PW']", "secret-template"),
    ],
)
def test_a_reference_that_nothing_resolves_is_refused(step: str, instead: str) -> None:
    (problem,) = refusals(f"- {{name: s, {step}}}")

    assert "nothing resolves" in problem[1]
    assert instead in problem[2]


def test_it_names_the_hosts_whose_variables_bring_it_and_its_line() -> None:
    (problem,) = refusals(
        "- name: s\n  file:\n    path: /a\n    content: |\n      one\n      pw ${vars.own}\n"
    )

    assert problem[0] == "p.yaml:17:22"
    assert problem[1] == "`${vars.own}` holds `env://OWN`, which nothing resolves here on `b`"


def test_what_is_resolved_or_is_an_address_stays() -> None:
    found = nodes(
        with_steps(
            """
            - {name: a, command: {argv: [x], secretEnv: {A: "${vars.dbPassword}"}}}
            - {name: b, command: {argv: [x], secretStdin: "env://PW"}}
            - {name: c, secret-file: {path: /a, content: "${vars.keyPassword}"}}
            - {name: d, secret-template: {path: /a, text: x, secrets: {x: "env://PW"}}}
            - {name: e, file: {path: /a, content: "baseurl=${vars.repo}"}}
            - {name: f, command: {argv: [x, "file:///srv"], env: {REPO: "${vars.repo}"}}}
            """,
            VARS,
        )
    )

    assert len(found) == 6


def test_the_fields_that_resolve_are_those_whose_classes_want_references() -> None:
    found: dict[str, set[str]] = {}
    for kind in registry.kinds():
        for parameter in parameters_of(kind).values():
            for value in ("x", {"a": "x"}):
                if wants_a_reference(kind, parameter.field, value):
                    found.setdefault(kind, set()).add(parameter.field)

    assert found == {kind: set(fields) for kind, fields in SECRETS.items()}


def wants_a_reference(kind: str, field: str, value: Any) -> bool:
    samples: Mapping[str, Any] = {
        "argv": ["x"],
        "key": "x",
        "path": "/x",
        "text": "x",
        "secrets": {},
        "name": "x",
        "as_name": "x/x",
        "registry": "x",
        "architectures": ["x"],
    }
    required = {p.field for p in parameters_of(kind).values() if p.required}
    given = {
        name: samples[name] for name in samples if name in required or kind == "secret-template"
    }
    if kind == "secret-file":
        given["content"] = "env://X"
    known = {parameter.field for parameter in parameters_of(kind).values()}
    try:
        registry.load(kind, {**{k: v for k, v in given.items() if k in known}, field: value})
    except InvalidInput as error:
        return "is no reference to a secret" in error.message
    return False


def test_the_secrets_of_a_run_are_known_as_far_as_its_conditions_are() -> None:
    found = nodes(
        with_steps(
            """
            - {name: a, command: {argv: [x], secretEnv: {A: "${vars.own}", B: "env://B"}}}
            - {name: b, when: host.name == 'a', secret-file: {path: /a, content: "env://C"}}
            - {name: c, when: host.name == 'z', secret-file: {path: /a, content: "env://D"}}
            - {name: d, when: facts.arch == 'z', secret-file: {path: /a, content: "env://E"}}
            """,
            "hosts: [{name: a}, {name: b, vars: {own: env://OWN}}]\nvars: {own: env://A}",
        )
    ).values()
    early = {
        "a": {"vars": {"own": "env://A"}, "host": {"name": "a"}},
        "b": {"vars": {"own": "env://OWN"}, "host": {"name": "b"}},
    }
    later = {name: {**scope, "facts": {"arch": "z"}} for name, scope in early.items()}

    before = {(use.uri, use.node, use.parameter) for use in uses(found, early)}
    after = {use.uri for use in uses(found, later)}
    perhaps = {use.uri for use in uses(found, early, undecided=True)}

    assert before == {
        ("env://A", "p/m/t/a", "`secretEnv.A`"),
        ("env://OWN", "p/m/t/a", "`secretEnv.A`"),
        ("env://B", "p/m/t/a", "`secretEnv.B`"),
        ("env://C", "p/m/t/b", "`content`"),
    }
    assert after == perhaps == {"env://A", "env://OWN", "env://B", "env://C", "env://E"}


def test_the_secrets_of_connections_are_known_with_who_needs_them() -> None:
    hosts = planned(
        with_steps(
            "- {name: s, noop: }",
            """
            hosts:
              - {name: a, ssh: {jump: b, passphrase: "env://A"}}
              - {name: b, sudo: true, ssh: {password: "env://B", jump: {address: e}}}
              - {name: c, connection: local, sudo: true}
              - {name: d, ssh: {jump: {address: e, password: "env://D"}}}
            groups:
              g: {roles: [all], ssh: {become: {password: "prompt://root"}}}
            """,
        )
    ).hosts

    found = {(use.uri, use.host, use.setting) for use in of_connections(hosts)}

    assert found == {
        ("env://A", "a", "`ssh.passphrase`"),
        ("env://B", "b", "`ssh.password`"),
        ("env://D", "d", "`ssh.jump.password`"),
        ("prompt://root", "b", "`ssh.become.password`"),
    }
