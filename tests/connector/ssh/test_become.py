"""How a shell of another user is entered: who asks, what is answered, what a refusal means."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.pretty import pretty_repr

from kubexm.connector.ssh.become import Become, Entry, Way
from kubexm.connector.ssh.target import Credentials, Target
from kubexm.errors import Refused

PASSWORD = "correct horse"


def entry(way: Way = "sudo", password: str | None = PASSWORD) -> Entry:
    return Entry(Become(way, password))


def prompt(of: Entry) -> bytes:
    return of.command.partition(" -p ")[2].partition(" ")[0].encode()


def announced(of: Entry) -> bytes:
    return of.command.partition("echo ")[2].partition(";")[0].encode() + b"\n"


def test_the_shell_of_the_user_that_logged_in_listens_at_once() -> None:
    assert Entry(None).is_open
    assert not entry().is_open


@pytest.mark.parametrize("way", ["sudo", "su"])
def test_a_password_stands_in_no_command_line_and_in_no_description(way: Way) -> None:
    become = Become(way, PASSWORD)

    assert PASSWORD not in Entry(become).command
    assert repr(become) == f"Become(way={way!r})"
    assert PASSWORD not in pretty_repr(become)


def test_what_opens_a_host_stands_in_no_description_of_it() -> None:
    proof = Credentials((Path("key"),), passphrase=PASSWORD, password=PASSWORD, agent="socket")
    target = Target("10.0.0.1", credentials=proof, become=Become("su", PASSWORD))

    assert repr(proof) == f"Credentials(keys={proof.keys!r}, agent='socket')"
    assert PASSWORD not in repr(target)
    assert PASSWORD not in pretty_repr(target)


def test_a_password_is_given_only_when_it_is_asked_for() -> None:
    sudo = entry()

    assert sudo.hear(b"Last login: yesterday\n") == b""
    assert sudo.hear(prompt(sudo)[:5]) == b""
    assert sudo.hear(prompt(sudo)[5:]) == f"{PASSWORD}\n".encode()
    assert not sudo.is_open
    assert sudo.hear(announced(sudo)) == b""
    assert sudo.is_open


def test_where_no_password_is_needed_none_is_given() -> None:
    sudo = entry()

    assert sudo.hear(announced(sudo)) == b""
    assert sudo.is_open


def test_a_second_question_says_that_the_password_is_wrong() -> None:
    sudo = entry()
    sudo.hear(prompt(sudo))

    with pytest.raises(Refused, match="the password for sudo is wrong"):
        sudo.hear(b"Sorry, try again.\n" + prompt(sudo))


def test_su_asks_in_its_own_words() -> None:
    su = entry("su")

    assert su.hear(b"Password: ") == f"{PASSWORD}\n".encode()
    assert "the password for su is wrong" in str(failed(su, b"su: Authentication failure\n"))


def test_su_without_a_password_says_so() -> None:
    with pytest.raises(Refused, match="su asks for a password"):
        entry("su", None).hear(b"Password: ")


def failed(of: Entry, said: bytes) -> Refused:
    of.hear(said)
    return of.refusal("exit code 1")


def test_a_refusal_says_what_the_host_said() -> None:
    missing = failed(entry("sudo", None), b"sudo: a password is required\n")
    unknown = failed(entry("sudo", None), b"joe is not in the sudoers file.\n")
    no_shell = failed(Entry(None), b"This account is currently not available.\n")

    assert (missing.message, missing.hint[:7]) == ("sudo asks for a password", "give it")
    assert unknown.message == "sudo gave no shell: joe is not in the sudoers file."
    assert "This account is currently not available." in no_shell.message
