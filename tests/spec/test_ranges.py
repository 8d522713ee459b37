"""Ranges: one entry of the inventory stands for many hosts, and messages name the hosts."""

from __future__ import annotations

import pytest
from tests.spec.texts import planned, with_steps

from kubexm.document import ranges
from kubexm.document.ranges import BadRange
from kubexm.errors import InvalidPipeline, Problem
from kubexm.spec.inventory import InventoryHost

NOOP = "- {name: s, noop: }"


def hosts(spec: str) -> dict[str, InventoryHost]:
    """The hosts of an inventory without the control node."""
    found = planned(with_steps(NOOP, spec)).hosts
    return {host.name: host for host in found[1:]}


def problems(spec: str, steps: str = NOOP) -> tuple[Problem, ...]:
    with pytest.raises(InvalidPipeline) as caught:
        planned(with_steps(steps, spec))
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("n", ["n"]),
        ("n[1:3]", ["n1", "n2", "n3"]),
        ("n[8:11]", ["n8", "n9", "n10", "n11"]),
        ("n[08:11]", ["n08", "n09", "n10", "n11"]),
        ("n[098:101]", ["n098", "n099", "n100", "n101"]),
        ("n[01:3]", ["n01", "n02", "n03"]),
        ("n[0:2]", ["n0", "n1", "n2"]),
        ("n[5:5]", ["n5"]),
        ("[a:c]", ["a", "b", "c"]),
        ("[X:Z]-n", ["X-n", "Y-n", "Z-n"]),
        ("r[1:2]-n[a:b]", ["r1-na", "r1-nb", "r2-na", "r2-nb"]),
        ("fd00::[1:2]", ["fd00::1", "fd00::2"]),
        ("[fd00::[1:2]]", ["[fd00::1]", "[fd00::2]"]),
        ("[::1]", ["[::1]"]),
    ],
)
def test_a_pattern_stands_for_all_its_members(text: str, members: list[str]) -> None:
    pattern = ranges.parse(text)

    assert [*pattern.members()] == members
    assert (pattern.size, pattern.last) == (len(members), members[-1])


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("n[5:2]", "write `[2:5]`"),
        ("n[c:a]", "write `[a:c]`"),
        ("n[1:]", "write both ends"),
        ("n[:9]", "write both ends"),
        ("n[]", "write both ends"),
        ("n[3]", "write both ends"),
        ("n[1:9:2]", "write both ends"),
        ("n[1-9]", "write both ends"),
        ("n[a:C]", "write both ends"),
        ("n[1:c]", "write both ends"),
        ("n[aa:cc]", "write both ends"),
        ("n[1:020]", "write `[001:020]`"),
        ("n[1:3", "write both ends"),
        ("n1:3]", "write both ends"),
    ],
)
def test_what_is_no_range_says_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(BadRange) as caught:
        ranges.parse(text)

    assert hint in caught.value.hint


def test_a_range_in_the_name_makes_hosts_that_are_alike() -> None:
    found = hosts(
        "hosts: [{name: 'node[01:20]', address: '10.0.0.[11:30]', roles: [worker], sudo: true}]"
    )

    assert [*found][::19] == ["node01", "node20"]
    assert len(found) == 20
    assert (found["node01"].address, found["node20"].address) == ("10.0.0.11", "10.0.0.30")
    assert all(host.roles == ("worker",) and host.sudo for host in found.values())


def test_a_host_without_an_address_is_reached_by_its_own_name() -> None:
    found = hosts("hosts: [{name: 'n[1:2]'}, {name: 'm[1:2]', address: shared}]")

    assert {host.address for host in found.values()} == {"n1", "n2", "shared"}


def test_hosts_that_share_an_address_are_warned_of() -> None:
    (warning,) = planned(with_steps(NOOP, "hosts: [{name: 'm[1:2]', address: shared}]")).warnings

    assert "2 hosts have this address" in warning.message
    assert warning.where == "p.yaml:5:37"


