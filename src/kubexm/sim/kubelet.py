"""The kubelet of a simulated host: what it was started with, and what keeps it from running.

It ends when something is missing and systemd starts it again, so that it runs as soon as all is
there: what it needs is looked at whenever somebody asks. Once it runs it goes by the settings that
it has read, whatever their file says by then.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from kubexm.common import layout
from kubexm.sim import containers
from kubexm.sim.kubedocs import Object, Unreadable, document, part
from kubexm.sim.shell import Shell

UNIT = "kubelet.service"
_CELL = "kubelet:started"
_HOSTNAME = "/proc/sys/kernel/hostname"
_KIND = ("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration")
_LISTED = (
    "address allowedUnsafeSysctls apiVersion authentication authorization cgroupDriver cgroupRoot"
    " cgroupsPerQOS clusterDNS clusterDomain configMapAndSecretChangeDetectionStrategy"
    " containerLogMaxFiles containerLogMaxSize containerLogMaxWorkers containerLogMonitorInterval"
    " containerRuntimeEndpoint contentType cpuCFSQuota cpuCFSQuotaPeriod cpuManagerPolicy"
    " cpuManagerPolicyOptions cpuManagerReconcilePeriod crashLoopBackOff enableContentionProfiling"
    " enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers"
    " enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery"
    " enforceNodeAllocatable eventBurst eventRecordQPS evictionHard evictionMaxPodGracePeriod"
    " evictionMinimumReclaim evictionPressureTransitionPeriod evictionSoft evictionSoftGracePeriod"
    " failCgroupV1 failSwapOn featureGates fileCheckFrequency hairpinMode healthzBindAddress"
    " healthzPort httpCheckFrequency imageGCHighThresholdPercent imageGCLowThresholdPercent"
    " imageMaximumGCAge imageMinimumGCAge imagePullCredentialsVerificationPolicy"
    " imageServiceEndpoint iptablesDropBit iptablesMasqueradeBit kernelMemcgNotification kind"
    " kubeAPIBurst kubeAPIQPS kubeReserved kubeReservedCgroup kubeletCgroups"
    " localStorageCapacityIsolation logging makeIPTablesUtilChains maxOpenFiles"
    " maxParallelImagePulls maxPods memoryManagerPolicy memoryReservationPolicy memorySwap"
    " memoryThrottlingFactor mergeDefaultEvictionSettings nodeLeaseDurationSeconds"
    " nodeStatusMaxImages nodeStatusReportFrequency nodeStatusUpdateFrequency oomScoreAdj podCIDR"
    " podLogsDir podPidsLimit podsPerCore port preloadedImagesVerificationAllowlist"
    " protectKernelDefaults providerID qosReserved readOnlyPort registerNode registerWithTaints"
    " registryBurst registryPullQPS reservedMemory reservedSystemCPUs resolvConf rotateCertificates"
    " runOnce runtimeRequestTimeout seccompDefault serializeImagePulls serverTLSBootstrap"
    " showHiddenMetricsForVersion shutdownGracePeriod shutdownGracePeriodByPodPriority"
    " shutdownGracePeriodCriticalPods singleProcessOOMKill staticPodPath staticPodURL"
    " staticPodURLHeader streamingConnectionIdleTimeout syncFrequency systemCgroups systemReserved"
    " systemReservedCgroup tlsCertFile tlsCipherSuites tlsCurvePreferences tlsMinVersion"
    " tlsPrivateKeyFile topologyManagerPolicy topologyManagerPolicyOptions topologyManagerScope"
    " tracing userNamespaces volumePluginDir volumeStatsAggPeriod"
)
_FIELDS = frozenset(_LISTED.split())
"""What a kubelet takes in its configuration; it refuses anything else."""


class Started(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a kubelet was started with."""

    config: str = ""
    settings: str = ""
    """What was in that file."""
    kubeconfig: str = ""
    bootstrap: str = ""
    node: str = ""
    version: str = ""


def remember(shell: Shell, started: Started | None) -> None:
    """Keep what it was started with; None when it is stopped."""
    text = None if started is None else msgspec.json.encode(started).decode()
    if shell.state.get(_CELL) != text:
        shell.state.set(_CELL, text)


def started(shell: Shell) -> Started | None:
    """What it was started with; None if its unit is not started."""
    return shell.state.follows(_CELL, lambda: _started(shell))


