"""What the software is made of: modules, packages, and what goes into each file and image.

Where something is called by the name of a component, file or image, it is that of the product's
catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.software.archives import Start

SUITE = "trixie"
"""The release of Debian whose packages are taken: its versions are nearer to the catalog's."""
_NFT = "xtables-nft-multi"
_OWN = "usr/local/bin"


@dataclass(frozen=True, slots=True)
class GoPart:
    """Programs out of modules of one version."""

    modules: tuple[str, ...]
    programs: Mapping[str, str]
    """The packages, by what the program is called."""
    stamps: Mapping[str, str] = field(default_factory=dict)
    """Variables that tell the version; `{version}`, `{major}` and the like are filled in."""
    staging: str = ""
    """The version of modules that the module has in its own tree, where they say no other."""
    without: tuple[str, ...] = ()
    """Plugins of CoreDNS that are left out."""
    links_c: bool = False
    """Whether it is linked with libseccomp, all of it in one file."""


@dataclass(frozen=True, slots=True)
class FileRecipe:
    """A file as its project publishes it."""

    component: str
    name: str
    members: Mapping[str, str]
    """Programs, by their names in the archive; one without a name is the file itself."""


@dataclass(frozen=True, slots=True)
class ImageRecipe:
    """An image: programs that were built, programs of Debian with their libraries, and links."""

    component: str
    name: str
    start: Start
    built: Mapping[str, str] = field(default_factory=dict)
    """What it is called in its part, by where it goes."""
    debian: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()
    """Patterns of what programs of Debian load when they run."""
    links: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    directories: tuple[str, ...] = ()
    has_shell: bool = False


def _commands(module: str, *names: str) -> dict[str, str]:
    return {name: f"{module}/{name}" for name in names}


_PROGRAMS = ("kubeadm", "kubelet", "kubectl")
_PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_PLUGINS = {
    "ipam": ("dhcp", "host-local", "static"),
    "main": (
        *("bridge", "dummy", "host-device", "ipvlan", "loopback", "macvlan", "ptp", "tap", "vlan"),
    ),
    "meta": ("bandwidth", "firewall", "portmap", "sbr", "tuning", "vrf"),
}
_CNI = "github.com/containernetworking/plugins"
_ETCD = "go.etcd.io/etcd"
_STAMP = {
    "gitVersion": "{version}",
    "gitMajor": "{major}",
    "gitMinor": "{minor}",
    "gitCommit": "unknown",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
}

GO: Mapping[str, GoPart] = {
    "kubernetes": GoPart(
        ("k8s.io/kubernetes",),
        _commands("k8s.io/kubernetes/cmd", *_PROGRAMS, *_PODS, "kube-proxy"),
        {
            f"{package}.{name}": value
            for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
            for name, value in _STAMP.items()
        },
        staging="v0.{minor}.{patch}",
    ),
    "etcd": GoPart(
        (f"{_ETCD}/server/v3", f"{_ETCD}/etcdctl/v3", f"{_ETCD}/etcdutl/v3"),
        {
            "etcd": f"{_ETCD}/server/v3",
            "etcdctl": f"{_ETCD}/etcdctl/v3",
            "etcdutl": f"{_ETCD}/etcdutl/v3",
        },
    ),
    "containerd": GoPart(
        ("github.com/containerd/containerd/v2",),
        _commands(
            "github.com/containerd/containerd/v2/cmd",
            *("containerd", "containerd-shim-runc-v2", "ctr"),
        ),
        {"github.com/containerd/containerd/v2/version.Version": "{version}"},
    ),
    "runc": GoPart(
        ("github.com/opencontainers/runc",),
        {"runc": "github.com/opencontainers/runc"},
        links_c=True,
    ),
    "cni-plugins": GoPart(
        (_CNI,),
        {
            name: f"{_CNI}/plugins/{kind}/{name}"
            for kind, names in _PLUGINS.items()
            for name in names
        },
        {f"{_CNI}/pkg/utils/buildversion.BuildVersion": "{version}"},
    ),
    # Nobody in the lab asks a cloud for names, and what these plugins stand on is huge.
    "coredns": GoPart(
        ("github.com/coredns/coredns",),
        {"coredns": "."},
        without=("azure", "clouddns", "route53"),
    ),
    "metrics-server": GoPart(
        ("sigs.k8s.io/metrics-server",),
        {"metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server"},
        {"k8s.io/client-go/pkg/version.gitVersion": "{version}"},
    ),
    "local-path": GoPart(
        ("github.com/rancher/local-path-provisioner",),
        {"local-path-provisioner": "github.com/rancher/local-path-provisioner"},
        {"main.VERSION": "{version}"},
    ),
    "registry": GoPart(
        ("github.com/distribution/distribution/v3",),
        {"registry": "github.com/distribution/distribution/v3/cmd/registry"},
        {"github.com/distribution/distribution/v3/version.version": "{version}"},
    ),
    "helm": GoPart(
        ("helm.sh/helm/v4",),
        {"helm": "helm.sh/helm/v4/cmd/helm"},
        {"helm.sh/helm/v4/internal/version.version": "{version}"},
    ),
}
OPTIONAL = ("helm",)
"""Made only if they are asked for."""
DEBIAN: Mapping[str, str] = {
    "busybox": "busybox-static",
    "haproxy": "haproxy",
    "nginx": "nginx",
}
"""The packages in which components come, by what we call them."""
PACKAGES = (
    *DEBIAN.values(),
    *("libnginx-mod-stream", "iptables", "nftables", "conntrack", "libseccomp-dev"),
)
"""All packages; what they depend on comes along."""

