"""A run keeps what its hosts told of themselves, for plans that are made without them."""

from __future__ import annotations

from tests.app.site import Site

from kubexm.store import facts
from kubexm.store.facts import KnownFacts

BODY = """
hosts: [{name: n1}, {name: n2}]
modules:
  - name: m
    tasks:
      - name: t
        steps:
          - {name: a, file: {path: /a, content: x}}
          - {name: b, file: {path: /b, content: x}}
          - {name: c, file: {path: /c, content: x}}
"""


def kept(site: Site) -> dict[str, KnownFacts]:
    return facts.read(site.database, "site")


def test_facts_are_kept_from_the_start_of_a_run_on(site: Site) -> None:
    site.write(BODY)

    site.stopped_at("a")

    assert kept(site).keys() == {"n1", "n2"}
    assert kept(site)["n1"].facts["hostname"] == "n1"


def test_a_resume_keeps_what_hosts_tell_by_then(site: Site) -> None:
    site.write(BODY)
    task = site.stopped_at("a")
    before = kept(site)["n1"].facts["boot_id"]
    with site.hosts() as hosts:
        hosts("n1").reboot()

    site.resume(task)

    assert kept(site)["n1"].facts["boot_id"] != before


def test_a_host_that_is_not_reached_keeps_what_it_told_before(site: Site) -> None:
    site.write(BODY)
    site.run()
    before = kept(site)
    with site.hosts() as hosts:
        hosts("n2").stop()

    site.run()

    assert kept(site)["n2"] == before["n2"]
    assert kept(site)["n1"].at > before["n1"].at


def test_a_dry_run_keeps_nothing(site: Site) -> None:
    site.write(BODY)

    site.run(check=True)

    assert not site.database.exists()
