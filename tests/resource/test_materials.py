"""Bills of materials: what a cluster needs, each thing once and with its reason."""

from pathlib import Path
from textwrap import dedent
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubexm.errors import InvalidInput
from kubexm.resource import catalog, images
from kubexm.resource.catalog import Catalog, ChartRelease
from kubexm.resource.entries import ARCHES, FAMILIES
from kubexm.resource.kubeadm_images import kubeadm_images
from kubexm.resource.materials import BillOfMaterials, bill
from kubexm.resource.needs import Endpoint, Etcd, Needs, Network, Proxy, Storage, Tool
from kubexm.resource.private_names import private


@pytest.fixture
def known() -> Catalog:
    return catalog.load()


def text(found: BillOfMaterials) -> str:
    """A bill as people compare it: one thing per line."""
    lines = [
        *(
            f"file {each.component} {each.version} {each.arch} {each.file}"
            f" @{'+'.join(each.used_on)}{'' if each.sha256 else ' unlocked'}"
            for each in found.binaries
        ),
        *(f"image {each.pulled_as} @{'+'.join(each.used_on)}" for each in found.images),
        *(f"chart {each.name} {each.version} {each.repository}" for each in found.charts),
        *(f"{each.family} {each.name} @{'+'.join(each.used_on)}" for each in found.packages),
        *(f"warning {warning}" for warning in found.warnings),
    ]
    return "".join(f"{line}\n" for line in lines)


def problems(known: Catalog, *needs: Needs) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as caught:
        bill(known, *needs)
    return [(problem.message, problem.hint) for problem in caught.value.problems]


