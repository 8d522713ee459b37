"""A cluster file and all that it names: what is wrong comes at once, each with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubexm.app import clusters, misfits, operations, validating
from kubexm.app.params import ClusterParams, Operation, OperationParams
from kubexm.config.rules.rule import Declared
from kubexm.errors import InvalidCluster
from kubexm.pipeline import create
from kubexm.resource import catalog, declared, materials
from kubexm.spec.hooks import PlannedHooks
from kubexm.step.packages import Package
from kubexm.task.context import ClusterContext
from kubexm.task.operator_files import OperatorFiles

HEAD = """\
apiVersion: kubexm.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
"""
HOSTS = "  hosts: [{name: a, address: 10.0.0.1, arch: amd64}]\n"
SOUND = f"{HEAD}{HOSTS}  kubernetes: {{version: v1.36.3}}\n"
NAMED = """\
  kubernetes: {version: v1.36.3, kubeadm: {patches: {etcd: no1.yaml}}}
  containerRuntime: {sandboxImage: "a b", registries: {r.lan: {ca: no2.pem}}}
  addons:
  - {name: x, manifests: [no3.yaml, list.yaml]}
  - {name: y, inline: "a: [b"}
  - {name: z, inline: "kind: A"}
  - {name: v, chart: {name: no4.tgz, valuesFiles: [no5.yaml, list.yaml]}}
  hooks: {nomodule: {pre: []}}
  templates: nowhere
