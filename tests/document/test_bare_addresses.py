"""Passwords in addresses without a scheme, and what only looks like them."""

from __future__ import annotations

from typing import Any

import pytest

from kubexm.document import literals


@pytest.mark.parametrize(
    "data",
    [
        {"proxy": {"http": "user:hunter2@proxy:3128"}},
        {"proxy": {"http": "user:hunter2@proxy"}},
        {"env": {"HTTP_PROXY": "user:hunter2@proxy"}},
        {"argv": ["tool", "user:hunter2@proxy:3128"]},
        {"vars": {"server": "user:hunter2@db.example.com"}},
        {"vars": {"server": "user:hunter2@10.0.0.5"}},
        {"vars": {"server": "user:hunter2@[fd00::5]:5432"}},
    ],
)
def test_a_password_before_a_host_is_found(data: Any) -> None:
    (finding,) = literals.findings(data)

    assert finding.message == "a password written out in an address"
    assert "hunter2" not in finding.hint


@pytest.mark.parametrize(
    "text",
    [
        "nginx:1.27@sha256:0123456789012345678901234567890123456789012345678901234567890123",
        "git@github.com:acme/site.git",
        "mailto:ops@example.com",
        "npm:react@18",
        "npm:react@18.2.0",
        "rbd:image@snapshot",
        "12:30@noon.example",
        "user:${values.password}@db.example.com",
        "write to user:x@proxy.example.com",
        "registry:5000/shop@latest",
    ],
)
def test_what_is_no_address_with_a_password_is_left_alone(text: str) -> None:
    assert [*literals.findings({"text": text, "argv": [text]})] == []
