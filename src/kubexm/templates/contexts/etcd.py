"""Members of etcd as services, and copies of their data."""

from __future__ import annotations

from typing import Literal

import msgspec

from kubexm.common import layout
from kubexm.templates.context import Context, Template

INITIAL = "/etc/etcd/initial.env"
"""What a member needs for its first start, beside its settings."""
BACKUP_SCRIPT = f"{layout.BINARIES}/kubexm-etcd-backup"
BACKUP_SERVICE = f"{layout.UNITS}/kubexm-etcd-backup.service"
BACKUP_TIMER = f"{layout.UNITS}/kubexm-etcd-backup.timer"
_HERE = "https://127.0.0.1:2379"


class EtcdEnvironment(Context, frozen=True, kw_only=True):
    """How a member of etcd runs."""

    name: str
    """What it is called among the members."""
    data_dir: str
    """Where its data lie."""
    listen_client: tuple[str, ...]
    """The URLs where it listens for clients."""
    advertise_client: tuple[str, ...]
    """The URLs by which clients reach it."""
    listen_peer: tuple[str, ...]
    """The URLs where it listens for other members."""
    metrics: str = "http://127.0.0.1:2381"
    """The URL where it tells of its health, without certificates."""
    pki: str = layout.ETCD_PKI
    """The directory of its certificates."""
    heartbeat_ms: int
    """How often the leader says that it is there, in milliseconds."""
    election_ms: int
    """How long the others wait for it, in milliseconds."""
    snapshot_count: int
    """Changes between two snapshots on disk."""
    compaction_s: int
    """How long old versions of keys are kept, in seconds."""
    quota_bytes: int
    """How large it may become."""
    max_request_bytes: int
    """The largest request."""
    has_gates: bool = True
    """Whether it has feature gates, as from v3.6 on; before, flags of their own did the same."""
    extra_args: dict[str, str] = msgspec.field(default_factory=dict)
    """More flags, without `--`; they win over those above."""


class EtcdInitial(Context, frozen=True, kw_only=True):
    """What a member of etcd needs for its first start."""

    name: str
    """What it is called among the members."""
    cluster: dict[str, str]
    """All members, itself among them: the URL by which the others reach each, by name."""
    state: Literal["new", "existing"]
    """Whether the members begin together, or this one joins others."""
    identity: str
    """Tells members of this cluster from those of another."""


class EtcdBackup(Context, frozen=True, kw_only=True):
    """The script that copies the data of etcd."""

    directory: str
    """Where copies lie."""
    keep: int
    """How many are kept."""
    endpoint: str = _HERE
    """The member whose data are copied."""
    pki: str = layout.ETCD_PKI
    """The directory of the certificates that let it in."""
    etcdctl: str = f"{layout.BINARIES}/etcdctl"
    """The program that copies."""
    etcdutl: str = f"{layout.BINARIES}/etcdutl"
    """The program that reads a copy."""


class EtcdUnit(Context, frozen=True, kw_only=True):
    """The service of a member of etcd."""

    program: str = f"{layout.BINARIES}/etcd"
    """The program."""
    environment: str = layout.ETCD_ENVIRONMENT
    """Its settings."""
    initial: str = INITIAL
    """What it needs for its first start."""


class EtcdBackupService(Context, frozen=True, kw_only=True):
    """The service that copies the data of etcd once."""

    script: str = BACKUP_SCRIPT
    """What it runs."""


class EtcdBackupTimer(Context, frozen=True, kw_only=True):
    """When the data of etcd are copied."""

    every: int
    """How often, in seconds."""


_MEMBER = EtcdEnvironment(
    name="node1",
    data_dir="/var/lib/etcd",
    listen_client=("https://10.0.0.11:2379", _HERE),
    advertise_client=("https://10.0.0.11:2379",),
    listen_peer=("https://10.0.0.11:2380",),
    heartbeat_ms=250,
    election_ms=5000,
    snapshot_count=10000,
    compaction_s=28800,
    quota_bytes=2147483648,
    max_request_bytes=1572864,
    extra_args={"log-level": "warn", "cipher-suites": "TLS_AES_128_GCM_SHA256"},
)
_CLUSTER = {"node1": "https://10.0.0.11:2380", "node2": "https://[fd00::12]:2380"}

TEMPLATES = (
    Template(
        "etcd/environment",
        EtcdEnvironment,
        "env",
        "how a member of etcd runs",
        layout.ETCD_ENVIRONMENT,
        (_MEMBER, msgspec.structs.replace(_MEMBER, has_gates=False, extra_args={})),
    ),
    Template(
        "etcd/initial",
        EtcdInitial,
        "env",
        "what a member of etcd needs for its first start",
        INITIAL,
        (EtcdInitial(name="node1", cluster=_CLUSTER, state="new", identity="prod"),),
    ),
    Template(
        "etcd/backup",
        EtcdBackup,
        "script",
        "copies the data of etcd",
        BACKUP_SCRIPT,
        (EtcdBackup(directory="/var/backups/etcd", keep=7),),
    ),
    Template(
        "systemd/etcd",
        EtcdUnit,
        "unit",
        "the service of a member of etcd",
        f"{layout.UNITS}/etcd.service",
        (EtcdUnit(),),
    ),
    Template(
        "systemd/etcd-backup-service",
        EtcdBackupService,
        "unit",
        "copies the data of etcd once",
        BACKUP_SERVICE,
        (EtcdBackupService(),),
    ),
    Template(
        "systemd/etcd-backup-timer",
        EtcdBackupTimer,
        "unit",
        "when the data of etcd are copied",
        BACKUP_TIMER,
        (EtcdBackupTimer(every=86400),),
    ),
)
