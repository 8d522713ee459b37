"""A run at a terminal: what is drawn there, and what is asked."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]
STEPS = """
- {name: made, directory: {path: /srv/made}}
- {name: sure, pause: {question: "really go on?"}}
- {name: last, file: {path: /srv/made/last, content: x}}
"""


def said_until(terminal: int, wanted: bytes) -> bytes:
    said = b""
    while wanted not in said:
        assert select.select([terminal], [], [], 15)[0], said
        said += os.read(terminal, 65536)
    return said


def what_is_left(terminal: int) -> bytes:
    said = b""
    try:
        while some := os.read(terminal, 65536):
            said += some
    except OSError:  # everybody has left
        return said
    return said


def at_a_terminal(
    file: Path, *flags: str, term: str = "xterm"
) -> tuple[subprocess.Popen[bytes], int]:
    ours, theirs = pty.openpty()
    call = [sys.executable, "-m", "kubexm", "run", "-f", str(file), "--simulate", *flags]
    environment = {**os.environ, "TERM": term}
    process = subprocess.Popen(call, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    return process, ours


@pytest.mark.usefixtures("home")
def test_nothing_is_drawn_over_a_question(pipeline: Write) -> None:
    process, ours = at_a_terminal(pipeline(STEPS, hosts="    - {name: n1}\n"))

    said_until(ours, b"really go on? [y/N] ")
    drawn = select.select([ours], [], [], 0.5)[0]  # two frames, if any were drawn
    os.write(ours, b"y\n")
    rest = what_is_left(ours)

    assert not drawn
    assert b"site: Success" in rest
    assert process.wait(timeout=15) == 0


@pytest.mark.usefixtures("home")
def test_a_terminal_that_can_not_be_drawn_on_gets_plain_lines(pipeline: Write) -> None:
    steps = "- {name: made, directory: {path: /srv/made}}"

    process, ours = at_a_terminal(pipeline(steps), term="dumb")
    said = what_is_left(ours)

    assert b"changed  n1  site/base/setup/made" in said
    assert b"\x1b" not in said
    assert process.wait(timeout=15) == 0


@pytest.mark.usefixtures("home")
def test_an_interrupt_at_a_question_of_the_debugger_ends_the_process(pipeline: Write) -> None:
    process, ours = at_a_terminal(pipeline(STEPS), "--debug")

    said_until(ours, b"[p]rint commands > ")
    process.send_signal(signal.SIGINT)
    rest = what_is_left(ours)

    assert b"site: Cancelled" in rest
    assert process.wait(timeout=15) == 3


@pytest.mark.usefixtures("home")
def test_hosts_that_ask_at_once_are_answered_one_after_the_other(pipeline: Write) -> None:
    process, ours = at_a_terminal(pipeline(STEPS))

    for _ in range(2):
        asked = said_until(ours, b"really go on? [y/N] ")
        os.write(ours, b"y\n")
        assert asked.count(b"really go on?") == 1
    rest = what_is_left(ours)

    assert b"site: Success" in rest
    assert process.wait(timeout=15) == 0


PROMPTED = """
- {name: key, secret-file: {path: /srv/key, content: "prompt://key of the site"}}
- {name: more, command: {argv: ["true"], secretEnv: {KEY: "prompt://key of the site"}}}
"""


@pytest.mark.usefixtures("home")
def test_a_secret_is_asked_for_once_and_not_shown_as_it_is_typed(pipeline: Write) -> None:
    process, ours = at_a_terminal(pipeline(PROMPTED), term="dumb")

    said_until(ours, b"key of the site: ")
    os.write(ours, b"correct-horse\n")
    rest = what_is_left(ours)

    assert b"correct-horse" not in rest
    assert b"key of the site" not in rest
    assert b"site: Success" in rest
    assert process.wait(timeout=15) == 0


@pytest.mark.usefixtures("home")
def test_an_interrupt_while_a_secret_is_typed_leaves_a_terminal_that_shows_again(
    pipeline: Write,
) -> None:
    process, ours = at_a_terminal(pipeline(PROMPTED), term="dumb")

    said_until(ours, b"key of the site: ")
    silent = not termios.tcgetattr(ours)[3] & termios.ECHO
    process.send_signal(signal.SIGINT)
    said = said_until(ours, b"nothing was changed")

    assert process.wait(timeout=15) == 3
    assert silent
    assert termios.tcgetattr(ours)[3] & termios.ECHO
    assert b"Success" not in said