"""
PLACES = (
    ("6:60", "spec.kubernetes.kubeadm.patches.etcd: can't read"),
    ("7:36", "spec.containerRuntime.sandboxImage: `a b` is no image reference"),
    ("7:68", "spec.containerRuntime.registries.r.lan.ca: can't read"),
    ("9:27", "spec.addons[0].manifests[0]: can't read"),
    ("9:37", "spec.addons[0].manifests[1]: `list.yaml` has no objects of a cluster: found list"),
    ("10:23", "spec.addons[1].inline: found no objects of a cluster in line"),
    ("11:23", "spec.addons[2].inline: object 1 has no `apiVersion`"),
    ("12:29", "spec.addons[3].chart.name: can't read"),
    ("12:52", "spec.addons[3].chart.valuesFiles[0]: can't read"),
    ("12:62", "spec.addons[3].chart.valuesFiles[1]: `list.yaml` holds no mapping"),
    ("13:11", "spec.hooks.nomodule: there is no module `nomodule`"),
    ("14:14", "spec.templates: `"),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "list.yaml").write_text("[a]\n")
    path = tmp_path / "cluster.yaml"
    path.write_text(f"{HEAD}{HOSTS}{NAMED}")
    return path


def told(file: Path) -> list[str]:
    with pytest.raises(InvalidCluster) as caught:
        validating.validate(ClusterParams(file))
    return [str(problem).removeprefix(f"{file}:") for problem in caught.value.problems]


def test_all_that_a_file_names_is_told_at_once_in_the_order_of_the_file(file: Path) -> None:
    found = told(file)

    assert len(found) == len(PLACES)
    for text, (place, message) in zip(found, PLACES, strict=True):
        assert text.startswith(f"{place}: {message}")


@pytest.mark.parametrize("operation", ["create-cluster", "delete-cluster"])
def test_who_plans_is_told_the_same(file: Path, operation: Operation) -> None:
    with pytest.raises(InvalidCluster) as caught:
        operations.plan(OperationParams(ClusterParams(file), operation))

    assert len(caught.value.problems) == len(PLACES)


@pytest.mark.parametrize(
    ("hosts", "mistake"),
    [
        ("  hosts: [{name: a, adress: 10.0.0.1}]\n", "spec.hosts[0].adress: unknown key"),
        ("  hosts: [{name: a}, {name: a}]\n", "spec.hosts[1]"),
        ("  hostss: []\n", "`hosts` is missing"),
    ],
)
def test_a_mistake_in_hosts_hides_only_what_goes_by_hosts(
    file: Path, hosts: str, mistake: str
) -> None:
    file.write_text(f"{HEAD}{hosts}{NAMED}")

    found = told(file)

    assert any(mistake in text for text in found)
    for place, message in PLACES:
        assert any(text.startswith(f"{place}: {message}") for text in found)


def test_a_mistake_in_hosts_hides_no_rule_between_other_keys(file: Path) -> None:
    network = "  network: {podCIDR: [10.1.0.0/16], serviceCIDR: [10.1.0.0/16]}\n"
    file.write_text(
        f"{HEAD}  hosts: [{{name: a, adress: b}}]\n  kubernetes: {{version: v1.36.3}}\n{network}"
        "  ssh: {privateKeyFile: nokey}\n"
    )

    found = told(file)

    assert any("spec.network" in text for text in found)
    assert not any("host.invalid" in text for text in found)


def test_a_mistake_elsewhere_hides_nothing_of_what_is_named(file: Path) -> None:
    file.write_text(f"{HEAD}{HOSTS}{NAMED}  netwrk: {{}}\n")

    found = told(file)

    assert len(found) == len(PLACES) + 1
    assert found[-1].startswith("15:3: spec.netwrk: unknown key")


def test_hooks_are_planned_with_all_else_and_have_the_places_of_the_file(file: Path) -> None:
    hooks = "  hooks: {system: {pre: [{name: a, steps: [{name: b, nostep: {}}]}]}}\n"
    file.write_text(f"{SOUND}{hooks}  templates: nowhere\n")

    found = told(file)

    assert len(found) > 1
    assert all(text.startswith("7:") for text in found[:-1])
    assert "spec.hooks.system.pre[0]" in found[0]
    assert found[-1].startswith("8:14: spec.templates: ")


def test_what_is_wrong_inside_templates_is_told_beside_the_rest(file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / "containerd").mkdir(parents=True)
    template = tmp_path / "mine" / "containerd" / "config.j2"
    template.write_text("{{ nothing_of_ours }}\n")
    file.write_text(f"{SOUND}  templates: mine\n  containerRuntime: {{sandboxImage: A}}\n")

    found = told(file)

    assert found[0].startswith("8:36: spec.containerRuntime.sandboxImage: ")
    assert found[1].startswith(f"{template}:1: `nothing_of_ours`")


def test_templates_that_are_given_beside_the_file_are_told_as_given(
    file: Path, tmp_path: Path
) -> None:
    file.write_text(f"{SOUND}  templates: nowhere\n")
    params = OperationParams(ClusterParams(file), templates=tmp_path / "no")

    with pytest.raises(InvalidCluster) as caught:
        operations.plan(params)

    (problem,) = caught.value.problems
    assert str(problem) == f"--templates: `{tmp_path / 'no'}` is no directory"


@pytest.mark.parametrize(
    ("version", "network", "place", "message"),
    [
        (
            "v1.36.3",
            "{plugin: calico, calico: {version: v3.31.7}}",
            "7:47",
            "spec.network.calico.version: `calico` `v3.31.7` with Kubernetes `v1.36.3`",
        ),
        (
            "v1.37.1",
            "{plugin: cilium}",
            "6:25",
            "spec.kubernetes.version: `cilium` `v1.20.1` with Kubernetes `v1.37.1`",
        ),
    ],
)
def test_versions_that_nobody_has_tested_are_a_warning_where_they_come_from(
    file: Path, version: str, network: str, place: str, message: str
) -> None:
    file.write_text(f"{SOUND.replace('v1.36.3', version)}  network: {network}\n")

    found = validating.validate(ClusterParams(file))

    (warning,) = [one for one in found.warnings if "not tested" in one.message]
    assert warning.where == f"{file}:{place}"
    assert warning.message.startswith(message)
    assert warning.hint


def test_a_parameter_that_no_step_takes_names_the_part_of_the_plan_and_its_place(
    file: Path,
) -> None:
    file.write_text(f"{SOUND}  system: {{packages: [curl]}}\n")
    cluster = clusters.read(ClusterParams(file))
    # As if the field had let it through: whether it does is not what this is about.
    cluster.declared.spec.system.__dict__["packages"] = ("-y",)
    cluster.document.data["spec"]["system"]["packages"] = ["-y"]

    with pytest.raises(InvalidCluster) as caught, misfits.told(cluster.document):
        create.create_cluster(_context(cluster.declared), PlannedHooks())

    (problem,) = caught.value.problems
    assert problem.message == (
        "spec.system.packages[0]: `system` can't be planned by a step `package`:"
        " `-y` is no name of a package"
    )
    assert problem.where == f"{file}:7:23"
    assert problem.hint == "leave out blanks, and dashes at the beginning"
    assert caught.value.exit_code == 2


def test_what_no_step_refused_stays_a_defect(file: Path) -> None:
    document = clusters.read(ClusterParams(_sound(file))).document

    with pytest.raises(ValueError, match="invalid literal"), misfits.told(document):
        int("x")
    with pytest.raises(InvalidCluster, match="by a step `package`: `names` is empty"):  # noqa: SIM117
        with misfits.told(document):
            Package(())


def _sound(file: Path) -> Path:
    file.write_text(SOUND)
    return file


def _context(cluster: Declared) -> ClusterContext:
    known = catalog.load()
    needs = declared.needs(cluster, {}, families=("apt", "rpm", "zypper"))
    return ClusterContext(
        declared=cluster,
        catalog=known,
        bill=materials.bill(known, needs),
        arch={"a": "amd64"},
        files=OperatorFiles(None),
    )
