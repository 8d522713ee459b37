"""Objects for the cluster are whole: whatever one of them names is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubexm.resource.images import parse
from kubexm.templates import formats, render
from kubexm.templates.context import Context, Template
from kubexm.templates.registry import TEMPLATES

Object = dict[str, Any]
VERSIONS = {
    "APIService": "apiregistration.k8s.io/v1",
    "ClusterRole": "rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
    "ConfigMap": "v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "Namespace": "v1",
    "Pod": "v1",
    "Role": "rbac.authorization.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
    "Service": "v1",
    "ServiceAccount": "v1",
    "StorageClass": "storage.k8s.io/v1",
}
CLUSTER_WIDE = {"APIService", "ClusterRole", "ClusterRoleBinding", "Namespace", "StorageClass"}
THERE = {
    ("Namespace", "", "kube-system"),
    ("ClusterRole", "", "system:auth-delegator"),
    ("Role", "kube-system", "extension-apiserver-authentication-reader"),
}
"""What every cluster has."""


def is_manifest(template: Template) -> bool:
    return template.name.endswith(("/manifest", "/pod"))


CASES = [
    pytest.param(each, sample, id=f"{each.name}-{number}")
    for each in TEMPLATES.values()
    if is_manifest(each)
    for number, sample in enumerate(each.samples)
]
each_manifest = pytest.mark.parametrize(("template", "sample"), CASES)


def objects(template: Template, sample: Context) -> list[Object]:
    found = formats.parsed(render.render(template.name, sample.data()), template.format)
    return found if isinstance(found, list) else [found]


def identity(each: Object) -> tuple[str, str, str]:
    return each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]


def pods(found: list[Object]) -> Iterator[tuple[Object, Object]]:
    """What runs pods, with the specification of these."""
    for each in found:
        if each["kind"] in ("Deployment", "DaemonSet"):
            yield each, each["spec"]["template"]["spec"]
        elif each["kind"] == "Pod":
            yield each, each["spec"]


def containers(pod: Object) -> list[Object]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def test_there_are_manifests_to_look_at() -> None:
    assert {each.name for each in TEMPLATES.values() if is_manifest(each)} == {
        "coredns/manifest",
        "flannel/manifest",
        "kube-vip/pod",
        "local-path/manifest",
        "metrics-server/manifest",
        "nfs/manifest",
        "nodelocaldns/manifest",
    }


@each_manifest
def test_every_object_says_what_and_where_it_is_and_none_is_there_twice(
    template: Template, sample: Context
) -> None:
    found = objects(template, sample)

    for each in found:
        assert each["apiVersion"] == VERSIONS[each["kind"]]
        assert ("namespace" in each["metadata"]) == (each["kind"] not in CLUSTER_WIDE)
    assert len({identity(each) for each in found}) == len(found)


@each_manifest
def test_every_namespace_is_there_before_what_is_in_it(template: Template, sample: Context) -> None:
    known = {name for kind, _, name in THERE if kind == "Namespace"}

    for each in objects(template, sample):
        if each["kind"] == "Namespace":
            known.add(each["metadata"]["name"])
        assert each["metadata"].get("namespace", "kube-system") in known


@each_manifest
def test_selectors_find_the_pods(template: Template, sample: Context) -> None:
    found = objects(template, sample)
    labels = [
        each["spec"]["template"]["metadata"]["labels"]
        for each in found
        if each["kind"] in ("Deployment", "DaemonSet")
    ]

    for each in found:
        if each["kind"] in ("Deployment", "DaemonSet"):
            own = each["spec"]["template"]["metadata"]["labels"]
            assert each["spec"]["selector"]["matchLabels"].items() <= own.items()
        if each["kind"] == "Service":
            assert any(each["spec"]["selector"].items() <= some.items() for some in labels)


@each_manifest
def test_accounts_and_roles_that_are_named_are_there(template: Template, sample: Context) -> None:
    found = objects(template, sample)
    known = {identity(each) for each in found} | THERE

    for owner, pod in pods(found):
        if "serviceAccountName" in pod:
            namespace = owner["metadata"]["namespace"]
            assert ("ServiceAccount", namespace, pod["serviceAccountName"]) in known
    for each in found:
        if each["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            role = each["roleRef"]
            where = each["metadata"]["namespace"] if role["kind"] == "Role" else ""
            assert (role["kind"], where, role["name"]) in known
            for one in each["subjects"]:
                assert (one["kind"], one["namespace"], one["name"]) in known


@each_manifest
def test_volumes_are_there_where_they_are_mounted_and_none_is_idle(
    template: Template, sample: Context
) -> None:
    found = objects(template, sample)
    maps = {identity(each): each["data"] for each in found if each["kind"] == "ConfigMap"}

    for owner, pod in pods(found):
        mounted = {mount["name"] for each in containers(pod) for mount in each["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
        for volume in pod["volumes"]:
            if source := volume.get("configMap"):
                data = maps["ConfigMap", owner["metadata"]["namespace"], source["name"]]
                assert {item["key"] for item in source.get("items", [])} <= set(data)


@each_manifest
def test_ports_that_are_named_are_open(template: Template, sample: Context) -> None:
    found = objects(template, sample)
    open_ports = {
        name
        for _, pod in pods(found)
        for each in containers(pod)
        for port in each.get("ports", [])
        for name in (port["name"], port["containerPort"])
    }

    for _, pod in pods(found):
        for each in containers(pod):
            for probe in ("livenessProbe", "readinessProbe"):
                request = each.get(probe, {}).get("httpGet", {"port": None})
                is_of_host = pod.get("hostNetwork", False)
                assert request["port"] in {None, *open_ports} or is_of_host
    for each in found:
        if each["kind"] == "Service":
            assert {port["targetPort"] for port in each["spec"]["ports"]} <= open_ports


def named_images(found: list[Object]) -> Iterator[str]:
    for _, pod in pods(found):
        yield from (each["image"] for each in containers(pod))
    for each in found:
        if each["kind"] == "ConfigMap" and "helperPod.yaml" in each["data"]:
            helper = formats.parsed(each["data"]["helperPod.yaml"], "yaml")
            yield from (one["image"] for one in helper["spec"]["containers"])


@each_manifest
def test_images_come_from_the_context_and_are_exact(template: Template, sample: Context) -> None:
    given = {value for value in sample.data().values() if isinstance(value, str)}

    images = set(named_images(objects(template, sample)))

    assert images
    assert images <= given
    assert all(parse(image).tag not in ("", "latest") for image in images)


@each_manifest
def test_no_image_is_pulled_that_is_there(template: Template, sample: Context) -> None:
    for _, pod in pods(objects(template, sample)):
        assert {each["imagePullPolicy"] for each in containers(pod)} == {"IfNotPresent"}


@each_manifest
def test_pods_of_a_daemon_run_on_every_kube_node(template: Template, sample: Context) -> None:
    for owner, pod in pods(objects(template, sample)):
        if owner["kind"] == "DaemonSet":
            effects = {each["effect"] for each in pod["tolerations"] if "key" not in each}
            assert effects == {"NoSchedule", "NoExecute"}
            assert pod["priorityClassName"] == "system-node-critical"
