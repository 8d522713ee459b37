"""Edits of any text are taken back exactly, whatever stood there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.step.places import MemoryLedger, SimPlace

from kubexm.step.edits import Edit, LineInFile, ManagedBlock

PATH = "/srv/root/f"
LINES = st.sampled_from(
    ["", "a", "ab", "port = 1", "port = 2", "# BEGIN kubexm: m", "# END kubexm: m"]
)
TEXTS = st.lists(LINES, max_size=7).map(lambda lines: "\n".join(lines).encode())
EDITS: st.SearchStrategy[Edit] = st.one_of(
    st.builds(
        LineInFile,
        path=st.just(PATH),
        line=st.sampled_from(["a", "port = 1", "port = 3"]),
        match=st.sampled_from(["", "^port", "a", "^$"]),
        absent=st.booleans(),
        secret=st.booleans(),
    ),
    st.builds(
        ManagedBlock,
        path=st.just(PATH),
        content=st.sampled_from(["", "one", "two\nlines\n", "\n"]),
        marker=st.just("m"),
        secret=st.booleans(),
    ),
)


def is_closed(data: bytes) -> bool:
    """Whether no block begins without an end."""
    begin, end = b"# BEGIN kubexm: m", b"# END kubexm: m"
    lines = data.split(b"\n")
    return begin not in lines or end in lines[lines.index(begin) :]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimPlace]:
    made = SimPlace(tmp_path_factory.mktemp("edits"))
    yield made
    made.close()


@given(TEXTS.filter(is_closed), EDITS)
def test_any_edit_of_any_text_is_satisfied_and_undone_exactly(
    place: SimPlace, old: bytes, edit: Edit
) -> None:
    place.ledger = MemoryLedger()
    place.write("f", old)
    if place.verdict(edit).satisfied:
        return

    place.run(edit)

    assert place.verdict(edit).satisfied
    place.undo(edit)
    assert place.read("f") == old
    place.undo(edit)
    assert place.read("f") == old


PORTS = st.builds(
    LineInFile,
    path=st.just(PATH),
    line=st.sampled_from(["port = 1", "port = 3"]),
    match=st.just("^port"),
    absent=st.booleans(),
)
# The third may come back to the lines of the first, but not past another that took some of them.
SEVERAL = st.lists(EDITS, min_size=2, max_size=2) | st.lists(PORTS, min_size=2, max_size=4)


@given(TEXTS.filter(is_closed), SEVERAL)
def test_edits_one_after_the_other_are_undone_backwards_exactly(
    place: SimPlace, old: bytes, edits: list[Edit]
) -> None:
    place.ledger = MemoryLedger()
    place.write("f", old)
    done = []
    for edit in edits:
        if not place.verdict(edit).satisfied:
            place.run(edit)
            done.append(edit)

    for edit in reversed(done):
        place.undo(edit)

    assert place.read("f") == old
