"""What a node and a run come to, from what their hosts came to."""

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubexm.plan import Cause, GraphExecutionResult, HostResult, NodeResult
from kubexm.plan.result import FINAL, Status, node_message, node_status

SATISFIED = HostResult("n1", "Skipped", skipped=True)
HELD_BACK = HostResult("n1", "Skipped", cause=Cause("g/a", "n3", "no space left"))
STATUSES: tuple[Status, ...] = get_args(Status)


def ended(*statuses: Status) -> list[HostResult]:
    return [HostResult(f"n{number}", status) for number, status in enumerate(statuses)]


def test_a_node_all_of_whose_hosts_were_satisfied_is_a_success() -> None:
    assert node_status([SATISFIED, SATISFIED]) == "Success"
    assert SATISFIED.satisfied
    assert not HELD_BACK.satisfied


def test_a_node_is_skipped_only_if_none_of_its_hosts_started() -> None:
    assert node_status([HELD_BACK, HELD_BACK]) == "Skipped"
    assert node_status([HELD_BACK, SATISFIED]) == "Success"
    assert node_status([HELD_BACK, *ended("Success")]) == "Success"


WORST: list[Status] = ["Failed", "Cancelled", "RolledBack", "Success"]


@pytest.mark.parametrize(("worse", "better"), list(product(WORST, WORST)))
def test_a_node_is_the_worst_of_its_hosts(worse: Status, better: Status) -> None:
    expected = min(worse, better, key=WORST.index)

    assert node_status(ended(worse, better)) == expected


def test_failures_within_the_tolerance_do_not_count() -> None:
    hosts = ended("Success", "Failed")

    assert node_status(hosts, frozenset(["n1"])) == "Success"
    assert node_status(hosts, frozenset(["n0"])) == "Failed"
    assert node_status(ended("Failed"), frozenset(["n0"])) == "Success"


def test_a_node_is_running_from_its_first_unit_to_its_last() -> None:
    assert node_status(ended("Pending", "Pending")) == "Pending"
    assert node_status(ended("Running", "Pending")) == "Running"
    assert node_status(ended("Success", "Pending")) == "Running"
    assert node_status([SATISFIED, *ended("Pending")]) == "Running"


@given(st.lists(st.sampled_from(sorted(FINAL)), min_size=1))
def test_a_node_whose_hosts_are_final_is_final(statuses: list[Status]) -> None:
    assert node_status(ended(*statuses)) in FINAL


@given(st.lists(st.sampled_from(STATUSES), min_size=1))
def test_the_order_of_hosts_does_not_matter(statuses: list[Status]) -> None:
    hosts = ended(*statuses)

    assert node_status(hosts) == node_status(hosts[::-1])


def test_a_failed_node_says_which_host_failed_and_why() -> None:
    failed = HostResult("n2", "Failed", "exit 1")

    assert node_message({"n1": HELD_BACK, "n2": failed}, "Failed") == "n2: exit 1"


def test_a_skipped_node_names_the_root_cause() -> None:
    assert node_message({"n1": HELD_BACK}, "Skipped") == "g/a on n3: no space left"


def test_a_cancelled_node_does_not_blame_a_failure_that_was_tolerated() -> None:
    tolerated = HostResult("n1", "Failed", "no answer")
    cancelled = HostResult("n2", "Cancelled", "cancelled")

    assert node_message({"n1": tolerated, "n2": cancelled}, "Cancelled") == "cancelled"


def test_a_success_needs_no_message() -> None:
    assert node_message({"n1": HELD_BACK}, "Success") == ""


def test_counts_are_of_units() -> None:
    both = {host.host_name: host for host in ended("Success", "Failed")}
    first = NodeResult("a", "command", host_results=both)
    second = NodeResult("b", "command", host_results={"n1": HostResult("n1", changed=True)})

    result = GraphExecutionResult("g", "Failed", {"g/a": first, "g/b": second})

    assert result.counts == {"Success": 1, "Failed": 1, "Pending": 1}
    assert result.changed == 1


def test_a_cause_says_where_it_began() -> None:
    assert str(Cause("g/a", "n1", "no answer")) == "g/a on n1: no answer"
    assert str(Cause("g", "", "minimum not met")) == "g: minimum not met"
