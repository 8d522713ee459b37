"""Who listens where, by what the file says."""

from __future__ import annotations

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
