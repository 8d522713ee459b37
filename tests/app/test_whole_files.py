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
NAMED_OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
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


def test_objects_are_read_as_kubectl_reads_them(file: Path) -> None:
    (file.parent / "objects.yaml").write_text(
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: a}\n"
        "x-labels: &labels {app: a}\n"
        "spec: {selector: {matchLabels: {<<: *labels}}, mode: 0644, on1: yes, v: !!str 1}\n"
    )
    file.write_text(f"{SOUND}  addons: [{{name: x, manifests: [objects.yaml]}}]\n")

    assert validating.validate(ClusterParams(file)).name == "demo"


def test_what_is_wrong_with_objects_comes_with_its_own_remedy(file: Path) -> None:
    file.write_text(f'{SOUND}  addons: [{{name: x, inline: "kind: A\\nkind: B"}}]\n')

    with pytest.raises(InvalidCluster) as caught:
        validating.validate(ClusterParams(file))

    (problem,) = caught.value.problems
    assert "no objects of a cluster in line 2: the key `kind` is there twice" in problem.message
    assert problem.hint == "it is first written in line 1"


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


@pytest.mark.parametrize(
    "metadata",
    ["", "metadata: {}\n", "metadata: {generateName: a-}\n", "metadata: {name: }\n"],
)
def test_an_object_without_a_name_is_refused_inline_and_in_a_file(
    file: Path, tmp_path: Path, metadata: str
) -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\n{metadata}"
    (tmp_path / "objects.yaml").write_text(f"{NAMED_OBJECT}---\n{text}")
    indented = text.replace("\n", "\n      ").rstrip()
    file.write_text(
        f"{SOUND}  addons:\n  - {{name: x, manifests: [objects.yaml]}}\n"
        f"  - name: y\n    inline: |\n      {indented}\n"
    )

    found = told(file)

    assert [text.partition(": ")[2] for text in found] == [
        "spec.addons[0].manifests[0]: object 2, a ConfigMap, has no `metadata.name`",
        "spec.addons[1].inline: object 1, a ConfigMap, has no `metadata.name`",
    ]


SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"{SECRET}stringData: {{password: hunter2}}\n", "stringData"),
        (f"{SECRET}data: {{password: aHVudGVyMg==}}\n", "data"),
        (f"{SECRET}data: {{empty: '', password: aHVudGVyMg==}}\n", "data"),
    ],
)
def test_a_secret_among_objects_is_refused_unless_it_is_allowed(
    text: str, key: str, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "objects.yaml").write_text(f"{NAMED_OBJECT}---\n{text}")
    listed = "".join(f"      {line}\n" for line in text.splitlines())
    file.write_text(
        f"{SOUND}  addons:\n  - {{name: x, manifests: [objects.yaml]}}\n"
        f"  - name: y\n    inline: |\n{listed}"
        f"  - name: z\n    inline: |\n      kind: List\n      apiVersion: v1\n      items:\n"
        + "".join(
            f"      {'-' if not at else ' '} {line}\n" for at, line in enumerate(text.splitlines())
        )
    )

    found = told(file)

    said = f"a Secret, has values written out under `{key}`"
    assert [text.partition(": ")[2] for text in found] == [
        f"spec.addons[0].manifests[0]: object 2, {said}",
        f"spec.addons[1].inline: object 1, {said}",
        f"spec.addons[2].inline: object 1, {said}",
    ]
    validating.validate(ClusterParams(file, allow_literal_secrets=True))


@pytest.mark.parametrize("values", ["", "data: {csrf: ''}\n", "type: x\nstringData: {}\n"])
def test_a_secret_without_values_is_taken(values: str, file: Path, tmp_path: Path) -> None:
    (tmp_path / "objects.yaml").write_text(f"{SECRET}{values}")
    file.write_text(f"{SOUND}  addons: [{{name: x, manifests: [objects.yaml]}}]\n")

    validating.validate(ClusterParams(file))


def test_a_secret_may_be_laid_by_a_hook(file: Path) -> None:
    apply = "argv: [kubectl, --kubeconfig, /etc/kubernetes/admin.conf, apply, -f, '-']"
    hook = f"{{name: login, runOnRoles: [control-plane], command: {{{apply}, secretStdin: 'file:///srv/login.yaml'}}}}"
    file.write_text(f"{SOUND}  hooks: {{add-ons: {{pre: [{hook}]}}}}\n")

    validating.validate(ClusterParams(file))


def test_a_list_of_objects_needs_no_name_of_its_own(file: Path, tmp_path: Path) -> None:
    (tmp_path / "objects.yaml").write_text(
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"
        "- {apiVersion: v1, kind: ConfigMap}\n"
    )
    file.write_text(f"{SOUND}  addons: [{{name: x, manifests: [objects.yaml]}}]\n")

    (found,) = told(file)

    assert "object 2, a ConfigMap, has no `metadata.name`" in found


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


def patched(file: str) -> str:
    return f"  kubernetes: {{version: v1.36.3, kubeadm: {{patches: {{etcd: {file}}}}}}}\n"


