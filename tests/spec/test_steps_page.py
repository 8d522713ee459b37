"""The page about steps: every parameter is explained, every example can be planned."""

import re
from pathlib import Path

import pytest
import yaml
from tests.spec.schema_reader import fits
from tests.spec.texts import with_steps

from kubexm.spec.pipeline import parse_pipeline
from kubexm.spec.planner import plan
from kubexm.spec.schema import json_schema
from kubexm.step import registry

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "steps.md").read_text()
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
EXAMPLE = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_parameter_is_explained() -> None:
    rows = [
        (kind, row)
        for kind, text in SECTIONS.items()
        for row in text.splitlines()
        if row.startswith("| `")
    ]

    assert SECTIONS.keys() == {kind for kind, _ in rows}
    assert [(kind, row) for kind, row in rows if row.endswith("|  |")] == []


@pytest.mark.parametrize("kind", sorted(registry.kinds()))
def test_every_kind_has_one_example_that_is_a_valid_step_of_it(kind: str, tmp_path: Path) -> None:
    (example,) = EXAMPLE.findall(SECTIONS[kind])
    text = with_steps(example)
    (tmp_path / "site").mkdir()

    found = plan(parse_pipeline(text, directory=tmp_path))

    # Some can't do without another step that leaves them a value.
    assert [node.step.kind for node in found.graph.nodes.values()][-1] == kind
    assert fits(yaml.safe_load(text), json_schema())


def test_the_schema_describes_kinds_without_their_examples() -> None:
    steps = json_schema()["$defs"]["StepSpec"]["properties"]

    assert steps["pause"]["description"] == (
        "Some seconds have passed, or a person has said yes.\n\n"
        "While the seconds pass it holds no slot."
    )
