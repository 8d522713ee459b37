"""What kubeadm looks at before it touches a host, by the names of its checks."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence

from kubexm.common import layout
from kubexm.sim import containers, etcd, standins
from kubexm.sim.etcdmembers import Unanswered
from kubexm.sim.kubeadmconfig import ClusterConfiguration
from kubexm.sim.kubeadmimages import control_plane
from kubexm.sim.shell import Shell
from kubexm.sim.state import Socket

_LEAST_CPUS, _LEAST_MIB = 2, 1700
_PROGRAMS = ("conntrack", "ethtool", "ip", "iptables", "mount", "socat")
_PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
_FORWARDING = {
    4: ("/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ip_forward"),
    # All interfaces forward once the default does, and the other way round.
    6: ("/proc/sys/net/ipv6/conf/default/forwarding", "/proc/sys/net/ipv6/conf/all/forwarding"),
}
_BRIDGES = "/proc/sys/net/bridge/bridge-nf-call-iptables"
Found = Iterator[tuple[str, str]]
"""The names of checks, and what each has to say."""


class Refused(Exception):
    """Checks that fail, as kubeadm lists them."""


def require(found: Iterable[tuple[str, str]], ignored: Sequence[str]) -> None:
    """Raise if a check fails that is not to be ignored."""
    names = {name.lower() for name in ignored}
    fatal = [
        f"\t[ERROR {name}]: {said}\n"
        for name, said in found
        if "all" not in names and name.lower() not in names
    ]
    if fatal:
        raise Refused(
            "[preflight] Some fatal errors occurred:\n"
            f"{''.join(fatal)}error: error execution phase preflight: preflight checks failed"
        )


def of_any(shell: Shell, addresses: Iterable[str], version: str) -> Found:
    """What holds for every host; `addresses` say which families are used."""
    if shell.user != "root":
        yield "IsPrivilegedUser", "user is not running as root"
    if not containers.is_running(shell):
        yield "CRI", f"could not connect to the container runtime at {layout.CRI_SOCKET}"
    for program in _PROGRAMS:
        if program in standins.NEEDED and standins.found(shell, program) is None:
            yield f"FileExisting-{program}", f"{program} not found in system path"
    found = standins.found(shell, "kubelet")
    if found is None or not found.version:
        yield "KubeletVersion", 'couldn\'t get kubelet version: "kubelet": executable not found'
    elif found.version != version:
        yield "KubeletVersion", f"the kubelet version is {found.version}, and kubeadm's {version}"
    yield from _port(shell, 10250)
    yield from _forwarding(shell, addresses)


def of_control_plane(shell: Shell, cluster: ClusterConfiguration, port: int) -> Found:
    """What holds for every host that is to be a control plane."""
    machine = shell.around.machine
    if machine.cpus < _LEAST_CPUS:
        yield "NumCPU", f"the number of available CPUs {machine.cpus} is less than {_LEAST_CPUS}"
    if machine.memory_mib < _LEAST_MIB:
        yield "Mem", f"the system RAM ({machine.memory_mib} MB) is less than {_LEAST_MIB} MB"
    for number in (port, 10259, 10257):
        yield from _port(shell, number)
    for name in _PODS:
        yield from absent(shell, f"{layout.MANIFESTS}/{name}.yaml")
    if (local := cluster.local_etcd) is not None:
        yield from _port(shell, 2379)
        yield from _port(shell, 2380)
        if shell.files.lookup(local.data_dir) and shell.files.children(local.data_dir):
            yield _named("DirAvailable", local.data_dir), f"{local.data_dir} is not empty"
    elif (outer := cluster.etcd.external) is not None:
        for path in (outer.ca_file, outer.cert_file, outer.key_file):
            if shell.files.lookup(shell.files.resolve(path)) is None:
                yield "ExternalEtcdClientCertificates", f"{path} doesn't exist"


def of_external_etcd(shell: Shell, cluster: ClusterConfiguration) -> Found:
    """Whether every endpoint of an etcd that is there already answers."""
    if (outer := cluster.etcd.external) is None:
        return
    for url in outer.endpoints:
        try:
            etcd.asked(shell, url, outer.ca_file, outer.cert_file, outer.key_file)
        except Unanswered as error:
            yield "ExternalEtcdVersion", f"couldn't get the version of {url}: {error}"


def of_images(shell: Shell, cluster: ClusterConfiguration) -> Found:
    """Whether the images of a control plane are there, or can be pulled."""
    for image in control_plane(shell, cluster):
        if not containers.has(shell, image) and (why := containers.pull(shell, image)):
            yield "ImagePull", f"failed to pull image {image}: {why}"


def absent(shell: Shell, path: str) -> Found:
    """Whether a file is not there yet."""
    if shell.files.lookup(path) is not None:
        yield _named("FileAvailable", path), f"{path} already exists"


def _named(kind: str, path: str) -> str:
    return f"{kind}-{path.replace('/', '-')}"


def _port(shell: Shell, number: int) -> Found:
    if who := shell.around.holder(Socket(number)):
        yield f"Port-{number}", f"Port {number} is in use by {who}"


def _forwarding(shell: Shell, addresses: Iterable[str]) -> Found:
    families = {ipaddress.ip_network(one.strip()).version for one in addresses if one}
    for family in sorted(families):
        name, place = _FORWARDING[family]
        if shell.files.read(place).strip() != b"1":
            yield _named("FileContent", name), f"{name} contents are not set to 1"
    if shell.files.lookup(_BRIDGES) and shell.files.read(_BRIDGES).strip() != b"1":
        yield _named("FileContent", _BRIDGES), f"{_BRIDGES} contents are not set to 1"
