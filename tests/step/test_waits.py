"""Steps that wait, on a real network and on a simulated one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.step.places import LocalPlace, Place, SimPlace

from kubexm.errors import Refused
from kubexm.sim import Effects, Machine, Script, ServiceSettings, WorldSettings
from kubexm.step.contract import NotYet, Outcome
from kubexm.step.waits import Pause, WaitFor


class Teapot(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(418 if self.path == "/tea" else 204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Keep quiet."""


@contextmanager
def http_server() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Teapot) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalPlace]:
    made = LocalPlace(tmp_path)
    yield made
    made.close()


def test_a_real_port_is_open_or_not_yet(local: LocalPlace) -> None:
    with http_server() as port:
        assert local.verdict(WaitFor(port=port)).satisfied
        assert local.run(WaitFor(port=port)) == Outcome(changed=False)

    port = closed_port()
    outcome = local.run(WaitFor(port=port, interval=0.5))
    assert outcome == NotYet(0.5, f"port {port} of 127.0.0.1 is closed")


def test_a_real_url_answers_or_not_yet(local: LocalPlace) -> None:
    with http_server() as port:
        url = f"http://127.0.0.1:{port}"
        assert local.verdict(WaitFor(url=url)).satisfied
        assert local.verdict(WaitFor(url=f"{url}/tea", status=418)).satisfied
        assert local.verdict(WaitFor(url=f"{url}/tea")).reason == (
            f"{url}/tea answers 418, want 200 to 399"
        )

    verdict = local.verdict(WaitFor(url=f"http://127.0.0.1:{closed_port()}/"))
    assert "does not answer: curl: (7)" in verdict.reason


def test_a_command_succeeds_or_not_yet(place: Place) -> None:
    step = WaitFor(command=("test", "-e", f"{place.root}/f"))

    assert isinstance(place.run(step), NotYet)
    place.write("f", b"")

    assert place.run(step) == Outcome(changed=False)


def test_a_simulated_port_is_open_while_its_service_runs(tmp_path: Path) -> None:
    machine = Machine(services={"web": ServiceSettings(ports=(80,))})
    opening = Script(argv=("open-it",), effects=Effects(opens=(99,)))
    place = SimPlace(tmp_path, WorldSettings(machine=machine, scripts=(opening,)))
    elsewhere = WaitFor(port=80, address="other")

    assert not place.verdict(WaitFor(port=80)).satisfied
    place.ask("systemctl", "start", "web")
    assert place.verdict(WaitFor(port=80)).satisfied
    assert place.verdict(WaitFor(url="http://there/ready")).satisfied
    assert not place.verdict(WaitFor(port=99)).satisfied
    place.ask("open-it")
    assert place.verdict(WaitFor(port=99)).satisfied

    assert not place.verdict(elsewhere).satisfied
    place.wait(place.world.connector("other").open())
    assert not place.verdict(elsewhere).satisfied
    place.close()


def test_a_wait_in_vain_is_explained_by_the_journal_of_its_unit(tmp_path: Path) -> None:
    full = '{"level":"fatal","error":"write /var/lib/etcd/member/wal: no space left on device"}'
    journal = Script(("journalctl", "--unit", "etcd", "--since=-75s", "**"), stdout=f"{full}\n")
    place = SimPlace(tmp_path, WorldSettings(scripts=(journal,)))
    step = WaitFor(command=("false",), unit="etcd")

    said = place.wait(step.diagnose(place.context(took=15.0)))
    silent = place.wait(WaitFor(command=("false",)).diagnose(place.context()))
    place.close()

    assert said.splitlines()[0] == "cause: a disk of the host is full"
    assert said.splitlines()[2:] == ["journal of etcd:", f"  {full}"]
    assert silent == ""


def test_pauses_for_some_seconds_without_holding_a_slot(sim: SimPlace) -> None:
    step = Pause(seconds=90)

    assert sim.verdict(step).reason == "takes 90 s"
    assert sim.run(step) == NotYet(90, "90 s are left")
    assert sim.run(step, waited=60.0) == NotYet(30, "30 s are left")
    assert sim.run(step, waited=90.0) == Outcome(changed=False)


def test_asks_a_person(sim: SimPlace) -> None:
    asked = []

    async def confirm(question: str) -> None:
        asked.append(question)
        if len(asked) > 1:
            raise Refused("no")

    step = Pause(question="go on?")
    assert sim.run(step, confirm=confirm) == Outcome(changed=False)
    with pytest.raises(Refused):
        sim.run(step, confirm=confirm)

    assert asked == ["go on?"] * 2
