"""Where the state of the cluster lies."""

from __future__ import annotations

from typing import Annotated, Literal

from kubexm.config.fields import AbsolutePath, EtcdUrl, FlagName, Line, SecretReference, Version
from kubexm.document.fields import Duration, FilePath
from kubexm.document.forms import BadValue, Filled, Form, Range, empty

EtcdKind = Literal["stacked", "systemd", "external"]
_LONGEST_ELECTION = 50.0
_LEAST_BACKUP = 60.0
_LEAST_COMPACTION = 1.0


class ExternalEtcdSpec(Form):
    """An etcd that is there already."""

    endpoints: Annotated[tuple[EtcdUrl, ...], Filled()]
    """Its members, such as `https://10.0.0.5:2379`."""
    ca: FilePath
    """The certificate of its authority."""
    certificate: FilePath
    """The certificate that lets the API server in."""
    key: SecretReference
    """The key of that certificate."""


class TuningSpec(Form):
    """How etcd behaves under load."""

    heartbeat: Annotated[Duration, Range(0.001, _LONGEST_ELECTION)] = 0.25
    """How often the leader says that it is there."""
    election: Annotated[Duration, Range(0.005, _LONGEST_ELECTION)] = 5.0
    """How long the others wait for it: at least five times as long, and 50 seconds at most."""
    snapshot_count: Annotated[int, Range(100, 10_000_000)] = 10_000
    """Changes between two snapshots on disk."""
    compaction: Duration = 8 * 3600.0
    """How long old versions of keys are kept, a second at least; `0` if etcd itself is to drop
    none."""
    quota_mib: Annotated[int, Range(256, 16_384)] = 2048
    """How large it may become."""
    max_request_kib: Annotated[int, Range(64, 102_400)] = 1536
    """The largest request."""

    def judged(self) -> TuningSpec:
        # In milliseconds, as etcd has them: `4.007` is a little less than it looks.
        if round(self.election * 1000) < 5 * round(self.heartbeat * 1000):
            raise BadValue(
                f"`election` {self.election:g} s is less than five times `heartbeat`"
                f" {self.heartbeat:g} s",
                "give the leader more time, or let it beat more often",
            )
        if 0 < self.compaction < _LEAST_COMPACTION:
            raise BadValue(
                f"`compaction` is {self.compaction:g} s, want a second at least",
                "write `1s` or more, or `0` for never",
            )
        return self


class BackupSpec(Form):
    """Copies that are made by themselves."""

    every: Duration = 0.0
    """How often, a minute at least; `0` for never."""
    keep: Annotated[int, Range(1, 1000)] = 7
    """How many are kept."""
    directory: AbsolutePath = "/var/backups/etcd"
    """Where, on each member."""

    def judged(self) -> BackupSpec:
        if 0 < self.every < _LEAST_BACKUP:
            raise BadValue(
                f"`every` is {self.every:g} s, want a minute at least", "write `1m` or more"
            )
        return self


class EtcdSpec(Form):
    """Where the state of the cluster lies.

    | kind | what is there |
    |---|---|
    | `stacked` | a member on each control plane, as a static pod of kubeadm |
    | `systemd` | members as services of systemd on the hosts of the role `etcd` |
    | `external` | members that are there already |
    """

    kind: EtcdKind | None = None
    """Which; if nothing is said, `external` if there is `external`, `systemd` if the role `etcd`
    has hosts, else `stacked`."""
    version: Version | None = None
    """Which version, for `systemd`; the one that goes with this Kubernetes if nothing is said."""
    data_dir: AbsolutePath = "/var/lib/etcd"
    """Where its data lie."""
    external: ExternalEtcdSpec | None = None
    """For `kind: external`."""
    tuning: TuningSpec = TuningSpec()
    """How it behaves under load; not for `external`."""
    backup: BackupSpec = BackupSpec()
    """Copies that are made by themselves; not for `external`."""
    extra_args: dict[FlagName, Line] = empty(dict)
    """Flags, without `--`; not for `external`."""
