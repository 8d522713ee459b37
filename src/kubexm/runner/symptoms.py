"""What is wrong with a cluster, by what its programs say of it, and what to do about it.

A table, in which what is more telling stands first: of a line that several rows know, the first
has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from kubexm.plan.result import CAUSE

MOST_CAUSES = 3
_MOST_NAMES = 3
_WARNING = "[WARNING "
"""Before what kubeadm has found, and goes on in spite of."""


class Symptom(msgspec.Struct, frozen=True):
    """Something that goes wrong, and the lines by which it is known."""

    cause: str
    remedy: str
    signs: tuple[re.Pattern[str], ...]
    """What is searched for in a line; a group `what` tells which port, image or path it is."""
    follows: bool = False
    """Whether it mostly comes of something else: it is told only where nothing else is known."""


def _symptom(cause: str, remedy: str, *signs: str, follows: bool = False) -> Symptom:
    return Symptom(cause, remedy, tuple(map(re.compile, signs)), follows)


_IMAGE = r'image "(?P<what>[^"]+)"'
_SPEC = "in the cluster file"
_UNKNOWN = "x509: certificate signed by unknown authority"
_API = (
    r"(apis?\?|version\b|openapi/v\d|apis/[\w.-]+/v\d|api/v1/(nodes|namespaces|pods|services"
    r"|endpoints|configmaps|secrets|events|serviceaccounts|persistentvolume\w*)\b)"
)
"""What only an API server is asked for: many others have an authority of their own."""
_COMES_LATER = r"(proc|run|sys)/|etc/kubernetes/(kubelet\.yaml|(bootstrap-)?kubelet\.conf):"
"""What a host has once it runs, or has joined; nobody's mistake until then."""
TABLE = (
    _symptom(
        "clocks disagree, or a certificate is out of date",
        f"have the hosts agree on the time, `spec.system.ntp` {_SPEC} and `timedatectl` on the"
        " host; where the time is right, the certificate has to be renewed",
        r"x509: certificate has expired or is not yet valid(: (?P<what>current time .* is"
        r" (before|after) [\d:TZ-]+))?",
        r"the certificate (is not valid yet|has expired)",
        r"service account token is not valid yet",
        r"existing bootstrap client certificate in (?P<what>\S+) is expired",
        r"remote error: tls: expired certificate",
        r"prober found high clock drift",
    ),
    _symptom(
        "the kernel lets no more files be watched",
        f"raise the limits {_SPEC}: `spec.system.sysctl`, `fs.inotify.max_user_instances` and"
        " `fs.inotify.max_user_watches`",
        r"(?i:(inotify\w*|fsnotify|\bwatch(er|es|))\b[^:]*: too many open files)",
        r"(?i:(inotify|fsnotify)\w*\b.*(no space left on device|watch limit reached))",
    ),
    _symptom(
        "the network has no room for its BPF maps",
        "see that containerd may lock memory, `systemctl show -p LimitMEMLOCK containerd`"
        " (`infinity`), and what there is, `bpftool map`; how large maps of Cilium are is said"
        f" {_SPEC}, `bpf.mapDynamicSizeRatio` under `spec.network.cilium.values`",
        r"(?i:\be?bpf\b[^:]*\bmaps?\b.*(no space left on device|cannot allocate memory))",
        r"MEMLOCK may be too low",
        r"(?P<what>\w+) map .*the map is full, please consider resizing it",
    ),
    _symptom(
        "a program may open no more files",
        "raise its limit, `LimitNOFILE` of its unit (`systemctl show -p LimitNOFILE UNIT`), or that"
        f" of the host, `fs.file-max` under `spec.system.sysctl` {_SPEC}; `ls /proc/PID/fd` says"
        " what it holds",
        r"[Tt]oo many open files",
    ),
    _symptom(
        "a disk of the host is full",
        "`df -h` and `df -i` on the host say which: make room; images and containers lie in"
        " `spec.containerRuntime.root`, etcd in `spec.etcd.dataDir`",
        # The kernel says the same where it takes no more control groups.
        r"^(?!.*/sys/fs/cgroup/).*[Nn]o space left on device",
        r"KubeletHasDiskPressure|kubelet has disk pressure",
        r"\btaint \{node\.kubernetes\.io/disk-pressure\b",
        r"low on resource: ephemeral-storage",
    ),
    _symptom(
        "what extends the API of the cluster does not answer as it should",
        "look at its pods and its Service: `kubectl get pods,endpointslices -A -o wide`; control"
        " planes have to reach pods, and a certificate has to be of the authority in `caBundle` of"
        " the webhook or APIService that leads to it",
        r'failed calling webhook "(?P<what>[^"]+)"',
        r"conversion webhook for (?P<what>\S+), Kind=\S+ failed",
        r"(?P<what>v\w+\.\S+) failed with: failing or missing response from",
    ),
    _symptom(
        "a registry does not know us, or not the image",
        f"write who we are to it {_SPEC}: `spec.containerRuntime.registries.HOST.auth`; and see"
        " that it has an image of this name: many registries tell no difference",
        rf"{_IMAGE}.*(pull access denied|insufficient_scope|no basic auth credentials|[ :]401 )",
    ),
    _symptom(
        "the certificate of a registry is not trusted",
        f"name its authority {_SPEC}: `spec.containerRuntime.registries.HOST.ca`",
        rf"{_IMAGE}.*{_UNKNOWN}",
    ),
    _symptom(
        "a registry speaks plain HTTP",
        f"say so {_SPEC}: `spec.containerRuntime.registries.HOST.plainHttp: true`",
        rf"{_IMAGE}.*server gave HTTP response to HTTPS client",
    ),
    _symptom(
        "an image can't be had",
        "bring it with the bundle (`--bundle`; `kubexm bundle build` makes one), or see that the"
        f" host reaches its registry; {_SPEC} `spec.registry.host`,"
        " `spec.containerRuntime.registries.HOST.mirrors` and `spec.system.proxy` say where images"
        " come from",
        rf"failed to pull and unpack {_IMAGE}",
        rf"(failed to get sandbox|[Ff]ailed to pull|failed to resolve|Back-off pulling) {_IMAGE}",
        r"failed to pull image (?P<what>[^\s\"]+): ",
        r"Container " + _IMAGE + r" is not present with pull policy of Never",
        r'ctr: image "(?P<what>[^"]+)": not found',
        r"\b(ErrImagePull|ImagePullBackOff|ErrImageNeverPull|InvalidImageName|RegistryUnavailable)\b",
    ),
    _symptom(
        "the kubelet does not run with control groups of version 1",
        "boot the host with version 2 (`systemd.unified_cgroup_hierarchy=1` on the command line of"
        f" the kernel), or write {_SPEC} `spec.kubernetes.kubelet.config.failCgroupV1: false` and"
        " `spec.kubernetes.kubeadm.ignorePreflightErrors: [SystemVerification]`",
        r"configured to not run on a host using cgroup v1",
        r"cgroups v1 support is deprecated and will be removed .* you must set",
    ),
    _symptom(
        "the kubelet and containerd manage control groups in different ways",
        "let one key decide for both: `spec.containerRuntime.systemdCgroup`, and leave"
        " `cgroupDriver` out of `spec.kubernetes.kubelet.config` and `SystemdCgroup` out of"
        " `spec.containerRuntime.config`",
        r'expected cgroupsPath to be of format "slice:prefix:name" for systemd cgroups',
        r"cgroup driver is '\w+', and that of containerd '\w+'",
        r'kubelet cgroup driver: "[^"]*" is different from \w+ cgroup driver',
    ),
    _symptom(
        "the host lacks control groups that are needed",
        "`cat /sys/fs/cgroup/cgroup.controllers` on the host says what it has: boot it with version"
        " 2 and all controllers (`systemd.unified_cgroup_hierarchy=1`, and `cgroup_enable=memory`"
        " where memory is missing); a host that is a container gets them from the one around it",
        r"cgroups: cgroup mountpoint does not exist",
        r"has some missing controllers: (?P<what>\w+(, \w+)*)",
        r"Following Cgroup subsystem not mounted: \[(?P<what>[^\]]+)\]",
    ),
    _symptom(
        "swap is on",
        "switch it off on the host, `swapoff -a`, and take it out of `/etc/fstab`; to go on with"
        f" it, write {_SPEC} `spec.kubernetes.kubelet.config.failSwapOn: false`",
        r"running with swap on is not supported",
    ),
    _symptom(
        "the kernel of the host does not pass on packets",
        "something has set it back: `grep -rs FILE /etc/sysctl.conf /etc/sysctl.d /run/sysctl.d"
        " /usr/lib/sysctl.d`, with the last part of its path for FILE, says what; take it out there"
        " and run the same command again",
        r"(?P<what>/proc/sys/net/\S+) contents are not set to 1",
    ),
    _symptom(
        "a port is in use",
        "`ss -lntup` on the host says who has it: stop that, or let it listen elsewhere",
        r"\bPort (?P<what>\d+) is in use",
        r"listen \w+ \S*?:(?P<what>\d+): bind: address already in use",
        r"^(?!.*listen unix ).*bind: address already in use",
        r"cannot bind socket \(Address already in use\).*\[\S*?:(?P<what>\d+)\]",
        r"bind\(\) to \S*?:(?P<what>\d+) failed \(98: ",
    ),
    _symptom(
        "an address to listen at is not on the host",
        "`ip -br address` on the host says what it has: `internalAddresses` of `spec.hosts` names"
        " addresses of its own, and a virtual one, `spec.endpoint.address`, comes once whoever"
        " holds it is there, or never if it is of another network",
        r"listen \w+ (?P<what>\S+): bind: cannot assign requested address",
        r"cannot bind socket \(Cannot assign requested address\).* \[(?P<what>\S+:\d+)\]",
        r"bind\(\) to (?P<what>\S+) failed \(99: ",
    ),
    _symptom(
        "something of an earlier cluster is left",
        "look whose it is before you remove anything: `kubexm delete cluster NAME` takes a cluster"
        " of kubexm away; for any other run `kubeadm reset` on the host, and remove what it leaves:"
        " the data of etcd (`spec.etcd.dataDir`), `/etc/kubernetes`, `/etc/cni/net.d`,"
        " `/var/lib/cni` and the interface `cni0`",
        r"(Dir|File)Available\S*: (?P<what>/\S+) (is not empty|already exists)",
    ),
    _symptom(
        "members of etcd disagree about who belongs to them",
        "`etcdctl member list` of a member that is well has to name the hosts of the cluster and"
        " nobody else: `etcdctl member remove ID` takes out one whose data or host is gone for"
        " good. If a host has data of a former member or of another cluster, move"
        " `spec.etcd.dataDir` there out of the way; then run the same command again",
        r"(?P<what>member \w+ has already been bootstrapped)",
        r"(cluster ID mismatch|member count is unequal|error validating peerURLs)",
        r"member has been permanently removed from the cluster",
        r"holds the data of member",
    ),
    _symptom(
        "etcd takes no other members while some of its own are not well",
        "`etcdctl endpoint health --cluster` and `etcdctl member list` on a member that is well say"
        " which: start it, or have it reached; `etcdctl member remove ID` takes out one that was"
        " never started or is gone for good; then run the same command again",
        r"etcdserver: unhealthy cluster",
        r"not enough started members",
    ),
    _symptom(
        "a new member of etcd is still behind the others",
        "run the same command again: it goes on where it stood; if it stays behind, see that port"
        " 2380 is open between the members, how fast the disk of `spec.etcd.dataDir` is, and what"
        " the new member says",
        r"can only promote a learner member which is in sync with leader",
        follows=True,
    ),
    _symptom(
        "the data of etcd is of a newer version",
        f"leave etcd at the version that has written it, with its Kubernetes {_SPEC}; if the data"
        " is of another cluster, move `spec.etcd.dataDir` out of the way",
        r"server version is lower than determined cluster version",
    ),
    _symptom(
        "the bridge of the pods has another network",
        "the host had other pods before: `ip link delete cni0` there has the plugin make it anew,"
        " and pods that still use it have to be made anew as well",
        r'(?P<what>"?cni0"? already has an IP address different from [\da-f.:/]+)',
        r'(?P<what>"?cni0"? already exists but is not a bridge)',
    ),
    _symptom(
        "who answers, or who asks, belongs to another cluster",
        "compare `sha256sum /etc/kubernetes/pki/ca.crt` of this host and of a control plane: if"
        " they differ, the host was a member of another cluster and has to leave it first; else the"
        f" way leads elsewhere: see {_SPEC} `spec.endpoint.address`, and the hosts behind a load"
        " balancer of yours, or `spec.etcd.external`",
        rf'"https://[^"/]+/{_API}[^"]*": .*{_UNKNOWN}',
        rf"Unable to (connect to the server|authenticate the request)\b.*{_UNKNOWN}",
        rf"(rejected connection on (peer|client) endpoint|:(2379|2380)\b).*{_UNKNOWN}",
        r"none of the public keys .* are pinned",
        r"failed to verify JWS signature of received cluster info object",
    ),
    _symptom(
        "the API server does not know who asks it",
        "run the same command again, which makes a new token where a host is to join; the kubelet"
        " of a member asks by `/var/lib/kubelet/pki/kubelet-client-current.pem`: `openssl x509"
        " -noout -issuer -dates -in` that says whether it is out of date, or of another cluster",
        r'\berr="Unauthorized"',
        r"You must be logged in to the server",
    ),
    _symptom(
        "the certificate of the API server is not for what it is asked by",
        "ask it by another name or address, or have this one in its certificate:"
        f" `spec.kubernetes.apiServer.certSans` {_SPEC}",
        r"x509: certificate is valid for .*\bkubernetes\.default\b.*, not (?P<what>[^\s\",]+)",
    ),
    _symptom(
        "a node of this name is in the cluster already",
        "`kubectl get node NAME -o wide` says which host that is: if it is another one, give this"
        " one another name; if it is this one, and was joined before, have the cluster forget it:"
        " `kubectl delete node NAME`",
        r'a Node with name "(?P<what>[^"]+)" and status "Ready" already exists',
    ),
    _symptom(
        "the token to join by has expired",
        "run the same command again: it makes a new one; see that clocks agree if it happens again",
        r'token id "\w+" is invalid for this cluster or it has expired',
        r"could not find a JWS signature in the cluster-info ConfigMap",
    ),
    _symptom(
        "the networks of pods, services and hosts don't fit each other",
        "let `spec.network.podCIDR`, `nodeMask` and `serviceCIDR` decide for all programs: leave"
        " networks out of `extraArgs`, and of charts, templates and manifests of yours; nodes and"
        " services that have addresses of other networks keep them as long as the cluster lives",
        r"(?P<what>cidr \S+ is out the range of cluster cidr [^\s\",]+)",
        r"an allocated cidr: (?P<what>\S+) at index:\d+ that does not exist in cluster cidrs",
        r"mask size of cluster CIDR must be less than or equal to",
        r"New CIDR set failed; the node CIDR size is too big",
        r"ClusterCIDRs==\d+ and they are not configured as dual stack",
        r"(?P<what>subnet \S+ specified in the flannel net config doesn't contain \S+)",
        r"the provided IP \((?P<what>\S+)\) is not in the valid range\. The range of valid IPs",
        r"Cluster ?IP \[\w+\]: ?(?P<what>\S+) .*is not within (any|the) .*[Ss]ervice CIDR",
        r"(?P<what>pod subnet with mask \d+ is smaller than the size of node subnet with mask \d+)",
        r"(?P<what>pod subnet mask \(\d+\) and node-mask \(\d+\) difference is greater than \d+)",
        r"(?P<what>subnet with \d+ address\(es\) is too small)",
        r"specified (service subnet|--service-cluster-ip-range\S*) is too large",
        r"cluster is \S+ but (clusterCIDRs|node\.spec\.podCIDRs) contains only IPv\d addresses",
    ),
    _symptom(
        "there are no addresses left for the pods of a host",
        "`spec.network.podCIDR` has to be large enough for a network of `spec.network.nodeMask`"
        " for each host, and apart from `spec.network.serviceCIDR` and the networks of the hosts;"
        " a cluster keeps its networks as long as it lives. What pods of a host hold, or have left"
        " behind, lies in `/var/lib/cni/networks` there",
        r"(pod cidr not assigned|CIDRNotAvailable|CIDRAssignmentFailed|CIDR allocation failed)",
        r"(?P<what>no IP addresses available in range set: \S+)",
        r"failed to allocate cidr from cluster cidr",
        r"node \S+ has no addresses for pods",
    ),
    _symptom(
        "a manifest has a field that its kind does not have",
        "mend it where it is written: a file of yours (`manifests` of an add-on), the values of a"
        " chart, or a template; or its kind is of another version",
        r'cannot be handled as an? \w+: strict decoding error: (?P<what>unknown field "[^"]+")',
        r"failed to create typed patch object .*: (?P<what>\S+): field not declared in schema",
    ),
    _symptom(
        "a setting is not known to the program that reads it",
        f"mend it {_SPEC}: `spec.kubernetes.kubelet.config` and `extraArgs` for the kubelet,"
        " `spec.kubernetes.apiServer.extraArgs` and its like, `spec.kubernetes.featureGates`,"
        " `spec.etcd.extraArgs`, `spec.containerRuntime.config`",
        r'strict decoding error: (?P<what>unknown field "[^"]+")',
        r"failed to load kubelet config file, path: (?P<what>[^,\s]+)(?!.*no such file)",
        r"unknown flag: (?P<what>--\S+)",
        r"flag provided but not defined: (?P<what>-\S+)",
        r"unrecognized feature gate: (?P<what>\w+)",
        r"failed to load TOML",
    ),
    _symptom(
        "etcd is full",
        f"give it more room {_SPEC}: `spec.etcd.tuning.quotaMib`",
        r"mvcc: database space exceeded",
    ),
    _symptom(
        "a container was ended for want of memory",
        "`kubectl describe pod` shows its limit: raise `resources.limits.memory`; where it has"
        " none, the host has too little: give it more, or run less on it",
        r"\bOOMKilled\b|Memory cgroup out of memory",
    ),
    _symptom(
        "the host has too little memory",
        "give it more, or run less on it",
        r"KubeletHasInsufficientMemory|kubelet has insufficient memory available",
        r"Out of memory: Killed process|low on resource: memory",
        r"\btaint \{node\.kubernetes\.io/memory-pressure\b",
    ),
    _symptom(
        "the host does not let containers change how likely they are to be ended",
        f"it is a container itself: write {_SPEC} `restrict_oom_score_adj: true` under"
        ' `spec.containerRuntime.config.plugins."io.containerd.cri.v1.runtime"`, and'
        " `KubeletInUserNamespace: true` under `spec.kubernetes.kubelet.config.featureGates`",
        # The kubelet only complains that it can't do so for itself.
        r"/proc/self/oom_score_adj: [Pp]ermission denied",
        r"container init.*oom_score_adj: permission denied",
    ),
    _symptom(
        "something is forbidden that a program needs",
        "see owner and mode of what is named, and what SELinux or AppArmor has denied:"
        " `ausearch -m avc -ts recent`, `dmesg`",
        r"\b(open|mkdir|write|stat|exec|create|access) (?P<what>/(?!proc/)[^\s:]+): permission"
        r" denied",
        r"dial unix (?P<what>\S+): connect: permission denied",
        r"cannot bind socket \(Permission denied\).* \[(?P<what>\S+:\d+)\]",
        r"bind\(\) to (?P<what>\S+) failed \(13: ",
        r"listen \w+ (?P<what>\S+): bind: permission denied",
        r"avc:\s+denied",
    ),
    _symptom(
        "the program of a container can't be started",
        "see `command` of the pod, and that its image has this program, as a file that may be run",
        r"unable to start container process: (error during container init: )?"
        r'exec: "(?P<what>[^"]+)": (?!exec format error)',
    ),
    _symptom(
        "a program is not there, or is for other machines",
        "see that it was installed, and that `arch` of the host is right in `spec.hosts`",
        r'exec: "(?P<what>[^"]+)": executable file not found',
        r'failed to find plugin "(?P<what>[^"]+)" in path',
        r"(?P<what>exec format error)",
    ),
    _symptom(
        "containerd does not serve the kubelet",
        "its plugin for that is off, or could not begin: leave `disabled_plugins` out of"
        " `spec.containerRuntime.config`, and see `ctr plugins ls` and `journalctl -u containerd`"
        " on the host",
        r"unknown service runtime\.v1\.(Runtime|Image)Service",
    ),
    _symptom(
        "containerd does not answer",
        "see what it says: `journalctl -u containerd` on the host",
        r"validate CRI v1 \w+ API for endpoint",
        r"dial unix /run/containerd/containerd.sock",
        r"could not connect to the container runtime",
    ),
    _symptom(
        "names can't be looked up",
        "say who knows them: `spec.dns.upstream`, or nobody (`[]`) on a site without DNS",
        r"plugin/loop: Loop .* detected",
        r"no valid upstream addresses found",
    ),
    _symptom(
        "a name is not known on the host",
        "see `/etc/hosts` and `/etc/resolv.conf` there; `spec.endpoint.domain` and"
        " `spec.system.hosts` are written into the first",
        r"lookup (?P<what>(?!\S+\.svc\b)[\w.-]+)( on \S+)?: (no such host|server misbehaving"
        r"|i/o timeout)",
    ),
    _symptom(
        "pods of the host have no network yet",
        "what lays it does not run there: look at the pods of the plugin (`spec.network.plugin`),"
        " `kubectl get pods -A -o wide`; with `plugin: none` it is for you to install one",
        r"cni plugin not initialized",
        r"no network config found in /etc/cni/net\.d",
        r"loadFlannelSubnetEnv failed|stat /var/lib/calico/nodename",
        r"[Uu]nable to connect to Cilium (agent|daemon)|node\.cilium\.io/agent-not-ready",
        r"\b[Cc]ilium[ -][Aa]gent\b.*\bnot[ -]ready\b",
        follows=True,
    ),
    _symptom(
        "no node takes the pod",
        "see what the nodes lack: `kubectl describe nodes`; pods need a node that is ready, large"
        " enough and without a taint they don't tolerate",
        r"(0/\d+|no) nodes are available: ",
    ),
    _symptom(
        "a file that a program reads is not there",
        "see who names it: a flag under `extraArgs`, or a setting under `config`; a pod of the"
        " control plane sees no file of the host that is not mounted into it, by `extraVolumes` of"
        " `spec.kubernetes.kubeadm.clusterConfiguration`",
        rf"\b(open|stat|read) (?P<what>/(?!{_COMES_LATER})[^\s:]+): no such file or directory",
        follows=True,
    ),
    _symptom(
        "the kubelet does not run",
        "see what it says: `journalctl -u kubelet` on the host",
        r"dial tcp (127\.0\.0\.1|\[::1\]):10248: connect: connection refused",
        follows=True,
    ),
    _symptom(
        "the API server, or what stands in front of it, can't be reached",
        "see that it runs and that no firewall is between: `spec.endpoint` says where it is, and"
        " ports 6443, 2379, 2380 and 10250 have to be open between hosts",
        # Pods, and repositories of charts, are asked by such calls too.
        r"^(?!.* probe failed: |.*chart repository).*dial tcp (?P<what>\S+:\d+): (connect: )?"
        r"(connection refused|no route to host|network is unreachable|connection timed out"
        r"|i/o timeout)",
        r"read tcp \S+->(?P<what>\S+:\d+): read: connection reset by peer",
        r"The connection to the server (?P<what>\S+) was refused",
        r'err="node "[^"]+" not found"',
        # Nearly everything ends by a deadline now and then: what counts is who was asked.
        r'"https://(?P<what>[^"/]+)/apis?/[^"]*": .*(context deadline|Client\.Timeout) exceeded',
        r"kube-apiserver check failed at https://(?P<what>[^/\s]+)/\S+: .*deadline exceeded",
        r"Unable to connect to the server: (?!.*x509: )",
        follows=True,
    ),
)
"""What is known."""


