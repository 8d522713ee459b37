"""The objects of a cluster: as manifests have them, and files of the catalog."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.step.listening import Cluster, kubectl, shown

from kubexm.errors import CommandFailed, StepFailed
from kubexm.runtime.assets import NoAssets
from kubexm.sim import Script
from kubexm.step import objects
from kubexm.step.manifests import Applied, AppliedFile
from kubexm.step.objects import Settings
from kubexm.templates import formats

Make = Callable[..., Cluster]
SHOP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {a: '1'}\n"
TWO = f"{SHOP}---\n# nothing\n---\n{SHOP.replace('shop', 'more')}"
REFUSED = "The connection to the server 10.0.0.1:6443 was refused"
NOT_FOUND = 'Error from server (NotFound): namespaces "x" not found'
OURS = "--server-side --force-conflicts --field-manager kubexm -f -"
LIVE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "shop", "namespace": "default", "uid": "7", "resourceVersion": "9"},
    "data": {"a": "0"},
}


NOTHING_YET = (kubectl("get", "**"), kubectl("apply", "**"), kubectl("delete", "**"))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (kubectl("diff", "**"), (True, "=", "")),
        (kubectl("diff", "**", exit=1, stdout="+  a: 1\n"), (False, "~", "+  a: 1")),
        (kubectl("diff", "**", exit=2, stderr=NOT_FOUND), (False, "+", "")),
    ],
)
def test_a_manifest_is_compared_with_the_cluster(
    cluster: Make, answer: Script, expected: tuple[bool, str, str]
) -> None:
    place = cluster(answer)

    verdict = place.verdict(Applied("shop", content=SHOP))

    assert (verdict.satisfied, verdict.sign, verdict.diff) == expected
    assert place.told == [f"kubectl diff {OURS}"]
    assert place.heard == [SHOP]


def test_what_differs_in_a_secret_manifest_is_not_shown(cluster: Make) -> None:
    place = cluster(kubectl("diff", "**", exit=1, stdout="+  password: x\n"))

    verdict = place.verdict(Applied("shop", content=SHOP, secret=True))

    assert (verdict.reason, verdict.diff) == ("objects differ", "")
    assert Applied.with_secret({"name": "shop"}) == {"name": "shop", "secret": True}


def test_a_server_that_does_not_answer_decides_nothing(cluster: Make) -> None:
    place = cluster(kubectl("diff", "**", exit=2, stderr=REFUSED))

    with pytest.raises(CommandFailed, match="was refused"):
        place.verdict(Applied("shop", content=SHOP))


def test_a_template_is_filled_in_and_single_values_are_changed(cluster: Make) -> None:
    place = cluster(*NOTHING_YET)
    text = SHOP.replace("'1'", "{{ a | yaml }}")
    step = Applied(
        "shop", text=text, data={"a": "5"}, overrides={"ConfigMap/shop": {"data": {"b": "6"}}}
    )

    place.run(step)

    applied = formats.parsed(place.heard[-1], "manifests")
    assert [one["data"] for one in applied] == [{"a": "5", "b": "6"}]
    assert place.told[-1] == f"kubectl apply {OURS}"


def test_content_is_no_template(cluster: Make) -> None:
    place = cluster(*NOTHING_YET)
    braces = SHOP.replace("'1'", "'{{ .Values.x }}'")

    place.run(Applied("shop", content=braces))

    assert place.heard[-1] == braces


def test_a_rollback_removes_what_is_new_and_brings_back_what_was_there(cluster: Make) -> None:
    place = cluster(kubectl("get", "**", stdout=shown(LIVE)), *NOTHING_YET)
    place.run(Applied("shop", content=TWO))
    place.forget()

    place.undo(Applied("shop", content=TWO))

    assert place.told == [
        "kubectl delete --ignore-not-found --wait=false -f -",
        f"kubectl apply {OURS}",
    ]
    gone, restored = (formats.parsed(text, "manifests") for text in place.heard)
    assert [one["metadata"] for one in gone] == [{"name": "more"}]
    (old,) = restored
    assert old["metadata"] == {"name": "shop", "namespace": "default"}
    assert old["data"] == {"a": "0"}


def test_what_is_in_a_list_is_taken_back_as_objects_of_their_own(cluster: Make) -> None:
    place = cluster(*NOTHING_YET)
    item = "{apiVersion: v1, kind: ConfigMap, metadata: {name: shop}}"
    listed = Applied("shop", content=f"apiVersion: v1\nkind: List\nitems: [{item}]\n")
    place.run(listed)
    place.forget()

    place.undo(listed)

    (gone,) = (formats.parsed(text, "manifests") for text in place.heard)
    assert [(one["kind"], one["metadata"]) for one in gone] == [("ConfigMap", {"name": "shop"})]


def test_an_object_with_a_name_from_elsewhere_in_its_file_is_taken_back(cluster: Make) -> None:
    place = cluster(*NOTHING_YET)
    shared = Applied(
        "shop",
        content="""\