class TestGolden:
    def test_the_plain_cluster(self, known: Catalog) -> None:
        needs = Needs(kubernetes="v1.36.3", families=("apt",))

        assert text(bill(known, needs)) == dedent("""\
            file calico v3.32.1 any calico.yaml @control-plane+worker
            file cni-plugins v1.9.1 amd64 cni-plugins-linux-amd64-v1.9.1.tgz @control-plane+worker
            file containerd v2.3.4 amd64 containerd-2.3.4-linux-amd64.tar.gz @control-plane+worker
            file crictl v1.36.0 amd64 crictl-v1.36.0-linux-amd64.tar.gz @control-plane+worker
            file etcd v3.6.8 amd64 etcd-v3.6.8-linux-amd64.tar.gz @control-plane
            file kubernetes v1.36.3 amd64 kubeadm @control-plane+worker
            file kubernetes v1.36.3 amd64 kubectl @control-plane
            file kubernetes v1.36.3 amd64 kubelet @control-plane+worker
            file runc v1.4.3 amd64 runc.amd64 @control-plane+worker
            image quay.io/calico/cni:v3.32.1 @control-plane+worker
            image quay.io/calico/kube-controllers:v3.32.1 @control-plane+worker
            image quay.io/calico/node:v3.32.1 @control-plane+worker
            image registry.k8s.io/coredns/coredns:v1.14.2 @control-plane+worker
            image registry.k8s.io/etcd:3.6.8-0 @control-plane
            image registry.k8s.io/kube-apiserver:v1.36.3 @control-plane
            image registry.k8s.io/kube-controller-manager:v1.36.3 @control-plane
            image registry.k8s.io/kube-proxy:v1.36.3 @control-plane+worker
            image registry.k8s.io/kube-scheduler:v1.36.3 @control-plane
            image registry.k8s.io/pause:3.10.2 @control-plane+worker
            apt conntrack @control-plane+worker
            apt ethtool @control-plane+worker
            apt iproute2 @control-plane+worker
            apt iptables @control-plane+worker
            apt socat @control-plane+worker
        """)

    def test_a_routed_site_built_from_go_modules(self, known: Catalog) -> None:
        needs = Needs(
            kubernetes="v1.35.4",
            etcd="systemd",
            network="routed",
            endpoint="keepalived-haproxy",
            proxy="nftables",
            storage=("local-path",),
            addons=("metrics-server",),
            tools=("helm",),
            families=("apt", "rpm"),
            registry="registry.lan:5000/kube",
            versions={
                "etcd": "v3.6.16",
                "containerd": "v2.4.2",
                "runc": "v1.5.2",
                "coredns": "v1.15.0",
                "helm": "v4.3.1",
                "local-path": "v0.0.30",
            },
        )

        assert text(bill(known, needs)) == dedent("""\
            file cni-plugins v1.9.1 amd64 cni-plugins-linux-amd64-v1.9.1.tgz @control-plane+worker
            file containerd v2.4.2 amd64 containerd-2.4.2-linux-amd64.tar.gz @control-plane+worker unlocked
            file etcd v3.6.16 amd64 etcd-v3.6.16-linux-amd64.tar.gz @etcd unlocked
            file helm v4.3.1 amd64 helm-v4.3.1-linux-amd64.tar.gz @control-plane unlocked
            file kubernetes v1.35.4 amd64 kubeadm @control-plane+worker
            file kubernetes v1.35.4 amd64 kubectl @control-plane
            file kubernetes v1.35.4 amd64 kubelet @control-plane+worker
            file runc v1.5.2 amd64 runc.amd64 @control-plane+worker unlocked
            image registry.lan:5000/kube/docker.io/library/busybox:1.37.0 @control-plane+worker
            image registry.lan:5000/kube/docker.io/rancher/local-path-provisioner:v0.0.30 @control-plane+worker
            image registry.lan:5000/kube/registry.k8s.io/coredns/coredns:v1.15.0 @control-plane+worker
            image registry.lan:5000/kube/registry.k8s.io/kube-apiserver:v1.35.4 @control-plane
            image registry.lan:5000/kube/registry.k8s.io/kube-controller-manager:v1.35.4 @control-plane
            image registry.lan:5000/kube/registry.k8s.io/kube-proxy:v1.35.4 @control-plane+worker
            image registry.lan:5000/kube/registry.k8s.io/kube-scheduler:v1.35.4 @control-plane
            image registry.lan:5000/kube/registry.k8s.io/metrics-server/metrics-server:v0.9.0 @control-plane+worker
            image registry.lan:5000/kube/registry.k8s.io/pause:3.10.1 @control-plane+worker
            apt conntrack @control-plane+worker
            apt ethtool @control-plane+worker
            apt haproxy @load-balancer
            apt iproute2 @control-plane+worker
            apt iptables @control-plane+worker
            apt keepalived @load-balancer
            apt nftables @control-plane+worker
            apt socat @control-plane+worker
            rpm conntrack-tools @control-plane+worker
            rpm ethtool @control-plane+worker
            rpm haproxy @load-balancer
            rpm iproute @control-plane+worker
            rpm iptables @control-plane+worker
            rpm keepalived @load-balancer
            rpm nftables @control-plane+worker
            rpm socat @control-plane+worker
        """)  # noqa: E501 one thing per line

    def test_everything_else(self, known: Catalog) -> None:
        needs = Needs(
            kubernetes="1.37",
            architectures=("amd64", "arm64"),
            etcd="external",
            network="cilium",
            endpoint="kube-vip",
            proxy="none",
            nodelocal_dns=True,
            storage=("nfs",),
            tools=(),
            charts=(ChartRelease(name="podinfo", version="6.9.0", repository="https://mine.lan/"),),
            extra_images=("busybox",),
            families=("zypper",),
            keeps_time=True,
        )

        assert text(bill(known, needs)) == dedent("""\
            file cni-plugins v1.9.1 amd64 cni-plugins-linux-amd64-v1.9.1.tgz @control-plane+worker
            file cni-plugins v1.9.1 arm64 cni-plugins-linux-arm64-v1.9.1.tgz @control-plane+worker
            file containerd v2.3.4 amd64 containerd-2.3.4-linux-amd64.tar.gz @control-plane+worker
            file containerd v2.3.4 arm64 containerd-2.3.4-linux-arm64.tar.gz @control-plane+worker
            file helm v4.2.3 amd64 helm-v4.2.3-linux-amd64.tar.gz @control-plane
            file helm v4.2.3 arm64 helm-v4.2.3-linux-arm64.tar.gz @control-plane
            file kubernetes v1.37.1 amd64 kubeadm @control-plane+worker unlocked
            file kubernetes v1.37.1 arm64 kubeadm @control-plane+worker unlocked
            file kubernetes v1.37.1 amd64 kubectl @control-plane unlocked
            file kubernetes v1.37.1 arm64 kubectl @control-plane unlocked
            file kubernetes v1.37.1 amd64 kubelet @control-plane+worker unlocked
            file kubernetes v1.37.1 arm64 kubelet @control-plane+worker unlocked
            file runc v1.4.3 amd64 runc.amd64 @control-plane+worker
            file runc v1.4.3 arm64 runc.arm64 @control-plane+worker
            image docker.io/library/busybox:latest @control-plane+worker
            image ghcr.io/kube-vip/kube-vip:v1.2.3 @control-plane
            image quay.io/cilium/cilium-envoy:v1.37.5-1786810558-766ccfb37260a43e9d228837aa84ce3faf9f64e7 @control-plane+worker
            image quay.io/cilium/cilium:v1.20.1 @control-plane+worker
            image quay.io/cilium/operator-generic:v1.20.1 @control-plane+worker
            image registry.k8s.io/coredns/coredns:v1.14.6 @control-plane+worker
            image registry.k8s.io/dns/k8s-dns-node-cache:1.26.8 @control-plane+worker
            image registry.k8s.io/kube-apiserver:v1.37.1 @control-plane
            image registry.k8s.io/kube-controller-manager:v1.37.1 @control-plane
            image registry.k8s.io/kube-scheduler:v1.37.1 @control-plane
            image registry.k8s.io/pause:3.10.2 @control-plane+worker
            image registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0.2 @control-plane+worker
            chart cilium 1.20.1 https://helm.cilium.io/
            chart podinfo 6.9.0 https://mine.lan/
            zypper chrony @control-plane+worker
            zypper conntrack-tools @control-plane+worker
            zypper ethtool @control-plane+worker
            zypper iproute2 @control-plane+worker
            zypper iptables @control-plane+worker
            zypper nfs-client @control-plane+worker
            zypper socat @control-plane+worker
            warning `cilium` `v1.20.1` with Kubernetes `v1.37.1` is not tested: Cilium 1.20 is tested up to Kubernetes v1.36
        """)  # noqa: E501 one thing per line

    @pytest.mark.parametrize(
        ("endpoint", "balancer", "expected"),
        [
            ("haproxy", "image", "image docker.io/library/haproxy:3.2.19-alpine @worker"),
            ("nginx", "image", "image docker.io/library/nginx:1.30.1-alpine @worker"),
            ("haproxy", "package", "apt haproxy @worker"),
            ("nginx", "package", "apt libnginx-mod-stream @worker\napt nginx @worker"),
        ],
    )
    def test_a_balancer_on_every_worker_comes_as_image_or_package(
        self, known: Catalog, endpoint: Endpoint, balancer: str, expected: str
    ) -> None:
        plain = {"kubernetes": "1.36", "families": ("apt",), "balancer": balancer}

        before = text(bill(known, msgspec.convert(plain, Needs)))
        after = text(bill(known, msgspec.convert({**plain, "endpoint": endpoint}, Needs)))

        added = [line for line in after.splitlines() if line not in before.splitlines()]
        assert "\n".join(added) == expected

    def test_flannel_brings_the_plugin_of_its_release(self, known: Catalog) -> None:
        needs = Needs(kubernetes="1.36", network="flannel", versions={"flannel": "0.28.4"})

        found = [image.name for image in bill(known, needs).images if image.component == "flannel"]

        assert found == [
            "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel1",
            "ghcr.io/flannel-io/flannel:v0.28.4",
        ]


