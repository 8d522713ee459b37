"""Members of etcd find each other if their files agree, and decide by majority."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sim.clusters import ADDRESSES, ETCDS, ClusterSite, certificates

from kubexm.common import layout

FILES = (
    *("--cacert", f"{layout.ETCD_PKI}/ca.crt"),
    *("--cert", f"{layout.ETCD_PKI}/healthcheck-client.crt"),
    *("--key", f"{layout.ETCD_PKI}/healthcheck-client.key"),
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ClusterSite]:
    made = ClusterSite(tmp_path, stacked=False)
    yield made
    made.close()


def started(site: ClusterSite, *hosts: str) -> None:
    for host in hosts:
        site.do("systemctl", "start", "etcd", host=host)


def begun(site: ClusterSite) -> None:
    for host in ETCDS:
        site.lay_etcd(host)
    started(site, *ETCDS)


def etcdctl(site: ClusterSite, *words: str, host: str = "e1") -> str:
    urls = f"https://{ADDRESSES[host][0]}:2379"
    return site.do(f"{layout.BINARIES}/etcdctl", f"--endpoints={urls}", *FILES, *words, host=host)


def test_members_are_healthy_once_a_majority_of_them_runs(site: ClusterSite) -> None:
    for host in ETCDS:
        site.lay_etcd(host)
    started(site, "e1")

    assert "no leader" in site.health("e1").text

    started(site, "e2")
    assert site.health("e1").ok
    assert not site.health("e1", *ETCDS).ok

    started(site, "e3")
    assert site.health("e1", *ETCDS).ok


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("environment", "environment"),
        ("data", "/var/lib/etcd"),
        ("certificates", f"{layout.ETCD_PKI}/ca.crt"),
    ],
)
def test_what_a_member_lacks_is_named(site: ClusterSite, missing: str, named: str) -> None:
    site.lay_etcd("e1", without={missing})

    done = site.ask("systemctl", "start", "etcd", host="e1")

    assert done.exit == 1
    assert named in done.error_text + site.do("journalctl", "-u", "etcd", host="e1")


@pytest.mark.parametrize("name", ["server.key", "peer.crt"])
def test_every_certificate_has_to_be_there(site: ClusterSite, name: str) -> None:
    site.lay_etcd("e1")
    site.do("rm", f"{layout.ETCD_PKI}/{name}", host="e1")

    assert site.ask("systemctl", "start", "etcd", host="e1").exit == 1
    assert name in site.do("journalctl", "-u", "etcd", host="e1")


def test_a_data_directory_that_others_can_read_is_refused(site: ClusterSite) -> None:
    site.lay_etcd("e1")
    site.do("chmod", "0755", "/var/lib/etcd", host="e1")

    assert site.ask("systemctl", "start", "etcd", host="e1").exit == 1
    assert "want 0700" in site.do("journalctl", "-u", "etcd", host="e1")


def test_a_member_that_expects_others_never_becomes_healthy(site: ClusterSite) -> None:
    begun(site)
    two = {name: f"https://{ADDRESSES[name][0]}:2380" for name in ("e1", "e3")}
    for host, more in (("e1", {}), ("e2", {}), ("e3", {"cluster": two})):
        site.do("systemctl", "stop", "etcd", host=host)
        site.do("rm", "-rf", "/var/lib/etcd", host=host)
        site.lay_etcd(host, **more)
    started(site, *ETCDS)

    assert site.health("e1").ok
    assert "no leader" in site.health("e3").text


def test_a_member_of_another_authority_is_not_heard(site: ClusterSite) -> None:
    for host in ETCDS:
        site.lay_etcd(host)
    for host in ("e2", "e3"):
        for name, file in certificates(True)[host].pki.items():
            site.put(f"{layout.PKI}/{name}", file.content.decode(), host=host)
    started(site, *ETCDS)

    assert "no leader" in site.health("e1").text
    assert site.health("e2").ok


def test_a_member_that_lost_its_data_can_not_begin_anew(site: ClusterSite) -> None:
    begun(site)
    site.do("systemctl", "stop", "etcd", host="e2")
    site.do("rm", "-rf", "/var/lib/etcd/member", host="e2")

    assert site.ask("systemctl", "start", "etcd", host="e2").exit == 1
    assert "already been bootstrapped" in site.do("journalctl", "-u", "etcd", host="e2")


def test_a_member_takes_no_data_of_another(site: ClusterSite) -> None:
    begun(site)
    site.do("systemctl", "stop", "etcd", host="e2")
    data = site.do("cat", "/var/lib/etcd/member/wal", host="e1")
    site.put("/var/lib/etcd/member/wal", data, host="e2")

    assert site.ask("systemctl", "start", "etcd", host="e2").exit == 1
    assert "data of member e1" in site.do("journalctl", "-u", "etcd", host="e2")


def test_a_client_of_another_authority_is_not_let_in(site: ClusterSite) -> None:
    begun(site)
    file = certificates(True)["e1"].pki["etcd/ca.crt"]
    site.put(f"{layout.ETCD_PKI}/other.crt", file.content.decode(), host="e1")
    words = ("--cacert", f"{layout.ETCD_PKI}/other.crt", *FILES[2:], "endpoint", "health")
    program = f"{layout.BINARIES}/etcdctl"

    done = site.ask(program, "--endpoints", "https://10.0.0.31:2379", *words, host="e1")

    assert "unknown authority" in done.text


def test_what_members_tell_can_be_read(site: ClusterSite) -> None:
    begun(site)

    members = json.loads(etcdctl(site, "member", "list", "-w", "json"))["members"]
    status = json.loads(etcdctl(site, "endpoint", "status", "-w", "json"))

    assert [one["name"] for one in members] == [*ETCDS]
    assert members[0]["peerURLs"] == ["https://10.0.0.31:2380"]
    assert status[0]["Status"]["version"] == "3.6.14"


def test_a_member_joins_after_it_was_announced(site: ClusterSite) -> None:
    first = {"e1": "https://10.0.0.31:2380"}
    both = {**first, "e2": "https://10.0.0.32:2380"}
    site.lay_etcd("e1", cluster=first)
    started(site, "e1")
    site.lay_etcd("e2", cluster=both, state="existing")

    assert site.ask("systemctl", "start", "etcd", host="e2").exit == 1

    etcdctl(site, "member", "add", "e2", "--peer-urls=https://10.0.0.32:2380")
    started(site, "e2")
    assert site.health("e2").ok


def test_a_copy_is_saved_and_told_from_anything_else(site: ClusterSite) -> None:
    begun(site)
    site.bring("etcdutl", "v3.6.14", host="e1")
    etcdctl(site, "snapshot", "save", "/srv/copy.db")
    told = ("snapshot", "status", "/srv/copy.db", "-w", "json")

    assert json.loads(site.do(f"{layout.BINARIES}/etcdutl", *told, host="e1"))["totalKey"] == 1

    site.put("/srv/copy.db", "something", host="e1")
    assert site.ask(f"{layout.BINARIES}/etcdutl", *told, host="e1").exit == 1


def test_a_cluster_stands_on_its_own_etcd(site: ClusterSite) -> None:
    begun(site)
    site.begin("cp1", "cp2", "w1")

    assert site.is_ready("w1")
    for host in ("e1", "e2"):
        site.do("systemctl", "stop", "etcd", host=host)
    assert "was refused" in site.kubectl("get", "nodes", "-o", "name").error_text
    started(site, "e1")
    assert site.kubectl("get", "nodes", "-o", "name").ok


@pytest.mark.parametrize("host", ETCDS)
def test_every_member_has_to_answer_before_a_cluster_begins(site: ClusterSite, host: str) -> None:
    begun(site)
    site.do("systemctl", "stop", "etcd", host=host)
    site.lay("cp1")

    done = site.init()

    assert "[ERROR ExternalEtcdVersion]" in done.error_text
    assert ADDRESSES[host][0] in done.error_text


def test_the_files_that_let_the_api_server_in_are_named(site: ClusterSite) -> None:
    begun(site)
    site.lay("cp1")
    site.do("rm", f"{layout.PKI}/apiserver-etcd-client.key", host="cp1")

    assert "[ERROR ExternalEtcdClientCertificates]" in site.init().error_text


def test_members_that_begin_anew_after_all_data_are_gone_store_nothing_of_before(
    site: ClusterSite,
) -> None:
    begun(site)
    site.begin("cp1")
    for host in ETCDS:
        site.do("systemctl", "stop", "etcd", host=host)
        site.do("rm", "-rf", "/var/lib/etcd/member", host=host)
    started(site, *ETCDS)

    assert site.kubectl("get", "nodes", "-o", "name").text == ""


def test_an_etcd_that_is_none_of_the_hosts_is_taken_as_it_is(tmp_path: Path) -> None:
    urls = tuple(f"{ADDRESSES[name][0]}:2379" for name in ETCDS)
    site = ClusterSite(tmp_path, stacked=False, site=urls)
    site.begin("cp1", "w1")

    assert site.is_ready("w1")
    site.close()


def test_an_etcd_of_the_site_that_is_not_there_is_named(tmp_path: Path) -> None:
    site = ClusterSite(tmp_path, stacked=False, site=("10.0.0.31:2379", "10.0.0.32:2379"))
    site.lay("cp1")

    assert "https://10.0.0.33:2379" in site.init().error_text
    site.close()
