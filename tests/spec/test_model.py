"""The models: frozen, written back as they were read, described by the schema and the pages."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.spec.schema_reader import fits
from tests.spec.texts import pipeline, with_steps

from kubexm.common.facts import FACTS
from kubexm.document import source
from kubexm.document.docstrings import field_texts
from kubexm.errors import InvalidFile, InvalidPipeline
from kubexm.spec import reference
from kubexm.spec.model import FactsSpec, StepFields, SystemSpec, as_data
from kubexm.spec.pipeline import Pipeline, parse_pipeline, pipeline_from, read_pipeline
from kubexm.spec.planner import plan
from kubexm.spec.schema import json_schema
from kubexm.step import registry

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
BAD = Path(__file__).parent / "bad"


def repr_short(value: Any) -> str:
    return repr(value)[:12].replace("\0", "nul")


def example(path: Path) -> Pipeline:
    return read_pipeline(path)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_pipeline_is_written_back_as_it_was_read(path: Path) -> None:
    spec = example(path).spec

    again = pipeline_from(as_data(spec))

    assert again.spec == spec


def test_json_and_yaml_say_the_same() -> None:
    text = pipeline("modules: [{name: m, tasks: [{name: t, steps: [{name: s, noop: }]}]}]")
    spec = parse_pipeline(text).spec

    assert parse_pipeline(json.dumps(as_data(spec)), "x.json").spec == spec


def test_data_without_a_file_is_planned_like_a_file() -> None:
    data = as_data(parse_pipeline(with_steps("- {name: s, noop: }")).spec)

    assert list(plan(pipeline_from(data)).graph.nodes) == ["p/m/t/s"]


@pytest.mark.parametrize(
    "strange",
    [{"\0kind": "noop"}, "\0", 2**64, float("nan"), {1: 2}, (1,), b"x"],
    ids=repr_short,
)
def test_data_that_no_file_can_hold_is_refused(strange: Any) -> None:
    with pytest.raises(InvalidFile, match="no file can hold"):
        pipeline_from({"spec": strange})


def test_data_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ring: list[Any] = []
    ring.append(ring)
    monkeypatch.setattr(source, "MAX_NODES", 1000)

    endless: list[Any]
    for endless in (ring, [[]] * 1000):
        with pytest.raises(InvalidFile, match="nested too deep, or too many values"):
            pipeline_from(endless)


def test_a_model_cant_be_changed() -> None:
    spec = parse_pipeline(with_steps("- {name: s, noop: }")).spec

    with pytest.raises(AttributeError, match="can't be changed"):
        spec.metadata.name = "other"


def test_problems_come_in_the_order_of_the_file_each_once() -> None:
    with pytest.raises(InvalidPipeline) as caught:
        plan(read_pipeline(BAD / "many-at-once.yaml"))

    lines = [int(problem.where.split(":")[1]) for problem in caught.value.problems]
    assert lines == sorted(lines)
    assert len(set(caught.value.problems)) == len(lines) == 8


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_schema_admits_every_example(path: Path) -> None:
    assert fits(example(path).document.data, json_schema())


@pytest.mark.parametrize(
    "name",
    ["misspelt-kind", "two-kinds", "no-kind", "unknown-policy", "missing-parameter", "sudo-yes"],
)
def test_the_schema_refuses_what_a_schema_can_tell(name: str) -> None:
    data: Any = yaml.safe_load((BAD / f"{name}.yaml").read_text().replace("yes", "'yes'"))

    assert not fits(data, json_schema())


def test_every_key_of_a_file_is_explained() -> None:
    for cls in reference.MODELS:
        # The kind of a step is a key of its own, explained on another page.
        hidden = {"kind", "params"} if issubclass(cls, StepFields) else set[str]()
        assert cls.fields().keys() - field_texts(cls).keys() == hidden


def test_the_reference_pages_are_those_of_the_sources() -> None:
    for page, text in reference.written_pages().items():
        written = (ROOT / "docs" / "reference" / page).read_text()
        assert written == text, "run: python -m kubexm.spec.reference docs/reference"


def test_the_pages_name_every_kind_of_step() -> None:
    page = reference.render_steps_reference()

    assert all(f"\n## {kind}\n" in page for kind in registry.kinds())


def test_a_mode_is_described_as_the_text_it_has_to_be() -> None:
    step = json_schema()["$defs"]["StepSpec"]["properties"]["file"]

    assert "| `mode` | text |" in reference.render_steps_reference()
    assert {"type": "integer"} not in step["properties"]["mode"]["anyOf"]


def test_a_key_that_can_have_one_value_is_offered_with_it() -> None:
    with pytest.raises(InvalidPipeline) as caught:
        plan(parse_pipeline(with_steps("- {name: s, noop: }").partition("\n")[2]))

    assert [problem.hint for problem in caught.value.problems] == [
        "add `apiVersion: kubexm.io/v1alpha1`"
    ]


@pytest.mark.parametrize("name", ["modules", "steps"])
def test_a_list_that_must_not_be_empty_says_what_to_write(name: str) -> None:
    with pytest.raises(InvalidPipeline) as caught:
        plan(read_pipeline(BAD / f"empty-{name}.yaml"))

    assert caught.value.problems[0].hint.startswith(f"write a {name[:-1]}, such as `- {{name: NAME")


def test_every_fact_can_be_declared_by_its_name() -> None:
    declared = {field.alias for field in FactsSpec.fields().values()}
    parts = {field.alias for field in SystemSpec.fields().values()}

    assert declared == FACTS.keys()
    assert parts == set(FACTS["os"])
