"""Groups: hosts by role that share settings; a host wins over them, they over the pipeline."""

from __future__ import annotations

import pytest
from tests.spec.texts import planned, with_steps

from kubexm.errors import InvalidPipeline, Problem
from kubexm.spec.inventory import InventoryHost

NOOP = "- {name: s, noop: }"


def hosts(spec: str, *overrides: str) -> dict[str, InventoryHost]:
    found = planned(with_steps(NOOP, spec), *overrides).hosts
    return {host.name: host for host in found}


def problems(spec: str, steps: str = NOOP) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidPipeline) as caught:
        planned(with_steps(steps, spec))
    return [_parts(problem) for problem in caught.value.problems]


def _parts(problem: Problem) -> tuple[str, str, str]:
    message = problem.message.split(": ", 1)[-1]
    return problem.where.removeprefix("p.yaml:"), message, problem.hint


SHARED = """
hosts:
  - {name: w, roles: [web]}
  - {name: o, roles: [web], vars: {port: 1}, labels: {zone: own}, sudo: false}
  - {name: d, roles: [db]}
vars: {port: 80, user: app}
groups:
  web: {roles: [web], vars: {port: 8080}, labels: {zone: a, tier: front}, sudo: true}
"""


def test_a_host_wins_over_its_groups_and_these_over_the_pipeline() -> None:
    found = hosts(SHARED)

    assert {name: host.vars["port"] for name, host in found.items()} == {
        "control-node": 80,
        "w": 8080,
        "o": 1,
        "d": 80,
    }
    assert all(host.vars["user"] == "app" for host in found.values())
    assert found["w"].labels == {"zone": "a", "tier": "front"}
    assert found["o"].labels == {"zone": "own", "tier": "front"}
    assert [found[name].sudo for name in "wod"] == [True, False, False]


def test_what_is_set_on_the_command_line_wins_over_groups_too() -> None:
    assert {host.vars["port"] for host in hosts(SHARED, "port=9").values()} == {9}


def test_a_variable_that_only_a_group_has_can_be_set_on_the_command_line() -> None:
    spec = "hosts: [{name: a, roles: [x]}]\ngroups: {g: {roles: [x], vars: {only: 1}}}"

    assert hosts(spec, "only=2")["a"].vars == {"only": 2}


def test_hosts_in_the_same_groups_share_their_variables() -> None:
    found = hosts("hosts: [{name: 'n[1:3]', roles: [x]}]\ngroups: {g: {roles: [x], vars: {a: 1}}}")

    assert found["n1"].vars is found["n3"].vars


def test_variables_and_labels_of_a_group_may_name_the_host() -> None:
    found = hosts(
        """
        hosts: [{name: "n[1:2]", roles: [x]}]
        groups: {g: {roles: [all], vars: {id: "${host.labels.at}"}, labels: {at: "${host.name}"}}}
        """
    )

    assert (found["n1"].vars, found["n2"].vars) == ({"id": "n1"}, {"id": "n2"})


def test_a_group_without_a_minimum_watches_over_nothing() -> None:
    graph = planned(
        with_steps(NOOP, "hosts: [{name: a, roles: [x]}]\ngroups: {g: {roles: [x], sudo: true}}")
    ).graph

    assert graph.groups == ()


CONFLICT = """
hosts:
  - {name: "n[1:5]", roles: [x, y]}
  - {name: own, roles: [x, y], vars: {port: 3}, labels: {zone: c}, sudo: false}
  - {name: one, roles: [x]}
groups:
  first: {roles: [x], vars: {port: 1, same: 1}, labels: {zone: a}, sudo: true}
  second: {roles: [y], vars: {port: 2, same: 1}, labels: {zone: b}, sudo: false}
"""


def test_groups_that_give_a_host_different_values_are_refused_by_name() -> None:
    on = "on `n1`, `n2`, `n3` and 2 more"
    hint = "give it in one of them, or at the host, which wins"

    assert problems(CONFLICT) == [
        (
            "11:39",
            f"the groups `first` and `second` give different values to `vars.port` {on}",
            hint,
        ),
        (
            "11:67",
            f"the groups `first` and `second` give different values to `labels.zone` {on}",
            hint,
        ),
        ("11:77", f"the groups `first` and `second` give different values to `sudo` {on}", hint),
    ]


def test_what_is_wrong_in_a_group_comes_with_all_other_problems() -> None:
    found = problems(
        """
        hosts: [{name: a, roles: [x]}]
        groups:
          g: {roles: [x], vars: {a: "${facts.arch}", b: "${vars.none}", c: 1}, sudo: maybe}
          h: {roles: [x], labels: {z: "${vars.c}"}, colour: red}
          i: {roles: [nobody], vars: {d: 1}}
        """,
        "- {name: s, file: {path: /a, content: '${vars.a} ${vars.c} ${vars.d}', mode: 7}}",
    )

    assert [message for _, message, _ in found] == [
        "`${facts.arch}` in a variable",
        "`vars` has no `none` on `a`",
        "found the text `maybe`, want `true` or `false`",
        "`${vars.c}` in a label",
        "unknown key `colour`",
        "no host has the role `nobody`",
        "`mode` is the number 7, want octal digits as text in quotes",
    ]


def test_a_wrong_minimum_hides_nothing_that_the_group_gives() -> None:
    found = problems(
        "hosts: [{name: a, roles: [x]}]\ngroups: {g: {roles: [x], minimum: 0, vars: {a: 1}}}",
        "- {name: s, file: {path: /a, content: '${vars.a} ${vars.b}'}}",
    )

    assert [message for _, message, _ in found] == [
        "found the number 0, want at least 1",
        "`vars` has no `b`",
    ]


def test_a_host_may_be_in_very_many_groups() -> None:
    groups = ", ".join(
        f"g{number}: {{roles: [all], vars: {{v{number}: 1}}}}" for number in range(2000)
    )

    assert len(hosts(f"hosts: [{{name: a}}]\ngroups: {{{groups}}}")["a"].vars) == 2000