AUDITED = "  kubernetes: {version: v1.36.3, apiServer: {audit: {enabled: true, policy: held}}}\n"
PLAIN = "  kubernetes: {version: v1.36.3}\n"
TRUSTED = f"{PLAIN}  containerRuntime: {{registries: {{r.lan: {{ca: held}}}}}}\n"
EXTERNAL = (
    f"{PLAIN}  etcd: {{external: {{endpoints: ['https://10.9.0.1:2379'], ca: held,"
    " certificate: held, key: 'env://KEY'}}\n"
)
OWN = (
    "  kubernetes: {version: v1.36.3, certificates: {authorities: {frontProxy:"
    " {certificate: held, key: 'env://KEY'}}}}\n"
)
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
AT_PATCH, AT_POLICY = (
    "6:60: spec.kubernetes.kubeadm.patches.etcd",
    "6:77: spec.kubernetes.apiServer",
)
BROKEN_PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
NO_CERTIFICATE = "`held` holds no certificate that can be read"


@pytest.mark.parametrize(
    ("spec", "name", "held", "messages"),
    [
        (patched("held"), "held", "spec: [", [f"{AT_PATCH}: `held` holds what can't be read in "]),
        (patched("held"), "held", "words", [f"{AT_PATCH}: `held` holds no patch, want a mapping"]),
        (patched("held"), "held", "", [f"{AT_PATCH}: `held` holds no patch, want a mapping"]),
        (
            patched("held"),
            "held",
            "[{op: add}]",
            [f"{AT_PATCH}: `held` holds no patch, want a map"],
        ),
        (
            patched("a+json"),
            "a+json",
            "a: b",
            [f"{AT_PATCH}: `a+json` holds no patch, want a list"],
        ),
        (
            patched("held"),
            "held",
            "spec: {containers: [{name: etcd}, {name: kube-apiserver, tty: true}]}",
            [f"{AT_PATCH}: `held` holds a container `kube-apiserver` that has no `image`"],
        ),
        (
            patched("held+merge.yaml"),
            "held+merge.yaml",
            "spec: {containers: [{name: etcd, tty: true}]}",
            [f"{AT_PATCH}: `held+merge.yaml` holds a container `etcd` that has no `image`"],
        ),
        (
            patched("held"),
            "held",
            "spec: {initContainers: [{tty: true}]}",
            [f"{AT_PATCH}: `held` holds a container without a name that has no `image`"],
        ),
        (patched("a+json"), "a+json", "[{op: add}]", [f"{AT_PATCH}: `a+json` holds no patch"]),
        (
            AUDITED,
            "held",
            "rules: [",
            [f"{AT_POLICY}.audit.policy: `held` holds what can't be read in "],
        ),
        (AUDITED, "held", "words", [f"{AT_POLICY}.audit.policy: `held` holds no `Policy` of"]),
        (AUDITED, "held", POLICY, [f"{AT_POLICY}.audit.policy: `held` holds a policy without `r"]),
        (
            TRUSTED,
            "held",
            "words",
            [f"spec.containerRuntime.registries.r.lan.ca: {NO_CERTIFICATE}"],
        ),
        (TRUSTED, "held", BROKEN_PEM, [f"registries.r.lan.ca: {NO_CERTIFICATE}"]),
        (
            EXTERNAL,
            "held",
            "words",
            [f"external.ca: {NO_CERTIFICATE}", f"external.certificate: {NO_CERTIFICATE}"],
        ),
        (OWN, "held", "words", [f"authorities.frontProxy.certificate: {NO_CERTIFICATE}"]),
    ],
)
def test_a_file_that_does_not_hold_what_it_has_to_is_refused_at_its_key(
    file: Path, spec: str, name: str, held: str, messages: list[str]
) -> None:
    file.write_text(f"{HEAD}{HOSTS}{spec}")
    (file.parent / name).write_text(held)

    found = told(file)

    assert len(found) == len(messages)
    for text, message in zip(found, messages, strict=True):
        assert message in text


@pytest.mark.parametrize(
    ("spec", "name", "held"),
    [
        (patched("held"), "held", "metadata: {labels: {a: b}}\n---\nspec: {priority: 1}\n"),
        (
            patched("held"),
            "held",
            "spec: {containers: [{name: etcd, tty: true}, {name: b, image: c}, {$patch: replace}]}",
        ),
        (patched("a+merge.json"), "a+merge.json", '{"metadata": {"labels": {"a": "b"}}}'),
        (patched("a+json.yaml"), "a+json.yaml", "- {op: remove, path: /spec/priority}\n"),
        (AUDITED, "held", f"{POLICY}rules: [{{level: None}}]\n"),
    ],
)
def test_a_file_that_holds_what_it_has_to_is_taken(
    file: Path, spec: str, name: str, held: str
) -> None:
    file.write_text(f"{HEAD}{HOSTS}{spec}")
    (file.parent / name).write_text(held)

    assert validating.validate(ClusterParams(file)).name == "demo"
