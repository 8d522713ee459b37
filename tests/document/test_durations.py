"""Durations as people write them, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubexm.config.fields import LongDuration
from kubexm.config.reference import explained
from kubexm.document.fields import Duration, duration_text, seconds
from kubexm.document.schema import value_schema


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0.0, "0s"),
        (0.01, "10ms"),
        (0.25, "250ms"),
        (5.0, "5s"),
        (5.5, "5.5s"),
        (300.0, "5m"),
        (5400.0, "1h30m"),
        (8 * 3600.0, "8h"),
        (365 * 86400.0, "365d"),
        (90061.5, "1d1h1m1.5s"),
    ],
)
def test_a_duration_is_written_in_the_largest_units(duration: float, text: str) -> None:
    assert duration_text(duration) == text


@given(st.integers(0, 366 * 86_400_000))
def test_what_is_written_is_read_as_the_same(thousandths: int) -> None:
    duration = thousandths / 1000

    assert seconds(duration_text(duration)) == pytest.approx(duration, abs=1e-6)


@pytest.mark.parametrize(
    ("path", "default"),
    [
        ("kubernetes.certificates.duration", "`365d`"),
        ("etcd.tuning.compaction", "`8h`"),
        ("preflight.etcdFsync", "`10ms`"),
        ("addons.timeout", "`5m`"),
    ],
)
def test_a_default_is_told_as_a_file_would_say_it(path: str, default: str) -> None:
    assert explained(path).default == default


def test_editors_take_a_long_duration_as_they_take_any_other() -> None:
    assert value_schema(LongDuration) == value_schema(Duration)
