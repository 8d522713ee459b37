"""Parameters that can't be meant are refused when a step is made, with what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from kubexm.errors import InvalidInput
from kubexm.step import registry

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("file", {"path": "relative"}, "`path` is `relative`, want an absolute path"),
    ("file", {"path": "/"}, "want an absolute path below `/`"),
    (
        "file",
        {"path": "/x", "mode": 420},
        "`mode` is the number 420, want octal digits as text in quotes",
    ),
    ("file", {"path": "/x", "mode": "rw"}, "`mode` is `rw`, want three or four octal digits"),
    ("file", {"path": "/x", "mode": "0888"}, "want three or four octal digits"),
    ("file", {"path": "/x", "content": "", "content_base64": ""}, "give only one of `content`"),
    ("file", {"path": "/x", "content_base64": "%"}, "`content_base64` is not base64"),
    ("file", {"path": "/x", "contents": "a"}, "no parameter `contents`"),
    ("file", {}, "missing required field `path`"),
    ("secret-file", {"path": "/x", "content": "hunter2"}, "`content` is no reference to a secret"),
    ("template", {"path": "/x"}, "give one of `template`, `text`; found none"),
    ("template", {"path": "/x", "template": "a", "text": "b"}, "found `template` and `text`"),
    ("secret-template", {"path": "/x", "text": "", "secrets": {"a": "b"}}, "`secrets.a` is no"),
    ("absent", {"path": "/"}, "want an absolute path below `/`"),
    ("directory", {"path": "d"}, "want an absolute path"),
    ("block", {"path": "/x", "content": "a", "marker": " "}, "`marker` is"),
    ("block", {"path": "/x", "content": "# END kubexm: managed"}, "one of the marks"),
    ("line", {"path": "/x", "line": "a\nb"}, "want one line"),
    ("line", {"path": "/x", "line": "a", "match": "("}, "`match` is no regular expression"),
    ("command", {"argv": []}, "`argv` is empty"),
    ("command", {"argv": "ls -l"}, "Expected `array`, got `str`"),
    ("command", {"argv": ["ls"], "unless": []}, "`unless` is empty"),
    ("command", {"argv": ["ls"], "expect": []}, "`expect` is empty"),
    ("command", {"argv": ["ls"], "creates": "x"}, "`creates` is `x`"),
    ("command", {"argv": ["ls"], "stdin": "", "secret_stdin": "env://X"}, "give only one of"),
    ("command", {"argv": ["ls"], "secret_env": {"A": "x"}}, "`secret_env.A` is no reference"),
    (
        "value",
        {"key": "k", "argv": ["ls"], "secret_env": {"A": "x"}},
        "`secret_env.A` is no reference",
    ),
    ("service", {"unit": "-x"}, "`-x` is no name of a unit"),
    ("service", {"unit": "x", "running": None, "enabled": None}, "nothing to do"),
    ("service", {"unit": "x", "running": False, "restarts_on": ["/x"]}, "needs `running: true`"),
    ("service", {"unit": "x", "restarts_on": ["x"]}, r"`restarts_on\[0\]` is `x`"),
    ("package", {"names": []}, "`names` is empty"),
    ("package", {"names": ["--force"]}, "`--force` is no name of a package"),
    ("wait", {}, "give one of `port`, `url`, `command`; found none"),
    ("wait", {"port": 1, "url": "http://x"}, "found `port` and `url`"),
    ("wait", {"port": 70000}, "`port` is 70000, want 1 to 65535"),
    ("wait", {"url": "ftp://x"}, "want http:// or https://"),
    ("wait", {"port": 1, "status": 200}, "`status` needs `url`"),
    ("wait", {"port": 1, "interval": 0}, "`interval` is 0"),
    ("wait", {"command": []}, "`command` is empty"),
    ("pause", {}, "give one of `seconds`, `question`"),
    ("pause", {"seconds": -1}, "`seconds` is -1"),
    ("value", {"key": "a b", "argv": ["x"]}, "`key` is `a b`"),
    ("value", {"key": "a", "argv": ["x"], "ttl": 0}, "`ttl` is 0"),
    ("value", {"key": "a", "argv": ["x"], "parse": "yaml"}, "Invalid enum value 'yaml'"),
    ("mint", {"key": "a", "argv": []}, "`argv` is empty"),
    ("assert", {"that": True}, "`that` needs a `message`"),
    ("assert", {}, "give one of `that`, `argv`"),
]


@pytest.mark.parametrize(("kind", "params", "message"), WRONG)
def test_wrong_parameters_are_refused(kind: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        registry.load(kind, params)

    assert "hunter2" not in str(caught.value)


def test_an_unknown_kind_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="unknown step kind `servce`") as caught:
        registry.load("servce", {})

    assert caught.value.hint == "did you mean `service`?"


def test_a_misspelt_parameter_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.load("service", {"unit": "x", "enable": True})

    assert caught.value.hint == "did you mean `enabled`?"


def test_every_kind_can_say_what_is_true_afterwards() -> None:
    least: dict[str, dict[str, Any]] = {
        "absent": {"path": "/x"},
        "archive": {"path": "/x", "into": "/y"},
        "assert": {"argv": ["true"]},
        "block": {"path": "/x", "content": ""},
        "command": {"argv": ["true"]},
        "directory": {"path": "/x"},
        "file": {"path": "/x"},
        "hostname": {"name": "x"},
        "kernel-module": {"name": "x"},
        "line": {"path": "/x", "line": "a"},
        "mint": {"key": "a", "argv": ["true"]},
        "no-swap": {},
        "noop": {},
        "package": {"names": ["x"]},
        "pause": {"seconds": 1},
        "secret-file": {"path": "/x", "content": "env://X"},
        "secret-template": {"path": "/x", "text": "", "secrets": {}},
        "service": {"unit": "x"},
        "sysctl": {"name": "x", "settings": {"vm.swappiness": 1}},
        "template": {"path": "/x", "text": ""},
        "user": {"name": "x"},
        "value": {"key": "a", "argv": ["true"]},
        "wait": {"port": 1},
    }

    assert set(registry.kinds()) >= set(least)
    for kind, params in least.items():
        step = registry.load(kind, params)
        assert step.summary()
        assert registry.load(kind, step.spec().params) == step
        assert len(registry.digest(kind)) == 16


@pytest.mark.parametrize(
    ("number", "text"),
    [(644, "0644"), (0o644, "0644"), (600, "0600"), (0o600, "0600"), (1777, "1777")],
)
def test_a_number_for_a_mode_is_refused_with_the_text_that_was_meant(
    number: int, text: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.load("file", {"path": "/x", "mode": number})

    assert caught.value.hint == f'write `mode: "{text}"`'
