"""Steps that leave a value."""

from __future__ import annotations

import pytest
from tests.step.places import LocalPlace, Place

from kubexm.errors import CommandFailed, StepFailed
from kubexm.plan.node import Key
from kubexm.step.contract import Minter, Outcome, Reader
from kubexm.step.values import FetchValue, Minted, Output


def test_reads_a_value_as_text_as_lines_and_as_json(place: Place) -> None:
    text = place.write("text", b"one\n\ntwo\n")
    data = place.write("data", b'{"a": [1, null]}\n')

    outcomes = [
        place.run(FetchValue("x", ("cat", text))),
        place.run(FetchValue("x", ("cat", text), parse="lines")),
        place.run(FetchValue("x", ("cat", data), parse="json")),
    ]

    values = [outcome.values["x"] for outcome in outcomes if isinstance(outcome, Outcome)]
    assert values == ["one\n\ntwo", ["one", "two"], {"a": [1, None]}]


def test_a_reader_changes_nothing_and_a_minter_does(place: Place) -> None:
    read = place.run(FetchValue("x", ("echo", "v")))
    minted = place.run(Minted("x", ("echo", "v")))

    assert read == Outcome(changed=False, values={"x": "v"})
    assert minted == Outcome(changed=True, values={"x": "v"})
    assert isinstance(FetchValue("x", ("a",)), Reader)
    assert isinstance(Minted("x", ("a",)), Minter)


def test_tells_the_graph_what_it_leaves() -> None:
    step = Minted("token", ("make-token",), scope="host", ttl=60.0, secret=True)

    assert step.spec().provides == (Key("token", "host", True, 60.0),)


def test_output_of_a_value_is_not_logged(place: Place) -> None:
    place.run(FetchValue("x", ("echo", "s3cret"), secret=True))

    assert place.said == []


def test_fails_if_the_command_does(place: Place) -> None:
    with pytest.raises(CommandFailed):
        place.run(FetchValue("x", ("false",)))


@pytest.mark.parametrize("kind", [FetchValue, Minted])
def test_a_secret_that_could_not_be_had_says_nothing_of_what_the_command_said(
    place: Place, kind: type[Output]
) -> None:
    where = f"{place.root}/hunter22"

    with pytest.raises(StepFailed) as caught:
        place.run(kind("x", ("cat", where), secret=True))

    assert not isinstance(caught.value, CommandFailed), "which has the output of its command"
    said = f"`cat {where}` exited with 1; its output is not shown: it is secret"
    assert caught.value.message == said
    assert caught.value.hint == "run it by hand on the host"
    assert place.said == []


def test_says_where_json_is_broken(place: Place) -> None:
    with pytest.raises(StepFailed, match=r"did not write JSON: .* line 1 column 2"):
        place.run(FetchValue("x", ("echo", "{oops"), parse="json"))


def test_the_command_gets_secrets_by_its_environment(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    place = LocalPlace(tmp_path_factory.mktemp("local"))
    place.secrets["env://TOKEN"] = "s3cret"
    step = FetchValue("x", ("printenv", "A", "B"), env={"A": "1"}, secret_env={"B": "env://TOKEN"})

    outcome = place.run(step)

    assert isinstance(outcome, Outcome)
    assert outcome.values == {"x": "1\ns3cret"}
    assert "s3cret" not in str(step.spec())
    place.close()
