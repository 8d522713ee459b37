"""What former plans of a cluster have left has its place on the way back."""

from __future__ import annotations

from kubexm.pipeline.delete import Former, backwards
from kubexm.plan.fragment import ExecutionFragment, per_host, replace
from kubexm.plan.node import ExecutionNode
from kubexm.plan.records import FORMER
from kubexm.step.contract import Step
from kubexm.step.files import Directory, FilePresent

PLACE = Directory("/srv/app")


def fragment(name: str, step: Step) -> ExecutionFragment:
    id = f"create-cluster/{name}"
    return ExecutionFragment((ExecutionNode(id, name, step.spec(), hosts=("h1",)),))


def made(name: str, path: str) -> ExecutionFragment:
    return fragment(name, FilePresent(path, content="x"))


def place() -> ExecutionFragment:
    return fragment("place", PLACE)


def left(one: ExecutionNode, number: int) -> ExecutionNode:
    return replace(one, id=f"{one.id}{FORMER}{number}", after=(), after_same_host=())


def former(plan: ExecutionFragment, name: str, number: int) -> Former:
    (one,) = (each for each in plan.nodes if each.id == f"create-cluster/{name}")
    return Former(plan, {one.id: (left(one, number),)})


def order(newest: ExecutionFragment, *plans: Former) -> dict[str, set[str]]:
    """What comes right before what."""
    found = backwards(newest, plans)
    return {
        each.id.removeprefix("delete-cluster/"): {
            id.removeprefix("delete-cluster/") for id in each.after_same_host
        }
        for each in found.nodes
    }


def test_what_is_left_goes_after_what_stood_on_it_and_before_what_it_stood_on() -> None:
    before = per_host(place(), made("gone", "/srv/app/gone"), made("used", "/srv/app/used"))
    newest = per_host(place(), made("used", "/srv/app/used"))

    found = order(newest, former(before, "gone", 1))

    assert found["gone/@former/1"] == {"used"}
    assert found["place"] == {"used", "gone/@former/1"}


def test_what_was_elsewhere_before_goes_the_latest_first() -> None:
    plans = [per_host(place(), made("conf", f"/srv/app/{name}")) for name in ("a", "b", "c")]

    found = order(plans[2], former(plans[1], "conf", 1), former(plans[0], "conf", 2))

    assert found["conf/@former/1"] == {"conf"}
    assert found["conf/@former/2"] == {"conf", "conf/@former/1"}
    assert found["place"] == {"conf", "conf/@former/1", "conf/@former/2"}


def test_where_plans_contradict_each_other_what_is_left_goes_first() -> None:
    before = per_host(made("a", "/a"), made("gone", "/gone"), made("b", "/b"))
    newest = per_host(made("b", "/b"), made("a", "/a"))

    found = order(newest, former(before, "gone", 1))

    assert found["gone/@former/1"] == set()
    assert found["a"] == {"gone/@former/1"}
    assert found["b"] == {"a"}


def test_notes_are_forgotten_on_hosts_that_only_a_former_plan_has() -> None:
    other = replace(place().nodes[0], hosts=("h2",))
    plan = Former(ExecutionFragment((other,)), {other.id: (left(other, 1),)})

    found = {each.id: each.hosts for each in backwards(place(), [plan]).nodes}

    assert found["delete-cluster/notes"] == ("h1", "h2")
