"""The directory of a lab."""

from pathlib import Path

import pytest

from lab import demolition, faultfile
from lab import site as sites
from lab.cgroups import Groups
from lab.errors import LabError
from lab.roster import standard
from lab.site import Site


def a_site(path: Path) -> Site:
    return Site(path, "abc123", "boot", Groups(path / "unified", ()))


def test_hosts_come_back_from_their_records_as_they_were(tmp_path: Path) -> None:
    site = a_site(tmp_path)

    for host in standard():
        site.add(host)

    assert site.hosts() == standard()


def test_an_unknown_host_is_refused_with_those_there_are(tmp_path: Path) -> None:
    site = a_site(tmp_path)
    site.add(standard()[0])

    with pytest.raises(LabError, match="no host `node9` in this lab, only: node1"):
        site.host("node9")


def test_a_directory_with_other_things_in_it_becomes_no_lab(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()

    with pytest.raises(LabError, match="neither empty nor a lab"):
        sites.found_new(tmp_path)


def test_taking_down_where_there_is_no_lab_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()

    assert demolition.down(tmp_path) is False
    assert demolition.down(tmp_path / "nowhere") is False
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_commands_about_no_lab_say_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="python -m lab up"):
        sites.require(tmp_path)


def test_a_lab_of_before_the_machine_was_restarted_is_only_taken_down(tmp_path: Path) -> None:
    sites.write(
        tmp_path / "lab.json",
        '{"id": "abc123", "boot": "another", "unified": "/nowhere/kxm-abc123", "controllers": []}',
    )

    with pytest.raises(LabError, match="ended with the machine"):
        sites.require(tmp_path)
    assert demolition.down(tmp_path) is True
    assert not tmp_path.exists()


def test_faults_are_kept_one_by_one(tmp_path: Path) -> None:
    home = a_site(tmp_path).home("node1")
    home.path.mkdir(parents=True)

    faultfile.change(home, cut=True)
    faultfile.change(home, loss=12.5)
    faultfile.change(home, cut=False)

    assert faultfile.read(home) == faultfile.Faults(loss=12.5)


def test_a_directory_whose_name_breaks_mount_options_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="take another directory"):
        sites.found_new(tmp_path / "a,b")
