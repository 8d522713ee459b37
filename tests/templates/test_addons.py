"""Storage, and what else is installed into a cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubexm.templates import formats, render
from kubexm.templates.context import Context
from kubexm.templates.contexts.addons import MetricsServerManifest
from kubexm.templates.contexts.storage import LocalPathManifest, NfsManifest


def objects(name: str, sample: Context) -> dict[str, Any]:
    found = formats.parsed(render.render(name, sample.data()), "manifests")
    return {each["kind"]: each for each in found}


def local_path(**more: Any) -> dict[str, Any]:
    sample = LocalPathManifest(image="a/b:c", helper_image="a/d:e", **more)
    return objects("local-path/manifest", sample)


def nfs(**more: Any) -> dict[str, Any]:
    return objects("nfs/manifest", NfsManifest(image="a/b:c", server="nas", path="/x", **more))


@pytest.mark.parametrize("made", [local_path, nfs])
@pytest.mark.parametrize("is_default", [True, False])
def test_claims_that_name_no_class_get_the_default_one(made: Any, is_default: bool) -> None:
    metadata = made(is_default=is_default)["StorageClass"]["metadata"]

    told = metadata["annotations"]["storageclass.kubernetes.io/is-default-class"]
    assert told == str(is_default).lower()


def test_volumes_lie_in_the_directory_that_was_asked_for() -> None:
    data = local_path(directory='/data/"odd"')["ConfigMap"]["data"]

    (paths,) = json.loads(data["config.json"])["nodePathMap"]
    assert paths["paths"] == ['/data/"odd"']


def test_a_class_is_served_by_who_says_so() -> None:
    found = nfs()
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in container["env"]}

    assert environment["PROVISIONER_NAME"] == found["StorageClass"]["provisioner"]
    assert environment["NFS_SERVER"] == "nas"


def test_kubelets_have_to_prove_who_they_are_unless_told_otherwise() -> None:
    def args(**more: Any) -> list[str]:
        sample = MetricsServerManifest(image="a/b:c", **more)
        spec = objects("metrics-server/manifest", sample)["Deployment"]["spec"]
        found: list[str] = spec["template"]["spec"]["containers"][0]["args"]
        return found

    assert "--kubelet-insecure-tls" not in args()
    assert args(insecure_tls=True)[-1] == "--kubelet-insecure-tls"
