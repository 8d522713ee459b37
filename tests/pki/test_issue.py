"""Certificates that we issue, as openssl sees them."""

import re
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest
from cryptography import x509
from tests.pki import openssl
from tests.pki.samples import CLIENT, NAMES, NOW, authority, row

from kubexm.errors import InvalidInput, Refused
from kubexm.pki import certificates, issue, keys, reading
from kubexm.pki.authorities import Authority
from kubexm.pki.certificates import CERTIFICATES, CertificateRow, Subject
from kubexm.pki.issue import Pair
from kubexm.pki.keys import Algorithm

AT = str(int(NOW.timestamp()))


def leaf(subject: Subject = CLIENT, *, of: Authority | None = None, **options: object) -> Pair:
    found = {"now": NOW, "algorithm": "ECDSA-P256", **options}
    return issue.leaf(issue.opened(of or authority()), subject, **found)  # type: ignore[arg-type]


@openssl.needed
class TestOpenssl:
    @pytest.mark.parametrize("found", CERTIFICATES, ids=lambda found: found.name)
    def test_verifies_every_row_of_the_table_for_its_purposes_and_no_other(
        self, found: CertificateRow, tmp_path: Path
    ) -> None:
        pair = leaf(certificates.subject(found, NAMES))

        for usage in ("client", "server"):
            purpose = ("-attime", AT, "-purpose", f"ssl{usage}")
            verified = openssl.verify(tmp_path, authority().certificate, pair.certificate, *purpose)
            assert verified == (usage in found.usages)

    def test_refuses_a_certificate_of_another_authority(self, tmp_path: Path) -> None:
        # Of the same name: it is the signature that tells them apart.
        other = issue.authority("kubernetes", now=NOW, algorithm="ECDSA-P256")

        pair = leaf(of=other)

        assert openssl.verify(tmp_path, other.certificate, pair.certificate, "-attime", AT)
        assert not openssl.verify(
            tmp_path, authority().certificate, pair.certificate, "-attime", AT
        )

    @pytest.mark.parametrize("algorithm", get_args(Algorithm))
    def test_takes_authorities_and_leaves_of_every_kind_of_key(
        self, algorithm: Algorithm, tmp_path: Path
    ) -> None:
        own = issue.authority("of-any-kind", now=NOW, algorithm=algorithm)

        pair = leaf(of=own, algorithm=algorithm)

        assert openssl.verify(tmp_path, own.certificate, pair.certificate, "-attime", AT)
        public = openssl.run("x509", "-noout", "-pubkey", given=pair.certificate)
        assert public == openssl.run("pkey", "-pubout", given=pair.key)
        bits = re.search(r"Public-Key: \((\d+) bit\)", openssl.shown(pair.certificate))
        assert bits is not None
        assert bits[1] == algorithm.partition("-")[2].removeprefix("P")

    @pytest.mark.parametrize(
        ("algorithm", "signature"),
        [
            ("RSA-2048", "sha256WithRSAEncryption"),
            ("ECDSA-P256", "ecdsa-with-SHA256"),
            ("ECDSA-P384", "ecdsa-with-SHA384"),
        ],
    )
    def test_sees_signatures_as_strong_as_the_key_of_the_authority(
        self, algorithm: Algorithm, signature: str
    ) -> None:
        own = issue.authority("of-any-kind", now=NOW, algorithm=algorithm)

        text = openssl.shown(leaf(of=own).certificate)

        assert text.count(f"Signature Algorithm: {signature}\n") == 2

    def test_reads_the_names_in_order(self) -> None:
        pair = leaf(certificates.subject(row("etcd/server"), NAMES))

        assert (
            "DNS:cp1, DNS:localhost, IP Address:10.0.0.11, IP Address:127.0.0.1, "
            "IP Address:0:0:0:0:0:0:0:1, IP Address:FD00:0:0:0:0:0:0:11"
        ) in openssl.shown(pair.certificate)

    @pytest.mark.parametrize("name", ["lb.example", "kubernetes.default.svc", "localhost"])
    def test_finds_the_api_by_name(self, name: str) -> None:
        pair = leaf(certificates.subject(row("apiserver"), NAMES))

        said = openssl.run("x509", "-noout", "-checkhost", name, given=pair.certificate)

        assert "does match" in said

    @pytest.mark.parametrize("address", ["10.96.0.1", "fd00:1::1", "10.0.0.100", "::1"])
    def test_finds_the_api_by_address(self, address: str) -> None:
        pair = leaf(certificates.subject(row("apiserver"), NAMES))

        said = openssl.run("x509", "-noout", "-checkip", address, given=pair.certificate)

        assert "does match" in said

    def test_sees_an_authority_that_issues_leaves_only(self) -> None:
        text = openssl.shown(authority().certificate)

        assert "CA:TRUE, pathlen:0" in text
        assert "Digital Signature, Certificate Sign, CRL Sign" in text
        assert "X509v3 Subject Key Identifier" in text

    def test_sees_in_a_leaf_whose_it_is(self) -> None:
        text = openssl.shown(leaf().certificate)
        own = re.search(
            r"Subject Key Identifier: \n\s+(\S+)", openssl.shown(authority().certificate)
        )

        assert own is not None
        assert re.search(rf"Authority Key Identifier: \n\s+(keyid:)?{own[1]}", text)
        assert "CA:FALSE" in text

    def test_reads_the_service_account_key_pair(self) -> None:
        key = keys.make("ECDSA-P256")

        public = openssl.run("pkey", "-pubout", given=keys.private_pem(key))

        assert public == keys.public_pem(key).decode()


