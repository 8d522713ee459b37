"""Values that units leave for others: readers, minters, and how long values hold."""

import asyncio
from datetime import date
from typing import Any

import pytest
from tests.engine.stage import (
    Actor,
    Play,
    Stage,
    fails,
    noting,
    of,
    play,
    raising,
    statuses,
    unreachable,
)

from kubexm.errors import CommandFailed, InvalidGraph, StepFailed
from kubexm.plan import Key, RetryPolicy, chain, link, one_of, parallel, per_host
from kubexm.plan.events import NodeFinished, ProducedValue, UnitFinished
from kubexm.plan.records import RunState, UnitDone
from kubexm.plan.result import HostResult
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Minter, NotYet, Outcome, Reader, Verdict

TOKEN = Key("token")


def reader(**values: Any) -> Actor:
    return Actor(role=Reader, values=values)


def minter(**values: Any) -> Actor:
    return Actor(role=Minter, values=values)


class Taker(Actor):
    """Takes note of the values it gets."""

    def __init__(self, **more: Any) -> None:
        super().__init__(run=self.take, **more)
        self.got: list[dict[str, Any]] = []

    def take(self, ctx: StepContext) -> None:
        self.got.append(dict(ctx.values))


# Readers.


def test_a_reader_always_runs_and_leaves_its_value() -> None:
    taker = Taker()
    stage = Stage(r=reader(v=[1, "two"]), a=taker)

    result = stage.run(chain(play("r", provides=[Key("v")]), play("a", needs=["v"])))

    assert taker.got == [{"v": [1, "two"]}]
    assert stage.started("precheck") == [("a", "h1")]
    assert (of(result, "r").status, of(result, "r").changed) == ("Success", False)


def test_a_reader_changes_nothing_whatever_it_says() -> None:
    stage = Stage(r=Actor(role=Reader, run=lambda ctx: Outcome(changed=True)))

    assert not of(stage.run(play("r")), "r").changed


def test_a_value_of_the_run_crosses_barriers_to_every_host() -> None:
    taker = Taker()
    stage = Stage(r=reader(v=1), a=taker)

    stage.run(chain(play("r", "h9", provides=[Key("v")]), play("a", "h1", "h2", needs=["v"])))

    assert taker.got == [{"v": 1}, {"v": 1}]


def test_a_value_of_a_host_travels_along_same_host_edges() -> None:
    taker = Taker()
    stage = Stage(r=Actor(role=Reader, run=lambda ctx: Outcome(values={"v": ctx.host.name})))
    stage.actors["a"] = taker
    key = Key("v", "host")

    stage.run(per_host(play("r", "h1", "h2", provides=[key]), play("a", "h1", "h2", needs=["v"])))

    assert {got["v"] for got in taker.got} == {"h1", "h2"}


def test_a_graph_in_which_a_value_reaches_nobody_is_refused() -> None:
    provider = play("r", provides=[Key("v")])

    with pytest.raises(InvalidGraph, match="does not wait for `r`, which provides it"):
        Stage().run(parallel(provider, play("a", needs=["v"])))


def test_a_unit_sees_only_the_values_it_asked_for() -> None:
    taker = Taker()
    stage = Stage(r=reader(v=1, w=2), a=taker)

    stage.run(chain(play("r", provides=[Key("v"), Key("w")]), play("a", needs=["w"])))

    assert taker.got == [{"w": 2}]


def test_a_reader_may_poll() -> None:
    answers = [NotYet(5.0, "no leader"), None]
    stage = Stage(r=Actor(role=Reader, run=lambda ctx: answers.pop(0), values={"v": 1}))

    result = stage.run(chain(play("r", provides=[Key("v")]), play("a", needs=["v"])))

    assert (result.status, stage.end) == ("Success", 5.0)


