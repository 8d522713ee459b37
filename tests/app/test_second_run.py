"""A run that goes back ends where it began, whatever earlier runs have done."""

from __future__ import annotations

import pytest
from tests.app.site import Site, stopping_at, task_of

from kubexm.store import Store

HOSTS = """
hosts: [{name: n1}, {name: n2}]
vars: {version: "1", broken: false}
onFailure: rollback
"""
STEPS = """
modules:
  - name: app
    tasks:
      - name: work
        steps:
          - {name: place, directory: {path: /srv/app}}
          - {name: conf, file: {path: /srv/app/conf, content: "${vars.version}"}}
          - {name: key, file: {path: /srv/app/key, content: "key ${vars.version}", secret: true}}
          - {name: hosts, block: {path: /etc/hosts, content: "version ${vars.version}"}}
          - {name: line, line: {path: /etc/app, line: "v=${vars.version}", match: "^v="}}
          - name: big
            template: {path: /srv/big, text: "{{ v * 70000 }}", data: {v: "${vars.version}"}}
          - {name: kept, when: not vars.broken, directory: {path: /srv/old}}
          - {name: old, when: vars.broken, absent: {path: /srv/old, recursive: true}}
          - {name: tools, package: {names: [curl, nginx]}}
          - {name: nginx, service: {unit: nginx, restartsOn: [/srv/app/conf]}}
      - name: check
        steps:
          - {name: fails, when: vars.broken, command: {argv: [/bin/false]}}
"""


def state(site: Site) -> dict[str, dict[str, object]]:
    """All of both hosts but what kubexm keeps for itself there."""
    with site.hosts() as found:
        whole = {name: found(name).difference() for name in ("n1", "n2")}
    return {
        name: {key: value for key, value in items.items() if "/var/lib/kubexm" not in key}
        for name, items in whole.items()
    }


def write(site: Site, version: str, *, broken: bool = False) -> None:
    hosts = HOSTS.replace('"1"', f'"{version}"').replace("false", str(broken).lower())
    site.write(hosts + STEPS)


def after_the_first_run(site: Site) -> dict[str, dict[str, object]]:
    write(site, "1")
    site.run()
    site.put("n1", "/srv/old/data", "of others")
    return state(site)


def test_a_second_run_that_fails_brings_back_what_the_first_has_made(site: Site) -> None:
    before = after_the_first_run(site)
    write(site, "2", broken=True)

    outcome = site.run()

    assert outcome.result.status == "RolledBack"
    assert state(site) == before
    with site.hosts() as found:
        starts = found("n1").starts("nginx")
    assert starts == 4, "by its package, with version 1, with 2, and with 1 again"


@pytest.mark.parametrize("undo", [False, True], ids=["on-the-way-there", "on-the-way-back"])
def test_it_does_so_when_it_was_interrupted(site: Site, undo: bool) -> None:
    before = after_the_first_run(site)
    write(site, "2", broken=True)
    task = task_of(site.run(front=stopping_at("hosts", undo=undo)))

    outcome = site.resume(task)

    assert outcome.result.status == "RolledBack"
    assert state(site) == before


def test_what_was_there_before_the_first_run_stays_known(site: Site) -> None:
    for version in ("1", "2", "3"):
        write(site, version)
        site.run()

    with Store.open(site.database) as store:
        kept = {(entry.host, entry.resource): entry.prior for entry in store.ledger("site")}

    assert kept["n1", "file:/srv/app/conf"] == {"kind": "absent"}
    assert kept["n1", "package:curl"] == {"version": None}
