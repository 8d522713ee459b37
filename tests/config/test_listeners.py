"""Who listens where, by what the file says."""

from __future__ import annotations

from typing import Any

import pytest
from tests.config.test_rules import cluster

from kubexm.config.cluster import checked
from kubexm.config.rules.listeners import Listeners
from kubexm.document import source


@pytest.mark.parametrize(
    ("encapsulation", "ports"),
    [
        ("vxlan", {"udp/4789"}),
        ("vxlan-cross-subnet", {"udp/4789"}),
        ("ipip", {"tcp/179"}),
        ("none", {"tcp/179"}),
    ],
)
def test_calico_exchanges_routes_or_carries_packets(encapsulation: str, ports: set[str]) -> None:
    network = {"plugin": "calico", "calico": {"encapsulation": encapsulation}}
    declared = checked(source.from_data(cluster(network=network))).declared

    found = {f"{one.protocol}/{one.port}" for one in Listeners(declared).of(declared.members[1])}

    assert found & {"udp/4789", "tcp/179"} == ports


def heard(**kubernetes: Any) -> dict[int, str]:
    """Who listens on a kube node with these settings, by port."""
    spec = cluster(kubernetes={"version": "v1.36.3", **kubernetes})
    declared = checked(source.from_data(spec)).declared
    return {one.port: one.who for one in Listeners(declared).of(declared.members[1])}


@pytest.mark.parametrize(
    ("address", "port"),
    [("0.0.0.0:9999", 9999), ("[::]:9999", 9999), ("", 10256), ("0.0.0.0", 10256)]
    + [(text, 10256) for text in (None, 5, "a:b", "a:99999", "a:" + "9" * 5000)],
)
def test_kube_proxy_listens_where_its_settings_say(address: Any, port: int) -> None:
    found = heard(kubeProxy={"config": {"healthzBindAddress": address}})

    proxies = {one for one, who in found.items() if who == "kube-proxy"}
    assert proxies == {10249, port}


@pytest.mark.parametrize(("port", "is_there"), [(10255, True), (0, False), (True, False)])
def test_the_kubelet_has_a_port_to_read_alone_if_it_is_told_to(port: Any, is_there: bool) -> None:
    found = heard(kubelet={"config": {"readOnlyPort": port}})

    assert (found.get(10255) == "the kubelet") == is_there
