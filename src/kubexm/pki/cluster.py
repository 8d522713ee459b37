"""All certificates of all hosts of a cluster, made at once: for each host, files with modes.

To find the primes of RSA keys takes nearly all of the time, so keys are made on every core.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import ClassVar

import msgspec

from kubexm.common.secrets import Discreet
from kubexm.errors import InvalidInput, Problem
from kubexm.pki import authorities, issue, keys, kubeconfig, request
from kubexm.pki.authorities import Authority
from kubexm.pki.certificates import AUTHORITIES, CERTIFICATES, SERVICE_ACCOUNT, CertificateRow
from kubexm.pki.issue import Pair
from kubexm.pki.keys import Algorithm
from kubexm.pki.kubeconfig import Access
from kubexm.pki.request import Host, Issuing, Wanted

PUBLIC = 0o644
SECRET = 0o600


class File(Discreet, frozen=True):
    """What lies on a host, and who may read it."""

    hidden: ClassVar[frozenset[str]] = frozenset({"content"})

    content: bytes
    mode: int


class HostFiles(msgspec.Struct, frozen=True):
    """The files of one host, by their paths."""

    pki: dict[str, File]
    """Relative to the PKI directory."""
    kubeconfigs: dict[str, File]
    """Relative to the directory of kubeconfigs, which is /etc/kubernetes wherever the other is."""


def new_authorities(
    *,
    now: datetime,
    lifetime: timedelta = issue.AUTHORITY_LIFETIME,
    algorithm: Algorithm = keys.DEFAULT,
) -> dict[str, Authority]:
    """All authorities of the table, anew."""
    return {
        row.name: issue.authority(row.common_name, now=now, lifetime=lifetime, algorithm=algorithm)
        for row in AUTHORITIES
    }


def issue_all(
    hosts: Mapping[str, Host],
    issuing: Issuing,
    *,
    now: datetime,
    rows: Iterable[CertificateRow] = CERTIFICATES,
) -> dict[str, HostFiles]:
    """Everything for every host; `InvalidInput` with all that is in the way, before any is made.

    `rows`: those that are wanted, such as without the kubelets' where these ask for their own.
    """
    wanted = _wanted(hosts, issuing, now, tuple(rows))
    pairs = _made(wanted, issuing, now)
    files = {name: HostFiles(_shared(host, issuing), {}) for name, host in hosts.items()}
    for one, pair in zip(wanted, pairs, strict=True):
        if one.row.kubeconfig is None:
            files[one.host].pki[one.row.path] = File(pair.certificate, PUBLIC)
            files[one.host].pki[one.row.key_path] = File(pair.key, SECRET)
        else:
            document = _kubeconfig(hosts[one.host], one, pair, issuing)
            files[one.host].kubeconfigs[one.row.kubeconfig_path] = document
    return files


def cut_short(issuing: Issuing, now: datetime) -> dict[str, datetime]:
    """Authorities that end before a certificate of the wanted lifetime would, and when."""
    ends = {
        name: authorities.issuing_certificate(one).not_valid_after_utc
        for name, one in issuing.authorities.items()
    }
    return {name: end for name, end in ends.items() if end < now + issuing.lifetime}


def _wanted(
    hosts: Mapping[str, Host], issuing: Issuing, now: datetime, rows: Sequence[CertificateRow]
) -> list[Wanted]:
    found = [one for name, host in hosts.items() for one in request.of_host(name, host, rows)]
    wanted = [one for one in found if isinstance(one, Wanted)]
    # Several certificates of a host have the same names; what is wrong with them is said once.
    unfit = dict.fromkeys(one for one in found if isinstance(one, Problem))
    if problems := [*unfit, *request.obstacles(hosts, wanted, issuing, now)]:
        raise InvalidInput("certificates can't be made", problems=problems)
    return wanted


def _made(wanted: Sequence[Wanted], issuing: Issuing, now: datetime) -> list[Pair]:
    names = {one.row.authority for one in wanted}
    signers = {name: issue.opened(issuing.authorities[name]) for name in names}

    def make(one: Wanted) -> Pair:
        signer, lifetime = signers[one.row.authority], issuing.lifetime
        return issue.leaf(
            signer, one.subject, now=now, lifetime=lifetime, algorithm=issuing.algorithm
        )

    # The library lets go of the interpreter while it makes a key: processes are no faster.
    pool = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="kubexm-pki")
    try:
        return [*pool.map(make, wanted)]
    finally:
        pool.shutdown(cancel_futures=True)


def _shared(host: Host, issuing: Issuing) -> dict[str, File]:
    """What is the same on all hosts of a role."""
    files: dict[str, File] = {}
    for row in host.trusts():
        authority = issuing.authorities[row.name]
        files[row.path] = File(authority.certificate, PUBLIC)
        if authority.key is not None and host.has(row.key_on):
            files[row.key_path] = File(authority.key, SECRET)
    if issuing.service_account is not None and host.has(SERVICE_ACCOUNT.roles):
        key = keys.read(issuing.service_account)
        files[SERVICE_ACCOUNT.key_path] = File(keys.private_pem(key), SECRET)
        files[SERVICE_ACCOUNT.path] = File(keys.public_pem(key), PUBLIC)
    return files


def _kubeconfig(host: Host, one: Wanted, pair: Pair, issuing: Issuing) -> File:
    access = Access(
        cluster=issuing.cluster,
        server=host.server(one.row),
        user=one.subject.common_name,
        authority=issuing.authorities[one.row.authority].certificate,
        certificate=pair.certificate,
        key=pair.key,
    )
    return File(kubeconfig.text(kubeconfig.document(access)).encode(), SECRET)
