"""Charts: what a file of one says of itself, and the objects that it makes.

Templates are not filled in: a chart has plain objects, or it is one of those that this page knows.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping

import msgspec

from kubexm.common import layout
from kubexm.sim.kubedocs import Object, document, documents, part, section
from kubexm.sim.kubeobjects import Rejected
from kubexm.sim.shell import Shell


class Chart(msgspec.Struct, frozen=True):
    """A chart."""

    name: str
    version: str
    app_version: str
    templates: list[Object]
    """Objects that it makes as they are."""


def read(shell: Shell, path: str) -> Chart:
    """The chart in a file of a host."""
    if shell.files.lookup(path) is None:
        raise Rejected(f"Error: path {path!r} not found")
    try:
        with tarfile.open(fileobj=io.BytesIO(shell.files.read(path))) as archive:
            return _read(archive)
    except (tarfile.TarError, EOFError, OSError, KeyError) as error:
        raise Rejected(f"Error: {path!r} does not appear to be a chart: {error}") from None


def objects(chart: Chart, values: Object) -> list[Object]:
    """What a release of a chart is made of."""
    make = _KNOWN.get(chart.name)
    return chart.templates if make is None else make(chart, values)


def _read(archive: tarfile.TarFile) -> Chart:
    said: Object = {}
    templates: list[Object] = []
    for member in archive.getmembers():
        file = archive.extractfile(member)
        _, _, inner = member.name.partition("/")
        if file is not None and inner == "Chart.yaml":
            said = document(file.read())
        elif file is not None and inner.startswith("templates/"):
            templates += documents(file.read())
    return Chart(said["name"], str(said["version"]), str(said.get("appVersion", "")), templates)


def _cilium(chart: Chart, values: Object) -> list[Object]:
    """The agent and its proxy on every node, and its operator."""
    server = values.get("k8sServiceHost")
    environment = [{"name": "KUBERNETES_SERVICE_HOST", "value": server}] if server else []
    replaces = str(values.get("kubeProxyReplacement", False)).lower()
    network = [{"name": "etc-cni-netd", "hostPath": {"path": layout.CNI_CONFIG}}]
    replicas = {"replicas": part(values, "operator", "replicas") or 2}
    images = {name: _image(chart, section(values, *path), usual) for name, path, usual in _IMAGES}
    return [
        *(_object("v1", "ServiceAccount", name, {}) for name in images),
        _object("v1", "ConfigMap", "cilium-config", {"data": {"kube-proxy-replacement": replaces}}),
        _workload("DaemonSet", "cilium", images["cilium"], environment, {}, network),
        _workload("DaemonSet", "cilium-envoy", images["cilium-envoy"], environment, {}, []),
        _workload(
            "Deployment", "cilium-operator", images["cilium-operator"], environment, replicas, []
        ),
    ]


_IMAGES = (
    ("cilium", ("image",), "quay.io/cilium/cilium"),
    ("cilium-envoy", ("envoy", "image"), "quay.io/cilium/cilium-envoy"),
    ("cilium-operator", ("operator", "image"), "quay.io/cilium/operator-generic"),
)
"""Programs, where values say their images, and where these are if they don't."""
_KNOWN: Mapping[str, Callable[[Chart, Object], list[Object]]] = {"cilium": _cilium}


def _image(chart: Chart, said: Object, usual: str) -> str:
    if said.get("override"):
        return str(said["override"])
    tag = said.get("tag") or f"v{chart.version.removeprefix('v')}"
    return f"{said.get('repository') or usual}:{tag}"


def _workload(
    kind: str, name: str, image: str, environment: list[Object], more: Object, volumes: list[Object]
) -> Object:
    labels = {"k8s-app": name}
    pod = {
        "hostNetwork": True,
        "serviceAccountName": name,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": name, "image": image, "env": environment}],
        "volumes": [
            {"name": "cilium-config-path", "configMap": {"name": "cilium-config"}},
            *volumes,
        ],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template, **more}
    return _object("apps/v1", kind, name, {"spec": spec})


def _object(version: str, kind: str, name: str, content: Object) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **content}
