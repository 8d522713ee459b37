"""What a cluster keeps to issue by, as data and as files, and what a host has of it."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path

import pytest
from tests.pki import openssl, samples

from kubexm.errors import InvalidInput
from kubexm.pki import encryption, kept, keys, kubeconfig, names, reading, renewal
from kubexm.pki.encryption import Encryption
from kubexm.pki.kept import Kept, Making
from kubexm.pki.kubeconfig import Access
from kubexm.pki.names import Names

MAKING = Making(samples.NOW, algorithm="ECDSA-P256", encryption=True)


@cache
def made() -> Kept:
    return kept.completed({}, {}, MAKING)


def test_it_is_the_same_after_its_way_through_json() -> None:
    assert kept.of_value(json.loads(json.dumps(made().value()))) == made()


def test_whoever_has_its_files_has_all_of_it() -> None:
    files = {path: file.content for path, file in kept.files(made()).items()}

    assert kept.completed(files, {}, MAKING) == made()
    assert files.keys() == set(kept.paths(MAKING))


def test_of_a_pair_the_key_is_written_first() -> None:
    order = kept.paths(MAKING)

    for name in ("ca", "front-proxy-ca", "etcd/ca"):
        assert order.index(f"{name}.key") < order.index(f"{name}.crt")


def test_only_certificates_and_public_keys_are_for_everybody() -> None:
    modes = {path: file.mode for path, file in kept.files(made()).items()}

    assert {path for path, mode in modes.items() if mode == 0o644} == {
        *("ca.crt", "front-proxy-ca.crt", "etcd/ca.crt", "sa.pub"),
    }


def test_no_key_shows() -> None:
    assert "PRIVATE" not in repr(made())
    assert made().encryption not in repr(made())


def test_a_key_of_service_accounts_that_is_damaged_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the key can't be read"):
        kept.completed({"sa.key": b"nothing"}, {}, MAKING)


def test_what_is_of_another_cluster_is_told_apart() -> None:
    ours = {path: file.content for path, file in kept.files(made()).items()}
    others = kept.files(kept.completed({}, {}, MAKING))

    assert [*renewal.strangers(ours, made())] == []
    mixed = {**ours, "ca.crt": others["ca.crt"].content, "etcd/ca.key": b"nothing"}
    assert {*renewal.strangers(mixed, made())} == {"ca.crt", "etcd/ca.key"}


def test_the_public_half_of_a_key_is_that_of_the_key() -> None:
    for algorithm in ("RSA-2048", "ECDSA-P384"):
        key = keys.make(algorithm)
        assert keys.public_of(keys.private_pem(key)) == key.public_key()
        assert keys.public_pem(key) == keys.public_pem(key.public_key())
    with pytest.raises(InvalidInput, match="the key can't be read"):
        keys.public_of(b"nothing")


@openssl.needed
def test_an_authority_is_known_again_by_what_openssl_says_of_its_key(tmp_path: Path) -> None:
    authority = samples.authority()
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    public = _openssl("x509", "-pubkey", "-noout", "-in", str(tmp_path / "ca.crt"))
    der = _openssl("pkey", "-pubin", "-outform", "DER", stdin=public)
    told = _openssl("dgst", "-sha256", "-r", stdin=der).decode().split()[0]

    assert reading.public_key_hash(authority.certificate) == f"sha256:{told}"


def _openssl(*words: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *words], input=stdin, capture_output=True, check=True).stdout


def test_of_several_certificates_the_one_that_issues_counts() -> None:
    first, second = samples.authority(), samples.authority("another")

    both = first.certificate + second.certificate

    assert reading.public_key_hash(both) == reading.public_key_hash(first.certificate)


def test_what_a_kubeconfig_says_of_its_current_context() -> None:
    authority = samples.authority()
    key = keys.private_pem(keys.make("ECDSA-P256"))
    access = Access("demo", "https://api:6443", "me", authority.certificate, b"mine", key)
    document = kubeconfig.document(access)

    used = kubeconfig.used(document)

    assert (used.server, used.authority) == (access.server, access.authority)
    assert (used.certificate, used.key) == (b"mine", key)
    assert "PRIVATE" not in repr(used)
    document["users"][0]["user"] = {"client-certificate": "/a/file"}
    assert kubeconfig.used(document).certificate is None


def test_a_registry_is_called_by_its_host_and_by_what_else_people_say() -> None:
    found = names.registry(Names("Reg1", ("10.0.0.9",), extra=("images.example.org",)))

    assert found.dns == ("images.example.org", "localhost", "reg1")
    assert found.addresses == ("10.0.0.9", "127.0.0.1", "::1")


def test_a_configuration_of_encryption_is_read_back() -> None:
    text = encryption.text("aesgcm", ["secrets"], "a2V5")

    found = encryption.read(text.encode())

    assert (found.provider, found.key, found.resources) == ("aesgcm", "a2V5", ("secrets",))
    assert encryption.faults(found, "aesgcm", ["secrets"]) == []
    assert "a2V5" not in repr(found)


def test_keys_that_a_provider_has_stay_with_it() -> None:
    rotated = {"secretbox": {"keys": [{"name": "b", "secret": "Yg=="}, {"name": "a"}]}}
    before = Encryption(("secrets",), "secretbox", "Yg==", (rotated, {"identity": {}}))

    again = encryption.read(encryption.text("secretbox", ["x"], "bmV3", before).encode())

    assert again.providers == (rotated, {"identity": {}})


@pytest.mark.parametrize(
    "text",
    ["", "[]", "kind: x", "resources: []", "resources: [{resources: [a], providers: []}]", "a: ["],
)
def test_what_is_no_such_configuration_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="this is no encryption configuration"):
        encryption.read(text.encode())


def test_who_encrypts_nothing_is_told() -> None:
    found = encryption.read(
        b"resources: [{resources: [secrets], providers: [{identity: {}}, {aescbc: {}}]}]"
    )

    assert encryption.faults(found, "aescbc", ["secrets"]) == [
        "encrypts by `identity`, want `aescbc`"
    ]
