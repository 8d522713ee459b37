"""What it takes to reach hosts is asked for before the first connection, all at once."""

from __future__ import annotations

import pytest
from tests.spec.texts import with_steps

from kubexm.app.readiness import Readiness, early
from kubexm.common.secrets import SecretRef
from kubexm.errors import InvalidInput, Problem
from kubexm.runtime.build import nobody_to_ask
from kubexm.runtime.secrets import SecretVault
from kubexm.spec.pipeline import parse_pipeline
from kubexm.spec.planner import PlannedPipeline, plan

STEPS = "- {name: s, command: {argv: [x], secretEnv: {A: 'env://UNSET_OF_STEP'}}}"
HOSTS = """
hosts: [{name: "n[1:3]", sudo: true}, {name: b}]
ssh: {password: "env://UNSET_OF_SSH", jump: b, become: {password: "prompt://root"}}
"""


class Person:
    """Types an answer, and remembers what was asked."""

    def __init__(self, answer: str = "correct-horse") -> None:
        self.asked: list[str] = []
        self._answer = answer

    def __call__(self, what: str) -> str:
        self.asked.append(what)
        return self._answer


def planned(steps: str, spec: str, *, allow_literal_secrets: bool = False) -> PlannedPipeline:
    text = with_steps(steps, spec)
    return plan(parse_pipeline(text, "p.yaml", allow_literal_secrets=allow_literal_secrets))


def require(pipeline: PlannedPipeline, vault: SecretVault) -> None:
    graph, places = pipeline.graph, pipeline.places
    ready = Readiness(graph, nobody_to_ask, places=places, hosts=pipeline.hosts, vault=vault)
    ready.require(early(pipeline.hosts))


def refused(pipeline: PlannedPipeline, vault: SecretVault) -> list[Problem]:
    with pytest.raises(InvalidInput) as caught:
        require(pipeline, vault)
    return [*caught.value.problems]


def test_secrets_of_connections_and_of_steps_are_missed_together() -> None:
    found = refused(planned(STEPS, HOSTS), SecretVault())

    assert [problem.message.split("; ") for problem in found] == [
        [
            "the environment variable `UNSET_OF_SSH` is not set",
            "`ssh.password` of `n1` and 3 more hosts need it",
        ],
        [
            "there is no terminal to ask for `prompt://root` on",
            "`ssh.become.password` of `n1` and 2 more hosts need it",
        ],
        [
            "the environment variable `UNSET_OF_STEP` is not set",
            "`secretEnv.A` of `p/m/t/s` needs it",
        ],
    ]
    assert [problem.where for problem in found] == ["p.yaml:6:19", "p.yaml:6:69", "p.yaml:12:15"]
    assert all(problem.hint for problem in found)


def test_nobody_is_asked_for_a_run_that_lacks_something_else() -> None:
    person = Person()

    found = refused(planned(STEPS, HOSTS), SecretVault(person))

    assert len(found) == 2
    assert person.asked == []


def test_a_person_is_asked_once_for_all_hosts_and_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSET_OF_SSH", "correct-battery")
    person = Person()
    vault = SecretVault(person)
    steps = "- {name: s, command: {argv: [x], secretEnv: {A: 'prompt://root'}}}"

    require(planned(steps, HOSTS), vault)
    require(planned(steps, HOSTS), vault)

    assert person.asked == ["root"]
    assert vault.reveal(SecretRef("prompt://root")) == "correct-horse"
    assert vault.redact("correct-battery") == "***"


def test_what_may_be_needed_later_is_asked_for_early_and_missed_only_when_it_is_needed() -> None:
    steps = "- {name: s, when: facts.cpus > 1, secret-file: {path: /a, content: 'prompt://key'}}"
    pipeline, person = planned(steps, "hosts: [{name: a}]"), Person()

    require(pipeline, SecretVault())
    require(pipeline, SecretVault(person))

    assert person.asked == ["key"]


def test_an_empty_answer_is_missed() -> None:
    pipeline = planned("- {name: s, noop: }", "hosts: [{name: a, ssh: {password: 'prompt://a'}}]")

    (problem,) = refused(pipeline, SecretVault(Person("")))

    assert problem.message == ("nothing was typed for `prompt://a`; `ssh.password` of `a` needs it")


def test_a_password_written_out_and_accepted_is_hidden_before_the_first_connection() -> None:
    vault = SecretVault()
    pipeline = planned(
        "- {name: s, noop: }",
        "hosts: [{name: a, ssh: {password: hunter2}}]",
        allow_literal_secrets=True,
    )

    require(pipeline, vault)

    assert vault.redact("password hunter2") == "password ***"
