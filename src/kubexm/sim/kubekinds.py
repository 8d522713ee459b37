"""What kinds of objects an API server knows, and how people call them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubexm.sim.kubedocs import Object, entries, part


class Kind(msgspec.Struct, frozen=True):
    """A kind of objects; `name` is its plural, with its group behind a dot if it has one."""

    kind: str
    name: str
    versions: tuple[str, ...]
    namespaced: bool = True
    aliases: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """The group of the API that it belongs to; nothing for the first one."""
        return self.name.partition(".")[2]

    @property
    def api_versions(self) -> tuple[str, ...]:
        """As documents name them: `v1`, `apps/v1`."""
        return tuple(f"{self.group}/{one}" if self.group else one for one in self.versions)

    @property
    def shown(self) -> str:
        """How kubectl writes it before the name of an object: `deployment.apps`."""
        return self.kind.lower() + (f".{self.group}" if self.group else "")

    def answers_to(self, word: str) -> bool:
        """Whether somebody means this kind by a word."""
        plural = self.name.partition(".")[0]
        return word.lower() in (self.kind.lower(), plural, self.name, self.shown, *self.aliases)


def _kinds(group: str, listed: str, *, namespaced: bool = True, version: str = "v1") -> list[Kind]:
    """Kinds written as `Kind:plural`, with their short names behind."""
    found = []
    for entry in listed.split():
        kind, plural, *aliases = entry.split(":")
        name = f"{plural}.{group}" if group else plural
        found.append(Kind(kind, name, (version,), namespaced, tuple(aliases)))
    return found


_BUILT_IN = (
    *_kinds(
        "",
        "Namespace:namespaces:ns Node:nodes:no PersistentVolume:persistentvolumes:pv",
        namespaced=False,
    ),
    *_kinds(
        "",
        "Pod:pods:po Service:services:svc ConfigMap:configmaps:cm Secret:secrets"
        " ServiceAccount:serviceaccounts:sa PersistentVolumeClaim:persistentvolumeclaims:pvc"
        " Endpoints:endpoints:ep Event:events:ev LimitRange:limitranges:limits"
        " ResourceQuota:resourcequotas:quota",
    ),
    *_kinds(
        "apps",
        "Deployment:deployments:deploy DaemonSet:daemonsets:ds StatefulSet:statefulsets:sts"
        " ReplicaSet:replicasets:rs",
    ),
    *_kinds("batch", "Job:jobs CronJob:cronjobs:cj"),
    *_kinds("policy", "PodDisruptionBudget:poddisruptionbudgets:pdb"),
    *_kinds("autoscaling", "HorizontalPodAutoscaler:horizontalpodautoscalers:hpa", version="v2"),
    *_kinds("coordination.k8s.io", "Lease:leases"),
    *_kinds("discovery.k8s.io", "EndpointSlice:endpointslices"),
    *_kinds("networking.k8s.io", "NetworkPolicy:networkpolicies:netpol Ingress:ingresses:ing"),
    *_kinds("networking.k8s.io", "IngressClass:ingressclasses", namespaced=False),
    *_kinds("rbac.authorization.k8s.io", "Role:roles RoleBinding:rolebindings"),
    *_kinds(
        "rbac.authorization.k8s.io",
        "ClusterRole:clusterroles ClusterRoleBinding:clusterrolebindings",
        namespaced=False,
    ),
    *_kinds(
        "storage.k8s.io", "StorageClass:storageclasses:sc CSIDriver:csidrivers", namespaced=False
    ),
    *_kinds("scheduling.k8s.io", "PriorityClass:priorityclasses:pc", namespaced=False),
    *_kinds(
        "certificates.k8s.io",
        "CertificateSigningRequest:certificatesigningrequests:csr",
        namespaced=False,
    ),
    *_kinds("node.k8s.io", "RuntimeClass:runtimeclasses", namespaced=False),
    *_kinds("apiregistration.k8s.io", "APIService:apiservices", namespaced=False),
    *_kinds(
        "apiextensions.k8s.io",
        "CustomResourceDefinition:customresourcedefinitions:crd",
        namespaced=False,
    ),
    *_kinds(
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration:validatingwebhookconfigurations"
        " MutatingWebhookConfiguration:mutatingwebhookconfigurations"
        " ValidatingAdmissionPolicy:validatingadmissionpolicies"
        " ValidatingAdmissionPolicyBinding:validatingadmissionpolicybindings"
        " MutatingAdmissionPolicy:mutatingadmissionpolicies"
        " MutatingAdmissionPolicyBinding:mutatingadmissionpolicybindings",
        namespaced=False,
    ),
    *_kinds(
        "certificates.k8s.io",
        "CertificateSigningRequest:certificatesigningrequests:csr",
        namespaced=False,
    ),
    *_kinds(
        "flowcontrol.apiserver.k8s.io",
        "FlowSchema:flowschemas PriorityLevelConfiguration:prioritylevelconfigurations",
        namespaced=False,
    ),
)
BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in _BUILT_IN}
"""What every API server knows."""
_BY_DOCUMENT: Mapping[tuple[str, str], Kind] = {
    (version, kind.kind): kind for kind in _BUILT_IN for version in kind.api_versions
}
NAMESPACE, NODE, POD, EVENT, SECRET, CONFIG_MAP, SERVICE_ACCOUNT = (
    BY_NAME[name]
    for name in (
        "namespaces",
        "nodes",
        "pods",
        "events",
        "secrets",
        "configmaps",
        "serviceaccounts",
    )
)
DEPLOYMENT, DAEMON_SET, STATEFUL_SET = (
    BY_NAME[f"{name}.apps"] for name in ("deployments", "daemonsets", "statefulsets")
)
CRD = BY_NAME["customresourcedefinitions.apiextensions.k8s.io"]


def built_in(api_version: str, kind: str) -> Kind | None:
    """The kind that a document names, if every API server knows it."""
    return _BY_DOCUMENT.get((api_version, kind))


def defined(crd: Object) -> Kind:
    """The kind that the definition of a custom resource adds."""
    spec = crd["spec"]
    names = spec["names"]
    served = (one["name"] for one in entries(spec, "versions") if one.get("served", True))
    aliases = (*(part(names, "shortNames") or ()), str(names.get("singular") or ""))
    return Kind(
        names["kind"],
        f"{names['plural']}.{spec['group']}",
        tuple(served),
        spec.get("scope") != "Cluster",
        tuple(filter(None, aliases)),
    )
