"""Authorities that people bring: what openssl makes is taken, and all that is wrong is told."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.pki import openssl
from tests.pki.samples import CLIENT, NOW, authority

from kubexm.errors import InvalidInput
from kubexm.pki import authorities, issue, keys, reading
from kubexm.pki.authorities import Authority
from kubexm.pki.faults import faults

LEAF = issue.leaf(issue.opened(authority()), CLIENT, now=NOW, algorithm="ECDSA-P256")
OTHER_KEY = keys.private_pem(keys.make("ECDSA-P256"))


def problems(certificate: bytes, key: bytes | None = None, now: datetime = NOW) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        authorities.supplied(certificate, key, now=now)
    assert all(problem.hint for problem in caught.value.problems)
    return [problem.message for problem in caught.value.problems]


class Maker:
    """Makes keys and certificates with openssl, in a directory of its own."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def key(self, name: str, kind: str = "EC", option: str = "ec_paramgen_curve:P-256") -> bytes:
        options = ("-algorithm", kind, "-pkeyopt", option)
        openssl.run("genpkey", *options, "-out", self._at(f"{name}.key"))
        return Path(self._at(f"{name}.key")).read_bytes()

    def certificate(self, name: str, *extensions: str, by: str = "") -> bytes:
        """One that its own key has signed, or that of another."""
        issuer = ("-CA", self._at(f"{by}.crt"), "-CAkey", self._at(f"{by}.key")) if by else ()
        added = [word for extension in extensions for word in ("-addext", extension)]
        files = ("-key", self._at(f"{name}.key"), "-out", self._at(f"{name}.crt"))
        (self._place / "empty.cnf").write_text("[req]\ndistinguished_name=dn\n[dn]\n")
        config = ("-config", self._at("empty.cnf"))
        subject = ("-subj", f"/CN={name}")
        openssl.run("req", "-x509", "-days", "30", *config, *subject, *files, *issuer, *added)
        return Path(self._at(f"{name}.crt")).read_bytes()

    def _at(self, name: str) -> str:
        return str(self._place / name)


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    return Maker(tmp_path)


IS_AUTHORITY = "basicConstraints=critical,CA:TRUE"
SIGNS = "keyUsage=critical,keyCertSign"


@openssl.needed
class TestOfOpenssl:
    def test_an_authority_issues_what_openssl_verifies(self, maker: Maker, tmp_path: Path) -> None:
        key = maker.key("own")
        found = maker.certificate("own", IS_AUTHORITY, SIGNS)

        now = datetime.now(UTC)
        own = authorities.supplied(found, key, now=now)
        pair = issue.leaf(issue.opened(own), CLIENT, now=now)

        assert own.notes == ()
        assert pair.cut_short
        assert openssl.verify(tmp_path, found, pair.certificate)

    def test_without_usages_or_key_id_it_may_do_all(self, maker: Maker) -> None:
        key = maker.key("bare")
        found = maker.certificate("bare", IS_AUTHORITY, "subjectKeyIdentifier=none")

        now = datetime.now(UTC)
        own = authorities.supplied(found, key, now=now)

        pair = issue.leaf(issue.opened(own), CLIENT, now=now, algorithm="ECDSA-P256")

        assert faults(pair.certificate, CLIENT, own, now=now, days=0) == ()

    def test_an_authority_between_issues_what_its_bundle_verifies(
        self, maker: Maker, tmp_path: Path
    ) -> None:
        maker.key("root")
        root = maker.certificate("root", IS_AUTHORITY, SIGNS)
        key = maker.key("between")
        between = maker.certificate("between", f"{IS_AUTHORITY},pathlen:0", SIGNS, by="root")

        now = datetime.now(UTC)
        own = authorities.supplied(root + between, key, now=now)
        pair = issue.leaf(issue.opened(own), CLIENT, now=now, algorithm="ECDSA-P256")

        assert reading.read(pair.certificate).issuer == "CN=between"
        assert openssl.verify(tmp_path, own.certificate, pair.certificate)
        assert own.notes == ("`CN=between` issues, number 2 of 2; the others are trusted too",)

    def test_an_authority_between_without_its_root_is_taken_and_that_is_noted(
        self, maker: Maker
    ) -> None:
        maker.key("root")
        maker.certificate("root", IS_AUTHORITY)
        key = maker.key("between")
        between = maker.certificate("between", IS_AUTHORITY, by="root")

        own = authorities.supplied(between, key, now=datetime.now(UTC))

        (note,) = own.notes
        assert note.startswith("`CN=root`, who issued it, is missing")

    def test_one_that_may_not_sign_is_refused(self, maker: Maker) -> None:
        key = maker.key("own")
        found = maker.certificate("own", IS_AUTHORITY, "keyUsage=digitalSignature")

        assert problems(found, key, datetime.now(UTC)) == ["`CN=own` may not sign certificates"]

    def test_one_whose_usages_leave_out_what_it_is_to_issue_is_refused(self, maker: Maker) -> None:
        key = maker.key("own")
        found = maker.certificate("own", IS_AUTHORITY, SIGNS, "extendedKeyUsage=serverAuth")

        now = datetime.now(UTC)
        assert problems(found, key, now) == ["`CN=own` may not issue for a client"]
        assert authorities.supplied(found, key, now=now, usages=("server",)).notes == ()

    def test_a_key_of_few_bits_is_refused(self, maker: Maker) -> None:
        key = maker.key("weak", "RSA", "rsa_keygen_bits:1024")
        found = maker.certificate("weak", IS_AUTHORITY)

        assert problems(found, key, datetime.now(UTC)) == [
            "`CN=weak` has a key of 1024 bits, want 2048 or more"
        ]

    def test_one_that_is_bound_to_some_names_is_taken_and_that_is_noted(self, maker: Maker) -> None:
        key = maker.key("own")
        bound = "nameConstraints=critical,permitted;DNS:example.org"
        found = maker.certificate("own", IS_AUTHORITY, SIGNS, bound)

        own = authorities.supplied(found, key, now=datetime.now(UTC))

        (note,) = own.notes
        assert note.startswith("`CN=own` may issue for some names only")

    def test_a_key_that_is_locked_is_refused(self, maker: Maker) -> None:
        key = openssl.run(
            "pkey", "-aes256", "-passout", "pass:of the test", given=authority().key
        ).encode()

        assert problems(authority().certificate, key) == ["the key is locked by a passphrase"]

    def test_a_key_of_another_kind_is_refused(self, maker: Maker) -> None:
        key = openssl.run("genpkey", "-algorithm", "ED25519").encode()

        assert problems(authority().certificate, key) == [
            "the key is one of Ed25519, want RSA or ECDSA"
        ]