def test_an_authority_may_issue_others_if_it_says_so() -> None:
    own = issue.authority("root", now=NOW, algorithm="ECDSA-P256", path_length=None)

    found = x509.load_pem_x509_certificate(own.certificate).extensions
    assert found.get_extension_for_class(x509.BasicConstraints).value.path_length is None


def test_only_keys_of_rsa_encipher_keys() -> None:
    def enciphers(pair: Pair) -> bool:
        found = x509.load_pem_x509_certificate(pair.certificate).extensions
        return found.get_extension_for_class(x509.KeyUsage).value.key_encipherment

    assert enciphers(leaf(algorithm="RSA-2048"))
    assert not enciphers(leaf(algorithm="ECDSA-P256"))


def test_keys_are_written_in_the_form_of_kubeadm() -> None:
    assert keys.private_pem(keys.make("RSA-2048")).startswith(b"-----BEGIN RSA PRIVATE KEY-----")
    assert keys.private_pem(keys.make("ECDSA-P384")).startswith(b"-----BEGIN EC PRIVATE KEY-----")


def test_validity_begins_before_now_for_clocks_that_are_behind() -> None:
    said = reading.read(leaf(of=authority("old", NOW - timedelta(days=100))).certificate)

    assert said.not_before == (NOW - issue.SKEW).replace(microsecond=0)
    assert said.not_after == (NOW + issue.LIFETIME).replace(microsecond=0)


def test_a_leaf_is_not_valid_before_its_authority() -> None:
    own = authority("young", NOW + timedelta(minutes=30))

    said = reading.read(leaf(of=own).certificate)

    assert said.not_before == reading.read(own.certificate).not_before
    assert said.not_before > NOW - issue.SKEW


def test_a_leaf_ends_with_its_authority_and_says_that_it_was_cut_short() -> None:
    later = NOW + issue.AUTHORITY_LIFETIME - timedelta(days=100)

    pair = leaf(now=later)

    end = reading.read(authority().certificate).not_after
    assert (pair.cut_short, pair.not_after) == (True, end)
    assert reading.read(pair.certificate).not_after == end


def test_a_leaf_that_its_authority_outlives_is_not_cut_short() -> None:
    pair = leaf()

    assert not pair.cut_short
    assert pair.not_after == reading.read(pair.certificate).not_after


@pytest.mark.parametrize("when", [NOW - timedelta(days=1), NOW + timedelta(days=3650)])
def test_an_authority_out_of_its_time_does_not_issue(when: object) -> None:
    with pytest.raises(Refused, match=r"`CN=kubernetes` can't issue at .* it is valid from"):
        leaf(now=when)


def test_an_authority_without_its_key_does_not_issue() -> None:
    with pytest.raises(Refused, match="key of the authority `CN=kubernetes` is not here"):
        leaf(of=Authority(authority().certificate))


@pytest.mark.parametrize("name", ["", "system:node:" + "x" * 53])
def test_a_name_that_no_certificate_can_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="want 1 to 64"):
        leaf(Subject(name, ("client",)))


def test_every_certificate_has_a_number_and_a_key_of_its_own() -> None:
    first, second = leaf(), leaf()

    assert reading.read(first.certificate).serial != reading.read(second.certificate).serial
    assert first.key != second.key


def test_no_key_shows() -> None:
    pair = leaf()

    for text in (repr(pair), repr(authority()), repr(issue.opened(authority()))):
        assert "PRIVATE KEY" not in text
