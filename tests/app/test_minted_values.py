"""Values that are made when they turn out to be needed, and what may be said of them before."""

from __future__ import annotations

from tests.app.site import Site

PARTS = """
hosts: [{name: n1}, {name: n2}]
modules:
  - name: join
    tasks:
      - name: work
        steps:
          - {name: make, runOnOneOf: [all], mint: {key: tokens, argv: [make], parse: json}}
          - name: use
            command:
              argv: [join, "${values.tokens.0.token}"]
              stdin: "${values.tokens.0.where}"
              env: {WHERE: "https://${values.tokens.0.where}"}
              creates: /srv/joined
simulate:
  scripts:
    - {argv: [make], stdout: '[{"token": "t1", "where": "n1"}]'}
    - {argv: [join, t1], effects: {files: {/srv/joined: ""}}}
"""


def test_a_part_of_a_value_is_used_that_was_not_made_when_the_unit_looked(site: Site) -> None:
    site.write(PARTS)

    outcome = site.run()

    assert outcome.result.status == "Success"
    assert site.ran("make") in ({"n1": 1}, {"n2": 1})
    assert site.read("n2", "/srv/joined") == ""


def test_it_is_not_made_when_nobody_needs_it(site: Site) -> None:
    site.write(PARTS)
    site.run()
    made = site.ran("make")

    site.run()

    assert site.ran("make") == made
