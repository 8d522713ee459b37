"""Who we are to registries: it gets to whoever pulls, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.task.planned import content, made, planned, step, world, written

from kubexm.app.planning import Planned
from kubexm.common import layout
from kubexm.errors import InvalidInput
from kubexm.plan import codec
from kubexm.sim import containers
from kubexm.step.secrets import RenderedSecret

PASSWORD = "env://REGISTRY_PASSWORD"
AUTH = {"username": "reader", "password": PASSWORD}
MIRRORED = {
    "docker.io": {"mirrors": ["https://mirror.example.com:5000"], "auth": AUTH},
    "mirror.example.com:5000": {"auth": {"username": "robot", "password": "env://ROBOT"}},
}


def cluster(folder: Path, registries: dict[str, Any], **spec: Any) -> Path:
    return written(folder, containerRuntime={"registries": registries}, **spec)


def pulls(plan: Planned) -> dict[str, bool]:
    """Whether images are pulled with a login, by the registry of their names."""
    wanted = (node.step.params for node in plan.graph if node.step.kind == "image")
    return {each["name"].partition("/")[0]: each.get("login", False) for each in wanted}


def test_logins_are_known_by_the_hosts_that_containerd_asks(tmp_path: Path) -> None:
    found = step(planned(cluster(tmp_path, MIRRORED)), layout.CONTAINERD_CONFIG, "w1")

    assert isinstance(found, RenderedSecret)
    assert found.mode == "0600"
    assert found.secrets == {
        "passwords": {"mirror.example.com:5000": "env://ROBOT", "registry-1.docker.io": PASSWORD}
    }
    assert {each["host"]: each["username"] for each in found.data["logins"]} == {
        "mirror.example.com:5000": "robot",
        "registry-1.docker.io": "reader",
    }


def test_how_a_registry_is_reached_is_no_secret(tmp_path: Path) -> None:
    plan = planned(cluster(tmp_path, MIRRORED))

    file = content(plan, f"{layout.CONTAINERD_REGISTRIES}/docker.io/hosts.toml", "w1")

    assert "https://mirror.example.com:5000" in file
    assert "reader" not in file


def test_images_are_pulled_with_a_login_where_their_registry_or_a_mirror_has_one(
    tmp_path: Path,
) -> None:
    mirror = {"registry.k8s.io": {"mirrors": ["https://mirror.example.com:5000/v2/k8s"]}}
    registries = mirror | {"mirror.example.com:5000": {"auth": AUTH}}

    usual = pulls(planned(written(tmp_path)))
    found = pulls(planned(cluster(tmp_path, registries)))

    assert not any(usual.values())
    assert found["registry.k8s.io"]
    assert not any(found[other] for other in found if other != "registry.k8s.io")


def test_whoever_pulls_with_a_login_has_crictl(tmp_path: Path) -> None:
    graph = planned(cluster(tmp_path, {"docker.io": {"auth": AUTH}})).graph
    usual = planned(written(tmp_path)).graph

    for lane in ("core", "workers"):
        service = f"create-cluster/container-runtime/{lane}/service/containerd"
        crictl = f"create-cluster/container-runtime/{lane}/crictl/crictl"
        assert crictl in graph.nodes[service].after_same_host
        assert crictl not in usual.nodes[service].after_same_host


def test_a_catalog_without_crictl_has_nothing_that_logs_in(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('[kubernetes."v1.36".defaults]\ncrictl = ""\n')

    with pytest.raises(InvalidInput, match="crictl"):
        planned(cluster(tmp_path, {"docker.io": {"auth": AUTH}}), mine)


@pytest.mark.slow
def test_a_cluster_of_a_registry_with_a_login_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", "pass word")
    file = cluster(
        tmp_path,
        {"registry.example.com:5000": {"auth": AUTH}},
        registry={"host": "registry.example.com", "port": 5000},
        endpoint={"kind": "haproxy"},
    )

    outcome = made(file)
    again = made(file)

    assert outcome.result.status == again.result.status == "Success"
    with world(outcome) as hosts:
        shell = hosts.host("w1").shell()
        assert shell.files.find(layout.CONTAINERD_CONFIG).mode == 0o600
        (haproxy,) = containers.images(shell, "kubexm")
    assert haproxy.startswith("registry.example.com:5000/")
    assert "pass word" not in str(codec.encode(planned(file).graph))
