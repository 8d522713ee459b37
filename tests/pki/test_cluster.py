"""All certificates of a cluster: each host has what its roles need, and nothing of others."""

from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from tests.pki import openssl
from tests.pki.samples import NOW

from kubexm.common.roles import CONTROL_PLANE, ETCD, LOADBALANCER, WORKER
from kubexm.errors import InvalidInput
from kubexm.pki import certificates, cluster, keys, kubeconfig, reading
from kubexm.pki.authorities import Authority
from kubexm.pki.certificates import AUTHORITIES, CERTIFICATES
from kubexm.pki.cluster import HostFiles
from kubexm.pki.faults import faults
from kubexm.pki.names import Names
from kubexm.pki.request import Host, Issuing

SERVICE_ACCOUNT = keys.make("ECDSA-P256")
ISSUING = Issuing(
    authorities=cluster.new_authorities(now=NOW, algorithm="ECDSA-P256"),
    service_account=keys.private_pem(SERVICE_ACCOUNT),
    algorithm="ECDSA-P256",
)


def host(name: str, number: int, *roles: str, **more: str) -> Host:
    names = Names(name, (f"10.0.{number // 250}.{number % 250 + 1}",), ("10.96.0.0/12",))
    return Host(
        names, frozenset(roles), more.get("endpoint", "https://lb:6443"), more.get("own", "")
    )


HOSTS = {
    "cp1": host("cp1", 1, CONTROL_PLANE, ETCD, own="https://10.0.0.2:6443"),
    "cp2": host("cp2", 2, CONTROL_PLANE),
    "db1": host("db1", 3, ETCD, endpoint=""),
    "w1": host("w1", 4, WORKER),
    "lb1": host("lb1", 5, LOADBALANCER, endpoint=""),
}


SUPER_ADMIN = frozenset({"super-admin"})
CONTROL_PLANE_KUBECONFIGS = [
    "admin.conf",
    "controller-manager.conf",
    "kubelet.conf",
    "scheduler.conf",
    "super-admin.conf",
]


@pytest.fixture(scope="module")
def made() -> dict[str, HostFiles]:
    return cluster.issue_all(HOSTS, ISSUING, now=NOW)


def test_each_host_has_the_files_of_its_roles(made: dict[str, HostFiles]) -> None:
    assert {name: sorted(files.pki) for name, files in made.items() if name != "cp1"} == {
        "cp2": sorted(
            [
                *("apiserver.crt", "apiserver.key"),
                *("apiserver-etcd-client.crt", "apiserver-etcd-client.key"),
                *("apiserver-kubelet-client.crt", "apiserver-kubelet-client.key"),
                *("ca.crt", "ca.key", "etcd/ca.crt", "etcd/ca.key"),
                *("front-proxy-ca.crt", "front-proxy-ca.key"),
                *("front-proxy-client.crt", "front-proxy-client.key", "sa.key", "sa.pub"),
            ]
        ),
        "db1": sorted(
            [
                *("etcd/ca.crt", "etcd/healthcheck-client.crt", "etcd/healthcheck-client.key"),
                *("etcd/peer.crt", "etcd/peer.key", "etcd/server.crt", "etcd/server.key"),
            ]
        ),
        "w1": ["ca.crt"],
        "lb1": [],
    }
    assert made["cp1"].pki.keys() == made["cp2"].pki.keys() | made["db1"].pki.keys()
    assert {name: sorted(files.kubeconfigs) for name, files in made.items()} == {
        "cp1": CONTROL_PLANE_KUBECONFIGS,
        "cp2": CONTROL_PLANE_KUBECONFIGS,
        "db1": [],
        "lb1": [],
        "w1": ["kubelet.conf"],
    }


def test_secrets_are_for_root_alone_and_certificates_for_all(made: dict[str, HostFiles]) -> None:
    for files in made.values():
        for file in (*files.pki.values(), *files.kubeconfigs.values()):
            is_secret = b"PRIVATE KEY" in file.content or b"client-key-data" in file.content
            assert file.mode == (0o600 if is_secret else 0o644)


