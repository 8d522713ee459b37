"""What of the command line of a run is kept for its resume and its retry."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kubexm.app.params import ClusterParams, OperationParams, PipelineParams
from kubexm.app.stored import KeptOperation, storable
from kubexm.common.about import About
from kubexm.common.assets import RegistrySource
from kubexm.errors import InvalidInput


def about(registries: dict[str, RegistrySource]) -> About:
    url = "https://10.0.0.11:6443"
    return About("v1.36.3", "single", url, (url,), "stacked", "routed", {}, registries=registries)


def test_the_same_is_done_with_the_cluster_of_a_corrected_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    old = ClusterParams(Path("old.yaml"), catalogs=(Path("mine.toml"),))
    asked = OperationParams(old, "delete-cluster", Path("bundle.tar.zst"), Path("templates"))
    text = msgspec.json.encode(KeptOperation.of(asked))
    monkeypatch.chdir("/")

    again = msgspec.json.decode(text, type=KeptOperation).on(
        PipelineParams(Path("new.yaml"), (), True)
    )

    assert again == OperationParams(
        ClusterParams(Path("new.yaml"), True, (tmp_path / "mine.toml",)),
        "delete-cluster",
        tmp_path / "bundle.tar.zst",
        tmp_path / "templates",
    )


def test_variables_mean_nothing_to_a_cluster() -> None:
    kept = KeptOperation("create-cluster")
    with pytest.raises(InvalidInput, match="no meaning for a cluster file"):
        kept.on(PipelineParams(Path("new.yaml"), ("a=b",)))


def test_no_password_of_a_registry_is_stored_but_references() -> None:
    written = RegistrySource(username="us", password="hunter2")
    referred = RegistrySource(username="us", password="env://PASSWORD")

    kept = storable(about({"a.lan": written, "b.lan": referred}))

    assert kept == about({"a.lan": RegistrySource(username="us"), "b.lan": referred})
    assert storable(None) is None
