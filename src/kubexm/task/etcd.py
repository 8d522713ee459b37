"""etcd as services of systemd: all members begin together, none is well without the others."""

from __future__ import annotations

from collections.abc import Sequence

from kubexm.common import layout
from kubexm.plan import ExecutionFragment, chain, node, parallel, per_host
from kubexm.plan.scope import task
from kubexm.step.data import DataDirectory
from kubexm.step.services import Service
from kubexm.step.waits import WaitFor
from kubexm.task.artifacts import unpacked
from kubexm.task.context import ClusterContext, bracketed
from kubexm.task.writing import directories, of_host, parent, rendered
from kubexm.templates.contexts.etcd import (
    BACKUP_SCRIPT,
    BACKUP_SERVICE,
    BACKUP_TIMER,
    INITIAL,
    EtcdBackup,
    EtcdBackupService,
    EtcdBackupTimer,
    EtcdEnvironment,
    EtcdInitial,
    EtcdUnit,
)

CLIENT_PORT, PEER_PORT = 2379, 2380
UNIT = f"{layout.UNITS}/etcd.service"
# What a member needs for its first start is not read at another.
_READ = (layout.ETCD_ENVIRONMENT, UNIT)
_HERE = f"https://127.0.0.1:{CLIENT_PORT}"
_SECONDS = 180.0
_TOOLS = ("etcdctl", "etcdutl")
_MEMBER = "etcd-{version}-linux-{arch}"
_TIMER = "kubexm-etcd-backup.timer"


def client_url(address: str) -> str:
    """Where a member is asked."""
    return f"https://{bracketed(address)}:{CLIENT_PORT}"


def peer_url(address: str) -> str:
    """Where a member is reached by the others."""
    return f"https://{bracketed(address)}:{PEER_PORT}"


@task("programs")
def programs(ctx: ClusterContext) -> ExecutionFragment | None:
    """etcd itself where it is a service; what looks into it wherever there is a member."""
    if ctx.declared.etcd_kind == "stacked":
        return _installed(ctx, _TOOLS, ctx.control_planes)
    return _installed(ctx, ("etcd", *_TOOLS), ctx.etcd)


def _installed(
    ctx: ClusterContext, names: Sequence[str], hosts: Sequence[str]
) -> ExecutionFragment:
    files = {f"{_MEMBER}/{name}": f"{layout.BINARIES}/{name}" for name in names}
    return unpacked(ctx, "etcd", hosts, files)


@task("prepare")
def prepare(ctx: ClusterContext) -> ExecutionFragment | None:
    """How each member runs, and where its data lie."""
    data = DataDirectory(ctx.spec.etcd.data_dir, mode="0700")
    files = {
        "unit": rendered(ctx, "systemd/etcd", EtcdUnit(), UNIT),
        "environment": rendered(ctx, "etcd/environment", _member(ctx), layout.ETCD_ENVIRONMENT),
        "initial": rendered(ctx, "etcd/initial", _initial(ctx), INITIAL),
    }
    return parallel(
        directories(ctx.etcd, parent(layout.ETCD_ENVIRONMENT)),
        node("data", data, on=ctx.etcd),
        *(node(name, step, on=ctx.etcd) for name, step in files.items()),
    )


@task("service")
def service(ctx: ClusterContext) -> ExecutionFragment | None:
    """The members run; none of them waits for another to be started."""
    step = Service("etcd", restarts_on=_READ, restarts=False)
    return node("etcd", step, on=ctx.etcd, timeout=_SECONDS)


@task("health")
def health(ctx: ClusterContext) -> ExecutionFragment | None:
    """Every member answers, so most of them have found each other."""
    step = WaitFor(command=_health(), unit="etcd", interval=1.0)
    return node("healthy", step, on=ctx.etcd, timeout=_SECONDS)


@task("settings")
def settings(ctx: ClusterContext) -> ExecutionFragment | None:
    """The members run with their settings as they are, also where these were changed.

    One after the other: most of them have to be there at any time, and what the first does not
    start with is kept from the others.
    """
    step = Service("etcd", restarts_on=_READ, answers=_health())
    return chain(*(node(host, step, on=(host,), timeout=_SECONDS) for host in ctx.etcd))


@task("backup")
def backup(ctx: ClusterContext) -> ExecutionFragment | None:
    """Copies of the data are made by themselves."""
    spec = ctx.spec.etcd.backup
    members = tuple(member.name for member in ctx.declared.etcd_members)
    if not spec.every or not members:
        return None
    script = EtcdBackup(directory=spec.directory, keep=spec.keep)
    timer = EtcdBackupTimer(every=int(spec.every))
    files = {
        "script": rendered(ctx, "etcd/backup", script, BACKUP_SCRIPT, mode="0755"),
        "unit": rendered(ctx, "systemd/etcd-backup-service", EtcdBackupService(), BACKUP_SERVICE),
        "timer": rendered(ctx, "systemd/etcd-backup-timer", timer, BACKUP_TIMER),
    }
    written = parallel(
        node("directory", DataDirectory(spec.directory, mode="0700"), on=members),
        *(node(name, step, on=members) for name, step in files.items()),
    )
    started = node("service", Service(_TIMER, restarts_on=(BACKUP_TIMER,)), on=members)
    return per_host(written, started)


def _member(ctx: ClusterContext) -> EtcdEnvironment:
    spec = ctx.spec.etcd
    return EtcdEnvironment(
        name=of_host("etcd.name"),
        data_dir=spec.data_dir,
        listen_client=of_host("etcd.listen_client"),
        advertise_client=of_host("etcd.advertise_client"),
        listen_peer=of_host("etcd.listen_peer"),
        heartbeat_ms=round(spec.tuning.heartbeat * 1000),
        election_ms=round(spec.tuning.election * 1000),
        snapshot_count=spec.tuning.snapshot_count,
        compaction_s=int(spec.tuning.compaction),
        quota_bytes=spec.tuning.quota_mib << 20,
        max_request_bytes=spec.tuning.max_request_kib << 10,
        has_gates=not ctx.version("etcd").startswith("v3.5."),
        extra_args=dict(spec.extra_args),
    )


def _initial(ctx: ClusterContext) -> EtcdInitial:
    return EtcdInitial(
        name=of_host("etcd.name"),
        cluster={name: peer_url(ctx.address(name)) for name in ctx.etcd},
        state="new",
        identity=ctx.name,
    )


def _health() -> tuple[str, ...]:
    """Ask the member of the same host whether it is well, by etcdctl that is let in."""
    client = f"{layout.ETCD_PKI}/healthcheck-client"
    return (
        f"{layout.BINARIES}/etcdctl",
        f"--endpoints={_HERE}",
        f"--cacert={layout.ETCD_PKI}/ca.crt",
        f"--cert={client}.crt",
        f"--key={client}.key",
        *("endpoint", "health"),
    )
