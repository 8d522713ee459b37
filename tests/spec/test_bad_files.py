"""Every file in `bad/` is refused where its first lines say, and why.

A line `# expect LINE:COLUMN WORDS` stands for one problem.
"""

import re
from pathlib import Path

import pytest

from kubexm.errors import InvalidFile, Problem
from kubexm.spec.pipeline import read_pipeline
from kubexm.spec.planner import plan

BAD = sorted((Path(__file__).parent / "bad").glob("*.yaml"))
EXPECTED = re.compile(r"^# expect (\d+:\d+) (.+)$", re.MULTILINE)


def problems_of(path: Path) -> tuple[Problem, ...]:
    with pytest.raises(InvalidFile) as caught:
        plan(read_pipeline(path))
    return caught.value.problems


def test_there_are_many() -> None:
    assert len(BAD) >= 60


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_it_is_refused_with_place_and_remedy(path: Path) -> None:
    expected = EXPECTED.findall(path.read_text())

    problems = problems_of(path)

    assert len(problems) == len(expected) > 0
    for place, words in expected:
        at = [problem.message for problem in problems if problem.where == f"{path}:{place}"]
        assert any(words in message for message in at), (place, words, problems)
    assert all(problem.hint for problem in problems)


def test_a_secret_is_not_repeated() -> None:
    for name in ("password-in-vars", "secret-in-argument", "literal-secret-content"):
        text = "".join(map(str, problems_of(Path(__file__).parent / "bad" / f"{name}.yaml")))
        assert "hunter2" not in text
        assert "abc123" not in text
