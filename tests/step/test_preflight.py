"""The step that puts a host to its checks: what it refuses, what it only says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as with_fields
from tests.step.places import Place as Spot
from tests.step.places import SimPlace

from kubexm.errors import Refused
from kubexm.runner import facts, probing
from kubexm.runner.host import Command, Host
from kubexm.sim import Machine, ServiceSettings, WorldSettings
from kubexm.step import registry
from kubexm.step.preflight import JUDGES, Fit
from kubexm.step.preflight_look import Peer, Place

SMALL = Machine(
    memory_mib=900, swap_mib=512, services={"kubelet": ServiceSettings(active=True, ports=(10250,))}
)
FIT = Fit(
    checks=("memory", "swap", "leftovers", "ports-free"),
    cluster="demo",
    memory_mib=1700,
    ports={"tcp/10250": "the kubelet"},
)


def with_facts(place: Spot) -> Spot:
    place.host.facts = place.wait(facts.gather(place.host))
    return place


def test_a_host_is_refused_with_all_that_is_wrong(tmp_path: Path) -> None:
    place = with_facts(SimPlace(tmp_path, WorldSettings(machine=SMALL)))

    with pytest.raises(Refused) as caught:
        place.verdict(FIT)

    first, *lines = caught.value.message.splitlines()
    assert first == "not fit, by `memory`, `leftovers`, `ports-free`"
    assert lines[0].startswith("memory: less than 1,700 MiB of memory: 900 MiB (hint: give")
    assert [line.split(":")[0] for line in lines] == ["memory", "leftovers", "ports-free"]
    place.close()


def test_a_warning_is_said_and_refuses_nothing(tmp_path: Path) -> None:
    place = with_facts(SimPlace(tmp_path, WorldSettings(machine=Machine(swap_mib=512))))
    said: list[tuple[str, str]] = []

    verdict = place.wait(FIT.precheck(place.context(say=lambda *line: said.append(line))))

    assert verdict.satisfied
    assert verdict.reason.splitlines()[1].startswith("swap: there is swap: 512 MiB (hint: kubexm")
    assert [line for _, line in said] == verdict.reason.splitlines()[1:]
    place.close()


def test_what_the_cluster_itself_has_laid_there_is_no_trouble(tmp_path: Path) -> None:
    machine = with_fields(SMALL, memory_mib=4096, swap_mib=0)
    place = with_facts(SimPlace(tmp_path, WorldSettings(machine=machine)))
    place.wait(place.host.run("mkdir", "-p", "/var/lib/kubexm/records"))
    place.wait(place.host.put("/var/lib/kubexm/records/kubeadm.json", b'{"cluster": "demo"}'))

    findings = place.wait(FIT.examine(place.host))

    assert [(each.check, each.kind) for each in findings] == [
        ("leftovers", "held"),
        ("ports-free", "held"),
    ]
    assert place.verdict(FIT).satisfied
    place.close()


def test_it_changes_nothing(tmp_path: Path) -> None:
    place = with_facts(SimPlace(tmp_path))
    step = replace(FIT, checks=tuple(JUDGES), etcd="/var/lib/etcd", endpoint="10.0.0.100")
    before = place.state()

    assert place.verdict(step).satisfied
    place.run(step)

    assert place.state() == before
    place.close()


@pytest.mark.parametrize(
    ("check", "asked"), [("nameserver", ("10.0.0.2", "fd00::2")), ("memory", ())]
)
def test_servers_of_names_are_asked_only_by_the_check_that_is_about_them(
    check: str, asked: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = "nameserver 10.0.0.2\nnameserver no-address\nnameserver fd00::2\n"
    machine = Machine(files={"/etc/resolv.conf": file})
    place = with_facts(SimPlace(tmp_path, WorldSettings(machine=machine)))
    questions: list[probing.Questions] = []
    command = probing.command

    def spy(host: Host, those: probing.Questions) -> Command:
        questions.append(those)
        return command(host, those)

    monkeypatch.setattr(probing, "command", spy)

    assert place.wait(Fit(checks=(check,)).examine(place.host)) == []
    assert [each.servers for each in questions] == [asked]
    place.close()


def test_survives_being_stored() -> None:
    peer = Peer("cp1", "10.0.0.1", (2379, 6443))
    step = Fit(checks=("memory",), hosts={"here": Place("amd64", ("10.0.0.1",), (peer,))})
    spec = step.spec()

    assert registry.load(spec.kind, spec.params) == step


def test_an_unknown_check_is_refused() -> None:
    with pytest.raises(ValueError, match="`checks` has `memroy`, want a check"):
        Fit(checks=("memroy",))