class TestKubeadm:
    def test_prints_the_names_of_the_bill(self, known: Catalog) -> None:
        found = kubeadm_images(bill(known, Needs(kubernetes="v1.36.3")))

        # What `kubeadm config images list` of v1.36.3 prints.
        assert sorted(found.names) == [
            "registry.k8s.io/coredns/coredns:v1.14.2",
            "registry.k8s.io/etcd:3.6.8-0",
            "registry.k8s.io/kube-apiserver:v1.36.3",
            "registry.k8s.io/kube-controller-manager:v1.36.3",
            "registry.k8s.io/kube-proxy:v1.36.3",
            "registry.k8s.io/kube-scheduler:v1.36.3",
            "registry.k8s.io/pause:3.10.2",
        ]
        assert found.repository == "registry.k8s.io"

    def test_is_told_where_they_are_in_a_private_registry(self, known: Catalog) -> None:
        needs = Needs(kubernetes="v1.36.3", registry="mine.lan", versions={"coredns": "1.15.0"})

        found = kubeadm_images(bill(known, needs))

        assert found.repository == found.etcd_repository == "mine.lan/registry.k8s.io"
        assert found.dns_repository == "mine.lan/registry.k8s.io/coredns"
        assert (found.dns_tag, found.etcd_tag) == ("v1.15.0", "3.6.8-0")

    def test_does_not_run_an_etcd_of_its_own_hosts(self, known: Catalog) -> None:
        found = kubeadm_images(bill(known, Needs(kubernetes="v1.36.3", etcd="systemd")))

        assert (found.etcd_repository, found.etcd_tag) == ("", "")
        assert not [name for name in found.names if "etcd" in name]

    def test_is_not_told_two_things_at_once(self, known: Catalog) -> None:
        two = bill(known, Needs(kubernetes="v1.36.3"), Needs(kubernetes="v1.36.4"))

        with pytest.raises(InvalidInput, match="several versions"):
            kubeadm_images(two)


