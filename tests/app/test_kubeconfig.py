"""What lets people into a cluster from here."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from kubexm.app import kubeconfig
from kubexm.app.known import KnownCluster
from kubexm.common.about import About
from kubexm.errors import InvalidInput

ADMIN = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [
        {
            "name": "kubernetes",
            "cluster": {
                "server": "https://api.demo.kubexm.internal:6443",
                "certificate-authority-data": "Q0E=",
            },
        }
    ],
    "users": [{"name": "kubernetes-admin", "user": {"client-key-data": "S0VZ"}}],
    "contexts": [{"name": "x", "context": {"cluster": "kubernetes", "user": "kubernetes-admin"}}],
    "current-context": "x",
}


def known(path: Path, *servers: str, world: str | None = None) -> KnownCluster:
    server = "https://api.demo.kubexm.internal:6443"
    roles: dict[str, tuple[str, ...]] = {"control-plane": ("control1",)}
    about = About("v1.36.4", "haproxy", server, servers, "stacked", "routed", roles, str(path))
    return KnownCluster("demo", "created", about, (), datetime.now(UTC), "t", "t", world)


@pytest.fixture
def fetched(tmp_path: Path) -> Path:
    path = tmp_path / "admin.conf"
    path.write_text(yaml.safe_dump(ADMIN))
    return path


def test_a_server_is_chosen_that_takes_connections_from_here(fetched: Path) -> None:
    async def scenario() -> kubeconfig.Config:
        listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        dead = "https://127.0.0.1:1"
        async with listener:
            return await kubeconfig.usable(known(fetched, dead, f"https://127.0.0.1:{port}"))

    config = asyncio.run(scenario())

    place = config["clusters"][0]["cluster"]
    assert place["server"] != "https://127.0.0.1:1"
    assert place["tls-server-name"] == "api.demo.kubexm.internal"
    assert place["certificate-authority-data"] == "Q0E="
    assert config["current-context"] == config["clusters"][0]["name"] == "demo"
    assert config["users"] == [{"name": "demo-admin", "user": {"client-key-data": "S0VZ"}}]


def test_a_server_may_be_named(fetched: Path) -> None:
    own = "https://api.demo.kubexm.internal:6443"
    config = asyncio.run(kubeconfig.usable(known(fetched, "https://10.0.0.1:6443"), own))
    assert config["clusters"][0]["cluster"]["server"] == own
    assert "tls-server-name" not in config["clusters"][0]["cluster"]


def test_merging_leaves_others_alone_and_replaces_its_own(fetched: Path, tmp_path: Path) -> None:
    target = tmp_path / "kube" / "config"
    first = asyncio.run(kubeconfig.usable(known(fetched, "https://127.0.0.1:1")))
    kubeconfig.merge(first, target)
    other = {**ADMIN, "preferences": {"colors": True}, "current-context": "x"}
    target.write_text(yaml.safe_dump(other))

    kubeconfig.merge(first, target)
    kubeconfig.merge(first, target)

    found = yaml.safe_load(target.read_text())
    assert [one["name"] for one in found["clusters"]] == ["kubernetes", "demo"]
    assert [one["name"] for one in found["users"]] == ["kubernetes-admin", "demo-admin"]
    assert found["current-context"] == "x"
    assert found["preferences"] == {"colors": True}
    assert target.stat().st_mode & 0o777 == 0o600


def test_where_kubectl_looks_first(tmp_path: Path) -> None:
    both = os.pathsep.join((str(tmp_path / "a"), str(tmp_path / "b")))
    assert kubeconfig.usual_place({"KUBECONFIG": both}) == tmp_path / "a"
    assert kubeconfig.usual_place({}).parts[-2:] == (".kube", "config")


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="was not fetched, or is gone"):
        asyncio.run(kubeconfig.usable(known(tmp_path / "nothing", "https://127.0.0.1:1")))
    with pytest.raises(InvalidInput, match="is simulated"):
        asyncio.run(kubeconfig.usable(known(tmp_path, "https://127.0.0.1:1", world="/w")))
