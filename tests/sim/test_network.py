"""Hosts of a world find each other by names and addresses, as real ones do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.sim.site import Site

from kubexm.sim import Machine, ServiceSettings, World

ADDRESSES = {"a": ("10.0.0.1", "fd00::1"), "b": ("10.0.0.2",), "c": ("10.0.0.3",)}
WEB = Machine(services={"web": ServiceSettings(active=True, enabled=True, ports=(80,))})
Make = Callable[..., Site]


def reached(site: Site, at: str, where: str, port: int = 80) -> tuple[str, ...]:
    return site.world.host(at).reached(where, port)


def test_a_host_is_found_by_its_name_and_by_each_of_its_addresses(made: Make) -> None:
    site = made(addresses=ADDRESSES, machine=WEB)

    for where in ("a", "10.0.0.1", "fd00::1"):
        assert reached(site, "b", where) == ("a",)
    assert reached(site, "b", "127.0.0.1") == ("b",)
    assert reached(site, "b", "10.0.0.9") == ()
    assert site.do("hostname", "-I", host="a").split() == ["10.0.0.1", "fd00::1"]


def test_a_host_without_a_given_address_is_found_by_the_one_that_is_made_up(made: Make) -> None:
    site = made(machine=WEB)
    address = site.do("hostname", "-I", host="x").strip()
    site.do("touch", "/srv/x", host="x")
    site.close()

    again = World.open(site.world.path)

    assert again.host("y").reached(address, 80) == ("x",)
    again.close()


def test_a_host_that_is_down_is_not_reached(made: Make) -> None:
    site = made(addresses=ADDRESSES, machine=WEB)
    site.world.host("a").stop()

    assert reached(site, "b", "a") == ()
    assert not site.ask("bash", "-c", 'exec 3<>"/dev/tcp/$0/$1"', "10.0.0.1", "80", host="b").ok


def test_the_hosts_file_comes_first_and_all_its_addresses_are_tried_in_turn(made: Make) -> None:
    site = made(addresses=ADDRESSES, machine=WEB)
    site.put(
        "/etc/hosts", "10.0.0.9 api.lan # gone\n10.0.0.3 api.lan\n10.0.0.2 api.lan\n10.0.0.2 a\n"
    )

    assert site.world.host("n1").resolved("api.lan") == ("10.0.0.9", "10.0.0.3", "10.0.0.2")
    assert reached(site, "n1", "api.lan") == ("c", "b")
    assert reached(site, "n1", "API.LAN") == ("c", "b")
    assert reached(site, "n1", "a") == ("b",)
    assert reached(site, "b", "api.lan") == (), "another host has another file"


def test_a_name_that_nobody_knows_leads_nowhere(made: Make) -> None:
    site = made(addresses=ADDRESSES)

    answer = site.ask("curl", "-w", "%{http_code}", "https://api.demo.kubexm.internal:6443/readyz")

    assert (answer.exit, answer.text) == (6, "000")
    assert "Could not resolve host" in answer.error_text


@pytest.mark.parametrize("outside", [True, False])
def test_sites_outside_answer_if_the_world_lets_them(made: Make, outside: bool) -> None:
    site = made(outside=outside)

    answer = site.ask("curl", "-w", "%{http_code}", "https://dl.k8s.io/")

    assert answer.ok is outside
    assert site.world.host("n1").listens("dl.k8s.io", 443) is outside
    assert not site.world.host("n1").listens("dl.k8s.io", 6443)


def test_what_listens_at_the_loopback_address_is_for_its_own_host(made: Make) -> None:
    site = made(addresses=ADDRESSES)
    config = "listen api\n    bind 127.0.0.1:6443\n    server b 10.0.0.2:80\n"
    site.do("apt-get", "install", "-y", "haproxy", host="a")
    site.do("systemctl", "stop", "haproxy", host="a")
    site.do("rm", "/etc/haproxy/haproxy.cfg", host="a")
    site.put("/etc/haproxy/haproxy.cfg", config, host="a")
    site.do("systemctl", "start", "haproxy", host="a")

    assert site.world.host("a").listens("127.0.0.1", 6443)
    assert not site.world.host("a").listens("10.0.0.1", 6443)
    assert not site.world.host("b").listens("10.0.0.1", 6443)


def test_a_load_balancer_beside_the_hosts_leads_to_them(made: Make) -> None:
    behind = ("10.0.0.1:80", "10.0.0.2:80")
    site = made(addresses=ADDRESSES, machine=WEB, balancers={"10.0.0.99:6443": behind})
    site.put("/etc/hosts", "10.0.0.99 api.lan\n", host="c")

    assert reached(site, "c", "api.lan", 6443) == ("a", "b")
    assert reached(site, "c", "10.0.0.99", 443) == ()
    site.world.host("a").stop()
    assert reached(site, "c", "api.lan", 6443) == ("b",)


def test_a_load_balancer_may_have_a_name_that_only_the_world_knows(made: Make) -> None:
    site = made(addresses=ADDRESSES, machine=WEB, balancers={"api.lan:6443": ("10.0.0.1:80",)})

    assert reached(site, "c", "api.lan", 6443) == ("a",)
    assert not site.world.host("c").listens("api.lan", 443)


def test_what_is_beside_the_hosts_may_have_an_ipv6_address(made: Make) -> None:
    balancers = {"[fd00::99]:6443": ("[fd00::1]:80",)}
    site = made(addresses=ADDRESSES, machine=WEB, balancers=balancers, site=("[fd00:9::1]:2379",))
    here = site.world.host("c")

    assert reached(site, "c", "fd00::99", 6443) == ("a",)
    assert here.listens("fd00::99", 6443)
    assert here.listens("fd00:9::1", 2379)
    assert not here.listens("fd00:9::1", 2380)


def test_a_question_loads_only_the_hosts_that_it_is_about(made: Make) -> None:
    many = {f"n{number}": (f"10.1.{number // 250}.{number % 250 + 1}",) for number in range(5000)}
    site = made(addresses=many, machine=WEB)

    assert reached(site, "n0", "10.1.3.4") == ("n753",)

    assert not any((site.world.path / "hosts").iterdir()), "and nobody wrote anything"