def test_a_reader_is_tried_again_as_its_policy_says() -> None:
    def flaky(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            raise StepFailed("no")

    stage = Stage(r=Actor(role=Reader, run=flaky, values={"v": 1}))
    retry = RetryPolicy(attempts=2)

    assert of(stage.run(play("r", provides=[Key("v")], retry=retry)), "r").attempts == 2


# What was promised.


@pytest.mark.parametrize("values", [{}, {"other": 1}, {"v": 1, "more": 2}])
def test_a_step_that_leaves_other_values_than_promised_has_failed(values: dict[str, Any]) -> None:
    stage = Stage(r=reader(**values))

    result = stage.run(chain(play("r", provides=[Key("v")]), play("a", needs=["v"])))

    assert "but promised ['v']" in of(result, "r").message
    assert of(result, "a").status == "Skipped"


def test_a_step_that_promised_none_may_leave_none() -> None:
    stage = Stage(a=Actor(values={"v": 1}))

    assert of(stage.run(play("a")), "a").status == "Failed"


def test_a_value_that_is_no_json_fails_its_unit() -> None:
    stage = Stage(r=reader(v=object()))

    result = stage.run(chain(play("r", provides=[Key("v")]), play("a", needs=["v"])))

    assert "`v`, which is no JSON" in of(result, "r").message


def test_a_value_is_at_once_what_it_would_be_after_a_resume() -> None:
    taker = Taker()
    stage = Stage(r=reader(v=(1, date(2026, 1, 2))), a=taker)

    stage.run(chain(play("r", provides=[Key("v")]), play("a", needs=["v"])))

    assert taker.got == [{"v": [1, "2026-01-02"]}]


def test_values_and_result_are_one_record() -> None:
    stage = Stage(r=reader(v=1))

    stage.run(play("r", provides=[Key("v", ttl=60.0)]))

    (record,) = stage.records
    assert isinstance(record, UnitDone)
    assert record.values == (ProducedValue(key="v", host="", value=1, expires=60.0),)


# Readers that leave nothing.


def test_a_failed_reader_holds_its_consumers_back() -> None:
    stage = Stage(r=fails("no api"))
    stage.actors["r"].role = Reader

    result = stage.run(chain(play("r", provides=[Key("v")]), play("a", needs=["v"])))

    assert of(result, "a").message == "held back by r on h1: no api"


def test_a_reader_whose_errors_are_ignored_can_still_not_be_done_without() -> None:
    stage = Stage(r=fails("no api"))
    stage.actors["r"].role = Reader

    result = stage.run(
        chain(
            play("r", provides=[Key("v")], ignore_errors=True),
            play("a", "h1", "h2", needs=["v"]),
        )
    )

    assert of(result, "a", "h2").message == "held back by r on h1: no api"
    assert stage.order("r") == ["r"]
    assert result.status == "Failed"


def test_consumers_on_other_hosts_are_held_back_if_the_readers_host_is_lost() -> None:
    stage = Stage(r=unreachable())
    stage.actors["r"].role = Reader

    result = stage.run(
        chain(play("r", "h9", provides=[Key("v")]), play("a", "h1", needs=["v"])),
        graph={"hosts": ("h9", "h1")},
    )

    assert of(result, "a").message == "held back by r on h9: no route"
    assert result.status == "Failed"


def test_a_reader_that_was_not_wanted_leaves_nothing_to_build_on() -> None:
    stage = Stage(r=Actor(role=Reader, values={"v": 1}, when=lambda view: False))

    result = stage.run(chain(play("r", provides=[Key("v")], when="false"), play("a", needs=["v"])))

    assert of(result, "a").status == "Failed"
    assert "`r` on `h1` left none: `when` does not hold" in of(result, "a").message


# Minters.


class Deciding(Stage):
    """A stage on which the precheck of `a` goes by the token."""

    def load(self, node: Any) -> Any:
        loaded: Any = super().load(node)
        if node.id == "a":
            loaded.decisive = frozenset(["token"])
        return loaded


def test_a_value_that_a_precheck_goes_by_is_made_before_it() -> None:
    seen: list[Any] = []

    def look(ctx: StepContext) -> Verdict:
        seen.append(ctx.values["token"])
        return Verdict.holds()

    stage = Deciding(m=minter(token="t"), a=Actor(precheck=look))

    result = stage.run(chain(play("m", provides=[TOKEN]), play("a", needs=["token"])))

    assert (seen, stage.order()) == (["t"], ["m"])
    assert of(result, "a").satisfied


def test_in_a_dry_run_what_goes_by_a_value_not_made_is_not_known() -> None:
    stage = Deciding(m=minter(token="t"), a=Actor(satisfied=True))
    plan = chain(play("m", provides=[TOKEN]), play("a", needs=["token"]))

    result = stage.run(plan, dry_run=True)

    assert (of(result, "a").sign, of(result, "m").sign) == ("?", "+")
    assert stage.started("precheck") == []


def test_a_minter_that_nobody_asked_goes_down_with_its_host() -> None:
    stage = Stage(m=minter(token="t"), x=unreachable("h1"))

    result = stage.run(parallel(chain(play("m", provides=[TOKEN]), play("b", "h2")), play("x")))

    cause = of(result, "m").cause
    assert cause is not None
    assert (cause.node, of(result, "m").satisfied) == ("x", False)
    assert (of(result, "b", "h2").status, result.degraded) == ("Success", True)


def test_a_minter_runs_only_when_a_dependents_precheck_said_so() -> None:
    taker = Taker()
    stage = Stage(m=minter(token="t"), a=taker)

    result = stage.run(chain(play("m", provides=[TOKEN]), play("a", needs=["token"])))

    assert [note[1:3] for note in stage.notes if note[1] != "end"] == [
        ("precheck", "a"),
        ("start", "m"),
        ("start", "a"),
    ]
    assert taker.got == [{"token": "t"}]
    assert of(result, "m").changed


def test_a_minter_that_nobody_needs_never_runs() -> None:
    stage = Stage(m=minter(token="t"), a=Actor(satisfied=True))

    result = stage.run(chain(play("m", provides=[TOKEN]), play("a", "h1", "h2", needs=["token"])))

    assert stage.started() == []
    assert (of(result, "m").satisfied, of(result, "m").message) == (True, "nobody needs it")
    assert result.node_results["m"].status == "Success"


def test_a_minter_runs_once_for_all_who_need_it() -> None:
    hosts = [f"h{number}" for number in range(20)]
    taker = Taker()
    stage = Stage(m=minter(token="t"), a=taker)
    stage.actors["m"].duration = 5.0

    stage.run(chain(play("m", "h0", provides=[TOKEN]), play("a", *hosts, needs=["token"])))

    assert stage.order("m") == ["m"]
    assert taker.got == [{"token": "t"}] * 20


def test_before_it_is_minted_a_value_is_an_empty_text() -> None:
    seen: list[Any] = []
    stage = Stage(m=minter(token="t"))
    look = noting(seen, lambda ctx: ctx.values["token"], Verdict.needed("not yet"))
    stage.actors["a"] = Actor(precheck=look)

    stage.run(chain(play("m", provides=[TOKEN]), play("a", needs=["token"])))

    assert seen == [""]


def test_a_step_is_made_anew_when_its_values_are_there() -> None:
    class Bound(Stage):
        def load(self, node: Any) -> Any:
            loaded: Any = super().load(node)
            if node.id == "a":
                loaded.static = None
                loaded.bind = lambda view: Play(self, f"a with {view.values['token']}", Actor())
            return loaded

    stage = Bound(m=minter(token="t"))

    stage.run(chain(play("m", provides=[TOKEN]), play("a", needs=["token"])))

    assert stage.order(what="precheck") == ["a with "]
    assert stage.order() == ["m", "a with t"]


def test_a_minter_waits_for_what_is_before_it() -> None:
    stage = Stage(x=Actor(duration=5.0), m=minter(token="t"))

    stage.run(chain(play("x"), play("m", provides=[TOKEN]), play("a", needs=["token"])))

    assert stage.order() == ["x", "m", "a"]


def test_what_does_not_need_it_goes_on_without_a_minter() -> None:
    stage = Stage(m=minter(token="t"), a=Actor(satisfied=True))

    stage.run(chain(play("m", provides=[TOKEN]), parallel(play("a", needs=["token"]), play("b"))))

    assert stage.order() == ["b"]


@pytest.mark.parametrize("options", [{"parallelism": 1}, {"per_host": 1}])
def test_minting_does_not_deadlock_on_the_last_slot(options: dict[str, Any]) -> None:
    stage = Stage(m=minter(token="t"))

    result = stage.run(
        chain(play("m", provides=[TOKEN]), play("a", "h1", "h2", needs=["token"])), **options
    )

    assert result.status == "Success"


def test_a_minter_may_need_another_minter() -> None:
    taker = Taker()
    stage = Stage(m=minter(ca="c"), n=minter(token="t"), a=taker)

    result = stage.run(
        chain(
            play("m", provides=[Key("ca")]),
            play("n", needs=["ca"], provides=[TOKEN]),
            play("a", needs=["token"]),
        ),
        parallelism=1,
    )

    assert stage.order() == ["m", "n", "a"]
    assert result.status == "Success"


def test_a_failing_minter_holds_its_consumers_back_and_no_others() -> None:
    stage = Stage(m=fails("no ca"))
    stage.actors["m"].role = Minter

    result = stage.run(
        chain(
            play("m", provides=[TOKEN]),
            parallel(play("a", "h1", "h2", needs=["token"]), play("b")),
        )
    )

    assert of(result, "a", "h2").message == "held back by m on h1: no ca"
    assert of(result, "b").status == "Success"
    assert stage.order("m") == ["m"]
    assert result.status == "Failed"


def test_a_minter_that_failed_is_not_asked_again_by_the_next_consumer() -> None:
    stage = Stage(m=fails("no ca"), b=Actor())
    stage.actors["m"].role = Minter
    two = parallel(play("a", needs=["token"]), chain(play("b"), play("c", needs=["token"])))
    stage.actors["b"].duration = 5.0

    result = stage.run(chain(play("m", provides=[TOKEN]), two))

    assert stage.order("m") == ["m"]
    assert of(result, "c").status == "Skipped"


def test_a_minter_whose_host_is_lost_holds_its_consumers_back() -> None:
    stage = Stage(x=unreachable("h9"), m=minter(token="t"))

    result = stage.run(
        chain(
            parallel(play("x", "h9"), play("m", "h9", provides=[TOKEN])),
            play("a", "h1", needs=["token"]),
        )
    )

    assert of(result, "a").message == "held back by x on h9: no route"


def test_a_minter_on_one_of_several_hosts_is_bound_when_it_is_needed() -> None:
    stage = Stage(m=minter(token="t"), x=unreachable("h1"))
    minted = play("m", on=one_of(("h1", "h2")), provides=[TOKEN])

    stage.run(chain(minted, play("x", "h1", "h3"), play("a", "h3", needs=["token"])))

    assert ("m", "h2") in stage.started()


def test_a_minter_that_was_not_wanted_fails_who_needs_it() -> None:
    stage = Stage(m=Actor(role=Minter, values={"token": "t"}, when=lambda view: False))

    result = stage.run(chain(play("m", provides=[TOKEN], when="…"), play("a", needs=["token"])))

    assert of(result, "a").status == "Failed"
    assert "`when` does not hold" in of(result, "a").message


def test_a_dry_run_mints_nothing_and_says_what_it_would_mint() -> None:
    stage = Stage(m=minter(token="t"), n=minter(other="o"), b=Actor(satisfied=True))

    result = stage.run(
        parallel(
            chain(play("m", provides=[TOKEN]), play("a", needs=["token"])),
            chain(play("n", provides=[Key("other")]), play("b", needs=["other"])),
        ),
        dry_run=True,
    )

    assert stage.started() == []
    assert (of(result, "m").sign, of(result, "m").message) == ("+", "would be made")
    assert of(result, "n").sign == "="


def test_a_dry_run_does_not_mint_for_a_reader_either() -> None:
    stage = Stage(m=minter(token="t"), r=reader(v=1))

    result = stage.run(
        chain(
            play("m", provides=[TOKEN]),
            play("r", needs=["token"], provides=[Key("v")]),
            play("a", needs=["v"]),
        ),
        dry_run=True,
    )

    assert stage.started() == []
    assert [of(result, name).sign for name in "mra"] == ["+", "?", "?"]


def test_a_node_of_minters_is_finished_when_they_are() -> None:
    stage = Stage(m=minter(token="t"), x=Actor(duration=5.0))

    stage.run(chain(play("m", provides=[TOKEN]), play("x"), play("a", needs=["token"])))

    finished = [(event.node, event.at) for event in stage.told(NodeFinished)]
    assert ("m", 5.0) in finished
    assert len([node for node, _ in finished if node == "m"]) == 1


# Time to live.


def test_an_expired_value_is_minted_again_for_who_needs_it_later() -> None:
    stage = Stage(m=minter(token="t"), x=Actor(duration=100.0))

    stage.run(
        chain(
            play("m", provides=[Key("token", ttl=60.0)]),
            play("a", needs=["token"]),
            play("x"),
            play("b", needs=["token"]),
        )
    )

    assert stage.order("m", "a", "b") == ["m", "a", "m", "b"]


def test_a_value_that_still_holds_is_not_minted_again() -> None:
    stage = Stage(m=minter(token="t"), x=Actor(duration=50.0))

    stage.run(
        chain(
            play("m", provides=[Key("token", ttl=60.0)]),
            play("a", needs=["token"]),
            play("x"),
            play("b", needs=["token"]),
        )
    )

    assert stage.order("m") == ["m"]


def test_an_expired_reading_is_read_again_before_it_is_used() -> None:
    readings = iter([1, 2, 3])
    taker = Taker()
    stage = Stage(
        r=Actor(role=Reader, run=lambda ctx: Outcome(values={"v": next(readings)})),
        x=Actor(duration=100.0),
        a=taker,
    )

    result = stage.run(
        chain(play("r", provides=[Key("v", ttl=60.0)]), play("x"), play("a", needs=["v"]))
    )

    assert taker.got == [{"v": 2}]
    assert of(result, "r").status == "Success"


def test_a_unit_that_is_read_again_tells_twice_and_its_node_once() -> None:
    stage = Stage(r=reader(v=1), x=Actor(duration=100.0))

    stage.run(chain(play("r", provides=[Key("v", ttl=60.0)]), play("x"), play("a", needs=["v"])))

    assert [event.node for event in stage.told(UnitFinished)].count("r") == 2
    assert [event.node for event in stage.told(NodeFinished)].count("r") == 1


def test_a_minter_that_fails_the_second_time_is_still_undone() -> None:
    calls: list[int] = []

    def mint(ctx: StepContext) -> Outcome:
        calls.append(1)
        if len(calls) > 1:
            raise StepFailed("no ca")
        return Outcome(values={"token": "t"})

    stage = Stage(m=Actor(role=Minter, run=mint), x=Actor(duration=100.0))

    stage.run(
        chain(
            play("m", provides=[Key("token", ttl=60.0)]),
            play("a", needs=["token"]),
            play("x"),
            play("b", needs=["token"]),
        ),
        on_failure="rollback",
    )

    assert stage.order(what="rollback") == ["x", "a", "m"]


def state_with(value: ProducedValue, *, changed: bool = False) -> RunState:
    result = HostResult("h1", "Success", changed=changed)
    return RunState.fold([UnitDone(at=0.0, node="r", host="h1", result=result, values=(value,))])


def test_on_resume_a_value_that_holds_is_taken_as_it_is() -> None:
    taker = Taker()
    stage = Stage(r=reader(v="new"), a=taker)
    known = ProducedValue(key="v", host="", value="old", expires=60.0)

    stage.run(
        chain(play("r", provides=[Key("v", ttl=60.0)]), play("a", needs=["v"])),
        state=state_with(known),
    )

    assert (taker.got, stage.order("r")) == ([{"v": "old"}], [])


def test_on_resume_an_expired_reading_is_read_again() -> None:
    taker = Taker()
    stage = Stage(r=reader(v="new"), a=taker)
    known = ProducedValue(key="v", host="", value="old", expires=-1.0)

    stage.run(
        chain(play("r", provides=[Key("v", ttl=60.0)]), play("a", needs=["v"])),
        state=state_with(known),
    )

    assert taker.got == [{"v": "new"}]


def test_on_resume_an_expired_reading_of_a_lost_host_stays_done() -> None:
    stage = Stage(r=reader(v="new"))
    stage.unreachable["h1"] = "no answer"
    known = ProducedValue(key="v", host="", value="old", expires=-1.0)

    result = stage.run(
        parallel(play("r", provides=[Key("v", ttl=60.0)]), play("b", "h2")),
        state=state_with(known),
    )

    assert statuses(result) == {"r@h1": "Success", "b@h2": "Success"}


def test_on_resume_an_expired_value_is_minted_again_only_if_it_is_needed() -> None:
    known = ProducedValue(key="v", host="", value="old", expires=-1.0)
    plan = chain(play("r", provides=[Key("v", ttl=60.0)]), play("a", needs=["v"]))
    needed, spared = Stage(r=minter(v="new")), Stage(r=minter(v="new"), a=Actor(satisfied=True))

    needed.run(plan, state=state_with(known, changed=True))
    spared.run(plan, state=state_with(known, changed=True))

    assert needed.order("r") == ["r"]
    assert spared.order("r") == []


# Secrets.


def test_a_secret_value_is_concealed_everywhere_its_own_result_included() -> None:
    outcome = Outcome(
        values={"token": "s3cret"}, message="s3cret", stdout="token is s3cret", stderr="s3cret!"
    )
    stage = Stage(m=Actor(role=Minter, run=lambda ctx: outcome))
    failed = CommandFailed(["login"], 1, stdout="as s3cret", stderr="no s3cret")
    stage.actors["a"] = Actor(run=raising(failed))

    result = stage.run(
        chain(play("m", provides=[Key("token", secret=True)]), play("a", needs=["token"]))
    )

    made, used = of(result, "m"), of(result, "a")
    assert (made.message, made.stdout, made.stderr) == ("***", "token is ***", "***!")
    assert (used.stdout, used.stderr) == ("as ***", "no ***")
    assert used.message == "`login` exited with 1: no ***"


def test_a_secret_value_of_an_earlier_life_is_concealed_too() -> None:
    stage = Stage(r=reader(v="s3cret"), a=fails("bad s3cret"))
    known = ProducedValue(key="v", host="", value="s3cret", secret=True)

    result = stage.run(
        chain(play("r", provides=[Key("v", secret=True)]), play("a", needs=["v"])),
        state=state_with(known),
    )

    assert of(result, "a").message == "bad ***"


# Waiting for values.


def test_who_waits_for_a_value_holds_no_slot() -> None:
    stage = Stage(m=minter(token="t"), b=Actor(duration=1.0))
    stage.actors["m"].duration = 60.0

    stage.run(
        chain(
            play("m", "h9", provides=[TOKEN]),
            parallel(play("a", "h1", needs=["token"]), chain(play("c", "h1"), play("b", "h1"))),
        ),
        per_host=1,
        durations={"a": 9.0},
    )

    assert stage.at("start", "b", "h1") == 0.0


def test_host_scoped_minters_serve_their_own_host() -> None:
    stage = Stage(a=Taker(satisfied=lambda host: host == "h1"))
    stage.actors["m"] = Actor(role=Minter, run=lambda ctx: Outcome(values={"token": ctx.host.name}))
    key = Key("token", "host")

    result = stage.run(
        per_host(play("m", "h1", "h2", provides=[key]), play("a", "h1", "h2", needs=["token"]))
    )

    assert stage.started() == [("m", "h2"), ("a", "h2")]
    assert statuses(result)["m@h1"] == "Skipped"


def test_a_minter_may_serve_along_two_kinds_of_edges() -> None:
    taker = Taker()
    stage = Stage(m=minter(token="t"), a=taker)
    whole = parallel(play("m", provides=[TOKEN]), play("x"), play("a", needs=["token"]))
    whole = link(link(whole, before="m", after="a"), before="x", after="a", same_host=True)

    stage.run(whole)

    assert taker.got == [{"token": "t"}]


def test_time_spent_waiting_for_a_value_is_not_the_consumers() -> None:
    stage = Stage(m=minter(token="t"), a=Actor(duration=3.0))
    stage.actors["m"].run = lambda ctx: asyncio.sleep(60.0)

    result = stage.run(chain(play("m", provides=[TOKEN]), play("a", needs=["token"], timeout=5.0)))

    assert of(result, "a").status == "Success"