def test_several_ranges_are_paired_in_order() -> None:
    found = hosts("hosts: [{name: 'r[1:2]n[1:2]', address: '10.0.[1:2].[1:2]'}]")

    assert {name: host.address for name, host in found.items()} == {
        "r1n1": "10.0.1.1",
        "r1n2": "10.0.1.2",
        "r2n1": "10.0.2.1",
        "r2n2": "10.0.2.2",
    }


def test_variables_and_labels_may_name_the_host_they_are_of() -> None:
    found = hosts(
        """
        hosts:
          - name: n[1:2]
            address: 10.0.0.[1:2]
            labels: {at: "${host.address}", kind: plain}
            vars: {id: "${host.name}-${host.labels.at}"}
        """
    )

    assert found["n2"].labels == {"at": "10.0.0.2", "kind": "plain"}
    assert found["n2"].vars == {"id": "n2-10.0.0.2"}


def test_the_nodes_of_a_plan_name_the_hosts() -> None:
    graph = planned(with_steps(NOOP, "hosts: [{name: 'n[1:3]'}]")).graph

    assert graph.nodes["p/m/t/s"].hosts == ("n1", "n2", "n3")


def test_what_is_wrong_on_hosts_of_a_range_names_them() -> None:
    (problem,) = problems("hosts: [{name: 'n[1:5]', vars: {a: '${vars.b}'}}]")

    assert problem.message.endswith("`vars` has no `b` on `n1`, `n2`, `n3` and 2 more")
    assert problem.where == "p.yaml:5:38"


def test_all_that_is_wrong_with_ranges_comes_at_once_with_other_problems() -> None:
    found = problems(
        """
        hosts:
          - {name: "a[5:2]"}
          - {name: "b[1:]"}
          - {name: "c[1:3]", address: "10.0.0.[1:4]"}
          - {name: d, address: "10.0.0.[1:4]"}
          - {name: "e[1:3]"}
          - {name: "e[2:9]"}
          - {name: "f[1:11][1:11]"}
          - {name: "g[1:20000]"}
          - {name: "h[1:2]", address: "10.0.0.[1:"}
          - {name: i, labels: {at: "${facts.arch}"}}
        """,
        "- {name: s, noop: , colour: red}",
    )

    said = [(item.where, item.message.split(": ", 1)[1], item.hint) for item in found]
    assert [(where.removeprefix("p.yaml:"), message) for where, message, _ in said] == [
        ("6:14", "found `[5:2]`, want a range that goes up"),
        ("7:14", "found `[1:]`, want a range of numbers or of letters"),
        ("8:33", "found 4 addresses, want 3, as many as there are names"),
        ("9:26", "found 4 addresses, want 1, as many as there are names"),
        ("11:14", "the hosts `e2`, `e3` are there twice"),
        ("12:14", "the ranges make `f111` more than once"),
        ("13:14", "ranges make 20135 hosts up to here, want at most 10000"),
        ("14:33", "found `10.0.0.[1:`, in which a bracket has no partner"),
        ("15:30", "`${facts.arch}` in a label"),
        ("21:33", "unknown key `colour`"),
    ]
    assert all(hint for _, _, hint in said)


def test_ten_thousand_hosts_are_not_too_many() -> None:
    assert len(hosts("hosts: [{name: 'a[1:100]b[1:100]'}]")) == 10_000


def test_a_name_that_gets_too_long_or_too_odd_is_refused() -> None:
    long, odd = problems(f"hosts: [{{name: '{'n' * 99}[1:10]'}}, {{name: 'a b[1:2]'}}]")

    assert "want a name" in long.message
    assert "found `a b[1:2]`, want a name" in odd.message


def test_the_name_of_the_control_node_is_not_made_by_a_range() -> None:
    (problem,) = problems("hosts: [{name: 'control-nod[d:f]'}]")

    assert "`control-node` is made by the program" in problem.message
