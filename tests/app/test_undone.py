"""What runs of a name have changed is taken back by a later one: as if there had been none."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from tests.app.site import Site, task_of

from kubexm.app.runs import RunOutcome
from kubexm.plan.records import LedgerDropped
from kubexm.store import Store

HOSTS = """
hosts: [{name: n1}, {name: n2}]
simulate: {latency: {kind: fixed, seconds: 0.001}}
"""
MODULES = """
modules:
  - name: app
    tasks:
      - name: work
        steps:
"""
Step = tuple[str, dict[str, Any]]
STEPS: dict[str, Step] = {
    "place": ("directory", {"path": "/srv/app"}),
    "conf": ("file", {"path": "/srv/app/conf", "content": "one\n"}),
    "key": ("file", {"path": "/srv/app/key", "content": "key", "secret": True}),
    "motd": ("file", {"path": "/etc/motd", "content": "ours\n"}),
    "hosts": ("block", {"path": "/etc/hosts", "content": "10.0.0.1 shop"}),
    "zone": ("timezone", {"zone": "Europe/Berlin"}),
    "tools": ("package", {"names": ["nginx"]}),
    "service": ("service", {"unit": "nginx", "restartsOn": ["/srv/app/conf"]}),
}


def forward(site: Site, **changed: str) -> None:
    """A pipeline that makes the changes."""
    steps = STEPS | {"conf": ("file", STEPS["conf"][1] | changed)}
    write(site, {name: {kind: fields} for name, (kind, fields) in steps.items()})


def backward(site: Site) -> None:
    """A pipeline that takes them back, the last one first, and settles at the end."""
    undone = {f"no-{name}": stored(step) for name, step in reversed(STEPS.items())}
    undone["settled"] = stored(STEPS["service"]) | {"settles": True}
    write(site, {name: {"undone": fields} for name, fields in undone.items()})


def stored(step: Step) -> dict[str, Any]:
    """A step as a graph has it."""
    kind, fields = step
    names = {"restartsOn": "restarts_on"}
    return {"step": kind, "params": {names.get(name, name): fields[name] for name in fields}}


def write(site: Site, steps: Mapping[str, Mapping[str, Any]]) -> None:
    lines = (json.dumps({"name": name, **step}) for name, step in steps.items())
    site.write(HOSTS + MODULES + "".join(f"          - {line}\n" for line in lines))


def state(site: Site) -> dict[str, object]:
    """All that differs on both hosts from how they were delivered, but for what kubexm keeps."""
    with site.hosts() as found:
        return {
            f"{name}:{key}": value
            for name in ("n1", "n2")
            for key, value in found(name).difference().items()
            if "/var/lib/kubexm" not in key
        }


def changed(outcome: RunOutcome) -> Counter[bool]:
    """How many units have changed something, and how many have not."""
    assert outcome.result.status == "Success", outcome.result
    nodes = outcome.result.node_results.values()
    return Counter(host.changed for node in nodes for host in node.host_results.values())


def in_ledger(site: Site) -> int:
    with Store.open(site.database) as store:
        return len(store.ledger("site"))


def kept_on(site: Site, host: str) -> list[str]:
    """What is kept of prior states on a host."""
    with site.hosts() as found:
        names = found(host).difference()
    kept = ("/var/lib/kubexm/ledger/", "/var/lib/kubexm/priors/")
    return [name for name in names if any(place in name for place in kept)]


def test_a_delete_is_the_inverse_of_a_create(site: Site) -> None:
    forward(site)
    site.run()
    assert state(site)
    backward(site)

    outcome = site.run()

    assert changed(outcome)[True] >= 2 * len(STEPS)
    assert state(site) == {}
    assert in_ledger(site) == 0
    assert kept_on(site, "n1") == []


def test_a_second_delete_has_nothing_to_do(site: Site) -> None:
    forward(site)
    site.run()
    backward(site)
    site.run()

    assert changed(site.run()) == {False: 2 * (len(STEPS) + 1)}


def test_what_was_there_before_the_first_of_many_runs_comes_back(site: Site) -> None:
    forward(site)
    site.make_world()
    site.put("n1", "/etc/motd", "of the host\n")
    before = state(site)
    for content in ("one\n", "two\n"):
        forward(site, content=content)
        site.run()
    backward(site)

    site.run()

    assert state(site) == before
    assert site.read("n1", "/etc/motd") == "of the host\n"


def test_a_create_after_a_delete_records_anew(site: Site) -> None:
    forward(site)
    site.run()
    backward(site)
    site.run()
    site.put("n1", "/etc/motd", "of the host, by now\n")
    before = state(site)
    forward(site)
    site.run()
    backward(site)

    site.run()

    assert state(site) == before
    assert site.read("n1", "/etc/motd") == "of the host, by now\n"


def test_what_kubexm_has_not_changed_stays(site: Site) -> None:
    backward(site)
    site.make_world()
    site.put("n1", "/etc/motd", "of the host\n")

    assert changed(site.run())[True] == 0
    assert site.read("n1", "/etc/motd") == "of the host\n"


def test_a_lost_store_is_no_reason_to_leave_anything(site: Site) -> None:
    forward(site)
    site.run()
    for part in site.world.glob("kubexm.db*"):
        part.unlink()
    backward(site)

    site.run()

    assert state(site) == {}
    assert kept_on(site, "n2") == []


def test_a_dry_run_tells_what_would_be_taken_back_and_changes_nothing(site: Site) -> None:
    forward(site)
    site.run()
    before, entries = state(site), in_ledger(site)
    backward(site)

    outcome = site.run(check=True)

    signs = {
        host.sign
        for node in outcome.result.node_results.values()
        for host in node.host_results.values()
    }
    assert signs == {"-"}
    assert (state(site), in_ledger(site)) == (before, entries)


@pytest.mark.parametrize("node", ["no-tools", "no-motd", "no-place"])
def test_a_delete_that_was_stopped_is_resumed_to_the_same_end(site: Site, node: str) -> None:
    forward(site)
    site.run()
    backward(site)
    task = site.stopped_at(node)

    outcome = site.resume(task)

    assert outcome.result.status == "Success"
    assert state(site) == {}
    assert in_ledger(site) == 0


def test_the_journal_tells_what_the_ledger_has_lost(site: Site) -> None:
    forward(site)
    site.run()
    backward(site)

    outcome = site.run()

    with Store.open(site.database) as store:
        records = [record for _, record in store.records(task_of(outcome))]
    dropped = [record.resource for record in records if isinstance(record, LedgerDropped)]
    assert dropped.count("file:/etc/motd") == 2


def test_what_others_put_into_a_directory_is_left_with_it(site: Site) -> None:
    forward(site)
    site.run()
    site.put("n1", "/srv/app/theirs", "data\n")
    backward(site)

    outcome = site.run()

    left = outcome.result.node_results["site/app/work/no-place"].host_results["n1"]
    assert left.message == "left as it is: `/srv/app` is not empty"
    assert site.read("n1", "/srv/app/theirs") == "data\n"
    assert site.read("n1", "/srv/app/conf") is None
    assert in_ledger(site) == 1