class TestProblems:
    def test_all_are_told_at_once(self, known: Catalog) -> None:
        needs = Needs(
            kubernetes="v1.36.3",
            architectures=(),
            network="flannel",
            addons=("metric-server",),
            extra_images=("No Image",),
            registry="mine.lan",
            versions={"containerd": "1.7.34", "flannel": "0.1", "dockr": "28"},
        )

        found = problems(known, needs)

        assert [message.partition(":")[0] for message, _ in found] == [
            "found no architecture, want at least one",
            "`containerd` `v1.7.34` with Kubernetes `v1.36.3` does not go together",
            "unknown version `0.1` of `flannel`",
            "unknown component `dockr`",
            "unknown component `metric-server`",
            "`No Image` is no image reference",
        ]
        assert all(hint for _, hint in found)

    def test_an_unknown_kubernetes_does_not_hide_the_others(self, known: Catalog) -> None:
        needs = Needs(
            kubernetes="v1.33.1",
            addons=("metric-server",),
            extra_images=("No Image",),
            versions={"etcd": "v3.6.99"},
        )

        found = problems(known, needs)

        assert found[0] == (
            "unknown version `v1.33.1` of `kubernetes`",
            (
                "the nearest known is `v1.34.0`; if there is one, add "
                '`[components.kubernetes.versions."v1.33.1"]` to a catalog of your own'
            ),
        )
        assert [message.split(" ")[0] for message, _ in found[1:]] == [
            "unknown",
            "unknown",
            "`No",
        ]

    def test_of_several_clusters_are_told_once(self, known: Catalog) -> None:
        needs = Needs(kubernetes="v1.33.1")

        assert len(problems(known, needs, needs, Needs(kubernetes="v1.32.1"))) == 2

    @pytest.mark.parametrize(
        "registry", ["https://mine.lan", "", "mine.lan/", "mine.lan/Kube", "a b"]
    )
    def test_a_registry_that_is_none_is_told_once(self, known: Catalog, registry: str) -> None:
        [(message, hint)] = problems(known, Needs(kubernetes="1.36", registry=registry))

        assert message.startswith(f"found `{registry}`, want a registry")
        assert "https://" in hint

    @pytest.mark.parametrize(("version", "count"), [("3.5.23", 1), ("3.5.24", 0), ("4.0", 0)])
    def test_an_external_etcd_must_be_new_enough_and_need_not_be_known(
        self, known: Catalog, version: str, count: int
    ) -> None:
        needs = Needs(kubernetes="1.36", etcd="external", versions={"etcd": version})

        found = problems(known, needs) if count else []

        assert len(found) == count
        if count:
            assert found[0][1].startswith("bring it to `v3.5.24` or newer")
        else:
            assert bill(known, needs).kubernetes == ("v1.36.4",)

    def test_a_version_of_a_users_catalog_is_taken(self, tmp_path: Path) -> None:
        mine = tmp_path / "mine.toml"
        mine.write_text('[components.kubernetes.versions."v1.36.99"]\n')
        extended = catalog.load([mine])

        found = bill(extended, Needs(kubernetes="1.36.99"))

        assert "registry.k8s.io/kube-apiserver:v1.36.99" in [image.name for image in found.images]


