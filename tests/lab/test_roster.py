"""Which hosts a lab has."""

import pytest

from lab import roster
from lab.errors import LabError
from lab.roster import Entry, Suite


def test_hosts_are_numbered_and_have_the_address_of_their_number() -> None:
    hosts = roster.roster(2, 1)

    assert [(host.name, host.address) for host in hosts] == [
        ("node1", "10.99.0.11"),
        ("node2", "10.99.0.12"),
        ("trixie1", "10.99.0.111"),
    ]


def test_no_two_hosts_of_the_largest_lab_share_an_address() -> None:
    hosts = roster.roster(roster.MOST_NODES, roster.MOST_TRIXIE, roster.SPECIAL)
    addresses = [address for host in hosts for address in (host.address, host.inner_address)]

    taken = [address for address in addresses if address]
    assert len(taken) == len(set(taken))


def test_the_standard_roster_has_a_host_of_every_kind() -> None:
    hosts = roster.standard()

    assert {host.suite for host in hosts} == set(Suite)
    assert {host.entry for host in hosts} == set(Entry)
    assert [host.name for host in hosts if host.behind] == ["hidden"]


def test_the_hidden_host_brings_its_bastion() -> None:
    assert [host.name for host in roster.roster(0, 0, ["hidden"])] == ["bastion", "hidden"]


@pytest.mark.parametrize("number", [-1, roster.MOST_NODES + 1])
def test_a_number_that_has_no_address_is_refused(number: int) -> None:
    with pytest.raises(LabError, match=f"0 to {roster.MOST_NODES} nodes, not {number}"):
        roster.roster(number)


def test_an_unknown_special_host_is_refused_with_those_there_are() -> None:
    with pytest.raises(LabError, match="no special host `gait`, only: gate, bastion, hidden"):
        roster.roster(0, 0, ["gait"])
