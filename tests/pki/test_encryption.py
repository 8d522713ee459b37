"""What the API server encrypts: what was encrypted before stays so, and no entry covers another."""

from __future__ import annotations

import pytest

from kubexm.pki import encryption

KEY = "a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2U="


def written(resources: list[str], *before: str) -> encryption.Encryption:
    there = encryption.Encryption(before, "secretbox", KEY)
    return encryption.read(encryption.text("secretbox", resources, KEY, there).encode())


@pytest.mark.parametrize(
    ("resources", "before", "found"),
    [
        (["configmaps"], ["secrets"], ("configmaps", "secrets")),
        (["*."], ["secrets"], ("*.",)),
        (["secrets"], ["*."], ("*.",)),
        (["*.*"], ["secrets", "*.apps"], ("*.*",)),
        (["*.apps"], ["secrets", "deployments.apps"], ("*.apps", "secrets")),
    ],
)
def test_what_was_encrypted_stays_so_and_nothing_is_named_twice(
    resources: list[str], before: list[str], found: tuple[str, ...]
) -> None:
    there = written(resources, *before)

    assert there.resources == found
    assert encryption.faults(there, "secretbox", resources) == []


def test_what_nothing_covers_is_told() -> None:
    there = written(["*."])

    assert encryption.faults(there, "secretbox", ["secrets", "deployments.apps"]) == [
        "does not encrypt `deployments.apps`"
    ]
