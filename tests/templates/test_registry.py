"""Every template is registered, uses what its context has, and comes out as what it says it is."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import msgspec
import pytest

from kubexm.document.docstrings import field_texts
from kubexm.errors import InvalidInput
from kubexm.templates import formats, registry, render
from kubexm.templates.context import Context, Template
from kubexm.templates.registry import TEMPLATES

NOT_OF_A_CLUSTER = {"cluster/cluster.yaml", "systemd/service"}
"""The draft of a cluster file goes to no host; the plain unit is for pipelines of people."""
SAMPLES = [
    pytest.param(template, sample, id=f"{template.name}-{number}")
    for template in TEMPLATES.values()
    for number, sample in enumerate(template.samples)
]


@pytest.fixture(params=TEMPLATES.values(), ids=[*TEMPLATES])
def template(request: pytest.FixtureRequest) -> Template:
    found: Template = request.param
    return found


def test_every_file_is_registered_and_every_name_has_a_file() -> None:
    assert set(render.names()) == TEMPLATES.keys() | NOT_OF_A_CLUSTER


def test_a_template_uses_all_of_its_context_and_nothing_else(template: Template) -> None:
    assert render.used(render.source(template.name)).keys() == set(fields(template.context))


def test_a_template_says_what_it_is_for_and_where_it_goes(template: Template) -> None:
    assert template.about
    assert not template.about.endswith(".")
    assert template.path
    assert template.samples
    assert all(type(sample) is template.context for sample in template.samples)


def test_what_a_template_may_use_is_told(template: Template) -> None:
    for struct in structs(template.context):
        assert inspect.getdoc(struct)
        assert fields(struct) == tuple(name for name in fields(struct) if field_texts(struct)[name])


@pytest.mark.parametrize(("template", "sample"), SAMPLES)
def test_every_sample_comes_out_as_a_file_of_its_format(
    template: Template, sample: Context
) -> None:
    text = render.render(template.name, sample.data())

    formats.check(text, template.format)
    assert text.endswith("\n")
    assert not text.startswith("\n")
    assert not text.endswith("\n\n")
    assert not [line for line in text.split("\n") if line != line.rstrip()]


@pytest.mark.parametrize(("template", "sample"), SAMPLES)
def test_a_context_goes_through_a_graph_unharmed(template: Template, sample: Context) -> None:
    assert msgspec.convert(sample.data(), template.context) == sample


def test_an_unknown_template_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="unknown template `containerd/confg`") as caught:
        registry.template("containerd/confg")

    assert caught.value.hint == "did you mean `containerd/config`?"


def fields(struct: type) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(struct))


def structs(struct: type) -> Iterator[type]:
    """A context and all that its fields hold."""
    yield struct
    for info in msgspec.inspect.type_info(struct).fields:  # type: ignore[attr-defined]
        yield from within(info.type)


def within(info: object) -> Iterator[type]:
    if isinstance(info, msgspec.inspect.StructType):
        yield from structs(info.cls)
    for name in ("item_type", "key_type", "value_type"):
        if hasattr(info, name):
            yield from within(getattr(info, name))
    for inner in getattr(info, "types", ()):
        yield from within(inner)
