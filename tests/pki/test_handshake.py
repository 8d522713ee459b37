"""Certificates of the table in real TLS connections, client and server both proving themselves."""

import socket
import ssl
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.pki.samples import authority, row

from kubexm.pki import certificates, issue
from kubexm.pki.names import Names

NAMES = Names(
    "cp1", addresses=("10.0.0.11",), services=("10.96.0.0/12",), endpoints=("lb.example",)
)
STARTED = datetime.now(UTC)
PATIENCE = 10


def context(place: Path, name: str, *, of: str, serves: bool, trusts: str) -> ssl.SSLContext:
    """One side: the certificate of a row, of one authority, trusting one."""
    signer = issue.opened(authority(of, STARTED))
    subject = certificates.subject(row(name), NAMES)
    pair = issue.leaf(signer, subject, now=STARTED, algorithm="ECDSA-P256")
    file = place / f"{name.replace('/', '-')}.pem"
    file.write_bytes(pair.certificate + pair.key)
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if serves else ssl.PROTOCOL_TLS_CLIENT)
    found.verify_mode = ssl.CERT_REQUIRED
    found.load_verify_locations(cadata=authority(trusts, STARTED).certificate.decode())
    found.load_cert_chain(file)
    return found


def talk(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> bytes:
    """What the client hears from the server that it calls by a name."""
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    theirs.settimeout(PATIENCE)
    thread = threading.Thread(target=serve, args=(server, theirs))
    thread.start()
    try:
        with ours, client.wrap_socket(ours, server_hostname=name) as wrapped:
            return wrapped.recv(16)
    finally:
        thread.join(PATIENCE)


def serve(server: ssl.SSLContext, theirs: socket.socket) -> None:
    with theirs:
        try:
            with server.wrap_socket(theirs, server_side=True) as wrapped:
                wrapped.sendall(b"welcome")
        except OSError:
            pass  # the client hears of it


@pytest.mark.parametrize(
    ("serving", "calling", "name"),
    [
        ("etcd/server", "apiserver-etcd-client", "10.0.0.11"),
        ("etcd/server", "etcd/healthcheck-client", "127.0.0.1"),
        ("etcd/server", "etcd/server", "localhost"),
        ("etcd/peer", "etcd/peer", "cp1"),
        ("apiserver", "admin", "lb.example"),
        ("apiserver", "kubelet", "::1"),
        ("apiserver", "scheduler", "kubernetes.default.svc.cluster.local"),
    ],
)
def test_who_has_to_talk_can_talk(serving: str, calling: str, name: str, tmp_path: Path) -> None:
    server = context(tmp_path, serving, of="one", serves=True, trusts="one")
    client = context(tmp_path, calling, of="one", serves=False, trusts="one")

    assert talk(server, client, name) == b"welcome"


def test_a_server_is_not_believed_under_another_name(tmp_path: Path) -> None:
    server = context(tmp_path, "etcd/server", of="one", serves=True, trusts="one")
    client = context(tmp_path, "apiserver-etcd-client", of="one", serves=False, trusts="one")

    with pytest.raises(ssl.SSLCertVerificationError, match=r"lb\.example"):
        talk(server, client, "lb.example")


def test_a_client_of_another_authority_is_sent_away(tmp_path: Path) -> None:
    server = context(tmp_path, "etcd/server", of="one", serves=True, trusts="one")
    client = context(tmp_path, "apiserver-etcd-client", of="other", serves=False, trusts="one")

    with pytest.raises(ssl.SSLError, match=r"(?i)alert.unknown.ca"):
        talk(server, client, "localhost")


def test_a_client_does_not_serve(tmp_path: Path) -> None:
    server = context(tmp_path, "kubelet", of="one", serves=True, trusts="one")
    client = context(tmp_path, "admin", of="one", serves=False, trusts="one")

    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        talk(server, client, "cp1")
