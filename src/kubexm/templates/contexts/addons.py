"""What else is installed into a running cluster."""

from __future__ import annotations

from kubexm.templates.context import Context, Template


class MetricsServerManifest(Context, frozen=True, kw_only=True):
    """What nodes and pods use, for autoscaling and `kubectl top`."""

    image: str
    """The image of metrics-server."""
    replicas: int = 1
    """How many there are."""
    insecure_tls: bool = False
    """Whether any certificate of a kubelet is believed."""


_IMAGE = "registry.k8s.io/metrics-server/metrics-server:v0.9.0"

TEMPLATES: tuple[Template, ...] = (
    Template(
        "metrics-server/manifest",
        MetricsServerManifest,
        "manifests",
        "what nodes and pods use",
        "the cluster",
        (
            MetricsServerManifest(image=_IMAGE),
            MetricsServerManifest(image=_IMAGE, replicas=2, insecure_tls=True),
        ),
    ),
)
