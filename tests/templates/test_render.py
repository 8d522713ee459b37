"""Templates are strict, and can do nothing but read their data."""

from __future__ import annotations

from hashlib import sha256

import pytest

from kubexm.errors import InvalidInput
from kubexm.templates import render


def test_a_template_of_the_program_is_filled_in() -> None:
    found = render.render(
        "systemd/service",
        {
            "command": ["/usr/bin/app", "--name", "two words"],
            "user": "app",
            "environment": {"A": "1", "B": 'say "hi" 100%'},
        },
    )

    assert 'ExecStart=/usr/bin/app --name "two words"\nUser=app\nEnvironment=A=1\n' in found
    assert 'Environment="B=say \\"hi\\" 100%%"\n' in found
    assert found.endswith("WantedBy=multi-user.target\n")


def test_every_template_of_the_program_can_be_read_and_has_a_digest() -> None:
    digests = {name: render.digest(name) for name in render.names()}

    assert "systemd/service" in digests
    assert {len(digest) for digest in digests.values()} == {64}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one\n{{ two }}", "template text, line 2: 'two' is undefined"),
        ("{{ data.missing }}", "line 1: 'dict object' has no attribute 'missing'"),
        ("{% if %}", "line 1: Expected an expression"),
        ("\n\n{% for x in data %}", "Unexpected end of template"),
        ("{{ ''.__class__ }}", "unsafe"),
        ("{{ data.update(a=1) }}", "unsafe"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ range(10 ** 9) | list }}", "Range too big"),
        ("{% include 'x' %}", "no loader"),
    ],
)
def test_what_cannot_be_filled_in_is_an_error_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        render.render_text(text, {"data": {}})


def test_text_is_kept_to_the_last_newline_and_never_escaped() -> None:
    assert render.render_text("a < {{ b }}\n\n", {"b": "'<&>'"}) == "a < '<&>'\n\n"


def test_an_unknown_template_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="unknown template `systemd/servce`") as caught:
        render.render("systemd/servce", {})

    assert caught.value.hint == "did you mean `systemd/service`?"


def test_a_name_cannot_leave_the_folder() -> None:
    with pytest.raises(InvalidInput, match="unknown template"):
        render.render("../errors", {})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{{ a }}\n{{ b.c }}{{ a }}", {"a": 1, "b": 2}),
        ("{% for a in b %}{{ a }}{% endfor %}\n{{ a }}", {"b": 1, "a": 2}),
        ("{% set a = 1 %}{{ a }}{{ range(3) }}", {}),
        ("{% for a in b if a %}{{ loop.index }}{% else %}\n{{ c }}{% endfor %}", {"b": 1, "c": 2}),
    ],
)
def test_names_that_a_template_needs_are_told_with_their_lines(
    text: str, names: dict[str, int]
) -> None:
    assert render.used(text) == names


def test_the_text_of_a_template_is_what_its_digest_is_of() -> None:
    assert sha256(render.source("systemd/service").encode()).hexdigest() == render.digest(
        "systemd/service"
    )