class TestDefaultsOfUsers:
    def test_what_nothing_needs_is_left_out_where_the_catalog_has_none(
        self, known: Catalog, tmp_path: Path
    ) -> None:
        mine = tmp_path / "mine.toml"
        mine.write_text('[kubernetes."v1.36".defaults]\ncrictl = ""\n')
        components = {**known.entries.components}
        del components["crictl"]
        unknown = Catalog(replace(known.entries, components=components))

        for each in (catalog.load([mine]), unknown):
            found, usual = (bill(one, Needs(kubernetes="1.36")) for one in (each, known))
            others = [file for file in usual.binaries if file.component != "crictl"]
            assert [*found.binaries] == others != [*usual.binaries]
            assert found.images == usual.images

    def test_what_a_cluster_needs_is_not(self, tmp_path: Path) -> None:
        mine = tmp_path / "mine.toml"
        mine.write_text('[kubernetes."v1.36".defaults]\nrunc = ""\n[components.runc]\ndefault = ""')

        found = problems(catalog.load([mine]), Needs(kubernetes="1.36"))

        assert "no version of `runc` is the default for Kubernetes" in found[0][0]

    def test_the_etcd_that_kubeadm_runs_is_theirs(self, known: Catalog, tmp_path: Path) -> None:
        mine = tmp_path / "mine.toml"
        mine.write_text('[kubernetes."v1.36".defaults]\netcd = "v3.6.14"\n')

        usual = kubeadm_images(bill(known, Needs(kubernetes="1.36")))
        found = kubeadm_images(bill(catalog.load([mine]), Needs(kubernetes="1.36")))

        assert (usual.etcd_tag, found.etcd_tag) == ("3.6.8-0", "3.6.14-0")
        assert "registry.k8s.io/etcd:3.6.14-0" in found.names

    def test_an_etcd_that_is_too_old_is_told(self, tmp_path: Path) -> None:
        mine = tmp_path / "mine.toml"
        mine.write_text(
            '[kubernetes."v1.36".defaults]\netcd = "v3.5.0"\n[components.etcd.versions."v3.5.0"]\n'
        )

        found = problems(catalog.load([mine]), Needs(kubernetes="1.36"))

        assert "`etcd` `v3.5.0` with Kubernetes `v1.36.4` does not go together" in found[0][0]


class TestReasons:
    def test_every_thing_has_one(self, known: Catalog) -> None:
        needs = Needs(kubernetes="1.36", families=("apt",), extra_images=("busybox",))

        found = bill(known, needs)

        for items in (found.binaries, found.images, found.packages):
            assert all(item.reasons and all(item.reasons) for item in items)

    def test_of_one_thing_are_joined(self, known: Catalog) -> None:
        needs = Needs(kubernetes="1.36", extra_images=("registry.k8s.io/pause:3.10.2",))

        [pause] = [image for image in bill(known, needs).images if image.component == "pause"]

        assert pause.reasons == ("every pod has one", "somebody asked for it")

    def test_an_image_asked_for_by_name_is_known_by_its_component(self, known: Catalog) -> None:
        older = Needs(kubernetes="1.34", extra_images=("registry.k8s.io/pause:3.10.2",))
        newer = Needs(kubernetes="1.36")

        both = bill(known, older, newer)

        assert both == bill(known, newer, older)
        assert [image.version for image in both.images if image.component == "pause"] == [
            "3.10.1",
            "3.10.2",
        ]


ALL_NEEDS = st.builds(
    Needs,
    kubernetes=st.sampled_from(["1.34", "1.35", "v1.36.3", "v1.36.4", "1.37"]),
    architectures=st.lists(st.sampled_from(ARCHES), min_size=1, unique=True).map(tuple),
    etcd=st.sampled_from(get_args(Etcd)),
    network=st.sampled_from(get_args(Network)),
    endpoint=st.sampled_from(get_args(Endpoint)),
    balancer=st.sampled_from(["image", "package"]),
    proxy=st.sampled_from(get_args(Proxy)),
    nodelocal_dns=st.booleans(),
    storage=st.lists(st.sampled_from(get_args(Storage)), unique=True).map(tuple),
    tools=st.lists(st.sampled_from(get_args(Tool)), unique=True).map(tuple),
    addons=st.lists(st.sampled_from(["metrics-server", "haproxy"])).map(tuple),
    extra_images=st.lists(st.sampled_from(["busybox", "registry.k8s.io/pause:3.10.2"])).map(tuple),
    families=st.lists(st.sampled_from(FAMILIES), unique=True).map(tuple),
    registry=st.sampled_from([None, "mine.lan", "mine.lan:5000/kube"]),
)


