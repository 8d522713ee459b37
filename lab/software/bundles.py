"""The bundle of all that was made, by the product itself."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab.errors import LabError
from lab.software import assembling, programs, tarballs
from lab.software.progress import Told

NAME = "bundle.tar.zst"
_CLUSTER = """apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata: {{name: lab}}
spec:
  hosts:
    - {{name: "node[1:3]", address: "10.99.0.[11:13]", arch: {arch}}}
  roleGroups: {{control-plane: [node1], worker: [node2, node3]}}
  kubernetes: {{version: {kubernetes}}}
  endpoint: {{kind: haproxy}}
  network: {{plugin: routed}}
  dns: {{upstream: []}}
  storage: {{localPath: {{enabled: true}}}}
  system: {{ntp: {{enabled: false}}}}
  addons:
    - {{name: metrics, component: metrics-server}}
"""
_HELM = "    - {name: chart, chart: {name: chart.tgz}}\n"
_CHART = b"apiVersion: v2\nname: chart\nversion: 0.1.0\n"


def kubexm() -> Path:
    """The product, as it is in this tree."""
    found = Path(sys.executable).with_name("kubexm")
    if not os.access(found, os.X_OK):
        raise LabError(f"there is no kubexm beside `{sys.executable}`: run `make setup` first")
    return found


def write_cluster(place: Path, kubernetes: str, extra: Sequence[str]) -> None:
    """The cluster file that the bundle is for."""
    text = _CLUSTER.format(kubernetes=kubernetes, arch=assembling.architecture())
    if "helm" in extra:
        # Who has a chart to install needs helm; this one is empty.
        tarballs.write_packed(place / "chart.tgz", {"chart/Chart.yaml": _CHART})
        text += _HELM
    (place / "cluster.yaml").write_text(text)


def build(place: Path, told: Told, *options: str | Path) -> Path:
    """Have the bundle in a directory that was assembled."""
    bundle = place / NAME
    if bundle.exists():
        return bundle
    # The store of whoever calls is left alone, and so is what lies in it.
    with tempfile.TemporaryDirectory(prefix=".half-", dir=place) as home:
        return build_at(Path(home), place, told, *options)


def build_at(home: Path, place: Path, told: Told, *options: str | Path) -> Path:
    """Have a new bundle in a directory; all that is in it lies in the store at a home of kubexm."""
    told(f"{NAME}: begins")
    bundle, half = place / NAME, place / f".half-{NAME}"
    programs.run(
        *(kubexm(), "bundle", "build", "-f", place / "cluster.yaml", "-o", half, *options),
        variables={"KUBEXM_HOME": str(home)},
    )
    half.rename(bundle)
    told(f"{NAME}: done, {bundle.stat().st_size >> 20} MiB")
    return bundle
