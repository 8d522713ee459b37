"""Where all tests are required, one that leaves itself out fails: a plugin of pytest.

`REQUIRE_ALL=1` says so. Then only what hangs on the machine, and not on what is installed, is left
out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from typing import TypeVar

import pytest

from lab.software import parts

REQUIRED = "REQUIRE_ALL"
_OF_THE_MACHINE = (
    "the machine uses swap",
    "this machine has no IPv6",
    "this machine has no packet filter",
    "this kernel makes no links",
)
_OF_THE_SOFTWARE = (
    *("no kubeadm is at hand", "no kubectl is at hand"),
    "no containerd for version 3 is at hand",
)
"""Made for the lab, in half an hour: `make test` goes without where it is not there yet."""
_HAS_SOFTWARE = any(parts.home().glob("*/software.json"))

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _judged((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _judged((yield))


def may_be_left_out(why: str, *, has_software: bool) -> bool:
    """Whether tests that are all required go without this one."""
    reasons = (*_OF_THE_MACHINE, *(() if has_software else _OF_THE_SOFTWARE))
    return why.startswith(reasons)


def _judged(report: Report) -> Report:
    if not report.skipped or hasattr(report, "wasxfail") or not os.environ.get(REQUIRED):
        return report
    assert isinstance(report.longrepr, tuple)
    why = re.sub("^Skipped: ", "", report.longrepr[2])
    if not may_be_left_out(why, has_software=_HAS_SOFTWARE):
        report.outcome = "failed"
        report.longrepr = f"left out: {why}; `{REQUIRED}` wants it"
    return report
