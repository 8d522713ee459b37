"""Single values of a file win over what its template says."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from tests.step.places import Place

from kubexm.errors import InvalidInput
from kubexm.step.files import Rendered
from kubexm.step.secrets import RenderedSecret
from kubexm.templates.contexts.containerd import (
    ContainerdConfig,
    RegistryLogin,
)

CONFIG = ContainerdConfig(
    version=3, root="/var/lib/containerd", systemd_cgroup=True, sandbox_image="pause:3.10"
)
REGISTRY = "registry.internal:5000"


def test_a_value_wins_and_a_second_run_finds_nothing_to_do(place: Place) -> None:
    step = Rendered(
        f"{place.root}/config.toml",
        "containerd/config",
        data=CONFIG.data(),
        overrides={"root": "/data", "debug": {"level": "warn"}, "state": None},
        format="toml",
    )

    place.run(step)

    found = tomllib.loads(place.read("config.toml").decode())
    assert (found["root"], found["debug"]) == ("/data", {"level": "warn"})
    assert "state" not in found
    assert found["version"] == 3
    assert place.verdict(step).satisfied


def test_values_in_a_text_of_ones_own_win_as_well(place: Place) -> None:
    step = Rendered(
        f"{place.root}/f", text="a: {{ a }}\nb: 1\n", data={"a": 1}, overrides={"b": 2},
        format="yaml",
    )  # fmt: skip

    place.run(step)

    assert place.read("f") == b"a: 1\nb: 2\n"


def test_a_template_that_comes_out_wrong_is_named(place: Place) -> None:
    step = Rendered(f"{place.root}/f", text="a: [\n", overrides={"b": 2}, format="yaml")

    with pytest.raises(InvalidInput, match="template text, line 2: not YAML"):
        place.verdict(step)


@pytest.mark.parametrize("kind", [Rendered, RenderedSecret])
def test_a_file_that_is_no_data_takes_no_values(kind: type[Rendered | RenderedSecret]) -> None:
    given: dict[str, Any] = {"secrets": {}} if kind is RenderedSecret else {}

    with pytest.raises(ValueError, match="`overrides` beside `format: unit`, want one of yaml"):
        kind("/f", text="", overrides={"a": 1}, format="unit", **given)


def test_secrets_may_be_in_a_mapping_and_values_win_there_too(place: Place) -> None:
    place.secrets["env://PASSWORD"] = "hunter22"
    config = ContainerdConfig(
        version=3,
        root="/data",
        systemd_cgroup=True,
        sandbox_image="pause:3.10",
        logins=(RegistryLogin(host=REGISTRY, username="me"),),
    )
    step = RenderedSecret(
        f"{place.root}/config.toml",
        {"passwords": {REGISTRY: "env://PASSWORD"}},
        "containerd/config",
        data=config.data(),
        overrides={"oom_score": -999},
        format="toml",
    )

    place.run(step)

    found = tomllib.loads(place.read("config.toml").decode())
    known = found["plugins"]["io.containerd.cri.v1.images"]["registry"]["configs"]
    assert known[REGISTRY]["auth"] == {"username": "me", "password": "hunter22"}
    assert found["oom_score"] == -999
    assert "hunter22" not in str(step)
    assert place.verdict(step).satisfied


def test_what_is_no_reference_is_refused_in_a_mapping_too() -> None:
    with pytest.raises(ValueError, match=r"`secrets.passwords.x` is no reference") as caught:
        RenderedSecret("/f", {"passwords": {"x": "hunter22"}}, text="")

    assert "hunter22" not in str(caught.value)
