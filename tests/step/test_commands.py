"""The command step: guards, identity, input, exit codes."""

from __future__ import annotations

import pytest
from tests.step.places import LocalPlace, Place, is_root

from kubexm.errors import CommandFailed, StepFailed
from kubexm.runner.host import Completed
from kubexm.step.commands import Command
from kubexm.step.contract import Outcome


def test_runs_every_time_without_a_guard_and_says_so_beforehand(place: Place) -> None:
    step = Command(("true",))

    assert place.verdict(step).reason == "runs every time"
    assert step.declares_intent


@pytest.mark.parametrize(
    ("guard", "satisfied", "reason"),
    [
        ({"unless": ("true",)}, True, "`true` succeeds"),
        ({"unless": ("false",)}, False, "`false` fails"),
        ({"only_if": ("true",)}, False, "`true` succeeds"),
        ({"only_if": ("false",)}, True, "`false` fails"),
        ({"creates": "/etc"}, True, "`/etc` exists"),
        ({"creates": "/no/such"}, False, "`/no/such` does not exist"),
        ({"creates": "/no/such", "unless": ("true",)}, True, "`true` succeeds"),
        ({"unless": ("false",), "only_if": ("false",)}, True, "`false` fails"),
    ],
)
def test_asks_its_guards(
    place: Place, guard: dict[str, object], satisfied: bool, reason: str
) -> None:
    verdict = place.verdict(Command(("true",), **guard))  # type: ignore[arg-type]  # of many types

    assert (verdict.satisfied, verdict.reason) == (satisfied, reason)


def test_fails_if_its_condition_cannot_be_asked(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = LocalPlace(tmp_path_factory.mktemp("local"))

    with pytest.raises(StepFailed, match="can't ask `no-such-program`"):
        place.verdict(Command(("true",), only_if=("no-such-program",)))

    place.close()


def test_is_verified_by_what_it_creates() -> None:
    assert Command(("true",), creates="/x").verifies
    assert not Command(("true",), unless=("true",)).verifies


def test_reports_output_line_by_line_and_whole(place: Place) -> None:
    outcome = place.run(Command(("echo", "hello")))

    assert isinstance(outcome, Outcome)
    assert outcome.changed
    assert outcome.stdout == "hello"
    assert place.said == [("stdout", "hello")]


def test_fails_on_an_exit_code_that_was_not_expected(place: Place) -> None:
    with pytest.raises(CommandFailed, match="`false` exited with 1"):
        place.run(Command(("false",)))

    place.run(Command(("false",), expect=(0, 1)))


def test_feeds_standard_input(place: Place) -> None:
    place.secrets["env://TOKEN"] = "from the vault"

    plain = place.run(Command(("cat",), stdin="typed"))
    secret = place.run(Command(("cat",), secret_stdin="env://TOKEN"))

    assert isinstance(plain, Outcome)
    assert isinstance(secret, Outcome)
    assert (plain.stdout, secret.stdout) == ("typed", "from the vault")


def test_gives_environment_directory_and_secrets(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = LocalPlace(tmp_path_factory.mktemp("local"))
    place.secrets["env://TOKEN"] = "s3cret"
    step = Command(
        ("sh", "-c", 'echo "$PWD $A $B"'),
        cwd="/usr",
        env={"A": "1"},
        secret_env={"B": "env://TOKEN"},
    )

    outcome = place.run(step)

    assert isinstance(outcome, Outcome)
    assert outcome.stdout == "/usr 1 s3cret"
    assert "s3cret" not in str(step.spec())
    place.close()


@pytest.mark.skipif(not is_root(), reason="only root becomes somebody else")
def test_runs_as_another_user(place: Place) -> None:
    outcome = place.run(Command(("id", "-un"), user="nobody"))

    assert isinstance(outcome, Outcome)
    assert outcome.stdout == "nobody"


def test_a_command_is_shown_as_it_would_be_typed() -> None:
    step = Command(
        ("sh", "-c", "echo $HOME", "${host.name}", ""), unless=("grep", "-q", "a b", "/f")
    )

    assert step.summary() == "sh -c 'echo $HOME' ${host.name} ''"
    assert step.judge([Completed(0)]).reason == "`grep -q 'a b' /f` succeeds"
