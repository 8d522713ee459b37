"""What a cluster file asks for, as far as it decides what has to be fetched."""

from textwrap import dedent, indent

import pytest

from kubexm.config.cluster import checked, parse_cluster
from kubexm.document import source
from kubexm.errors import InvalidInput
from kubexm.resource import catalog
from kubexm.resource.catalog import ChartRelease
from kubexm.resource.declared import needs
from kubexm.resource.kubeadm_images import kubeadm_images
from kubexm.resource.materials import bill
from kubexm.resource.needs import Needs

PLAIN = """\
    apiVersion: kubexm.io/v1alpha1
    kind: Cluster
    metadata: {name: demo}
    spec:
      hosts:
      - {name: "node[1:3]", address: "10.0.0.[1:3]"}
      kubernetes: {version: v1.36.3}
"""


def asked(spec: str = "", **known: object) -> Needs:
    """What a file needs whose `spec` says this beside hosts and version."""
    text = dedent(PLAIN) + indent(dedent(spec), "  ")
    return needs(parse_cluster(text).declared, **known)  # type: ignore[arg-type]


class TestNeeds:
    def test_a_file_that_says_little_needs_what_a_default_cluster_does(self) -> None:
        assert asked() == Needs(kubernetes="v1.36.3", keeps_time=True)

    def test_everything_that_a_file_may_say_is_heard(self) -> None:
        found = asked("""
            endpoint: {kind: keepalived, address: 10.0.0.100}
            roleGroups:
              control-plane: [node1]
              worker: [node2]
              loadbalancer: [node3]
              registry: [node3]
              etcd: [node1]
            etcd: {version: v3.6.14}
            containerRuntime: {version: v2.3.4, sandboxImage: mine.lan/pause:3}
            network: {plugin: cilium, cilium: {version: v1.20.1}}
            dns: {version: v1.15.0, nodeLocal: {enabled: true}}
            storage:
              localPath: {enabled: true, version: v0.0.37}
              nfs: {server: nas.lan, path: /data, version: v4.0.2}
            registry: {port: 5001}
            addons:
            - {name: shown, chart: {name: podinfo, repository: "https://mine.lan/", version: 6.9.0}}
            - {name: newest, chart: {name: other, repository: "https://mine.lan/", version: 1.0.0}}
            - {name: here, chart: {name: charts/mine}}
            - {name: plain, inline: "kind: ConfigMap"}
            system: {ntp: {enabled: false}}
        """)

        assert found == Needs(
            kubernetes="v1.36.3",
            etcd="systemd",
            network="cilium",
            endpoint="keepalived-haproxy",
            nodelocal_dns=True,
            storage=("local-path", "nfs"),
            tools=("crictl", "helm"),
            charts=(
                ChartRelease(name="podinfo", version="6.9.0", repository="https://mine.lan/"),
                ChartRelease(name="other", version="1.0.0", repository="https://mine.lan/"),
            ),
            extra_images=("mine.lan/pause:3",),
            registry="node3:5001",
            own_registry=True,
            versions={
                "etcd": "v3.6.14",
                "containerd": "v2.3.4",
                "cilium": "v1.20.1",
                "coredns": "v1.15.0",
                "local-path": "v0.0.37",
                "nfs": "v4.0.2",
            },
        )

    def test_versions_of_what_the_cluster_does_not_have_are_left_out(self) -> None:
        text = dedent(PLAIN) + (
            "  network: {plugin: routed}\n  storage: {localPath: {version: v0.0.37}}\n"
        )
        # As a whole, such a file is refused.
        found = needs(checked(source.parse(text, "c"), rules=()).declared)

        assert (found.network, found.versions) == ("routed", {})

    def test_the_mode_of_kube_proxy_is_that_of_the_file(self) -> None:
        text = dedent(PLAIN).replace("v1.36.3}", "v1.36.3, kubeProxy: {mode: nftables}}")

        assert needs(parse_cluster(text).declared).proxy == "nftables"

    def test_a_registry_of_the_user_has_its_name_and_port(self) -> None:
        found = asked("registry: {host: registry.lan}")

        assert (found.registry, found.own_registry) == ("registry.lan:5000", False)

    def test_packages_are_asked_for_only_if_somebody_says_so(self) -> None:
        assert asked(families=("apt", "rpm")).families == ("apt", "rpm")

    @pytest.mark.parametrize("name", ["single", "haproxy", "nginx"])
    def test_other_endpoints_are_called_alike(self, name: str) -> None:
        assert asked(f"endpoint: {{kind: {name}}}").endpoint == name


class TestArchitectures:
    def test_what_the_file_says_wins_over_what_is_known(self) -> None:
        text = dedent(PLAIN).replace('"10.0.0.[1:3]"', '"10.0.0.[1:3]", arch: arm64')

        found = needs(parse_cluster(text).declared, {"node1": "amd64"})

        assert found.architectures == ("arm64",)

    def test_what_is_known_of_some_stands_beside_the_usual_of_others(self) -> None:
        assert asked(arch={"node2": "arm64"}).architectures == ("amd64", "arm64")

    def test_what_is_known_of_all_leaves_no_room_for_the_usual(self) -> None:
        known = {"node1": "arm64", "node2": "arm64", "node3": "arm64"}

        assert asked(arch=known).architectures == ("arm64",)


class TestOwnRegistry:
    def test_it_brings_its_image_and_what_runs_it(self) -> None:
        wanted = asked("roleGroups: {control-plane: [node1], worker: [node2], registry: [node3]}")

        found = bill(catalog.load(), wanted)

        [image] = [each for each in found.images if each.component == "registry"]
        assert image.name == "docker.io/library/registry:3.0.0"
        assert image.pulled_as == image.name  # it can't be pulled from itself
        assert image.used_on == ("registry",)
        on_it = {each.component for each in found.binaries if "registry" in each.used_on}
        assert on_it == {"containerd", "runc"}

    def test_the_other_images_come_from_it(self) -> None:
        wanted = asked("roleGroups: {control-plane: [node1], worker: [node2], registry: [node3]}")

        others = [each for each in bill(catalog.load(), wanted).images if not each.used_on[1:]]

        assert {each.pulled_as.split("/")[0] for each in others if each.component == "etcd"} == {
            "node3:5000"
        }

    def test_a_cluster_without_one_does_not_bring_it(self) -> None:
        found = bill(catalog.load(), asked("registry: {host: registry.lan}"))

        assert not [each for each in found.images if each.component == "registry"]


class TestImageRepository:
    @pytest.fixture
    def moved(self) -> Needs:
        text = dedent(PLAIN).replace("v1.36.3}", "v1.36.3, imageRepository: mirror.lan/k8s}")
        return needs(parse_cluster(text).declared)

    def test_the_images_of_kubeadm_come_from_there_without_folders(self, moved: Needs) -> None:
        found = {each.component: each.name for each in bill(catalog.load(), moved).images}

        assert found["coredns"] == "mirror.lan/k8s/coredns:v1.14.2"
        assert found["pause"] == "mirror.lan/k8s/pause:3.10.2"
        assert found["etcd"] == "mirror.lan/k8s/etcd:3.6.8-0"
        assert found["calico"].startswith("quay.io/calico/")

    def test_kubeadm_is_told_so(self, moved: Needs) -> None:
        found = kubeadm_images(bill(catalog.load(), moved))

        assert found.repository == found.dns_repository == found.etcd_repository == "mirror.lan/k8s"

    def test_a_repository_that_is_none_is_told(self) -> None:
        with pytest.raises(InvalidInput, match="is no image reference"):
            bill(catalog.load(), Needs(kubernetes="1.36", image_repository="Not A Repository"))
