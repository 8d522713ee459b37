"""A run under the debugger."""

from __future__ import annotations

import asyncio

from tests.app.site import Site

from kubexm.app.execution import Front
from kubexm.engine.debug import Choice, Situation

TWO_ON_EACH = """
    hosts: [{name: n1}, {name: n2}, {name: n3}]
    modules:
      - name: base
        tasks:
          - name: work
            steps:
              - {name: one, directory: {path: /srv/one}}
              - {name: two, directory: {path: /srv/two}}
"""


def test_units_go_one_at_a_time(site: Site) -> None:
    asked: list[tuple[str, str]] = []
    open_questions = 0

    async def ask(situation: Situation) -> Choice:
        nonlocal open_questions
        open_questions += 1
        for _ in range(10):  # time enough for another to ask as well
            await asyncio.sleep(0)
        assert open_questions == 1
        open_questions -= 1
        asked.append((situation.node.rpartition("/")[2], situation.host))
        return "run"

    site.write(TWO_ON_EACH)

    outcome = site.run(front=Front(ask=ask), debug=True)

    assert outcome.result.status == "Success"
    assert sorted(asked) == [
        (name, f"n{number}") for name in ("one", "two") for number in (1, 2, 3)
    ]