def test_no_certificate_has_a_fault(made: dict[str, HostFiles]) -> None:
    count = 0
    for name, one in HOSTS.items():
        for row in certificates.of_roles(one.roles):
            if row.kubeconfig:
                text = made[name].kubeconfigs[row.kubeconfig_path].content
                found = kubeconfig.client_certificate(yaml.safe_load(text)) or b""
            else:
                found = made[name].pki[row.path].content
            wanted = certificates.subject(row, one.names)
            assert faults(found, wanted, ISSUING.authorities[row.authority], now=NOW) == ()
            count += 1
    assert count == 9 + 3 + 9 + 3 + 1


@openssl.needed
def test_openssl_verifies_each_with_what_lies_beside_it(
    made: dict[str, HostFiles], tmp_path: Path
) -> None:
    files, at = made["cp1"].pki, ("-attime", str(int(NOW.timestamp())))

    for row in certificates.of_roles([CONTROL_PLANE, ETCD]):
        if row.kubeconfig is None:
            authority = files[f"{row.authority}.crt"].content
            assert openssl.verify(tmp_path, authority, files[row.path].content, *at), row.name


def test_kubeconfigs_name_the_server_that_their_user_calls(made: dict[str, HostFiles]) -> None:
    def server(name: str) -> str:
        found = yaml.safe_load(made["cp1"].kubeconfigs[name].content)
        return str(found["clusters"][0]["cluster"]["server"])

    assert server("admin.conf") == server("kubelet.conf") == "https://lb:6443"
    assert server("scheduler.conf") == "https://10.0.0.2:6443"
    assert server("controller-manager.conf") == "https://10.0.0.2:6443"


def test_control_planes_share_one_key_of_service_accounts(made: dict[str, HostFiles]) -> None:
    assert made["cp1"].pki["sa.key"].content == made["cp2"].pki["sa.key"].content
    assert made["cp1"].pki["sa.pub"].content == keys.public_pem(SERVICE_ACCOUNT)


def test_hosts_share_no_other_key_than_those_of_the_cluster(made: dict[str, HostFiles]) -> None:
    shared = {file.content for file in made["cp1"].pki.values()} & {
        file.content for file in made["cp2"].pki.values()
    }

    names = {path for path, file in made["cp1"].pki.items() if file.content in shared}
    assert names == {
        *("ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key"),
        *("etcd/ca.crt", "etcd/ca.key", "sa.key", "sa.pub"),
    }


def test_no_key_shows(made: dict[str, HostFiles]) -> None:
    assert "PRIVATE KEY" not in repr(made)
    assert "PRIVATE KEY" not in repr(ISSUING)


def test_rows_that_are_not_wanted_are_not_made() -> None:
    rows = [row for row in CERTIFICATES if row.name != "kubelet"]

    made = cluster.issue_all(HOSTS, ISSUING, now=NOW, rows=rows)

    assert "kubelet.conf" not in made["cp1"].kubeconfigs
    assert (sorted(made["w1"].pki), made["w1"].kubeconfigs) == (["ca.crt"], {})


def test_an_authority_elsewhere_leaves_out_its_key_and_what_others_issue() -> None:
    own = ISSUING.authorities["ca"]
    abroad = with_authorities({**ISSUING.authorities, "ca": Authority(own.certificate)})
    rows = [row for row in CERTIFICATES if row.authority != "ca"]

    made = cluster.issue_all(HOSTS, abroad, now=NOW, rows=rows)

    assert made["cp2"].pki["ca.crt"].content == own.certificate
    assert "ca.key" not in made["cp2"].pki
    assert "front-proxy-client.crt" in made["cp2"].pki


def test_all_that_is_in_the_way_is_told_before_anything_is_made() -> None:
    hosts = {
        "cp1": Host(Names("a b"), frozenset({CONTROL_PLANE, ETCD})),
        "w1": Host(Names("w" * 60), frozenset({WORKER}), "https://lb:6443"),
    }
    issuing = Issuing(
        authorities={"ca": Authority(ISSUING.authorities["ca"].certificate)},
        service_account=b"no key",
    )

    with pytest.raises(InvalidInput) as caught:
        cluster.issue_all(hosts, issuing, now=NOW)

    long, some = f"system:node:{'w' * 60}", "`apiserver-kubelet-client`, `admin`, `super-admin`"
    assert [str(problem) for problem in caught.value.problems] == [
        "host `cp1`: found `a b`, want a DNS name or an address",
        f"host `w1`: a certificate can't be of `{long}`: it has 72 letters, want 1 to 64",
        f"the key of authority `ca` is not here, so it can't issue {some} and 3 more",
        "there is no authority `etcd/ca`",
        "there is no authority `front-proxy-ca`",
        "host `cp1`: there is no endpoint",
        "service accounts: the key can't be read",
    ]
    assert all(problem.hint for problem in caught.value.problems)


