"""Where the parts of a cluster lie on its hosts, said once."""

from __future__ import annotations

BINARIES = "/usr/local/bin"
"""Programs that kubexm brings."""

CNI_PLUGINS = "/opt/cni/bin"
CNI_CONFIG = "/etc/cni/net.d"
CNI_DATA = "/var/lib/cni"

CONTAINERD_CONFIG = "/etc/containerd/config.toml"
CONTAINERD_REGISTRIES = "/etc/containerd/certs.d"
"""How each registry is reached, in a directory of its name."""
CONTAINERD_STATE = ("/run/containerd", "/run/nri", "/opt/containerd")
"""What containerd makes for itself, beside its data."""
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
CRI_SOCKET = f"unix://{CONTAINERD_SOCKET}"

KUBERNETES = "/etc/kubernetes"
PKI = f"{KUBERNETES}/pki"
MANIFESTS = f"{KUBERNETES}/manifests"
"""Pods that the kubelet runs by itself."""
ADMIN_CONFIG = f"{KUBERNETES}/admin.conf"
KUBELET_CONFIG = f"{KUBERNETES}/kubelet.yaml"
KUBELET_KUBECONFIG = f"{KUBERNETES}/kubelet.conf"
KUBELET_BOOTSTRAP = f"{KUBERNETES}/bootstrap-kubelet.conf"
KUBELET_DATA = "/var/lib/kubelet"
KUBELET_PLUGINS = "/usr/libexec/kubernetes"
"""Where kubelets and controller managers look for drivers of volumes, and make the place."""
POD_LOGS = ("/var/log/pods", "/var/log/containers")

OURS = f"{KUBERNETES}/kubexm"
"""What kubexm itself writes for Kubernetes."""
KUBEADM_CONFIG = f"{OURS}/kubeadm.yaml"
AUDIT_POLICY = f"{OURS}/audit-policy.yaml"
ENCRYPTION_CONFIG = f"{OURS}/encryption.yaml"
PATCHES = f"{OURS}/patches"
AUDIT_LOG = "/var/log/kubernetes/audit/audit.log"

ETCD_ENVIRONMENT = "/etc/etcd/etcd.env"
ETCD_PKI = f"{PKI}/etcd"

BALANCER = "/etc/kubexm"
"""Settings of what kubexm runs beside Kubernetes, such as the load balancer of a worker."""

UNITS = "/etc/systemd/system"
SECRETS_IN_MEMORY = "/run/kubexm"
"""For what a command reads and nobody may find later: it never reaches a disk."""
KUBECTL_CACHE = "/run/kubexm-kubectl"
"""What kubectl remembers of the kinds of objects that there are, and would keep in a home."""