class TestProperties:
    @given(ALL_NEEDS, ALL_NEEDS)
    def test_a_bill_of_several_has_what_each_has_and_no_more(self, one: Needs, two: Needs) -> None:
        known = catalog.load()

        both, parts = bill(known, one, two), [bill(known, one), bill(known, two)]

        for kind in ("binaries", "images", "charts", "packages"):
            apart = {item.key for part in parts for item in getattr(part, kind)}
            assert {item.key for item in getattr(both, kind)} == apart
        assert set(both.warnings) == {warning for part in parts for warning in part.warnings}

    @given(ALL_NEEDS, ALL_NEEDS)
    def test_the_order_in_which_they_are_told_does_not_matter(self, one: Needs, two: Needs) -> None:
        known = catalog.load()

        assert bill(known, one, two) == bill(known, two, one, one)

    @given(ALL_NEEDS)
    def test_nothing_is_in_it_twice_and_all_is_sorted(self, needs: Needs) -> None:
        found = bill(catalog.load(), needs)

        for items in (found.binaries, found.images, found.charts, found.packages):
            keys = [item.key for item in items]
            assert keys == sorted(set(keys))
        assert len({image.pulled_as for image in found.images}) == len(found.images)

    @given(ALL_NEEDS)
    def test_it_is_the_same_after_it_was_written_as_json(self, needs: Needs) -> None:
        found = bill(catalog.load(), needs)

        data = msgspec.json.encode(found)

        assert msgspec.json.decode(data, type=BillOfMaterials) == found
        assert msgspec.json.encode(bill(catalog.load(), needs)) == data


HOSTS = st.from_regex(r"[a-z]{1,3}(\.[a-z]{1,3}){1,2}(:[0-9]{2,4})?", fullmatch=True)
FOLDERS = st.from_regex(r"[a-z0-9]{1,3}([._-][a-z0-9]{1,3}){0,2}", fullmatch=True)
NAMES = st.builds(
    lambda host, folders, tag: images.parse(f"{host}/{'/'.join(folders)}:{tag}"),
    HOSTS,
    st.lists(FOLDERS, min_size=1, max_size=3),
    st.sampled_from(["1", "v2"]),
)


class TestPrivateNames:
    @pytest.mark.parametrize(
        ("image", "expected"),
        [
            ("registry.k8s.io/pause:3.10.2", "mine.lan:5000/kube/registry.k8s.io/pause:3.10.2"),
            ("busybox", "mine.lan:5000/kube/docker.io/library/busybox:latest"),
            ("other:5000/a/b:1", "mine.lan:5000/kube/other_5000/a/b:1"),
            ("mine.lan:5000/kube/a:1", "mine.lan:5000/kube/a:1"),
            ("mine.lan:5000/kubes/a:1", "mine.lan:5000/kube/mine.lan_5000/kubes/a:1"),
        ],
    )
    def test_keep_the_whole_name(self, image: str, expected: str) -> None:
        assert str(private(images.parse(image), "mine.lan:5000/kube")) == expected

    @given(NAMES, NAMES)
    def test_are_never_the_same_for_two_images_from_elsewhere(
        self, one: images.Reference, two: images.Reference
    ) -> None:
        names = [private(image, "private.registry.lan/kube") for image in (one, two)]

        assert (names[0] == names[1]) == (one == two)

    @given(NAMES)
    def test_can_be_read_and_stay_as_they_are(self, image: images.Reference) -> None:
        name = private(image, "private.registry.lan/kube")

        assert images.parse(str(name)) == name
        assert private(name, "private.registry.lan/kube") == name

    def test_of_an_address_in_brackets_there_are_none(self) -> None:
        with pytest.raises(InvalidInput, match="want a host name"):
            private(images.parse("[fd00::1]:5000/a:1"), "mine.lan")
