"""Pod networks, and the address that control planes hold, do what is asked of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubexm.templates import formats, render
from kubexm.templates.context import Context
from kubexm.templates.contexts.network import (
    Bgp,
    BgpPeer,
    CalicoChanges,
    CiliumValues,
    FlannelManifest,
    KubeVipPod,
)

V4, V6 = "10.233.64.0/18", "fd00:64::/56"


def read(name: str, sample: Context) -> Any:
    form = "manifests" if name.endswith("/manifest") else "yaml"
    return formats.parsed(render.render(name, sample.data()), form)  # type: ignore[arg-type]


class TestKubeVip:
    def environment(self, **more: Any) -> dict[str, str]:
        sample = KubeVipPod(image="registry.example/kube-vip:v1", address="10.0.0.10", **more)
        (container,) = read("kube-vip/pod", sample)["spec"]["containers"]
        return {each["name"]: each.get("value", "") for each in container["env"]}

    def test_tells_the_network_by_arp_unless_there_are_routers(self) -> None:
        peers = (BgpPeer(address="10.0.0.1", asn=65001), BgpPeer(address="fd00::1", asn=65002))
        by_arp = self.environment(interface="eth1")
        by_bgp = self.environment(bgp=Bgp(router_id="10.0.0.11", asn=65000, peers=peers))

        assert (by_arp["vip_arp"], by_arp["vip_interface"]) == ("true", "eth1")
        assert "bgp_enable" not in by_arp
        assert "vip_arp" not in by_bgp
        assert by_bgp["bgp_peers"] == "10.0.0.1:65001::false,[fd00::1]:65002::false"

    def test_finds_the_interface_itself_if_none_is_named(self) -> None:
        assert "vip_interface" not in self.environment()

    def test_takes_the_interface_of_the_hosts_own_address(self) -> None:
        others = {"10.1.0.11": "eth1"}

        assert self.environment(own="10.1.0.11", others=others)["vip_interface"] == "eth1"
        assert "vip_interface" not in self.environment(own="10.0.0.11", others=others)
        named = self.environment(interface="eth2", own="10.1.0.11", others=others)
        assert named["vip_interface"] == "eth2"

    def test_reads_the_file_that_it_is_given_under_the_name_that_it_knows(self) -> None:
        sample = KubeVipPod(image="a/b:c", address="10.0.0.10", kubeconfig="/etc/super.conf")
        spec = read("kube-vip/pod", sample)["spec"]

        assert spec["volumes"][0]["hostPath"] == {"path": "/etc/super.conf", "type": "File"}
        (mount,) = spec["containers"][0]["volumeMounts"]
        assert mount["mountPath"] == "/etc/kubernetes/admin.conf"


class TestFlannel:
    def settings(self, **more: Any) -> tuple[Any, Any]:
        """Those of the plugin and of the daemon, which are JSON."""
        sample = FlannelManifest(image="a/b:c", plugin_image="a/d:e", **more)
        (data,) = (
            each["data"] for each in read("flannel/manifest", sample) if each["kind"] == "ConfigMap"
        )
        return json.loads(data["cni.json"]), json.loads(data["network.json"])

    def test_of_one_family_says_nothing_of_the_other(self) -> None:
        assert self.settings(ipv4_cidr=V4)[1] == {"Network": V4, "Backend": {"Type": "vxlan"}}
        assert self.settings(ipv6_cidr=V6)[1] == {
            "EnableIPv4": False,
            "EnableIPv6": True,
            "IPv6Network": V6,
            "Backend": {"Type": "vxlan"},
        }

    def test_pods_get_the_packet_size_that_was_asked_for(self) -> None:
        plugin, _ = self.settings(ipv4_cidr=V4, mtu=1400)
        other, _ = self.settings(ipv4_cidr=V4)

        assert plugin["plugins"][0]["delegate"]["mtu"] == 1400
        assert "mtu" not in other["plugins"][0]["delegate"]

    def test_it_goes_by_the_address_of_its_host_unless_an_interface_is_named(self) -> None:
        def daemon(**more: Any) -> Any:
            sample = FlannelManifest(image="a/b:c", plugin_image="a/d:e", ipv4_cidr=V4, **more)
            return read("flannel/manifest", sample)[-1]["spec"]["template"]["spec"]["containers"][0]

        found = daemon(by_host_address=True)
        address = {"fieldRef": {"fieldPath": "status.hostIP"}}
        assert "--iface=$(HOST_ADDRESS)" in found["args"]
        assert {"name": "HOST_ADDRESS", "valueFrom": address} in found["env"]
        assert "--iface=eth1" in daemon(by_host_address=True, interface="eth1")["args"]
        assert not [arg for arg in daemon()["args"] if arg.startswith("--iface")]

    def test_its_pods_are_made_anew_when_its_settings_change(self) -> None:
        def annotations(**more: Any) -> Any:
            sample = FlannelManifest(image="a/b:c", plugin_image="a/d:e", ipv4_cidr=V4, **more)
            daemon = read("flannel/manifest", sample)[-1]
            return daemon["spec"]["template"]["metadata"]["annotations"]

        assert annotations() != annotations(backend="host-gw")
        assert annotations() != annotations(mtu=1400)


class TestCalico:
    def changes(self, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        settings, daemon = read("calico/changes", CalicoChanges(**more))["set"]
        return settings["merge"]["data"], daemon

    @pytest.mark.parametrize(
        ("encapsulation", "backend", "vxlan", "ipip"),
        [
            ("vxlan", "vxlan", "Always", "Never"),
            ("vxlan-cross-subnet", "vxlan", "CrossSubnet", "Never"),
            ("ipip", "bird", "Never", "Always"),
            ("none", "bird", "Never", "Never"),
        ],
    )
    def test_packets_go_as_asked(
        self, encapsulation: Any, backend: str, vxlan: str, ipip: str
    ) -> None:
        settings, daemon = self.changes(ipv4_cidr=V4, encapsulation=encapsulation)

        assert settings["calico_backend"] == backend
        assert daemon["env"]["CALICO_IPV4POOL_VXLAN"] == vxlan
        assert daemon["env"]["CALICO_IPV4POOL_IPIP"] == ipip
        assert bool(daemon["without"]) == (backend == "vxlan")

    def test_every_value_of_a_variable_is_text(self) -> None:
        _, daemon = self.changes(ipv4_cidr=V4, ipv6_cidr=V6, block_size=24)

        assert {type(value) for value in daemon["env"].values()} == {str}

    def test_pods_get_addresses_of_every_family_that_there_is(self) -> None:
        settings, daemon = self.changes(ipv4_cidr=V4, ipv6_cidr=V6, mtu=1400)
        plugin = settings["cni_network_config"].replace("__CNI_MTU__", settings["veth_mtu"])
        ipam = json.loads(plugin)["plugins"][0]["ipam"]

        assert ipam == {"type": "calico-ipam", "assign_ipv4": "true", "assign_ipv6": "true"}
        assert daemon["env"]["FELIX_IPV6SUPPORT"] == "true"
        assert "cni_network_config" not in self.changes(ipv4_cidr=V4)[0]


class TestCilium:
    def values(self, **more: Any) -> Any:
        sample = CiliumValues(
            api_host="api.internal",
            agent_image="a/agent:1",
            envoy_image="a/envoy:1",
            operator_image="a/operator:1",
            **more,
        )
        return read("cilium/values", sample)

    def test_takes_the_place_of_kube_proxy_only_where_there_is_none(self) -> None:
        assert self.values(ipv4_cidr=V4)["kubeProxyReplacement"] is False
        assert self.values(ipv4_cidr=V4, replaces_kube_proxy=True)["kubeProxyReplacement"] is True

    def test_pods_get_the_packet_size_that_was_asked_for(self) -> None:
        assert self.values(ipv4_cidr=V4, mtu=1400)["MTU"] == 1450
        assert "MTU" not in self.values(ipv4_cidr=V4)

    def test_has_the_families_of_the_cluster(self) -> None:
        found = self.values(ipv4_cidr=V4, ipv6_cidr=V6, node_mask=25)

        assert found["ipv4"] == found["ipv6"] == {"enabled": True}
        assert found["ipam"]["operator"] == {
            "clusterPoolIPv4PodCIDRList": [V4],
            "clusterPoolIPv4MaskSize": 25,
            "clusterPoolIPv6PodCIDRList": [V6],
            "clusterPoolIPv6MaskSize": 64,
        }
