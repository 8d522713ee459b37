"""Which certificates of a host expire, and what is to be done about each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from kubexm.common import layout
from kubexm.errors import InvalidInput
from kubexm.pki import kubeconfig, reading
from kubexm.pki.certificates import AUTHORITIES, CERTIFICATES, CertificateRow
from kubexm.pki.faults import DAYS
from kubexm.pki.found import SHARE
from kubexm.pki.reading import Reading
from kubexm.runner.host import Host
from kubexm.step import filesets
from kubexm.step.health_look import Grade, Told
from kubexm.templates import formats

_KUBELET_SHARE = 10
"""A kubelet asks for its next certificate when at most three tenths of its time are left."""
_KUBELET = f"{layout.KUBELET_DATA}/pki/kubelet-client-current.pem"
_ANEW = "`kubexm create cluster -f FILE` makes it anew"
_READ_AT_START = ("controller-manager", "scheduler")
_AUTHORITY = (
    "nobody renews an authority: replace it in time, as kubernetes.io tells under `Manual"
    " Rotation of CA Certificates`"
)
_OF_THE_SITE = "have a new one, name it under `spec.etcd.external`, and `kubexm create cluster`"
_EMBEDDED = f"let kubelet.conf name `{_KUBELET}`, which the kubelet renews by itself"
_ROTATED = "the kubelet renews it by itself while the API answers: `journalctl -u kubelet` there"
_TOO_LATE = (
    "the kubelet can't renew it any more: write its kubelet.conf on a control plane, by `kubeadm"
    " kubeconfig user --org system:nodes --client-name system:node:NODE`, and restart it"
)


class _Kept(msgspec.Struct, frozen=True):
    """A certificate of a host."""

    path: str
    said: Reading | None
    """None if it can't be read."""

    @property
    def name(self) -> str:
        own = self.path.removeprefix(f"{layout.PKI}/")
        return self.path.rpartition("/")[2] if own == self.path else own

    def days(self, now: datetime) -> int:
        return -1 if self.said is None else self.said.days_left(now)

    def is_due(self, now: datetime) -> bool:
        if self.said is None:
            return True
        # What is told of is what `create cluster` makes anew.
        share = _KUBELET_SHARE if self.path == _KUBELET else SHARE
        lifetime = self.said.not_after - self.said.not_before
        return self.days(now) < min(DAYS, lifetime // timedelta(days=share))


async def certificates(host: Host, etcd: str, now: datetime) -> list[Told]:
    """Each certificate that is due, or else the one that expires first; nothing if there is none.

    `etcd`: of which kind it is, which decides who has made certificates for it.
    """
    found = [*_kept(await filesets.read(host, [*_PATHS]))]
    if not found:
        return []
    due = [one for one in found if one.is_due(now)]
    if due:
        return [_told(host.name, one, etcd, now) for one in due]
    first = min(found, key=lambda one: one.days(now))
    what = f"{first.days(now)} days left, of {first.name} first"
    return [Told("certificates", host.name, "well", what)]


def _kept(there: Mapping[str, bytes]) -> Iterator[_Kept]:
    for path, data in there.items():
        try:
            pem = _inside(data) if path.endswith(".conf") else data
            if pem is not None:
                yield _Kept(path, reading.read(pem))
        except InvalidInput:
            yield _Kept(path, None)


def _inside(config: bytes) -> bytes | None:
    """The certificate in a kubeconfig; None if that is elsewhere."""
    return kubeconfig.client_certificate(formats.parsed(config.decode(errors="replace"), "yaml"))


def _told(where: str, one: _Kept, etcd: str, now: datetime) -> Told:
    days = one.days(now)
    grade: Grade = "ill" if days < 0 else "warning"
    what = f"{days} days left, of {one.name}"
    if one.said is None:
        what = f"{one.name} has no certificate that can be read"
    elif days < 0:
        what = f"{one.name} has expired"
    return Told("certificates", where, grade, what, _remedy(one, etcd, days))


def _remedy(one: _Kept, etcd: str, days: int) -> str:
    """What to do, by who has made it."""
    if one.path == _KUBELET:
        return _ROTATED if days >= 0 else _TOO_LATE
    row = _PATHS[one.path]
    if etcd == "external" and row in _OF_ETCD:
        return _OF_THE_SITE
    if row in _AUTHORITIES:
        return _AUTHORITY
    if row == "kubelet":
        return _EMBEDDED
    return f"{_ANEW}{_then(row)}"


def _then(row: str) -> str:
    """What else is to be done where a program reads its certificate only when it starts."""
    if row not in _READ_AT_START:
        return ""
    return f"; then have it read: `crictl stop $(crictl ps -q --name kube-{row})` there"


def _path(row: CertificateRow) -> str:
    if row.kubeconfig is not None:
        return f"{layout.KUBERNETES}/{row.kubeconfig_path}"
    return f"{layout.PKI}/{row.path}"


_AUTHORITIES = frozenset(row.name for row in AUTHORITIES)
_OF_ETCD = frozenset(("etcd/ca", "apiserver-etcd-client"))
_PATHS: Mapping[str, str] = {
    **{f"{layout.PKI}/{row.path}": row.name for row in AUTHORITIES},
    **{_path(row): row.name for row in CERTIFICATES},
    _KUBELET: "kubelet",
}
"""Where hosts have certificates, with their names in the table."""