def plain(line: str) -> str:
    """A line without the backslashes that errors within errors get."""
    return line.replace("\\", "").strip()


def of_line(line: str) -> tuple[Symptom, str] | None:
    """What a line is a sign of, and which port, image or path it names; None if of nothing."""
    if _WARNING in line:
        return None
    for symptom in TABLE:
        for sign in symptom.signs:
            if found := sign.search(line):
                return symptom, found.groupdict().get("what") or ""
    return None


def told(lines: Iterable[str]) -> list[str]:
    """The causes that these lines are signs of, each with its remedy; none if nothing is known."""
    found = [*_found(lines).items()]
    own = [(symptom, names) for symptom, names in found if not symptom.follows]
    return [
        line
        for symptom, names in (own or found)[:MOST_CAUSES]
        for line in (f"{CAUSE}{_named(symptom, names)}", f"remedy: {symptom.remedy}")
    ]


def hint(text: str) -> str:
    """The same of one message, as a hint: the cause and what to do about it."""
    found = _found(text.splitlines())
    own = [symptom for symptom in found if not symptom.follows] or [*found]
    return f"{own[0].cause}: {own[0].remedy}" if own else ""


def _found(lines: Iterable[str]) -> dict[Symptom, list[str]]:
    """By what is wrong, what is named by it; what is more telling comes first."""
    seen = [found for line in lines if (found := of_line(plain(line))) is not None]
    names: dict[str, dict[str, None]] = {}
    for symptom, what in seen:
        names.setdefault(symptom.cause, {})[what] = None
    return {
        symptom: [*filter(None, names[symptom.cause])]
        for symptom in TABLE
        if symptom.cause in names
    }


def _named(symptom: Symptom, names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{symptom.cause}{': ' if names else ''}{', '.join(names[:_MOST_NAMES])}{more}"