def test_what_we_made_is_taken_as_it_is() -> None:
    own = authority()

    assert authorities.supplied(own.certificate, own.key, now=NOW) == own


def test_a_certificate_alone_is_taken_for_an_authority_elsewhere() -> None:
    own = authorities.supplied(authority().certificate, now=NOW)

    assert own == Authority(authority().certificate)


def test_without_a_key_the_first_of_an_authority_is_used() -> None:
    bundle = LEAF.certificate + authority().certificate

    own = authorities.supplied(bundle, now=NOW)

    assert reading.read(own.certificate).subject == "CN=kubernetes"


def test_of_two_authorities_the_one_of_the_key_issues() -> None:
    bundle = authority("old").certificate + authority("new").certificate

    own = authorities.supplied(bundle, authority("new").key, now=NOW)

    assert own.certificate == authority("new").certificate + authority("old").certificate


def test_an_expired_one_beside_it_is_noted() -> None:
    later = NOW + issue.AUTHORITY_LIFETIME + timedelta(days=1)
    fresh = authority("fresh", later)

    own = authorities.supplied(fresh.certificate + authority().certificate, fresh.key, now=later)

    assert any(note.startswith("`CN=kubernetes` beside it expired on") for note in own.notes)


def test_a_key_in_the_text_of_the_certificate_stays_out_of_the_bundle() -> None:
    own = authority()
    assert own.key is not None

    found = authorities.supplied(own.key + own.certificate, own.key, now=NOW)

    assert found.certificate == own.certificate


@pytest.mark.parametrize("text", [b"", b"no certificate", b"\xff\x00"])
def test_what_can_not_be_read_is_refused_both_at_once(text: bytes) -> None:
    assert problems(text, text) == ["the certificate can't be read", "the key can't be read"]


@pytest.mark.parametrize("place", [10, 100, 300])
def test_a_damaged_certificate_is_refused(place: int) -> None:
    lines = authority().certificate
    damaged = lines[:place] + b"!!!!" + lines[place + 4 :]

    assert problems(damaged) == ["the certificate can't be read"]


def test_one_that_was_changed_after_it_signed_itself_is_refused() -> None:
    der = ssl.PEM_cert_to_DER_cert(authority("genuine").certificate.decode())
    forged = ssl.DER_cert_to_PEM_cert(der.replace(b"genuine", b"genuinE")).encode()

    assert problems(forged, authority("genuine").key) == [
        "`CN=genuinE` is damaged: its signature does not fit"
    ]


def test_a_leaf_is_no_authority() -> None:
    assert problems(LEAF.certificate, LEAF.key) == ["`CN=somebody` is not of an authority"]


def test_the_key_of_another_is_refused() -> None:
    assert problems(authority().certificate, OTHER_KEY) == [
        "the key does not belong to `CN=kubernetes`"
    ]


def test_the_key_of_none_of_several_is_refused() -> None:
    bundle = authority("old").certificate + authority("new").certificate

    assert problems(bundle, OTHER_KEY) == ["the key does not belong to any of the 2 certificates"]


@pytest.mark.parametrize(
    ("shift", "message"),
    [
        (timedelta(days=3650), "`CN=kubernetes` expired on 2036-02-27"),
        (-timedelta(days=1), "`CN=kubernetes` is not valid before 2026-03-01 11:00 UTC"),
    ],
)
def test_an_authority_out_of_its_time_is_refused(shift: timedelta, message: str) -> None:
    assert problems(authority().certificate, now=NOW + shift) == [message]


def test_an_authority_is_expired_from_its_last_second_on() -> None:
    end = reading.read(authority().certificate).not_after

    authorities.supplied(authority().certificate, now=end - timedelta(seconds=1))
    assert problems(authority().certificate, now=end) == ["`CN=kubernetes` expired on 2036-02-27"]


def test_all_problems_come_at_once_with_their_place() -> None:
    with pytest.raises(InvalidInput) as caught:
        authorities.supplied(
            LEAF.certificate, OTHER_KEY, now=NOW + timedelta(days=400), where="ca.crt"
        )

    assert caught.value.where == "ca.crt"
    assert [problem.message for problem in caught.value.problems] == [
        "the key does not belong to `CN=somebody`",
        "`CN=somebody` is not of an authority",
        "`CN=somebody` expired on 2027-03-01",
    ]


def test_no_message_has_any_of_a_key() -> None:
    damaged = OTHER_KEY.replace(b"\n", b"\n!", 2)

    with pytest.raises(InvalidInput) as caught:
        authorities.supplied(authority().certificate, damaged, now=NOW)

    said = f"{caught.value} {caught.value.problems!r} {caught.value.__cause__}"
    assert not any(line in said for line in OTHER_KEY.decode().splitlines()[1:-1])
