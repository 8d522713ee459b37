"""The real openssl, as an independent judge of what we make and a maker of what we are given."""

import shutil
import subprocess
from pathlib import Path

import pytest

needed = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")


def run(*arguments: str, given: bytes | None = None) -> str:
    """What it says; a failure is the test's."""
    done = subprocess.run(
        ["openssl", *arguments], input=given, capture_output=True, check=False, timeout=15
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def shown(certificate: bytes) -> str:
    """A certificate in words."""
    return run("x509", "-noout", "-text", given=certificate)


def verify(place: Path, authority: bytes, certificate: bytes, *options: str) -> bool:
    """Whether it takes the certificate for one of the authority."""
    (place / "ca.pem").write_bytes(authority)
    (place / "leaf.pem").write_bytes(certificate)
    files = ["-CAfile", str(place / "ca.pem"), str(place / "leaf.pem")]
    done = subprocess.run(
        ["openssl", "verify", "-x509_strict", *options, *files],
        capture_output=True,
        check=False,
        timeout=15,
    )
    return done.returncode == 0
