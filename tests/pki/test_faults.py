"""What is told of a certificate that is not, or not for long, what is wanted."""

import base64
import ssl
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from hypothesis import example, given
from hypothesis import strategies as st
from tests.pki import openssl
from tests.pki.samples import NAMES, NOW, authority, row

from kubexm.errors import InvalidInput
from kubexm.pki import certificates, issue, keys, reading
from kubexm.pki.certificates import CERTIFICATES, CertificateRow
from kubexm.pki.faults import faults
from kubexm.pki.names import AlternativeNames, Names

APISERVER = certificates.subject(row("apiserver"), NAMES)
FOUND = issue.leaf(issue.opened(authority()), APISERVER, now=NOW, algorithm="ECDSA-P256")
SIGNED = x509.load_pem_x509_certificate(FOUND.certificate).tbs_certificate_bytes
DER = ssl.PEM_cert_to_DER_cert(FOUND.certificate.decode())
CLIENTS = [found for found in CERTIFICATES if found.names is None]


@pytest.mark.parametrize("found", CERTIFICATES, ids=lambda found: found.name)
def test_what_was_issued_by_the_table_has_no_fault(found: CertificateRow) -> None:
    wanted = certificates.subject(found, NAMES)
    pair = issue.leaf(issue.opened(authority()), wanted, now=NOW, algorithm="ECDSA-P256")

    assert faults(pair.certificate, wanted, authority(), now=NOW, key=pair.key) == ()


def test_each_name_that_is_new_is_lacking() -> None:
    more = msgspec.structs.replace(
        NAMES, endpoints=(*NAMES.endpoints, "lb2.example", "10.0.0.101"), extra=("fd00::99",)
    )

    wanted = certificates.subject(row("apiserver"), more)

    assert faults(FOUND.certificate, wanted, authority(), now=NOW) == (
        "lacks DNS name `lb2.example`",
        "lacks address `10.0.0.101`",
        "lacks address `fd00::99`",
    )


def test_names_that_nobody_wants_any_more_do_no_harm() -> None:
    fewer = certificates.subject(row("apiserver"), Names("cp1"))

    assert faults(FOUND.certificate, fewer, authority(), now=NOW) == ()


def test_a_certificate_of_another_authority_of_the_same_name_is_told() -> None:
    other = issue.authority("kubernetes", now=NOW, algorithm="ECDSA-P256")

    assert faults(FOUND.certificate, APISERVER, other, now=NOW) == ("is of another authority",)


def test_another_key_beside_it_is_told() -> None:
    for key in (keys.private_pem(keys.make("ECDSA-P256")), b"no key"):
        assert faults(FOUND.certificate, APISERVER, authority(), now=NOW, key=key) == (
            "does not belong to its key",
        )


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (timedelta(days=30), ()),
        (timedelta(days=30, seconds=-1), ("expires in 29 days, want 30",)),
        (timedelta(days=1), ("expires in 1 day, want 30",)),
        (timedelta(seconds=1), ("expires in 0 days, want 30",)),
        (timedelta(0), ("expired on 2027-03-01",)),
        (timedelta(days=-400), ("expired on 2027-03-01",)),
    ],
)
def test_the_end_is_told_in_time(left: timedelta, expected: tuple[str, ...]) -> None:
    now = FOUND.not_after - left

    assert faults(FOUND.certificate, APISERVER, authority(), now=now) == expected


def test_how_many_days_are_wanted_is_asked_for() -> None:
    now = FOUND.not_after - timedelta(days=12)

    found = faults(FOUND.certificate, APISERVER, authority(), now=now, days=60)

    assert found == ("expires in 12 days, want 60",)
    assert faults(FOUND.certificate, APISERVER, authority(), now=now, days=12) == ()


def test_a_beginning_that_is_still_to_come_is_told() -> None:
    now = NOW - timedelta(days=1)

    assert faults(FOUND.certificate, APISERVER, authority(), now=now) == (
        "is not valid before 2026-03-01 11:00 UTC",
    )