apiVersion: v1
kind: ConfigMap
metadata: {<<: &names {name: shop, namespace: a}, labels: *names}
""",
    )
    place.run(shared)
    place.forget()

    place.undo(shared)

    (gone,) = (formats.parsed(text, "manifests") for text in place.heard)
    assert [one["metadata"] for one in gone] == [{"name": "shop", "namespace": "a"}]


def test_the_store_does_not_learn_what_was_in_an_object(cluster: Make) -> None:
    place = cluster(kubectl("get", "**", stdout=shown(LIVE)), *NOTHING_YET)

    place.run(Applied("shop", content=TWO))

    (entry,) = place.ledger.entries.values()
    kept = json.loads(entry)["kept"]
    assert place.wait(place.host.stat(kept)).mode == 0o600  # type: ignore[union-attr]
    assert "data" not in entry


def test_what_can_not_be_taken_back_without_a_server_is_left(cluster: Make) -> None:
    silent = kubectl("delete", "**", exit=1, stderr=REFUSED)
    place = cluster(kubectl("get", "**"), kubectl("apply", "**"), silent)
    step = Applied("shop", content=SHOP)
    place.run(step)

    left = place.wait(step.rollback(place.context()))

    assert left == "the API server does not answer"


def test_an_undo_that_the_server_refuses_is_a_failure(cluster: Make) -> None:
    refused = kubectl("delete", "**", exit=1, stderr="Error from server (Forbidden): no")
    place = cluster(kubectl("get", "**"), kubectl("apply", "**"), refused)
    step = Applied("shop", content=SHOP)
    place.run(step)

    with pytest.raises(CommandFailed, match="Forbidden"):
        place.undo(step)


def test_names_are_read_from_manifests_that_our_own_files_may_not_look_like(cluster: Make) -> None:
    place = cluster(*NOTHING_YET)
    place.run(Applied("shop", content=SHOP + "binaryData: {mode: 0644}\n"))

    place.undo(Applied("shop", content=SHOP))

    assert place.told[-1].startswith("kubectl delete")


# Files of the catalog.

CALICO = """\
kind: ConfigMap
apiVersion: v1
metadata: {name: calico-config, namespace: kube-system}
data:
  veth_mtu: "0"
  calico_backend: bird
  cni_network_config: |-
    {"plugins": [{"type": "calico", "nodename": "__NODE__", "mtu": __CNI_MTU__,
                  "ipam": {"type": "calico-ipam"}}, {"type": "portmap"}]}
---
kind: DaemonSet
apiVersion: apps/v1
metadata: {name: calico-node, namespace: kube-system}
spec:
  template:
    spec:
      initContainers:
        - {name: install-cni, image: "quay.io/calico/cni:v3"}
      containers:
        - name: calico-node
          image: quay.io/calico/node:v3
          env:
            - {name: IP, value: autodetect}
            - {name: MTU, valueFrom: {configMapKeyRef: {name: calico-config, key: veth_mtu}}}
          livenessProbe: {exec: {command: [calico-node, -felix-live, -bird-live]}}
          readinessProbe: {exec: {command: [calico-node, -felix-ready, -bird-ready]}}
"""
IMAGES = {"quay.io/calico/cni:v3": "local/cni:v3", "quay.io/calico/node:v3": "local/node:v3"}
SETTINGS: dict[str, Any] = {
    "images": IMAGES,
    "environment": {"calico-node": {"POOL": "10.0.0.0/8", "MTU": None, "IP": "none"}},
    "unprobed": {"calico-node": ("-bird-live", "-bird-ready")},
    "config": {"calico-config": {"veth_mtu": "1440", "calico_backend": "vxlan"}},
    "ipam": {"assign_ipv6": "true"},
}


class OneFile(NoAssets):
    """A store with one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def digest(self, key: str) -> str | None:
        found = self._path.exists() and key == "calico/v3/manifest/"
        return sha256(self._path.read_bytes()).hexdigest() if found else None

    def path(self, digest: str) -> Path:
        return self._path


def calico(**changed: Any) -> AppliedFile:
    fields = {"artifact": "calico/v3/manifest/", "value": "artifact_1", **SETTINGS, **changed}
    return AppliedFile("calico", resource="daemonset/calico-node", **fields)


def changed(settings: Mapping[str, Any] = SETTINGS) -> tuple[dict[str, Any], dict[str, Any]]:
    config, daemons = formats.parsed(CALICO, "manifests")
    objects.changed([config, daemons], Settings(**settings))
    return config, daemons["spec"]["template"]["spec"]


