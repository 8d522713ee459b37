"""The table of certificates: what kubeadm has, where kubeadm has it."""

import pytest
from tests.pki.samples import NAMES, row

from kubexm.common.roles import CONTROL_PLANE, ETCD, LOADBALANCER, REGISTRY, WORKER
from kubexm.pki import certificates, names
from kubexm.pki.certificates import AUTHORITIES, CERTIFICATES
from kubexm.pki.names import AlternativeNames, Names


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (
            CONTROL_PLANE,
            {
                "apiserver",
                "apiserver-kubelet-client",
                "front-proxy-client",
                "apiserver-etcd-client",
                "admin",
                "super-admin",
                "controller-manager",
                "scheduler",
                "kubelet",
            },
        ),
        (ETCD, {"etcd/server", "etcd/peer", "etcd/healthcheck-client"}),
        (WORKER, {"kubelet"}),
        (REGISTRY, {"registry"}),
        (LOADBALANCER, set()),
    ],
)
def test_a_host_has_the_certificates_of_its_roles(role: str, expected: set[str]) -> None:
    assert {row.name for row in certificates.of_roles([role])} == expected


def test_a_host_of_several_roles_has_each_certificate_once() -> None:
    found = certificates.of_roles([CONTROL_PLANE, ETCD, REGISTRY, WORKER])

    assert found == CERTIFICATES


def test_every_certificate_has_an_authority_of_the_table() -> None:
    assert {row.authority for row in CERTIFICATES} == {row.name for row in AUTHORITIES}


def test_who_has_a_certificate_of_an_authority_trusts_that_authority() -> None:
    trusted = {row.name: set(row.certificate_on) for row in AUTHORITIES}

    for found in CERTIFICATES:
        assert set(found.roles) <= trusted[found.authority], found.name


def test_only_control_planes_have_keys_of_authorities() -> None:
    assert {row.name: row.key_on for row in AUTHORITIES} == {
        "ca": (CONTROL_PLANE,),
        "front-proxy-ca": (CONTROL_PLANE,),
        "etcd/ca": (CONTROL_PLANE,),
    }


def test_a_kubelet_is_named_for_its_node_in_lower_case() -> None:
    subject = certificates.subject(row("kubelet"), Names("Worker-7"))

    assert subject.common_name == "system:node:worker-7"
    assert subject.organisations == ("system:nodes",)
    assert subject.names == AlternativeNames()


@pytest.mark.parametrize("name", ["etcd/server", "etcd/peer"])
def test_members_of_etcd_serve_and_call_by_their_own_names(name: str) -> None:
    subject = certificates.subject(row(name), NAMES)

    assert subject.common_name == "cp1"
    assert subject.usages == ("client", "server")
    assert subject.names == names.etcd(NAMES)


def test_only_the_super_admin_passes_every_check_of_rights() -> None:
    masters = [row.name for row in CERTIFICATES if "system:masters" in row.organisations]

    assert masters == ["super-admin"]


def test_paths_are_those_of_kubeadm() -> None:
    assert (row("etcd/server").path, row("etcd/server").key_path) == (
        "etcd/server.crt",
        "etcd/server.key",
    )
    assert row("admin").kubeconfig_path == "admin.conf"
    assert [one.path for one in AUTHORITIES] == ["ca.crt", "front-proxy-ca.crt", "etcd/ca.crt"]
    assert certificates.SERVICE_ACCOUNT.path == "sa.pub"
    assert certificates.SERVICE_ACCOUNT.key_path == "sa.key"
