"""Directories whose content is of the cluster, and what kubexm itself has noted on a host."""

from __future__ import annotations

import pytest
from tests.step.places import SimPlace

from kubexm.errors import StepFailed
from kubexm.step.data import DataDirectory
from kubexm.step.files import FilePresent
from kubexm.step.forgetting import Forgotten

_DATA = DataDirectory("/srv/etcd/data", mode="0700")


def test_what_was_not_there_goes_with_all_that_is_in_it(sim: SimPlace) -> None:
    sim.run(_DATA)
    sim.run(FilePresent("/srv/etcd/data/member", content="much"))
    sim.undo(_DATA)

    assert not [key for key in sim.world.host("there").difference() if key.startswith("/srv/etcd")]


def test_what_was_there_already_stays_as_it_was(sim: SimPlace) -> None:
    sim.run(FilePresent("/etc/motd", content="ours"))
    there = DataDirectory("/etc", mode="0700")
    sim.run(there)
    sim.undo(there)

    host = sim.world.host("there")
    assert host.read("/etc/motd") == b"ours"
    assert "/etc" not in host.difference()


def test_what_was_there_and_empty_is_left_empty(sim: SimPlace) -> None:
    sim.wait(sim.host.run("mkdir", "-p", "-m", "0755", "/mnt/disk/lost+found"))
    there = DataDirectory("/mnt/disk")
    assert "all that will be in it is ours" in sim.verdict(there).reason

    sim.run(there)
    sim.wait(sim.host.run("mkdir", "-p", "/mnt/disk/member/wal"))
    assert sim.verdict(there).satisfied
    sim.undo(there)

    left = [key for key in sim.world.host("there").difference() if key.startswith("/mnt/disk/")]
    assert left == ["/mnt/disk/lost+found"]


def test_what_was_there_with_something_in_it_is_nobodys_to_note(sim: SimPlace) -> None:
    sim.wait(sim.host.run("mkdir", "-p", "/mnt/disk/of-others"))
    assert sim.verdict(DataDirectory("/mnt/disk")).satisfied


def test_nothing_is_done_twice(sim: SimPlace) -> None:
    sim.run(_DATA)

    assert sim.verdict(_DATA).satisfied


def test_notes_are_gone_with_the_last_of_them(sim: SimPlace) -> None:
    step = Forgotten()
    assert sim.verdict(step).satisfied

    sim.wait(sim.host.run("mkdir", "-p", "/var/lib/kubexm/records"))
    assert sim.verdict(step).reason == "there are notes of kubexm"
    sim.run(step)

    assert sim.verdict(step).satisfied


def test_what_went_with_others_is_forgotten_also_where_the_host_has_no_notes(
    sim: SimPlace,
) -> None:
    sim.wait(sim.ledger.remember("image:k8s.io/pause", {"there": False}))
    step = Forgotten(gone=("image",))
    assert not sim.verdict(step).satisfied

    sim.run(step)

    assert sim.ledger.entries == {}
    assert sim.verdict(step).satisfied


def test_nothing_is_forgotten_that_nothing_has_undone(sim: SimPlace) -> None:
    sim.wait(sim.ledger.remember("image:k8s.io/pause", {"there": False}))
    sim.run(FilePresent("/etc/motd", content="ours"))

    with pytest.raises(StepFailed, match=r"`file:/etc/motd` here, and nothing has undone") as told:
        sim.run(Forgotten(gone=("image",)))

    assert "--without there" in told.value.hint
    assert len(sim.ledger.entries) == 2


def test_notes_of_another_name_stay(sim: SimPlace) -> None:
    sim.wait(sim.host.run("mkdir", "-p", "/var/lib/kubexm/ledger"))
    sim.wait(sim.host.put("/var/lib/kubexm/ledger/of-another.json", b"{}"))
    sim.run(Forgotten())

    assert sim.world.host("there").read("/var/lib/kubexm/ledger/of-another.json") == b"{}"
