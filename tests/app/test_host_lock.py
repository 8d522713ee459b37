"""Real runs on this machine: what a dead or frozen kubexm had begun is over before another acts."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.app.site import Site
from tests.connector.test_local_killed import watches

from kubexm.connector.base import Claim
from kubexm.connector.holder import HolderFile

pytestmark = pytest.mark.timeout(60)

# The first step does harm for as long as it runs, half a minute at most. When the way is free it
# has nothing to do, and the second one notes how far the harm had come.
HARMFUL = """
hosts: []
runOnRoles: [control-node]
modules:
  - name: base
    tasks:
      - name: work
        steps:
          - name: harm
            command:
              argv: [sh, -c, "for _ in $(seq 2000); do echo beat >>{place}/beats; sleep 0.01; done"]
              unless: [test, -e, "{place}/free"]
          - name: note
            command:
              argv: [cp, "{place}/beats", "{place}/noted"]
              creates: "{place}/noted"
"""


@pytest.fixture
def harmful(local: Site) -> Site:
    local.write(HARMFUL.format(place=local.root))
    return local


def beats(site: Site) -> Path:
    return site.root / "beats"


def is_harmless(site: Site) -> bool:
    """Whether nothing has been done to the host since the second run made its first change."""
    return beats(site).read_text() == (site.root / "noted").read_text()


def lock_files(site: Site) -> list[str]:
    place = site.home.state / "hosts/control-node/locks"
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def go_on(site: Site) -> None:
    """Resume the run, which finds the harmful step done."""
    (site.root / "free").touch()
    outcome = site.resume(site.stored()[0].id)

    assert outcome.result.status == "Success"


@pytest.mark.parametrize("unwatched", [False, True], ids=["watched", "unwatched"])
def test_what_a_killed_run_had_begun_is_over_before_it_is_resumed(
    harmful: Site, unwatched: bool
) -> None:
    with harmful.running() as first:
        first.until(beats(harmful).exists)
        # The shell that ends what is left behind may be killed too, and is when memory runs out.
        for watch in watches(first.pid) if unwatched else ():
            os.kill(watch, signal.SIGKILL)
        first.kill()

        go_on(harmful)

    assert is_harmless(harmful)
    assert lock_files(harmful) == ["site/holder"]


@pytest.mark.slow
def test_frozen_run_can_do_no_harm_when_it_wakes(harmful: Site) -> None:
    with harmful.running(lease=2.0) as first:
        first.until(beats(harmful).exists)
        first.popen.send_signal(signal.SIGSTOP)
        await_end_of_lease(harmful)

        go_on(harmful)
        before_it_woke = is_harmless(harmful)
        first.popen.send_signal(signal.SIGCONT)
        code, errors = first.ended()

    assert before_it_woke
    assert is_harmless(harmful)
    assert code == 1
    assert "error: lease-lost" in errors


def await_end_of_lease(site: Site) -> None:
    while site.stored()[0].holder is not None:
        time.sleep(0.02)


def test_dry_run_takes_no_lock(harmful: Site) -> None:
    outcome = harmful.run(check=True)

    assert outcome.result.status == "Success"
    assert not (harmful.home.state / "hosts").exists()


def test_run_with_nothing_to_do_takes_no_lock(harmful: Site) -> None:
    for name in ("free", "noted"):
        (harmful.root / name).touch()

    assert harmful.run().result.status == "Success"
    assert not (harmful.home.state / "hosts").exists()


def test_run_of_a_new_store_is_obeyed(harmful: Site) -> None:
    (harmful.root / "free").touch()
    beats(harmful).touch()
    for _ in range(3):
        harmful.run()
        (harmful.root / "noted").unlink()
    for file in harmful.home.state.glob("kubexm.db*"):
        file.unlink()

    assert harmful.run().result.status == "Success"


def test_host_that_obeys_a_later_run_refuses_this_one(harmful: Site) -> None:
    (harmful.root / "free").touch()
    beats(harmful).touch()
    later = Claim("site", int(time.time() + 3600) * 1000, "later", who="ada@elsewhere, pid 1")
    HolderFile(harmful.home.state / "hosts/control-node/locks", later).lay()

    outcome = harmful.run()

    (node,) = (n for id, n in outcome.result.node_results.items() if id.endswith("/note"))
    message = node.host_results["control-node"].message
    assert outcome.result.status == "Failed"
    assert f"obeys token {later.token}, task later (ada@elsewhere, pid 1) since 20" in message
    assert not (harmful.root / "noted").exists()
