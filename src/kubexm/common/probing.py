"""Names of what hosts are asked for before they become part of a cluster.

The runner asks for them, and simulated hosts answer.
"""

from __future__ import annotations

from kubexm.common import layout

PROBING_SCRIPT = "# kubexm: preflight\n"
"""How the script that asks begins: simulated hosts know it by this."""
CLUSTER_UNITS = (
    *("kubelet", "kube-proxy", "etcd", "k3s", "k3s-agent", "rke2-server", "rke2-agent"),
    *("k0scontroller", "k0sworker", "snap.microk8s.daemon-kubelite"),
)
"""Units that run where a host belongs to a cluster."""
RUNTIME_UNITS = ("docker", "containerd", "crio")
TOOLS = ("conntrack", "ethtool", "ip", "iptables", "mount", "nsenter", "socat", "tc")
"""What the kubelet, kube-proxy and kubeadm call on a host."""
CLUSTER_DIRECTORIES = (
    *(layout.MANIFESTS, layout.PKI, f"{layout.KUBELET_DATA}/pods"),
    *("/var/lib/rancher/k3s", "/var/lib/rancher/rke2", "/var/lib/k0s"),
    "/var/snap/microk8s/current",
)
"""Where a cluster leaves something; one that only a package has made is empty."""
CLUSTER_FILES = ((layout.KUBERNETES, ".conf"), (layout.CNI_CONFIG, ""))
"""Directories with files that a cluster leaves, and how the names of these end."""
HARMLESS = "podman"
"""In the names of what others leave beside a cluster, and which does no harm to one."""
KUBEADM_MARKER = "records/kubeadm.json"
LEDGER = "ledger"
"""What kubexm itself leaves in its directory on a host."""
RESOLVED = "/run/systemd/resolve/resolv.conf"
"""Whom systemd-resolved asks itself; /etc/resolv.conf names only the host then."""
SECTIONS = ("ufw", "firewalld", "iptables", "nftables", "clock", "keepers")
"""What is asked of a firewall and of a clock."""
WRITE_BYTES = 2300
"""About as much as etcd writes at a time."""
