"""Scripts that travel as the text of a command, read by the shells of this machine, or by none."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubexm.connector.ssh.become import Become, Form, ScriptEntry, Way
from kubexm.errors import Refused

PARSING = [
    [*words]
    for words in (("dash",), ("bash",), ("bash", "-r"), ("busybox", "sh"), ("tcsh",), ("fish",))
    if shutil.which(words[0])
]
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


def said(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    return done.stdout


def shown(form: Form, text: str) -> str:
    script = f"cat <<'end of text'\n{text}\nend of text\n"
    return ScriptEntry(None, form, script.encode()).command


@pytest.mark.parametrize("shell", PARSING, ids=" ".join)
@given(text=TEXTS.filter(lambda text: "\r" not in text))
def test_a_script_arrives_whole_whichever_shell_reads_it(shell: list[str], text: str) -> None:
    assert said([*shell, "-c", shown(Form(), text)]) == f"{text}\n"


@given(text=TEXTS.filter(lambda text: "\r" not in text))
def test_a_script_arrives_whole_where_no_shell_reads_it(text: str) -> None:
    assert said(shown(Form(is_parsed=False), text).split()) == f"{text}\n"


@pytest.mark.parametrize("shell", [*PARSING, []], ids=lambda words: " ".join(words) or "none")
def test_a_script_that_is_told_is_in_no_command_line(shell: list[str]) -> None:
    script = b"cat; echo 'correct horse'\n"
    entry = ScriptEntry(None, Form(is_parsed=bool(shell)), script, told=True)
    command = [*shell, "-c", entry.command] if shell else entry.command.split()
    pipe = subprocess.PIPE

    with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        told = b""
        while not (told := entry.hear(running.stdout.readline())):
            pass
        running.stdin.write(told + b"input ")
        running.stdin.close()
        said = running.stdout.read()

    assert told == script
    assert "horse" not in entry.command
    assert said == b"input correct horse\n"


def test_a_script_is_told_once_the_password_was_given() -> None:
    entry = ScriptEntry(Become("sudo", "correct horse"), Form(), b"id\n", told=True)
    prompt = entry.command.partition(" -p ")[2].partition(" ")[0]
    ready = entry.command.partition("echo ")[2].partition(";")[0]

    said = (prompt, f"{ready}\n", "more")
    heard = [(entry.hear(text.encode()), entry.is_open) for text in said]

    assert heard == [(b"correct horse\n", False), (b"id\n", True), (b"", True)]


@pytest.mark.parametrize("way", ["sudo", "su"])
def test_a_password_that_can_not_be_handed_over_is_not_asked_for(way: Way) -> None:
    entry = ScriptEntry(Become(way, "correct horse"), Form(has_input=False), b"id")

    assert " -S " not in entry.command
    with pytest.raises(Refused, match=f"{way} asks for a password, and the host hands no input"):
        if way == "su":
            entry.hear(b"Password: ")
        raise entry.refusal("sudo: a password is required")


def test_a_password_is_answered_where_there_is_input() -> None:
    entry = ScriptEntry(Become("sudo", "correct horse"), Form(), b"id")
    prompt = entry.command.partition(" -p ")[2].partition(" ")[0]

    assert entry.hear(prompt.encode()) == b"correct horse\n"
