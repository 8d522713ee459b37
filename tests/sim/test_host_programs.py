"""Clocks, routes, packet filters and scripts of simulated hosts."""

from __future__ import annotations

from collections.abc import Callable

from tests.sim.site import Site

from kubexm.common import layout
from kubexm.sim import Machine
from kubexm.templates.contexts.routed import SCRIPT, UNIT, RoutedRoutes, RoutedUnit

Make = Callable[..., Site]
FILTERS = Machine(packages={"iptables": "1.8.9", "nftables": "1.0.6", "ipset": "7.17"})


def test_the_time_zone_is_told_and_set(site: Site) -> None:
    asked = ("timedatectl", "show", "--property=Timezone", "--property=NTPSynchronized")

    assert site.do(*asked) == "Timezone=Etc/UTC\nNTPSynchronized=no"
    site.do("timedatectl", "set-timezone", "--", "Europe/Berlin")
    assert site.do(*asked).startswith("Timezone=Europe/Berlin")
    refused = site.ask("timedatectl", "set-timezone", "--", "Mars/Olympus")
    assert "Invalid or not installed time zone" in refused.error_text
    site.do("timedatectl", "set-timezone", "--", "Etc/UTC")
    assert site.world.snapshot() == {}


def test_chrony_keeps_the_time_while_it_runs(site: Site) -> None:
    assert "NTP not supported" in site.ask("timedatectl", "set-ntp", "true").error_text
    site.do("apt-get", "install", "-y", "chrony")

    assert site.do("timedatectl", "show", "--property=NTPSynchronized").endswith("yes")
    assert "Leap status     : Normal" in site.do("chronyc", "tracking")
    site.do("systemctl", "stop", "chrony")
    assert site.ask("chronyc", "tracking").error_text == "506 Cannot talk to daemon"
    site.do("rm", "/etc/chrony/chrony.conf")
    assert "no such file" in site.ask("systemctl", "start", "chrony").error_text


def test_routes_are_laid_shown_and_removed(site: Site) -> None:
    site.do("ip", "-4", "route", "replace", "10.244.1.0/24", "via", "10.0.0.2", "proto", "186")
    site.do("ip", "route", "add", "10.9.0.0/16", "via", "10.0.0.3")

    shown = site.do("ip", "-4", "route", "show", "proto", "186")
    assert shown == "10.244.1.0/24 via 10.0.0.2 proto 186"
    site.do("ip", "-4", "route", "flush", "proto", "186")
    assert site.do("ip", "route", "show").splitlines()[1:] == ["10.9.0.0/16 via 10.0.0.3"]
    site.do("ip", "route", "del", "10.9.0.0/16")
    assert site.ask("ip", "route", "del", "10.9.0.0/16").exit == 2
    assert site.world.snapshot() == {}


def test_rules_of_packet_filters_are_kept_until_they_are_taken_away(made: Make) -> None:
    site = made(machine=FILTERS)
    rule = ("POSTROUTING", "-s", "10.244.0.0/16", "-j", "MASQUERADE")

    assert site.ask("iptables", "-w", "-t", "nat", "-C", *rule).exit == 1
    site.do("iptables", "-w", "-t", "nat", "-A", *rule)
    site.do("iptables", "-A", "KUBE-FIREWALL", "-j", "DROP")
    saved = site.do("iptables-save")
    assert "*nat" in saved
    assert f"-A {' '.join(rule)}" in saved
    assert ":KUBE-FIREWALL - [0:0]" in saved
    nat = f"*nat\n-D {' '.join(rule)}\nCOMMIT\n"
    removal = f"{nat}*filter\n:KUBE-FIREWALL - [0:0]\n-X KUBE-FIREWALL\nCOMMIT\n"
    done = site.ask("iptables-restore", "--noflush", stdin=removal.encode())
    assert done.ok
    assert site.do("ip6tables-save").count("COMMIT") == 2
    assert '"nftables"' in site.do("nft", "-j", "list", "tables")
    assert site.do("ipset", "list", "-name") == ""
    assert site.world.snapshot() == {}


def test_links_are_shown_and_deleted(site: Site) -> None:
    shell = site.world.host("n1").shell()
    shell.state.set("link:cni0", 1)

    assert ["cni0" in line for line in site.do("ip", "-o", "link", "show").splitlines()] == [
        *(False, False, True)
    ]
    site.do("ip", "link", "delete", "cni0")
    assert site.ask("ip", "link", "delete", "cni0").exit == 1


def test_the_script_for_routes_lays_them_and_takes_them_away(made: Make) -> None:
    site = made(machine=FILTERS)
    routes = RoutedRoutes(
        node="n1",
        networks={"n1": ("10.244.0.0/24",), "n2": ("10.244.1.0/24", "fd01::/64")},
        addresses={"n1": ("10.0.0.1",), "n2": ("10.0.0.2", "fd00::2")},
        pod_networks=("10.244.0.0/16",),
    )
    site.write("routed/routes", routes, SCRIPT)
    site.do("chmod", "0755", SCRIPT)
    site.write("systemd/routed", RoutedUnit(), f"{layout.UNITS}/{UNIT}")
    before = site.world.snapshot()

    site.do("systemctl", "start", UNIT)

    assert site.do("ip", "-4", "route", "show", "proto", "186").startswith(
        "10.244.1.0/24 via 10.0.0.2"
    )
    assert site.do("ip", "-6", "route", "show", "proto", "186").startswith("fd01::/64 via fd00::2")
    assert "MASQUERADE" in site.do("iptables-save")
    site.do("systemctl", "stop", UNIT)
    assert site.world.snapshot() == before


def test_the_script_for_routes_fails_without_the_tool_it_calls(site: Site) -> None:
    routes = RoutedRoutes(node="n1", networks={}, addresses={}, pod_networks=("10.244.0.0/16",))
    site.write("routed/routes", routes, SCRIPT)
    site.do("chmod", "0755", SCRIPT)
    site.write("systemd/routed", RoutedUnit(), f"{layout.UNITS}/{UNIT}")

    done = site.ask("systemctl", "start", UNIT)

    assert "iptables: command not found" in done.error_text
