"""The static pods that kubeadm writes: the programs of a control plane, with their flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubexm.common import layout
from kubexm.sim import kubeadmpatches, kubepods
from kubexm.sim.kubeadmcerts import put
from kubexm.sim.kubeadmconfig import ApiEndpoint, Arg, ClusterConfiguration, Volume
from kubexm.sim.kubeadmimages import of_etcd, of_kubernetes
from kubexm.sim.kubedocs import Object, text
from kubexm.sim.shell import Shell


def write(
    shell: Shell,
    cluster: ClusterConfiguration,
    endpoint: ApiEndpoint,
    patches: str,
    names: Iterable[str] = ("apiserver", "controller-manager", "scheduler"),
) -> None:
    """Write the pods of a control plane."""
    made = {
        "apiserver": (cluster.api_server, _api_server(cluster, endpoint)),
        "controller-manager": (cluster.controller_manager, _controller_manager(cluster)),
        "scheduler": (cluster.scheduler, _scheduler()),
    }
    for name in names:
        component, flags = made[name]
        program = f"kube-{name}"
        paths = [*_paths(cluster, name), *component.extra_volumes]
        image = of_kubernetes(cluster, program)
        pod = _pod(program, image, flags, component.extra_args, paths)
        _put(shell, kubeadmpatches.patched(shell, patches, pod))


def write_etcd(
    shell: Shell,
    cluster: ClusterConfiguration,
    endpoint: ApiEndpoint,
    node: str,
    initial: Mapping[str, str],
    patches: str,
) -> None:
    """Write the pod of a member of etcd; `initial` are the others, none for the first."""
    local = cluster.local_etcd
    assert local is not None, "kubeadm runs it"
    if shell.files.lookup(local.data_dir) is None:
        shell.files.make_directory(local.data_dir, parents=True)
    shell.files.change(local.data_dir, mode=0o700)
    flags = _etcd(cluster, endpoint, node, initial) | {"data-dir": local.data_dir}
    paths = [
        _volume("etcd-data", local.data_dir),
        _volume("etcd-certs", f"{cluster.certificates_dir}/etcd"),
    ]
    pod = _pod("etcd", of_etcd(shell, cluster, local), flags, local.extra_args, paths)
    _put(shell, kubeadmpatches.patched(shell, patches, pod))


def peer_url(endpoint: ApiEndpoint) -> str:
    """Where other members find the one of a control plane."""
    return f"https://{_bracketed(endpoint.advertise_address)}:2380"


def api_url(endpoint: ApiEndpoint) -> str:
    """Where the API server of a control plane is."""
    return f"https://{_bracketed(endpoint.advertise_address)}:{endpoint.bind_port}"


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _api_server(cluster: ClusterConfiguration, endpoint: ApiEndpoint) -> dict[str, str]:
    pki = cluster.certificates_dir
    return {
        "advertise-address": endpoint.advertise_address,
        "client-ca-file": f"{pki}/ca.crt",
        **dict(zip(_ETCD_FLAGS, _way_to_etcd(cluster, endpoint), strict=True)),
        "kubelet-client-certificate": f"{pki}/apiserver-kubelet-client.crt",
        "kubelet-client-key": f"{pki}/apiserver-kubelet-client.key",
        "proxy-client-cert-file": f"{pki}/front-proxy-client.crt",
        "proxy-client-key-file": f"{pki}/front-proxy-client.key",
        "requestheader-client-ca-file": f"{pki}/front-proxy-ca.crt",
        "secure-port": str(endpoint.bind_port),
        "service-account-key-file": f"{pki}/sa.pub",
        "service-account-signing-key-file": f"{pki}/sa.key",
        "service-cluster-ip-range": cluster.networking.service_subnet,
        "tls-cert-file": f"{pki}/apiserver.crt",
        "tls-private-key-file": f"{pki}/apiserver.key",
    }


def _way_to_etcd(cluster: ClusterConfiguration, endpoint: ApiEndpoint) -> tuple[str, ...]:
    """Where etcd is, who it is known by, and what lets the API server in."""
    if (outer := cluster.etcd.external) is not None:
        return ",".join(outer.endpoints), outer.ca_file, outer.cert_file, outer.key_file
    pki = cluster.certificates_dir
    client = f"{pki}/apiserver-etcd-client"
    return (
        f"https://{_own_address(endpoint)}:2379",
        f"{pki}/etcd/ca.crt",
        f"{client}.crt",
        f"{client}.key",
    )


def _own_address(endpoint: ApiEndpoint) -> str:
    return "[::1]" if ":" in endpoint.advertise_address else "127.0.0.1"


_ETCD_FLAGS = ("etcd-servers", "etcd-cafile", "etcd-certfile", "etcd-keyfile")


def _controller_manager(cluster: ClusterConfiguration) -> dict[str, str]:
    pki, own = cluster.certificates_dir, f"{layout.KUBERNETES}/controller-manager.conf"
    flags = {
        "authentication-kubeconfig": own,
        "authorization-kubeconfig": own,
        "client-ca-file": f"{pki}/ca.crt",
        "cluster-signing-cert-file": f"{pki}/ca.crt",
        "cluster-signing-key-file": f"{pki}/ca.key",
        "kubeconfig": own,
        "requestheader-client-ca-file": f"{pki}/front-proxy-ca.crt",
        "root-ca-file": f"{pki}/ca.crt",
        "service-account-private-key-file": f"{pki}/sa.key",
    }
    if cluster.networking.pod_subnet:
        flags |= {"allocate-node-cidrs": "true", "cluster-cidr": cluster.networking.pod_subnet}
    return flags


def _scheduler() -> dict[str, str]:
    own = f"{layout.KUBERNETES}/scheduler.conf"
    return {
        "authentication-kubeconfig": own,
        "authorization-kubeconfig": own,
        "kubeconfig": own,
    }


def _etcd(
    cluster: ClusterConfiguration, endpoint: ApiEndpoint, node: str, initial: Mapping[str, str]
) -> dict[str, str]:
    pki, address = f"{cluster.certificates_dir}/etcd", _bracketed(endpoint.advertise_address)
    here = _own_address(endpoint)
    members = {**initial, node: peer_url(endpoint)}
    return {
        "name": node,
        "advertise-client-urls": f"https://{address}:2379",
        "cert-file": f"{pki}/server.crt",
        "initial-advertise-peer-urls": peer_url(endpoint),
        "initial-cluster": ",".join(f"{name}={url}" for name, url in members.items()),
        **({"initial-cluster-state": "existing"} if initial else {}),
        "key-file": f"{pki}/server.key",
        "listen-client-urls": f"https://{here}:2379,https://{address}:2379",
        "listen-metrics-urls": f"http://{here}:2381",
        "listen-peer-urls": peer_url(endpoint),
        "peer-cert-file": f"{pki}/peer.crt",
        "peer-key-file": f"{pki}/peer.key",
        "peer-trusted-ca-file": f"{pki}/ca.crt",
        "trusted-ca-file": f"{pki}/ca.crt",
    }


def _paths(cluster: ClusterConfiguration, name: str) -> list[Volume]:
    if name == "scheduler":
        return [_file("kubeconfig", f"{layout.KUBERNETES}/scheduler.conf")]
    shared = [_volume("k8s-certs", cluster.certificates_dir)]
    if name == "controller-manager":
        shared.append(_file("kubeconfig", f"{layout.KUBERNETES}/controller-manager.conf"))
    outer = cluster.etcd.external
    if name == "apiserver" and outer is not None:
        files = (outer.ca_file, outer.cert_file, outer.key_file)
        above = {path.rpartition("/")[0] for path in files}
        apart = (path for path in sorted(above) if not path.startswith(cluster.certificates_dir))
        shared += [_volume(f"etcd-certs-{number}", path) for number, path in enumerate(apart)]
    return shared


def _volume(name: str, path: str) -> Volume:
    return Volume(name, path, path, path_type="DirectoryOrCreate")


def _file(name: str, path: str) -> Volume:
    return Volume(name, path, path, path_type="FileOrCreate")


def _pod(
    name: str,
    image: str,
    flags: Mapping[str, str],
    extra: Iterable[Arg],
    volumes: Sequence[Volume],
) -> Object:
    """A pod of one program on the network of the host."""
    flags = {**flags, **{arg.name: arg.value for arg in extra}}
    container = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [name, *(f"--{flag}={value}" for flag, value in sorted(flags.items()))],
        "volumeMounts": [_mounted(one) for one in volumes],
    }
    labels = {"component": name, "tier": "control-plane"}
    spec = {
        "containers": [container],
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "volumes": [_of_host(one) for one in volumes],
    }
    metadata = {"name": name, "namespace": "kube-system", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _mounted(volume: Volume) -> Object:
    return {"name": volume.name, "mountPath": volume.mount_path, "readOnly": volume.read_only}


def _of_host(volume: Volume) -> Object:
    return {"name": volume.name, "hostPath": {"path": volume.host_path, "type": volume.path_type}}


def _put(shell: Shell, pod: Object) -> None:
    name, content = pod["metadata"]["name"], text(pod).encode()
    path = f"{layout.MANIFESTS}/{name}.yaml"
    # A kubelet leaves a pod alone whose file says what it said before.
    is_same = shell.files.lookup(path) is not None and shell.files.read(path) == content
    put(shell, path, content, 0o600)
    if not is_same:
        kubepods.begin(shell, name)