def test_settings_go_into_a_file_of_others_by_their_names() -> None:
    config, pod = changed()
    (node,) = pod["containers"]

    assert [one["image"] for one in (*pod["initContainers"], node)] == [
        "local/cni:v3",
        "local/node:v3",
    ]
    assert node["env"] == [
        {"name": "IP", "value": "none"},
        {"name": "POOL", "value": "10.0.0.0/8"},
    ]
    assert node["livenessProbe"]["exec"]["command"] == ["calico-node", "-felix-live"]
    assert node["readinessProbe"]["exec"]["command"] == ["calico-node", "-felix-ready"]
    assert config["data"]["veth_mtu"] == "1440"
    assert config["data"]["calico_backend"] == "vxlan"


def test_who_gives_addresses_is_told_without_spoiling_what_is_filled_in_later() -> None:
    config, _ = changed()
    text = config["data"]["cni_network_config"]

    assert '"mtu": __CNI_MTU__,' in text
    network = json.loads(text.replace("__CNI_MTU__", "1440"))
    assert network["plugins"][0]["ipam"] == {"type": "calico-ipam", "assign_ipv6": "true"}
    assert network["plugins"][0]["nodename"] == "__NODE__"


def test_a_value_in_place_of_a_reference_takes_its_place() -> None:
    _, pod = changed({"environment": {"calico-node": {"MTU": "1400"}}})

    assert pod["containers"][0]["env"][1] == {"name": "MTU", "value": "1400"}


def test_without_settings_a_file_stays_as_it_is() -> None:
    assert changed({}) == (
        (documents := formats.parsed(CALICO, "manifests"))[0],
        documents[1]["spec"]["template"]["spec"],
    )


def test_all_that_is_named_and_not_there_is_told_at_once() -> None:
    wrong = {
        "images": {"quay.io/calico/cni:v3": "x", "quay.io/calico/typha:v3": "y"},
        "environment": {"calico-mode": {}},
        "config": {"calico-konfig": {}, "calico-config": {"mtu": "1"}},
    }

    with pytest.raises(StepFailed) as caught:
        changed(wrong)

    assert caught.value.message == (
        "the file does not fit its settings: no image `quay.io/calico/typha:v3`;"
        " image `quay.io/calico/node:v3` is not accounted for; no container `calico-mode`;"
        " no config map `calico-konfig`; no `mtu` in `calico-config`"
    )


def test_a_file_of_the_catalog_is_applied_until_its_record_says_so(
    cluster: Make, tmp_path: Path
) -> None:
    file = tmp_path / "calico.yaml"
    file.write_text(CALICO)
    there = kubectl("get", "--ignore-not-found", "-o", "name", "**", stdout="daemonset.apps/x\n")
    place = cluster(there, *NOTHING_YET)
    before = place.verdict(calico())

    place.run(calico(), assets=OneFile(file))

    assert before.reason == "the file or its settings were changed"
    applied = formats.parsed(place.heard[-1], "manifests")
    assert [one["kind"] for one in applied] == ["ConfigMap", "DaemonSet"]
    assert "local/node:v3" in place.heard[-1]
    assert place.verdict(calico()).satisfied
    assert not place.verdict(calico(artifact="calico/v4/manifest/")).satisfied
    assert not place.verdict(calico(images={})).satisfied
    assert calico().needs() == ("artifact_1",)


def test_a_file_is_applied_again_where_its_objects_are_gone(cluster: Make, tmp_path: Path) -> None:
    file = tmp_path / "calico.yaml"
    file.write_text(CALICO)
    place = cluster(*NOTHING_YET)
    place.run(calico(), assets=OneFile(file))

    verdict = place.verdict(calico())

    assert (verdict.sign, verdict.reason) == ("+", "daemonset/calico-node does not exist")


def test_a_file_that_is_not_in_the_store_is_named(cluster: Make, tmp_path: Path) -> None:
    place = cluster(*NOTHING_YET)

    with pytest.raises(StepFailed, match="`calico/v3/manifest/` is not in the store"):
        place.run(calico(), assets=OneFile(tmp_path / "none"))


def test_the_undo_of_a_file_forgets_its_record(cluster: Make, tmp_path: Path) -> None:
    file = tmp_path / "calico.yaml"
    file.write_text(CALICO)
    there = kubectl("get", "--ignore-not-found", "-o", "name", "**", stdout="daemonset.apps/x\n")
    place = cluster(there, *NOTHING_YET)
    place.run(calico(), assets=OneFile(file))

    place.undo(calico())

    assert place.told[-1].startswith("kubectl delete")
    assert not place.verdict(calico()).satisfied