def test_another_subject_and_another_use_are_told() -> None:
    wanted = certificates.subject(row("admin"), NAMES)

    assert faults(FOUND.certificate, wanted, authority(), now=NOW) == (
        "is of `kube-apiserver`, want `kubernetes-admin`",
        "has no organisation, want organisation `kubeadm:cluster-admins`",
        "is not for use by a client",
    )


@given(st.sampled_from(CLIENTS), st.sampled_from(CLIENTS))
def test_no_two_rows_are_taken_for_each_other(one: CertificateRow, other: CertificateRow) -> None:
    wanted, found = (certificates.subject(row, NAMES) for row in (one, other))
    pair = issue.leaf(issue.opened(authority()), found, now=NOW, algorithm="ECDSA-P256")

    assert (faults(pair.certificate, wanted, authority(), now=NOW) == ()) == (one == other)


@pytest.mark.parametrize("text", [b"", b"x", FOUND.certificate[:200], FOUND.key])
def test_what_can_not_be_read_is_told(text: bytes) -> None:
    assert faults(text, APISERVER, authority(), now=NOW) == ("can't be read",)
    with pytest.raises(InvalidInput, match="can't be read"):
        reading.read(text)


@pytest.mark.parametrize(
    ("part", "other"),
    [
        (b"\x55\x1d\x25", b"\x55\x1d\x0f"),  # an extension for the second time
        (b"\x82\x03cp1", b"\xa3\x03cp1"),  # a name of X.400
        (b"\x82\x03cp1", b"\x82\x03\xff\xff\xff"),
    ],
)
def test_what_no_certificate_says_can_not_be_read(part: bytes, other: bytes) -> None:
    strange = ssl.DER_cert_to_PEM_cert(DER.replace(part, other)).encode()

    assert faults(strange, APISERVER, authority(), now=NOW) == ("can't be read",)


# A serial number below zero is read, with a warning of the library.
@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@example(8, 1)  # a version that nobody knows
@given(st.integers(0, len(SIGNED) - 1), st.integers(0, 255))
def test_a_damaged_certificate_has_a_fault(place: int, byte: int) -> None:
    place += DER.index(SIGNED)
    damaged = DER[:place] + bytes([byte]) + DER[place + 1 :]
    text = b"-----BEGIN CERTIFICATE-----\n%s-----END CERTIFICATE-----\n"

    found = faults(text % base64.encodebytes(damaged), APISERVER, authority(), now=NOW)

    assert bool(found) == (damaged != DER)


@given(st.integers(-4000, 4000), st.integers(0, 86399))
def test_days_left_are_whole_days(days: int, seconds: int) -> None:
    said = reading.read(FOUND.certificate)
    now = said.not_after - timedelta(days=days, seconds=seconds)

    assert said.days_left(now) == days


def test_a_reading_says_what_was_asked_for() -> None:
    said = reading.read(FOUND.certificate)

    assert (said.subject, said.issuer) == ("CN=kube-apiserver", "CN=kubernetes")
    assert said.names == APISERVER.names
    assert said.usages == ("server",)
    assert (said.not_after, said.is_authority) == (FOUND.not_after, False)
    assert reading.read(authority().certificate).is_authority


@openssl.needed
def test_letters_of_names_are_alike_in_either_case(tmp_path: Path) -> None:
    names = "subjectAltName=DNS:LB.Example,IP:FD00:0::1"
    files = ("-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "crt"))
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl.run("req", "-x509", "-subj", "/CN=lb", "-addext", names, *kind, *files)

    said = reading.read((tmp_path / "crt").read_bytes())

    assert said.names == AlternativeNames(("lb.example",), ("fd00::1",))


@openssl.needed
def test_openssl_reads_the_same() -> None:
    said = reading.read(FOUND.certificate)

    shown = openssl.run(
        "x509", "-noout", "-serial", "-enddate", "-dateopt", "iso_8601", given=FOUND.certificate
    )

    assert shown == (
        f"serial={said.serial.zfill(len(said.serial) + len(said.serial) % 2)}\n"
        f"notAfter={said.not_after:%Y-%m-%d %H:%M:%SZ}\n"
    )