def _started(shell: Shell) -> Started | None:
    service, found = shell.service(UNIT), shell.state.get(_CELL)
    if service is None or not service.active or not isinstance(found, str):
        return None
    return msgspec.json.decode(found, type=Started)


def node_name(shell: Shell, override: str = "") -> str:
    """The name of the node that a host is."""
    return (override or shell.files.read(_HOSTNAME).decode()).strip().lower()


def obstacle(shell: Shell) -> str:
    """Why it does not run; nothing if it does."""
    return _state(shell)[1]


def configuration(shell: Shell) -> Object:
    """Its settings; empty if it has none, or none that it can read."""
    return _state(shell)[0]


def written(shell: Shell, path: str) -> str:
    """What its settings say where it is told to look for them; nothing if there is no such file."""
    return shell.files.read(path).decode(errors="replace") if _is_file(shell, path) else ""


def _state(shell: Shell) -> tuple[Object, str]:
    """Its settings, and why it does not run by them."""
    return shell.state.follows("kubelet:state", lambda: _found(shell))


def _found(shell: Shell) -> tuple[Object, str]:
    if (found := started(shell)) is None:
        return {}, "kubelet.service is not started"
    state = _started_so(shell, found)
    # One that has ended is started again, and reads them again.
    return _started_so(shell, _anew(shell, found)) if state[1] else state


def _anew(shell: Shell, found: Started) -> Started:
    return replace(found, settings=written(shell, found.config))


def _started_so(shell: Shell, found: Started) -> tuple[Object, str]:
    settings, wrong = _read(found)
    return settings, next(_obstacles(shell, found, settings, wrong), "")


def _obstacles(shell: Shell, found: Started, settings: Object, wrong: str) -> Iterator[str]:
    if wrong:
        yield f"failed to load kubelet config file, path: {found.config}, error: {wrong}"
    if not (_is_file(shell, found.kubeconfig) or _is_file(shell, found.bootstrap)):
        missing = found.bootstrap or found.kubeconfig or "--kubeconfig"
        yield f"unable to load bootstrap kubeconfig: stat {missing}: no such file or directory"
    authority = part(settings, "authentication", "x509", "clientCAFile")
    if authority and not _is_file(shell, authority):
        yield f"unable to load client CA file {authority}: no such file or directory"
    if not authority:
        yield "client-ca-file is not set: the API server is let in by nobody"
    yield from _runtime_obstacles(shell, settings)
    if settings.get("failSwapOn", True) and len(_swaps(shell)) > 1:
        yield "running with swap on is not supported, please disable swap or set --fail-swap-on"


def _runtime_obstacles(shell: Shell, settings: Object) -> Iterator[str]:
    endpoint = settings.get("containerRuntimeEndpoint")
    if endpoint != layout.CRI_SOCKET:
        yield f"containerRuntimeEndpoint is {endpoint!r}, and nobody answers there"
    if not containers.is_running(shell):
        yield f"validate CRI v1 runtime API for endpoint {endpoint}: no such file or directory"
    driver = settings.get("cgroupDriver", "cgroupfs")
    theirs = "systemd" if containers.systemd_cgroup(shell) else "cgroupfs"
    if driver != theirs:
        yield f"cgroup driver is {driver!r}, and that of containerd {theirs!r}"


def _read(found: Started) -> tuple[Object, str]:
    """The settings that it has read, and what is wrong with them."""
    if not found.config:
        return {}, "no --config was given"
    if not found.settings:
        return {}, f"open {found.config}: no such file or directory"
    try:
        settings = document(found.settings.encode())
    except Unreadable as error:
        return {}, str(error)
    if (settings.get("apiVersion"), settings.get("kind")) != _KIND:
        return {}, f"no kind {settings.get('kind')!r} in {settings.get('apiVersion')!r}"
    unknown = ", ".join(sorted(f'"{name}"' for name in settings.keys() - _FIELDS))
    return settings, f"strict decoding error: unknown field {unknown}" if unknown else ""


def _is_file(shell: Shell, path: str) -> bool:
    found = shell.files.lookup(shell.files.resolve(path)) if path else None
    return found is not None and found.kind == "file"


def _swaps(shell: Shell) -> list[bytes]:
    return shell.files.read("/proc/swaps").splitlines()
