"""Images that add-ons run: which they are, and how hosts come to them without a network."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from msgspec.structs import replace
from tests import virtual
from tests.resource import made_images

from kubexm.app import addon_images, clusters, planning, runs
from kubexm.app.bills import BillParams, billed
from kubexm.app.execution import Front
from kubexm.app.params import ClusterParams, OperationParams, PlanParams, RunParams
from kubexm.app.planning import Planned
from kubexm.common.paths import Home
from kubexm.errors import InvalidCluster, InvalidInput
from kubexm.resource import bundle_archive, bundle_build, catalog, images, materials
from kubexm.resource.bundle_manifest import Manifest
from kubexm.resource.needs import Needs
from kubexm.resource.store import Store
from kubexm.sim import World, containers

HEAD = """\
apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
  - {name: a, address: 10.0.0.1, arch: amd64}
  - {name: b, address: 10.0.0.2, arch: arm64}
  kubernetes: {version: v1.36.3, certificates: {algorithm: ECDSA-P256}}
  network: {plugin: routed}
"""
GROUPS = "  roleGroups: {control-plane: [a], worker: [b], registry: [a]}\n"
DIGEST = f"sha256:{'a' * 64}"
HUB = "docker.io/library"
TERMS = (
    "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [%s]}}}"
)
CHART = "  - {name: it, chart: {name: podinfo, repository: 'https://m.lan/', version: 6.9.0}}\n"
ON_AMD = "{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]}"
ON_ANY = "{matchExpressions: [{key: x, operator: Exists}]}"


def deployment(pod: str) -> str:
    return (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n"
        "  selector: {matchLabels: {app: web}}\n"
        f"  template: {{metadata: {{labels: {{app: web}}}}, spec: {pod}}}\n"
    )


WEB = deployment('{containers: [{name: c, image: "nginx:1.25"}]}')


def inline(objects: str, more: str = "") -> str:
    """A cluster file with an add-on of these objects."""
    text = indent(dedent(objects), 6 * " ")
    return f"{HEAD}{more}  addons:\n  - name: web\n    inline: |\n{text}"


def written(folder: Path, text: str) -> Path:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return path


def named(folder: Path, text: str) -> list[str]:
    """The images that add-ons name, with the architectures that they are for."""
    cluster = clusters.read(ClusterParams(written(folder, text)))
    return [" ".join((one.name, *one.architectures)) for one in addon_images.named(cluster)]


def planned(file: Path, bundle: Path | None = Path("bundle.tar.zst")) -> Planned:
    return planning.plan(PlanParams(OperationParams(ClusterParams(file), bundle=bundle)))


def steps(plan: Planned, kind: str) -> dict[str, tuple[dict[str, Any], tuple[str, ...]]]:
    """Parameters and hosts of steps about images, by the name of each image."""
    found = [node for node in plan.graph if node.step.kind == kind]
    hosts: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {}
    for node in found:
        name = str(node.step.params["name"])
        _, before = hosts.get(name, ({}, ()))
        hosts[name] = dict(node.step.params), (*before, *node.hosts)
    return hosts


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("v1 Pod", "{POD}"),
        ("apps/v1 Deployment", "{template: {spec: {POD}}}"),
        ("apps/v1 DaemonSet", "{template: {spec: {POD}}}"),
        ("apps/v1 StatefulSet", "{template: {spec: {POD}}}"),
        ("apps/v1 ReplicaSet", "{template: {spec: {POD}}}"),
        ("batch/v1 Job", "{template: {spec: {POD}}}"),
        ("batch/v1 CronJob", "{jobTemplate: {spec: {template: {spec: {POD}}}}}"),
    ],
)
def test_whatever_makes_pods_names_the_images_of_all_its_containers(
    tmp_path: Path, kind: str, spec: str
) -> None:
    version, word = kind.split()
    pod = (
        "initContainers: [{image: i}], containers: [{image: c}], ephemeralContainers: [{image: e}]"
    )
    text = f"apiVersion: {version}\nkind: {word}\nmetadata: {{name: x}}\n"

    assert named(tmp_path, inline(f"{text}spec: {spec.replace('POD', pod)}\n")) == ["i", "c", "e"]


@pytest.mark.parametrize(
    ("kind", "rest"),
    [
        ("batch.example.com/v1 Job", "spec: {template: {spec: {containers: [{image: x}]}}}"),
        ("v1 ConfigMap", "data: {image: x}"),
        ("apps/v1 Deployment", "spec: {template: [1], image: x}"),
        ("v1 Pod", "spec: {containers: [{image: ''}, {image: [x]}, {}, 7, {image: null}]}"),
        ("v1 Pod", "spec: {containers: [{image: 'localhost:5000/x'}]}"),
        ("v1 Pod", "spec: {containers: [{image: 'a:30500/x'}, {image: '10.0.0.2:1/x'}]}"),
    ],
)
def test_what_is_no_pod_that_we_know_and_what_hosts_serve_is_left_alone(
    tmp_path: Path, kind: str, rest: str
) -> None:
    version, word = kind.split()
    objects = f"apiVersion: {version}\nkind: {word}\nmetadata: {{name: x}}\n{rest}\n"

    assert named(tmp_path, inline(objects)) == []


def test_files_and_lists_are_looked_into_as_well(tmp_path: Path) -> None:
    item = '{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{image: "x:1"}]}}'
    (tmp_path / "web.yaml").write_text(f"{WEB}---\napiVersion: v1\nkind: List\nitems: [{item}]\n")

    found = named(tmp_path, f"{HEAD}  addons:\n  - {{name: web, manifests: [web.yaml]}}\n")

    assert found == ["nginx:1.25", "x:1"]


@pytest.mark.parametrize(
    ("pod", "arch"),
    [
        ("nodeSelector: {kubernetes.io/arch: arm64}", "arm64"),
        (f"affinity: {TERMS % ON_AMD}", "amd64"),
        (f"affinity: {TERMS % f'{ON_AMD}, {ON_ANY}'}", ""),
    ],
)
def test_an_image_is_for_the_machines_that_its_pod_may_run_on(
    tmp_path: Path, pod: str, arch: str
) -> None:
    objects = deployment(f"{{{pod}, containers: [{{name: c, image: x}}]}}")

    assert named(tmp_path, inline(objects)) == [f"x {arch}".strip()]


def test_a_file_that_can_not_be_read_is_told_at_its_place(tmp_path: Path) -> None:
    file = written(tmp_path, f"{HEAD}  addons:\n  - {{name: web, manifests: [nowhere.yaml]}}\n")

    with pytest.raises(InvalidCluster) as caught:
        billed(BillParams(file=file), is_bundled=True)

    [problem] = caught.value.problems
    assert "nowhere.yaml" in problem.message


def test_an_image_that_can_not_be_one_is_told_with_who_wants_it(tmp_path: Path) -> None:
    pod = 'containers: [{name: c, image: "Nginx:1"}]'
    file = written(tmp_path, inline(deployment(f"{{{pod}}}")))

    with pytest.raises(InvalidInput) as caught:
        billed(BillParams(file=file), is_bundled=True)

    [problem] = caught.value.problems
    assert "`Nginx:1` is no image reference, and the add-on `web` runs it" in problem.message
    assert billed(BillParams(file=file)).bill.images


def test_with_a_network_images_of_add_ons_are_left_to_the_kubelet(tmp_path: Path) -> None:
    with_it, without = written(tmp_path, inline(WEB)), tmp_path / "without.yaml"
    without.write_text(HEAD)

    assert billed(BillParams(file=with_it)).bill == billed(BillParams(file=without)).bill
    assert steps(planned(with_it, None), "image") == steps(planned(without, None), "image")


def test_out_of_a_bundle_they_are_sent_to_all_kube_nodes(tmp_path: Path) -> None:
    plan = planned(written(tmp_path, inline(WEB)))

    given, hosts = steps(plan, "image")[f"{HUB}/nginx:1.25"]
    assert given["source"] == "store"
    assert sorted(hosts) == ["a", "b"]
    assert f"{HUB}/nginx:1.25" in steps(plan, "image-archive")


def test_an_image_of_one_architecture_goes_to_hosts_of_that(tmp_path: Path) -> None:
    pod = (
        '{nodeSelector: {kubernetes.io/arch: arm64}, containers: [{name: c, image: "nginx:1.25"}]}'
    )
    plan = planned(written(tmp_path, inline(deployment(pod))))

    assert steps(plan, "image")[f"{HUB}/nginx:1.25"][1] == ("b",)
    assert steps(plan, "image-archive")[f"{HUB}/nginx:1.25"][0]["architectures"] == ["arm64"]


def test_a_registry_of_the_cluster_gets_them_too_and_pods_find_them_by_their_own_names(
    tmp_path: Path,
) -> None:
    pod = f'{{containers: [{{name: c, image: "nginx:1.25"}}, {{name: d, image: "x@{DIGEST}"}}]}}'
    plan = planned(written(tmp_path, inline(deployment(pod), GROUPS)))

    pushed = steps(plan, "image-pushed")
    assert f"{HUB}/nginx:1.25" in pushed
    assert (
        f"{HUB}/x@{DIGEST}" not in pushed
    )  # what lies here has another digest, for these machines
    for name in (f"{HUB}/nginx:1.25", f"{HUB}/x@{DIGEST}"):
        given, hosts = steps(plan, "image")[name]
        assert (given["source"], sorted(hosts)) == ("store", ["a", "b"])


@pytest.mark.parametrize("more", ["", GROUPS], ids=["sent", "own registry"])
def test_an_image_that_the_cluster_needs_anyway_is_not_there_twice(
    tmp_path: Path, more: str
) -> None:
    pod = '{containers: [{name: c, image: "busybox:1.37.0"}, {name: d, image: "registry:3.0.0"}]}'
    local = "  storage: {localPath: {enabled: true}}\n"
    file = written(tmp_path, inline(deployment(pod), f"{more}{local}"))

    found = billed(BillParams(file=file), is_bundled=True).bill.images
    names = [image.name for image in found]
    plan = planned(file)

    assert len(names) == len({*names})
    assert sorted(steps(plan, "image")[f"{HUB}/busybox:1.37.0"][1]) == ["a", "b"]
    assert {one.component for one in found if "busybox" in one.name} == {"local-path"}


def test_what_can_not_be_known_and_what_does_not_help_is_told(tmp_path: Path) -> None:
    pod = (
        '{containers: [{image: "x:latest"}, {image: "y"}, {image: "z:1", imagePullPolicy: Always},'
        ' {image: "v:1"}, {image: w, imagePullPolicy: IfNotPresent}]}'
    )
    file = written(tmp_path, inline(deployment(pod)) + CHART)

    told = [str(one) for one in addon_images.notes(clusters.read(ClusterParams(file)))]

    assert "the images of the chart `podinfo` are not known" in told[0]
    assert [one.split("`")[3] for one in told[1:]] == ["x:latest", "y", "z:1"]
    assert {*told} <= {str(one) for one in planned(file).warnings}
    assert not {*told} & {str(one) for one in planned(file, None).warnings}


@pytest.mark.parametrize(("addon", "hosts"), [(CHART, ["a"]), ("", [])])
def test_what_was_brought_into_a_bundle_is_sent_where_charts_may_run_it(
    tmp_path: Path, addon: str, hosts: list[str]
) -> None:
    file, path = written(tmp_path, inline(WEB) + addon), tmp_path / "b.tar.zst"
    store = Store(tmp_path / "made")
    needed = materials.bill(catalog.load(), Needs(kubernetes="v1.36.3", network="routed"))
    one = replace(needed, binaries=(), charts=(), images=needed.images[:1])
    images.record(made_images.image(store, one.images[0].name), store)
    app = made_images.image(store, "mine.lan/app:7")
    for _ in bundle_archive.written(bundle_build.described(one, store, (app,)), store, path):
        pass

    plan = planned(file, path)

    given, on = steps(plan, "image").get("mine.lan/app:7", ({}, ()))
    assert (given.get("source", "store"), sorted(on)) == ("store", hosts)


def test_without_a_network_a_pod_of_an_add_on_has_its_image(tmp_path: Path) -> None:
    file, bundle = written(tmp_path, inline(WEB)), tmp_path / "b.tar.zst"
    empty = Manifest(kubernetes=(), architectures=(), artifacts={}, images={}, blobs={})
    for _ in bundle_archive.written(empty, Store(tmp_path / "made"), bundle):
        pass
    source = OperationParams(ClusterParams(file), bundle=bundle)
    home = Home(tmp_path, tmp_path, tmp_path)

    outcome = virtual.hurried(runs.run(RunParams(PlanParams(source), simulate=True), Front(), home))

    assert outcome.result.status == "Success"
    assert outcome.world is not None
    opened = World.open(outcome.world)
    try:
        for name in ("a", "b"):
            shell = opened.host(name).shell()
            assert containers.has(shell, f"{HUB}/nginx:1.25")
            assert containers.can_pull(shell, f"{HUB}/other:1")
    finally:
        opened.close()
