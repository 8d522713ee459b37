"""Chance that is the same in every run: by seed, host and number of the command."""

from __future__ import annotations

from hashlib import blake2b


def chance(seed: int, host: str, number: int, about: str) -> float:
    """A number in [0, 1) for one question about one command of one host."""
    text = f"{seed}\0{host}\0{number}\0{about}"
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) / 2.0**64


def identity(seed: int, host: str, about: str) -> str:
    """32 hexadecimal digits that belong to a host for good."""
    return blake2b(f"{seed}\0{host}\0{about}".encode(), digest_size=16).hexdigest()
