"""Names in the cluster: who is asked for which."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kubexm.templates import formats, render
from kubexm.templates.context import Context
from kubexm.templates.contexts.dns import CoreDnsManifest, NodeLocalDnsManifest, Zone

IMAGE = "registry.example/dns:v1"
ZONE = Zone(names=("corp.example.com", "lan"), servers=("10.0.0.5", "fd00::5"))


def objects(name: str, sample: Context) -> dict[str, Any]:
    found = formats.parsed(render.render(name, sample.data()), "manifests")
    return {each["kind"]: each for each in found}


def servers(name: str, sample: Context) -> dict[str, str]:
    """What a Corefile says, by the zone that it is for."""
    text = objects(name, sample)["ConfigMap"]["data"]["Corefile"]
    blocks = re.findall(r"^(\S[^{\n]*)\{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE)
    return {zone.removesuffix(":53"): body for zones, body in blocks for zone in zones.split()}


def core_dns(**more: Any) -> CoreDnsManifest:
    return CoreDnsManifest(image=IMAGE, addresses=("10.233.0.10",), **more)


class TestCoreDns:
    def test_others_are_asked_for_what_is_not_in_the_cluster(self) -> None:
        found = servers("coredns/manifest", core_dns(upstream=("10.0.0.53", "fd00::53")))

        assert set(found) == {"."}
        assert "forward . 10.0.0.53 fd00::53 {" in found["."]
        assert "kubernetes cluster.local in-addr.arpa ip6.arpa {" in found["."]

    def test_where_nobody_can_be_asked_other_names_do_not_exist(self) -> None:
        found = servers("coredns/manifest", core_dns())

        assert set(found) == {".", "cluster.local", "in-addr.arpa", "ip6.arpa"}
        assert "rcode NXDOMAIN" in found["."]
        assert "kubernetes" not in found["."]
        assert not [body for body in found.values() if "forward" in body or "loop" in body]

    @pytest.mark.parametrize("upstream", [(), ("/etc/resolv.conf",)])
    def test_domains_of_others_are_asked_for_there(self, upstream: tuple[str, ...]) -> None:
        found = servers("coredns/manifest", core_dns(upstream=upstream, zones=(ZONE,)))

        for zone in ZONE.names:
            assert "forward . 10.0.0.5 fd00::5\n" in found[zone]
            assert "kubernetes" not in found[zone]

    @pytest.mark.parametrize("upstream", [(), ("/etc/resolv.conf",)])
    def test_it_is_ready_when_it_knows_the_cluster(self, upstream: tuple[str, ...]) -> None:
        found = servers("coredns/manifest", core_dns(upstream=upstream))

        knowing = {body for body in found.values() if "kubernetes" in body}
        assert [body for body in knowing if "ready\n" in body and "health {" in body]
        assert len(knowing) == 1

    def test_it_is_found_ready_at_once_and_given_up_slowly(self) -> None:
        (container,) = objects("coredns/manifest", core_dns())["Deployment"]["spec"]["template"][
            "spec"
        ]["containers"]

        probe = container["readinessProbe"]
        assert probe["periodSeconds"] == 1
        assert probe["periodSeconds"] * probe["failureThreshold"] == 15

    @pytest.mark.parametrize(
        ("addresses", "policy", "families"),
        [
            (("10.233.0.10",), "SingleStack", ["IPv4"]),
            (("fd00:233::a",), "SingleStack", ["IPv6"]),
            (("10.233.0.10", "fd00:233::a"), "RequireDualStack", ["IPv4", "IPv6"]),
        ],
    )
    def test_its_service_has_an_address_of_each_family(
        self, addresses: tuple[str, ...], policy: str, families: list[str]
    ) -> None:
        sample = CoreDnsManifest(image=IMAGE, addresses=addresses)
        spec = objects("coredns/manifest", sample)["Service"]["spec"]

        assert (spec["clusterIP"], spec["clusterIPs"]) == (addresses[0], list(addresses))
        assert (spec["ipFamilyPolicy"], spec["ipFamilies"]) == (policy, families)


class TestNodeLocal:
    def test_everything_is_asked_of_core_dns(self) -> None:
        sample = NodeLocalDnsManifest(image=IMAGE, upstream=("10.233.0.10",))
        found = servers("nodelocaldns/manifest", sample)

        assert set(found) == {"."}
        assert "bind 169.254.25.10\n" in found["."]
        assert "forward . 10.233.0.10 {" in found["."]

    def test_it_is_asked_how_it_is_where_it_listens(self) -> None:
        sample = NodeLocalDnsManifest(image=IMAGE, upstream=("fd00::a",), address="fd00::25")
        found = objects("nodelocaldns/manifest", sample)
        (container,) = found["DaemonSet"]["spec"]["template"]["spec"]["containers"]

        assert "health [fd00::25]:9254\n" in servers("nodelocaldns/manifest", sample)["."]
        assert container["readinessProbe"]["httpGet"]["host"] == "fd00::25"
        assert container["args"][:2] == ["-localip", "fd00::25"]