FILES: tuple[FileRecipe, ...] = (
    *(FileRecipe("kubernetes", name, {"": name}) for name in _PROGRAMS),
    FileRecipe("runc", "runc", {"": "runc"}),
    FileRecipe(
        "containerd",
        "archive",
        {f"bin/{name}": name for name in GO["containerd"].programs},
    ),
    FileRecipe(
        "cni-plugins", "archive", {f"./{name}": name for name in GO["cni-plugins"].programs}
    ),
    FileRecipe(
        "etcd",
        "archive",
        {f"etcd-{{version}}-linux-{{arch}}/{name}": name for name in GO["etcd"].programs},
    ),
    FileRecipe("crictl", "archive", {"crictl": "crictl"}),
    FileRecipe("helm", "archive", {"linux-{arch}/helm": "helm"}),
)

IMAGES: tuple[ImageRecipe, ...] = (
    *(
        ImageRecipe("kubernetes", name, Start((f"/{_OWN}/{name}",)), {f"{_OWN}/{name}": name})
        for name in _PODS
    ),
    ImageRecipe(
        "kubernetes",
        "kube-proxy",
        Start((f"/{_OWN}/kube-proxy",)),
        {f"{_OWN}/kube-proxy": "kube-proxy"},
        debian=("usr/sbin/nft", f"usr/sbin/{_NFT}", "usr/sbin/conntrack"),
        loaded=("usr/lib/*/xtables/*.so",),
        links={
            f"usr/sbin/{family}{what}": _NFT
            for family in ("iptables", "ip6tables")
            for what in ("", "-save", "-restore")
        },
        directories=("run", "var/run"),
    ),
    ImageRecipe(
        "etcd",
        "server",
        Start((f"/{_OWN}/etcd",)),
        {f"{_OWN}/{name}": name for name in GO["etcd"].programs},
    ),
    ImageRecipe("coredns", "coredns", Start(("/coredns",)), {"coredns": "coredns"}),
    ImageRecipe("pause", "pause", Start(("/pause",)), {"pause": "pause"}),
    ImageRecipe(
        "metrics-server",
        "metrics-server",
        Start(("/metrics-server",)),
        {"metrics-server": "metrics-server"},
    ),
    ImageRecipe(
        "local-path",
        "provisioner",
        Start(("local-path-provisioner",)),
        {"usr/bin/local-path-provisioner": "local-path-provisioner"},
    ),
    ImageRecipe("local-path", "busybox", Start(command=("sh",)), has_shell=True),
    ImageRecipe(
        "registry",
        "registry",
        Start(command=("registry", "serve", "/etc/distribution/config.yml")),
        {"usr/bin/registry": "registry"},
    ),
    ImageRecipe(
        "haproxy",
        "haproxy",
        Start(command=("haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg")),
        debian=("usr/sbin/haproxy",),
    ),
    # The project's own image knows streams by itself, Debian's nginx has to load them.
    ImageRecipe(
        "nginx",
        "nginx",
        Start(command=("nginx", "-g", "daemon off;")),
        debian=("usr/sbin/nginx",),
        loaded=("usr/lib/nginx/modules/ngx_stream_module.so",),
        texts={
            f"{_OWN}/nginx": "#!/bin/sh\n"
            "exec /usr/sbin/nginx"
            " -g 'load_module /usr/lib/nginx/modules/ngx_stream_module.so;' \"$@\"\n"
        },
        directories=("var/log/nginx", "var/lib/nginx", "run"),
        has_shell=True,
    ),
)
