"""`kubexm templates`: those of kubexm, and those in their place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.cli.answers import Kubexm

from kubexm.templates import render


@pytest.fixture
def own(tmp_path: Path, kubexm: Kubexm) -> Path:
    """A directory begun as the how-to says: with the text of ours."""
    file = tmp_path / "own/containerd/config.j2"
    file.parent.mkdir(parents=True)
    file.write_text(kubexm("templates", "show", "containerd/config", "--source").out)
    return tmp_path / "own"


def test_every_template_is_listed(kubexm: Kubexm, own: Path) -> None:
    answer = kubexm("templates", "list", "--templates", own)

    lines = {line.split()[0]: line for line in answer.out.splitlines()}
    assert answer.code == 0
    assert "/etc/containerd/config.toml" in lines["containerd/config"]
    assert " yours " in lines["containerd/config"]
    assert " yours " not in lines["etcd/environment"]


def test_a_template_is_shown_with_all_that_is_known_of_it(kubexm: Kubexm) -> None:
    answer = kubexm("templates", "show", "containerd/config")

    assert answer.code == 0
    assert "goes to /etc/containerd/config.toml" in answer.out
    assert "sandbox_image" in answer.out
    assert render.source("containerd/config") in answer.out
    assert 'sandbox_image = "registry.k8s.io/pause:3.10"' in answer.out


@pytest.mark.parametrize(("style", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_programs_get_documents(kubexm: Kubexm, own: Path, style: str, read: object) -> None:
    assert callable(read)
    shown = read(kubexm("templates", "show", "containerd/config", "-o", style).out)
    listed = read(kubexm("templates", "list", "-o", style).out)
    differences = read(kubexm("templates", "diff", own, "-o", style).out)
    checked = read(kubexm("templates", "check", own, "-o", style).out)

    assert shown["text"] == render.source("containerd/config")
    assert {"name", "format", "path", "about", "overlaid"} <= listed[0].keys()
    assert differences == [{"name": "containerd/config", "diff": ""}]
    assert checked == ["containerd/config"]


def test_the_source_of_ours_is_a_sound_template_to_begin_with(kubexm: Kubexm, own: Path) -> None:
    answer = kubexm("templates", "check", own)

    assert (answer.code, answer.out) == (0, "containerd/config\n")
    assert kubexm("templates", "diff", own).out == "containerd/config: no difference\n"


def test_what_is_wrong_with_templates_is_told_with_its_line(kubexm: Kubexm, own: Path) -> None:
    file = own / "containerd/config.j2"
    file.write_text(file.read_text().replace("{{ root ", "{{ rot "))

    answer = kubexm("templates", "check", own)

    assert answer.code == 2
    assert f"{file}:3: `rot` is not among what this template may use" in answer.err
    assert "did you mean `root`?" in answer.err
    assert "+root = {{ rot | toml }}\n" in kubexm("templates", "diff", own).out


def test_an_unknown_template_is_told_with_the_nearest(kubexm: Kubexm) -> None:
    answer = kubexm("templates", "show", "containerd/confg")

    assert answer.code == 2
    assert "did you mean `containerd/config`?" in answer.err


def test_an_empty_directory_is_told(kubexm: Kubexm, tmp_path: Path) -> None:
    assert kubexm("templates", "check", tmp_path).out == f"no template in `{tmp_path}`\n"