def test_every_authority_that_is_out_of_its_time_is_told() -> None:
    with pytest.raises(InvalidInput) as caught:
        cluster.issue_all(HOSTS, ISSUING, now=NOW + timedelta(days=3650))

    assert [problem.message.partition(" can't")[0] for problem in caught.value.problems] == [
        "the authority `CN=kubernetes`",
        "the authority `CN=etcd-ca`",
        "the authority `CN=front-proxy-ca`",
    ]


def test_a_host_does_not_get_what_it_is_to_be_without() -> None:
    names, roles = HOSTS["cp2"].names, HOSTS["cp2"].roles
    hosts = {"cp1": HOSTS["cp1"], "cp2": Host(names, roles, "https://lb", without=SUPER_ADMIN)}

    made = cluster.issue_all(hosts, ISSUING, now=NOW)

    assert made["cp1"].kubeconfigs.keys() - made["cp2"].kubeconfigs.keys() == {"super-admin.conf"}
    assert made["cp2"].kubeconfigs.keys() < made["cp1"].kubeconfigs.keys()


def test_authorities_that_end_before_what_they_would_issue_are_named() -> None:
    late = NOW + timedelta(days=3400)
    fresh = cluster.new_authorities(now=late, algorithm="ECDSA-P256")
    issuing = with_authorities({**fresh, "ca": ISSUING.authorities["ca"]})

    end = reading.read(ISSUING.authorities["ca"].certificate).not_after
    assert cluster.cut_short(issuing, late) == {"ca": end}
    assert cluster.cut_short(ISSUING, NOW) == {}


def test_only_control_planes_want_the_key_of_service_accounts() -> None:
    issuing = Issuing(ISSUING.authorities, algorithm="ECDSA-P256")

    cluster.issue_all({"db1": HOSTS["db1"], "w1": HOSTS["w1"]}, issuing, now=NOW)
    with pytest.raises(InvalidInput, match="service accounts: there is no key"):
        cluster.issue_all(HOSTS, issuing, now=NOW)


def test_lifetimes_are_those_that_were_asked_for() -> None:
    issuing = Issuing(
        authorities=cluster.new_authorities(
            now=NOW, lifetime=timedelta(days=50), algorithm="ECDSA-P256"
        ),
        service_account=ISSUING.service_account,
        lifetime=timedelta(days=7),
        algorithm="ECDSA-P256",
    )

    files = cluster.issue_all({"db1": HOSTS["db1"]}, issuing, now=NOW)["db1"].pki

    assert reading.read(files["etcd/ca.crt"].content).days_left(NOW) == 49
    assert reading.read(files["etcd/peer.crt"].content).days_left(NOW) == 6


def test_five_hundred_hosts_have_each_their_own() -> None:
    hosts = {f"w{number}": host(f"w{number}", number, WORKER) for number in range(500)}

    made = cluster.issue_all(hosts, ISSUING, now=NOW)

    def user(name: str) -> str:
        text = made[name].kubeconfigs["kubelet.conf"].content.decode()
        return text.partition("users:\n- name: ")[2].partition("\n")[0]

    assert {name: user(name) for name in hosts} == {name: f"system:node:{name}" for name in hosts}


def test_new_authorities_are_those_of_the_table() -> None:
    subjects = {
        name: reading.read(one.certificate).common_name for name, one in ISSUING.authorities.items()
    }

    assert subjects == {row.name: row.common_name for row in AUTHORITIES}


def with_authorities(authorities: dict[str, Authority]) -> Issuing:
    return Issuing(authorities, ISSUING.service_account, algorithm="ECDSA-P256")
