"""Simulated haproxy, nginx and keepalived: ports, the way through them, and who has an address."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.sim.site import Site

from kubexm.common import layout
from kubexm.sim import Machine, ServiceSettings
from kubexm.templates.contexts.balancer import (
    HAPROXY_CONFIG,
    KEEPALIVED_CONFIG,
    Backend,
    HaproxyConfig,
    KeepalivedConfig,
    NginxConfig,
)
from kubexm.templates.contexts.systemd import ContainedUnit, Mount

Make = Callable[..., Site]
LAST = {"cp1": 1, "cp2": 2, "w1": 5, "lb1": 11, "lb2": 12}
ADDRESSES = {name: (f"10.0.0.{number}",) for name, number in LAST.items()}
API = Machine(services={"api": ServiceSettings(active=True, enabled=True, ports=(6443,))})
VIRTUAL = "10.0.0.100"
BACKENDS = tuple(
    Backend(name=name, address=f"{ADDRESSES[name][0]}:6443") for name in ("cp1", "cp2")
)


@pytest.fixture
def site(made: Make) -> Site:
    return made(addresses=ADDRESSES, machines={"cp*": API})


def balance(site: Site, host: str, bind: str = "*:8443") -> None:
    site.do("apt-get", "install", "-y", "haproxy", host=host)
    config = HaproxyConfig(binds=(bind,), backends=BACKENDS, user="haproxy")
    site.write("haproxy/config", config, HAPROXY_CONFIG, host)
    site.do("systemctl", "restart", "haproxy", host=host)


def keep_alive(site: Site, host: str, order: int) -> None:
    site.do("apt-get", "install", "-y", "keepalived", host=host)
    config = KeepalivedConfig(
        name=host,
        interface="eth0",
        router_id=51,
        order=order,
        address=ADDRESSES[host][0],
        peers=tuple(own[0] for name, own in ADDRESSES.items() if name.startswith("lb")),
        virtual_address=VIRTUAL,
    )
    site.write("keepalived/config", config, KEEPALIVED_CONFIG, host)
    site.do("systemctl", "start", "keepalived", host=host)


def test_haproxy_leads_to_the_servers_that_answer(site: Site) -> None:
    balance(site, "lb1")
    worker = site.world.host("w1")

    assert worker.reached("lb1", 8443) == ("cp1", "cp2")
    site.do("systemctl", "stop", "api", host="cp1")
    assert worker.reached("lb1", 8443) == ("cp2",)
    site.world.host("cp2").stop()
    assert worker.reached("lb1", 8443) == ()
    assert worker.listens("lb1", 8443), "haproxy itself still takes the call"
    url = "https://lb1:8443/readyz"
    assert site.ask("curl", "-w", "%{http_code}", "--", url, host="w1").exit == 35
    assert site.world.host("lb1").listens("127.0.0.1", 8081)


@pytest.mark.parametrize(
    ("bind", "families"),
    [("*:8443", {4}), ("0.0.0.0:8443", {4}), ("[::]:8443 v4v6", {4, 6}), (":::8443 v4v6", {4, 6})],
)
def test_haproxy_serves_the_families_that_it_is_told(
    made: Make, bind: str, families: set[int]
) -> None:
    both = {name: (*own, own[0].replace("10.0.0.", "fd00::")) for name, own in ADDRESSES.items()}
    site = made(addresses=both, machines={"cp*": API})
    balance(site, "lb1", bind)

    worker = site.world.host("w1")
    assert worker.listens("10.0.0.11", 8443) == (4 in families)
    assert worker.listens("fd00::11", 8443) == (6 in families)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("nonsense\n", "unknown keyword 'nonsense'"),
        ("global\n    daemon\n", "no <listen> line"),
        ("frontend api\n    bind *:1\n    default_backend gone\n", "unable to find required"),
        ("listen api\n    bind *:22\n", "address already in use"),
    ],
)
def test_haproxy_does_not_start_with_a_configuration_that_is_wrong(
    made: Make, config: str, why: str
) -> None:
    ssh = ServiceSettings(active=True, ports=(22,))
    site = made(machine=Machine(services={"ssh": ssh}))
    site.do("apt-get", "install", "-y", "haproxy")
    site.put(HAPROXY_CONFIG, config)

    done = site.ask("systemctl", "restart", "haproxy")

    assert done.exit == 1
    assert why in done.error_text


def test_the_address_is_with_the_first_whose_haproxy_runs(site: Site) -> None:
    for order, host in enumerate(("lb1", "lb2")):
        balance(site, host)
        keep_alive(site, host, order)
    worker = site.world.host("w1")

    def holder() -> str:
        held = {host: site.world.host(host).held for host in ("lb1", "lb2")}
        (found,) = (host for host, addresses in held.items() if addresses == (VIRTUAL,))
        return found

    assert holder() == "lb1"
    assert worker.reached(VIRTUAL, 8443) == ("cp1", "cp2")
    site.do("systemctl", "stop", "haproxy", host="lb1")
    assert holder() == "lb2"
    assert worker.reached(VIRTUAL, 8443) == ("cp1", "cp2")
    site.world.host("lb2").stop()
    assert worker.reached(VIRTUAL, 8443) == (), "lb1 holds it, and nobody listens there"
    site.do("systemctl", "start", "haproxy", host="lb1")
    assert worker.reached(VIRTUAL, 8443) == ("cp1", "cp2")
    assert VIRTUAL in site.do("hostname", "-I", host="lb1")
    site.do("systemctl", "stop", "keepalived", host="lb1")
    assert not worker.listens(VIRTUAL, 8443)


def test_keepalived_waits_for_its_configuration_and_refuses_a_wrong_one(site: Site) -> None:
    site.do("apt-get", "install", "-y", "keepalived")
    site.do("systemctl", "start", "keepalived")
    assert site.state("keepalived") == "inactive", "its unit wants the file to be there"

    site.put(KEEPALIVED_CONFIG, "vrrp_instance api {\n")

    assert "missing '}'" in site.ask("systemctl", "start", "keepalived").error_text


def test_nginx_in_a_container_leads_to_the_servers_of_its_stream(site: Site) -> None:
    image, path = "docker.io/library/nginx:1.30.1-alpine", f"{layout.BALANCER}/nginx.conf"
    site.run_containerd("w1")
    site.do("/usr/local/bin/ctr", "-n", "kubexm", "images", "pull", image, host="w1")
    config = NginxConfig(binds=("127.0.0.1:6443", "[::1]:6443"), backends=BACKENDS)
    site.write("nginx/config", config, path, "w1")
    unit = ContainedUnit(
        description="balancer",
        name="kubexm-nginx",
        image=image,
        arguments=("nginx", "-c", path),
        mounts=(Mount(source=path, target=path),),
    )
    site.write("systemd/contained", unit, f"{layout.UNITS}/kubexm-nginx.service", "w1")

    site.do("systemctl", "start", "kubexm-nginx", host="w1")

    assert site.world.host("w1").reached("127.0.0.1", 6443) == ("cp1", "cp2")
    assert site.world.host("w1").reached("::1", 6443) == ("cp1", "cp2")
    site.put(path, "stream { server { listen 1; }", host="w1")
    site.do("systemctl", "restart", "kubexm-nginx", host="w1")
    said = site.do("journalctl", "-u", "kubexm-nginx", host="w1")
    assert "unexpected end of file" in said


def test_packages_that_are_removed_leave_nothing(site: Site) -> None:
    for host in ("lb1", "lb2"):
        balance(site, host)
        keep_alive(site, host, 0)

        site.do("rm", KEEPALIVED_CONFIG, host=host)
        site.do("apt-get", "-y", "-q", "purge", "--", "keepalived", "haproxy", host=host)
        # Neither systemd nor dpkg takes it away.
        site.do("rm", "-r", "/var/lib/haproxy/dev", host=host)
        site.do("rmdir", "/var/lib/haproxy", host=host)

    assert site.world.snapshot() == {}
