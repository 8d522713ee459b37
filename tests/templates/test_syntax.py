"""A template that can't be read says in which line, and what to close."""

import pytest

from kubexm.templates import render


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("a\n{{ x\nb", 2, "close `{{` with `}}`"),
        ("{{ x }}\n{% if x\nb", 2, "close `{%` with `%}`"),
        ("a\n\n{# b {{ c }}", 3, "close `{#` with `#}`"),
        ("{{ x {{ y }}", 1, "close `{{` with `}}`"),
        ("a\n{% for x in y %}\n{{ x }}", 3, "close `for` with `{% endfor %}`"),
        ("{% raw %}\n{{ x", 1, "close `raw` with `{% endraw %}`"),
        ("a\n{{ x y }}", 2, "correct this line; braces"),
        ("{% fi %}", 1, "correct this line; braces"),
    ],
)
def test_the_line_and_what_to_close(text: str, line: int, hint: str) -> None:
    fault = render.fault(text)

    assert fault is not None
    assert fault.line == line
    assert fault.hint.startswith(hint)
    assert not fault.message.endswith(".")


def test_a_template_that_can_be_read_has_no_fault_whatever_it_names() -> None:
    assert render.fault("{{ nobody.knows }}") is None
