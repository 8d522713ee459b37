"""Secrets are resolved from their references and hidden in every text."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubexm.common.secrets import SecretRef, is_reference
from kubexm.errors import StepFailed
from kubexm.runtime.secrets import SecretVault


def test_a_value_from_the_environment_is_hidden_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOKEN_X", "s3cr3t-value")
    vault = SecretVault()

    assert vault.reveal(SecretRef("env://TOKEN_X")) == "s3cr3t-value"
    assert vault.redact("it is s3cr3t-value.") == "it is ***."


def test_a_value_from_a_file_loses_its_last_newline_and_is_hidden_line_by_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "key"
    path.write_text("first line\nsecond line\n")
    vault = SecretVault()

    assert vault.reveal(SecretRef(f"file://{path}")) == "first line\nsecond line"
    assert vault.redact("… second line …") == "… *** …"


def test_the_longer_of_two_secrets_is_hidden_whole() -> None:
    vault = SecretVault()
    vault.conceal(["abcd", "abcd-efgh"])

    assert vault.redact("abcd-efgh abcd") == "*** ***"


def test_secrets_in_mappings_and_lists_are_hidden_too() -> None:
    vault = SecretVault()
    vault.conceal({"token": ["alpha-beta"], "n": 5})

    assert vault.redact("alpha-beta 5") == "*** 5"


def test_a_number_in_a_secret_is_hidden_as_it_is_written() -> None:
    vault = SecretVault()
    vault.conceal({"pin": 48151623, "key": [-98765], "rate": 0.12345})

    assert vault.redact("48151623, 98765, -98765 or 0.12345") == "***, ***, -*** or ***"


def test_a_number_that_could_be_a_port_a_year_or_a_count_is_not_hidden() -> None:
    vault = SecretVault()
    vault.conceal({"port": 5432, "share": 0.0025, "more": [True, None, 0.0]})
    text = "5432 0.0025 True true 1 null None 0.0"

    assert vault.redact(text) == text


@pytest.mark.parametrize(
    "text", ["{not: json", "[main]\nkey = 1234567", pytest.param("[" * 100_000, id="too deep")]
)
def test_a_text_that_only_begins_as_json_does_is_hidden_as_any_other(text: str) -> None:
    vault = SecretVault()
    vault.conceal(text)

    assert vault.redact(f"it is {text}!") == "it is ***!"


def test_a_secret_that_is_a_json_document_is_hidden_part_by_part(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    path.write_text('{"pin": 48151623, "rate": 1.50250, "port": 5432, "keys": ["alpha-beta"]}\n')
    vault = SecretVault()

    vault.reveal(SecretRef(f"file://{path}"))

    assert vault.redact("48151623 1.50250 5432 alpha-beta") == "*** *** 5432 ***"
    assert vault.redact(path.read_text()) == "***\n"


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("env://NOT_SET_ANYWHERE", "is not set"),
        ("file:///no/such/file", "can't read the secret"),
        ("vault://a#b", "unknown kind of secret"),
    ],
)
def test_a_reference_that_leads_nowhere_says_so(uri: str, said: str) -> None:
    with pytest.raises(StepFailed, match=said):
        SecretVault().reveal(SecretRef(uri))


def test_only_known_schemes_with_a_place_are_references() -> None:
    found = [
        is_reference(text) for text in ("env://A", "file:///x", "env://", "http://x", "secret")
    ]

    assert found == [True, True, False, False, False]


def test_a_person_is_asked_once_and_the_answer_is_hidden() -> None:
    asked: list[str] = []

    def ask(what: str) -> str:
        asked.append(what)
        return "typed-secret"

    vault = SecretVault(ask)
    reference = SecretRef("prompt://password of root")

    assert vault.must_ask(reference)
    assert [vault.reveal(reference) for _ in range(2)] == ["typed-secret"] * 2
    assert asked == ["password of root"]
    assert not vault.must_ask(reference)
    assert vault.redact("typed-secret") == "***"


def test_a_secret_that_only_a_person_knows_is_missing_where_nobody_is() -> None:
    vault = SecretVault()

    with pytest.raises(StepFailed, match="no terminal to ask for `prompt://root` on") as caught:
        vault.reveal(SecretRef("prompt://root"))

    assert "env://NAME" in caught.value.hint
    assert not vault.must_ask(SecretRef("prompt://root"))


def test_an_empty_answer_is_none_and_is_asked_for_again() -> None:
    answers = iter(["", "typed"])
    vault = SecretVault(lambda _: next(answers))

    with pytest.raises(StepFailed, match="nothing was typed for `prompt://root`"):
        vault.reveal(SecretRef("prompt://root"))

    assert vault.reveal(SecretRef("prompt://root")) == "typed"


def test_a_secret_that_was_written_out_and_accepted_is_hidden_too() -> None:
    vault = SecretVault()

    assert vault.reveal(SecretRef("hunter2")) == "hunter2"
    assert vault.redact("it is hunter2") == "it is ***"
