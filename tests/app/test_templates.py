"""Use cases of templates: what there is, what each may use, and those of the operator."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubexm.app import templates
from kubexm.errors import InvalidInput
from kubexm.templates import render
from kubexm.templates.registry import TEMPLATES

OWN = render.source("chrony/config") + "# mine\n"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "chrony").mkdir()
    (tmp_path / "chrony/config.j2").write_text(OWN)
    return tmp_path


def test_every_template_is_listed_and_those_of_the_operator_are_marked(own: Path) -> None:
    found = templates.listed(own)

    assert [one.name for one in found] == sorted(TEMPLATES)
    assert [one.name for one in found if one.overlaid] == ["chrony/config"]
    assert not [one for one in templates.listed() if one.overlaid]


def test_a_template_is_shown_with_what_it_may_use_and_what_comes_out() -> None:
    found = templates.shown("haproxy/config")

    words = {one.name: one.value for one in found.fields}
    assert words["binds"] == "list of text"
    assert words["backends"] == "list of mapping"
    assert words["backends[].address"] == "text"
    assert words["max_connections"] == "whole number"
    assert all(one.about for one in found.fields)
    assert found.outcome == render.render("haproxy/config", found.sample)


def test_choices_and_mappings_of_a_template_are_told() -> None:
    initial = {one.name: one.value for one in templates.shown("etcd/initial").fields}

    assert initial["state"] == "existing or new"
    assert initial["cluster"] == "mapping of names to text"


def test_every_template_can_be_shown() -> None:
    for name in TEMPLATES:
        assert templates.shown(name).text == render.source(name)


def test_that_of_the_operator_is_shown_in_place_of_ours(own: Path) -> None:
    found = templates.shown("chrony/config", own)

    assert found.overlaid
    assert found.text == OWN
    assert found.outcome.endswith("# mine\n")


def test_differences_are_those_from_ours_to_theirs(own: Path) -> None:
    (found,) = templates.differences(own)

    changed = [line for line in found.diff.splitlines() if line[:1] in "+-"]
    assert found.name == "chrony/config"
    assert changed[0] == "--- kubexm/chrony/config.j2"
    assert changed[2:] == ["+# mine"]


def test_templates_that_can_not_be_used_differ_as_well(own: Path) -> None:
    (own / "chrony/config.j2").write_text("{{ gone }}")

    (found,) = templates.differences(own, "chrony/config")

    assert "+{{ gone }}\n" in found.diff
    with pytest.raises(InvalidInput):
        templates.checked(own)


def test_a_template_that_is_not_there_has_no_difference_to_tell(own: Path) -> None:
    with pytest.raises(InvalidInput, match="no template `chrony/confg`") as caught:
        templates.differences(own, "chrony/confg")

    assert caught.value.hint == "did you mean `chrony/config`?"


def test_sound_templates_are_named(own: Path) -> None:
    assert templates.checked(own) == ["chrony/config"]
