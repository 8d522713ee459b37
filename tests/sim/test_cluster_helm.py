"""Releases of charts are made, changed, gone back to, and removed with all that they made."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sim.clusters import ClusterSite, config_map

from kubexm.common import layout
from kubexm.connector.base import Completed
from kubexm.document import source
from kubexm.templates import render
from kubexm.templates.contexts.network import CiliumValues

AT = ("--kubeconfig", layout.ADMIN_CONFIG, "-n", "kube-system")
HELM = f"{layout.BINARIES}/helm"
IMAGES = ("q/cilium:v1", "q/envoy:v1", "q/operator:v1")
VALUES = CiliumValues(
    api_host="api.demo.kubexm.internal",
    agent_image=IMAGES[0],
    envoy_image=IMAGES[1],
    operator_image=IMAGES[2],
    replaces_kube_proxy=True,
    ipv4_cidr="10.233.64.0/18",
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ClusterSite]:
    made = ClusterSite(tmp_path)
    for host in ("cp1", "w1"):
        made.lay(host)
    made.bring("helm", "v4.0.0", host="cp1")
    assert made.init(proxy_mode="none", node_mask=None).ok
    assert made.join("w1").ok
    yield made
    made.close()


def chart(site: ClusterSite, name: str, version: str, **templates: dict[str, Any]) -> str:
    data = io.BytesIO()
    said = {"apiVersion": "v2", "name": name, "version": version, "appVersion": version}
    files = {"Chart.yaml": said, **{f"templates/{key}.yaml": one for key, one in templates.items()}}
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, content in files.items():
            text = json.dumps(content).encode()
            info = tarfile.TarInfo(f"{name}/{path}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
    path = f"/srv/{name}-{version}.tgz"
    site.lay_file(path, data.getvalue(), "cp1")
    return path


def upgrade(site: ClusterSite, name: str, path: str, values: Any) -> Completed:
    words = ("upgrade", name, path, "--install", "--create-namespace", "-f", "-")
    options = ("--wait", "--timeout", "300s", *AT)
    return site.ask(HELM, *words, *options, host="cp1", stdin=json.dumps(values).encode())


def listed(site: ClusterSite, name: str) -> list[dict[str, str]]:
    states = ("--deployed", "--failed", "--pending", "--filter", f"^{name}$")
    found = site.do(HELM, "list", "-o", "json", *states, *AT, host="cp1")
    return list(json.loads(found))


def cilium_values() -> Any:
    return source.parse(render.render("cilium/values", VALUES.data())).data


def test_cilium_lays_the_network_and_takes_the_place_of_kube_proxy(site: ClusterSite) -> None:
    for host in ("cp1", "w1"):
        site.lay_images(host, IMAGES)
    path = chart(site, "cilium", "1.18.2")

    done = upgrade(site, "cilium", path, cilium_values())

    assert done.ok, done
    assert site.is_ready("w1")
    assert "podCIDR" not in site.get("node", "w1")["spec"]
    (release,) = listed(site, "cilium")
    assert (release["chart"], release["status"]) == ("cilium-1.18.2", "deployed")
    given = json.loads(site.do(HELM, "get", "values", "cilium", "-o", "json", *AT, host="cp1"))
    assert given == cilium_values()
    status = site.get("-n", "kube-system", "daemonset/cilium")["status"]
    assert status["numberAvailable"] == 2


@pytest.mark.parametrize("image", IMAGES)
def test_a_release_whose_image_is_missing_fails(site: ClusterSite, image: str) -> None:
    for host in ("cp1", "w1"):
        site.lay_images(host, [one for one in IMAGES if one != image])
    path = chart(site, "cilium", "1.18.2")

    done = upgrade(site, "cilium", path, cilium_values())

    assert done.exit == 1
    assert "not ready" in done.error_text
    assert listed(site, "cilium")[0]["status"] == "failed"


def test_a_chart_has_to_be_there_and_be_one(site: ClusterSite) -> None:
    missing = upgrade(site, "app", "/srv/no.tgz", {})
    site.lay_file("/srv/bad.tgz", b"text", "cp1")
    bad = upgrade(site, "app", "/srv/bad.tgz", {})

    assert "'/srv/no.tgz' not found" in missing.error_text
    assert "does not appear to be a chart" in bad.error_text


def test_a_release_is_changed_gone_back_to_and_removed(site: ClusterSite) -> None:
    first = chart(site, "app", "1.0.0", a=config_map("a", "kube-system", v="1"))
    second = chart(site, "app", "2.0.0", b=config_map("b", "kube-system", v="2"))
    for path in (first, second):
        assert upgrade(site, "app", path, {"x": 1}).ok

    def there() -> list[bool]:
        return [site.get("-n", "kube-system", f"configmap/{name}") is not None for name in "ab"]

    assert there() == [False, True]
    assert listed(site, "app")[0]["revision"] == "2"

    site.do(HELM, "rollback", "app", "1", "--wait", *AT, host="cp1")
    assert there() == [True, False]
    assert listed(site, "app")[0]["chart"] == "app-1.0.0"

    site.do(HELM, "uninstall", "app", "--wait", *AT, host="cp1")
    assert there() == [False, False]
    assert listed(site, "app") == []
    gone = site.ask(HELM, "get", "values", "app", "-o", "json", *AT, host="cp1")
    assert "release: not found" in gone.error_text


def test_a_cluster_that_does_not_answer_is_named(site: ClusterSite) -> None:
    site.do("systemctl", "stop", "kubelet", host="cp1")

    done = site.ask(HELM, "list", "-o", "json", *AT, host="cp1")

    assert "Kubernetes cluster unreachable" in done.error_text
