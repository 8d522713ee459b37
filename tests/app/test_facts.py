"""A run keeps what its hosts told of themselves, for plans that are made without them."""

from __future__ import annotations

import pytest
from tests.app.site import Site

from kubexm.store import facts
from kubexm.store.facts import KnownFacts

BODY = """
hosts: [{name: n1, roles: [one]}, {name: n2, roles: [two]}]
modules:
  - name: m
    tasks:
      - name: t
        steps:
          - {name: a, when: facts.cpus > 0, file: {path: /a, content: x}}
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


# Only who needs facts is asked for them.


PLAIN = BODY.replace(" when: facts.cpus > 0,", "")


def with_step(role: str, step: str) -> str:
    task = f"{{name: other, runOnRoles: [{role}], steps: [{{name: x, {step}}}]}}"
    return f"{PLAIN}      - {task}\n"


@pytest.mark.parametrize(
    ("role", "step", "asked"),
    [
        ("one", "noop: {}", False),
        ("one", "when: host.name == 'n1', noop: {}", False),
        ("one", "when: facts.cpus > 0, noop: {}", True),
        ("two", "file: {path: /k, content: '${facts.kernel}'}", True),
        ("one", "assert: {that: facts.cpus > 0, message: has processors}", True),
        ("two", "package: {names: [hello]}", True),
    ],
)
def test_a_host_is_asked_for_its_facts_where_something_needs_them(
    site: Site, role: str, step: str, asked: bool
) -> None:
    site.write(with_step(role, step))

    outcome = site.run()

    assert outcome.result.status == "Success"
    assert kept(site).keys() == ({{"one": "n1", "two": "n2"}[role]} if asked else set())


def test_a_host_that_is_not_asked_keeps_what_it_told_before(site: Site) -> None:
    site.write(BODY)
    site.run()
    before = kept(site)

    site.write(PLAIN)
    site.run()

    assert kept(site) == before


def test_a_reboot_is_noticed_without_facts(site: Site) -> None:
    site.write(PLAIN)
    task = site.stopped_at("b")
    for name in ("n1", "n2"):
        site.put(name, "/a", "changed by somebody")
    with site.hosts() as hosts:
        hosts("n1").reboot()

    site.resume(task)

    # What a host had before a reboot is looked at again; elsewhere what is done is done.
    assert site.read("n1", "/a") == "x"
    assert site.read("n2", "/a") == "changed by somebody"
