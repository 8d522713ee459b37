"""kubectl reaches an API server as a real one would, and objects become what they are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sim.clusters import (
    ENDPOINT,
    KUBECTL,
    ClusterSite,
    config_map,
    container,
    namespace,
    workload,
)

from kubexm.common import layout
from kubexm.errors import Refused
from kubexm.sim.kubeadmcerts import document
from kubexm.sim.kubecerts import made_up

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Thing", "plural": "things", "shortNames": ["th"]},
        "scope": "Cluster",
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
}
THING = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ClusterSite]:
    made = ClusterSite(tmp_path)
    made.lay("cp1")
    assert made.init().ok
    yield made
    made.close()


def refusal(site: ClusterSite) -> str:
    return site.kubectl("get", "nodes", "-o", "name").error_text


def test_a_kubeconfig_that_is_not_there_is_named(site: ClusterSite) -> None:
    site.do("rm", layout.ADMIN_CONFIG, host="cp1")

    assert layout.ADMIN_CONFIG in refusal(site)


def test_a_name_that_the_host_does_not_know_is_named(site: ClusterSite) -> None:
    site.put("/etc/hosts", "127.0.0.1 localhost\n", host="cp1")

    assert f"lookup {ENDPOINT}: no such host" in refusal(site)


def test_addresses_of_a_name_are_tried_one_after_the_other(site: ClusterSite) -> None:
    site.put("/etc/hosts", f"10.0.0.99 {ENDPOINT}\n10.0.0.11 {ENDPOINT}\n", host="cp1")

    assert site.kubectl("get", "nodes", "-o", "name").text == "node/cp1"


def test_a_kubeconfig_of_another_cluster_is_not_trusted(site: ClusterSite) -> None:
    text = document(f"https://{ENDPOINT}:6443", made_up("another"), "admin")
    site.put(layout.ADMIN_CONFIG, text, 0o600, "cp1")

    assert "certificate signed by unknown authority" in refusal(site)


def test_another_host_reaches_the_api_if_it_can_be_found_there(site: ClusterSite) -> None:
    site.lay("w1")
    text = site.do("cat", layout.ADMIN_CONFIG, host="cp1")
    site.put(layout.ADMIN_CONFIG, text, 0o600, "w1")

    assert site.kubectl("get", "nodes", "-o", "name", host="w1").text == "node/cp1"

    site.world.host("cp1").stop()
    assert "was refused" in site.kubectl("get", "nodes", "-o", "name", host="w1").error_text


def test_a_command_that_nobody_taught_the_simulation_fails_loudly(site: ClusterSite) -> None:
    with pytest.raises(Refused, match="does not know"):
        site.kubectl("explain", "pods")
    with pytest.raises(Refused, match="does not know"):
        site.kubectl("get", "nodes", "-o", "yaml")
    with pytest.raises(Refused, match="does not know"):
        site.ask(*KUBECTL[:1], "get", "nodes", host="cp1")


def test_what_is_applied_is_there_and_differs_no_more(site: ClusterSite) -> None:
    wanted = config_map("settings", a="1", b="2")
    before = site.diff(wanted)
    done = site.apply(wanted)

    assert before.exit == 1
    assert "+  a: '1'" in before.text or '+  a: "1"' in before.text
    assert done.text == "configmap/settings serverside-applied"
    assert site.diff(wanted).exit == 0
    assert site.get("configmap", "settings")["data"] == {"a": "1", "b": "2"}


def test_a_second_apply_changes_nothing(site: ClusterSite) -> None:
    wanted = config_map("settings", a="1")
    site.apply(wanted)
    before = site.world.mutations()

    site.apply(wanted)

    assert site.world.mutations() == before


def test_fields_of_others_stay_and_own_ones_that_are_not_wanted_go(site: ClusterSite) -> None:
    site.apply(workload("Deployment", "web", {"containers": [container("a:1")]}, replicas=3))
    labelled = site.kubectl("label", "--overwrite", "deployment", "web", "team=blue")
    assert labelled.ok, labelled

    image = {"name": "main", "image": "a:2", "env": [{"name": "X", "value": "1"}]}
    site.apply(workload("Deployment", "web", {"containers": [image]}))

    found = site.get("deployment", "web")
    assert "replicas" not in found["spec"]
    assert found["metadata"]["labels"] == {"team": "blue"}
    assert found["spec"]["template"]["spec"]["containers"] == [image]
    assert found["metadata"]["generation"] == 2


def test_a_namespace_has_to_be_there_and_may_come_in_the_same_stream(site: ClusterSite) -> None:
    inner = config_map("settings", "apps", a="1")

    refused = site.apply(inner)
    differs = site.diff(namespace("apps"), inner)
    done = site.apply(namespace("apps"), inner)

    assert 'namespaces "apps" not found' in refused.error_text
    assert (differs.exit, "(NotFound)" in differs.error_text) == (2, True)
    assert done.ok
    assert site.get("-n", "apps", "configmap/settings")["data"] == {"a": "1"}


def test_a_kind_has_to_be_defined_before_its_objects_come(site: ClusterSite) -> None:
    at_once = site.apply(CRD, THING)
    assert 'no matches for kind "Thing" in version "example.com/v1"' in at_once.error_text
    assert "things.example.com" in at_once.text

    assert site.apply(THING).ok
    assert site.get("th")["items"][0]["metadata"]["name"] == "one"

    site.kubectl("delete", "-f", "-", stdin=[CRD])
    assert (
        "the server doesn't have a resource type"
        in site.kubectl("get", "things", "-o", "json").error_text
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"selector": {"matchLabels": {"app": "other"}}}, "does not match template"),
        (
            {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {}}},
            "containers: Required",
        ),
        (
            {
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [container("a", volumeMounts=[{"name": "no"}])]},
                }
            },
            'Not found: "no"',
        ),
    ],
)
def test_an_object_that_can_not_be_is_refused(
    site: ClusterSite, change: dict[str, Any], named: str
) -> None:
    wanted = workload("Deployment", "web", {"containers": [container("a:1")]}, **change)

    assert named in site.apply(wanted).error_text


def test_what_is_not_yaml_is_refused_with_its_place(site: ClusterSite) -> None:
    done = site.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager", "kubexm",
                        "-f", "-", stdin=b"a: b: c\n")  # fmt: skip

    assert done.exit == 1
    assert "error converting YAML" in done.error_text


def test_objects_of_a_stream_are_shown_as_far_as_they_are_there(site: ClusterSite) -> None:
    site.apply(config_map("one", a="1"), config_map("two", a="2"))
    words = ("get", "--ignore-not-found", "-o", "json", "-f", "-")

    both = site.kubectl(*words, stdin=[config_map("one"), config_map("no"), config_map("two")])
    single = site.kubectl(*words, stdin=[config_map("one")])
    none = site.kubectl(*words, stdin=[config_map("no")])
    several = site.kubectl(*words, stdin=[config_map("no"), config_map("nor")])

    items = json.loads(both.stdout)["items"]
    assert [one["metadata"]["name"] for one in items] == ["one", "two"]
    assert json.loads(single.stdout)["kind"] == "ConfigMap"
    assert (none.stdout, several.stdout) == (b"", b"")


def test_what_is_not_there_is_an_error_unless_that_is_fine(site: ClusterSite) -> None:
    assert "(NotFound)" in site.kubectl("get", "node", "w9", "-o", "json").error_text
    assert site.kubectl("get", "--ignore-not-found", "-o", "name", "node", "w9").stdout == b""
    assert "(NotFound)" in site.kubectl("delete", "node", "w9").error_text
    assert site.kubectl("delete", "--ignore-not-found", "node", "w9").ok


def test_what_is_deleted_is_gone_and_takes_along_what_is_in_it(site: ClusterSite) -> None:
    site.apply(namespace("apps"), config_map("settings", "apps"))

    done = site.kubectl(
        "delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=[namespace("apps")]
    )

    assert done.text == 'namespace "apps" deleted'
    assert site.get("configmaps", "-n", "apps")["items"] == []


def test_nodes_are_labelled_tainted_and_put_to_rest(site: ClusterSite) -> None:
    words = ("--overwrite", "node", "cp1")
    site.kubectl("label", *words, "a=b", "c=d")
    site.kubectl("label", *words, "c-")
    site.kubectl("annotate", *words, "kubexm.io/labels=a")
    site.kubectl("taint", *words, "k=v:NoSchedule", "gone:NoExecute")
    site.kubectl(
        "taint", *words, "gone:NoExecute-", "node-role.kubernetes.io/control-plane:NoSchedule-"
    )
    site.kubectl("cordon", "cp1")

    node = site.get("node", "cp1")
    assert node["metadata"]["labels"]["a"] == "b"
    assert "c" not in node["metadata"]["labels"]
    assert node["metadata"]["annotations"] == {"kubexm.io/labels": "a"}
    assert node["spec"]["taints"] == [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    assert node["spec"]["unschedulable"] is True
    site.kubectl("uncordon", "cp1")
    assert "unschedulable" not in site.get("node", "cp1")["spec"]


def test_a_secret_is_stored_as_the_server_stores_it(site: ClusterSite) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"key": "value"},
    }
    site.apply(secret)

    assert site.get("secret", "s")["data"] == {"key": "dmFsdWU="}
    assert site.diff(secret).exit == 0


def test_a_world_that_is_opened_again_has_the_same_cluster(site: ClusterSite) -> None:
    from kubexm.sim import World

    site.apply(config_map("settings", a="1"))
    before = site.world.snapshot()
    site.world.close()
    site.world = World.open(site.world.path)

    assert site.world.snapshot() == before
    assert site.get("configmap", "settings")["data"] == {"a": "1"}
