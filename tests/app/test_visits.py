"""A run goes to the hosts on which something may have to be done, and to no others."""

from __future__ import annotations

import pytest
from tests.app.site import Site, statuses

BODY = """
vars: {wanted: false}
hosts: [{name: n1}, {name: n2}]
modules:
  - name: m
    tasks:
      - name: t
        steps:
          - {name: a, when: host.name == 'n1' or vars.wanted, file: {path: /a, content: x}}
          - {name: b, when: CONDITION, file: {path: /b, content: x}}
"""


@pytest.mark.parametrize(
    ("condition", "is_visited"),
    [
        ("vars.wanted", False),
        ("host.name == 'n1'", False),
        ("facts.cpus > 0 and vars.wanted", False),
        ("facts.cpus > 0", True),
        ("host.name == 'n2'", True),
    ],
)
def test_a_host_is_visited_where_a_condition_may_hold(
    site: Site, condition: str, is_visited: bool
) -> None:
    site.write(BODY.replace("CONDITION", condition))
    site.make_world()
    with site.hosts() as hosts:
        hosts("n2").stop()

    outcome = site.run()

    assert outcome.result.degraded is is_visited
    assert site.read("n1", "/a") == "x"


def test_what_is_left_out_on_a_host_that_is_not_visited_is_told(site: Site) -> None:
    site.write(BODY.replace("CONDITION", "vars.wanted"))

    outcome = site.run()

    assert statuses(outcome.result)["a"] == {"n1": "Success", "n2": "Satisfied"}
    assert statuses(outcome.result)["b"] == {"n1": "Satisfied", "n2": "Satisfied"}
