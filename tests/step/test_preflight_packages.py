"""Tools that a host lacks: whether its package manager could install them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.step.test_preflight_checks import FACTS, PROBED, WANTED

from kubexm.connector.local import LocalConnector
from kubexm.runner.host import Completed, Host
from kubexm.step.preflight import JUDGES
from kubexm.step.preflight_look import Look
from kubexm.step.preflight_packages import missing, out_of_reach, questions

NAMES = ("conntrack", "socat")
URIS = b"'http://deb.debian.org/debian/dists/bookworm/InRelease' deb.debian.org 0 \n"
STATUS = b"Package files:\n 100 /var/lib/dpkg/status\n     release a=now\nPinned packages:\n"
LISTS = STATUS.replace(
    b"Pinned", b" 500 http://deb.debian.org/debian bookworm/main amd64 Packages\nPinned"
)
KNOWN = b"conntrack:\n  Installed: (none)\n  Candidate: 1:1.4.7-1+b2\n  Version table:\n"
NONE = b"socat:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n"


def look(manager: str, *tools: str) -> Look:
    assert PROBED.tools is not None
    probed = replace(PROBED, tools=PROBED.tools - {*tools})
    return Look("here", WANTED, {**FACTS, "package_manager": manager}, probed)


@pytest.mark.parametrize(
    ("manager", "names"),
    [
        ("apt", ("conntrack", "iproute2", "socat")),
        ("dnf", ("conntrack-tools", "iproute", "socat", "iproute-tc")),
        ("zypper", ("conntrack-tools", "iproute2", "socat")),
        ("pacman", ()),
    ],
)
def test_tools_that_are_missing_are_packages_by_the_names_of_their_system(
    manager: str, names: tuple[str, ...]
) -> None:
    assert missing(look(manager, "conntrack", "ip", "tc", "socat")) == names
    assert missing(look(manager)) == ()


@pytest.mark.parametrize(
    ("manager", "answers", "names"),
    [
        ("apt", (b"", STATUS, b""), NAMES),
        ("apt", (URIS, LISTS, KNOWN + NONE), ("socat",)),
        ("apt", (URIS, LISTS, KNOWN), ("socat",)),
        ("apt", (URIS, STATUS, b""), ()),
        ("dnf", (b"",), NAMES),
        ("dnf", (b"repo id   repo name\nbase      Base\n",), ()),
    ],
    ids=[
        "no repository",
        "no candidate",
        "never heard of",
        "lists not fetched",
        "no repositories",
        "repositories",
    ],
)
def test_what_certainly_can_t_be_installed_is_named(
    manager: str, answers: tuple[bytes, ...], names: tuple[str, ...]
) -> None:
    assert out_of_reach(manager, NAMES, [Completed(0, each) for each in answers]) == names


def test_a_package_manager_that_fails_says_nothing() -> None:
    assert out_of_reach("apt", NAMES, [Completed(100, b""), *[Completed(0, b"")] * 2]) == ()
    assert out_of_reach("dnf", NAMES, [Completed(1, b"")]) == ()
    assert out_of_reach("zypper", NAMES, [Completed(0, b"")]) == ()
    assert out_of_reach("zypper", NAMES, [Completed(6, b"")]) == NAMES


def test_packages_out_of_reach_refuse_with_their_names_and_a_remedy() -> None:
    (found,) = JUDGES["packages"](replace(look("apt", "socat"), out_of_reach=("socat",)))

    assert found.kind == "refusal"
    assert found.figure == "socat"
    assert "repository" in found.remedy
    assert [*JUDGES["packages"](look("apt", "socat"))] == []


async def test_a_host_is_asked_by_commands_that_only_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("apt-get", "apt-cache"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" "$LC_ALL"\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    connector = LocalConnector()
    await connector.open()
    host = Host("here", connector)

    answers = await host.batch(questions(host, "apt", NAMES))
    await connector.close()

    assert [answer.text for answer in answers] == [
        "apt-get --print-uris update C",
        "apt-cache policy C",
        "apt-cache policy -- conntrack socat C",
    ]
