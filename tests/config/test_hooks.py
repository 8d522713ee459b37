"""What the cluster file tells of hooks is what a run knows of them."""

from __future__ import annotations

from kubexm.app import clusters
from kubexm.config.model.hooks import MODULES, MOMENTS
from kubexm.config.reference import explained
from kubexm.pipeline import whole
from kubexm.spec.model import HooksSpec


def test_modules_and_moments_are_those_that_there_are() -> None:
    assert whole.MODULES == MODULES
    assert {field.alias for field in HooksSpec.fields().values()} == {*MOMENTS}


def test_the_key_of_hooks_is_explained_with_all_of_them() -> None:
    text = explained("spec.hooks").text

    assert [word for word in (*MODULES, *MOMENTS) if f"`{word}`" not in text] == []


def test_the_schema_completes_modules_and_moments() -> None:
    hooks = clusters.schema()["$defs"]["ClusterSpec"]["properties"]["hooks"]

    assert [*hooks["properties"]] == [*MODULES]
    assert [*hooks["properties"]["system"]["properties"]] == [*MOMENTS]
