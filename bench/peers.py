"""Time the same layered graph on Prefect, Dagster and Ansible, each in a venv of its own.

The graph is WIDTH lanes: unit i of a layer depends on unit i of the layer before it.
Nothing here needs kubexm, so the file also runs by itself with any Python 3.11.
"""

import argparse
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

WIDTH = 10
INSTALL_SECONDS = 900.0
RUN_SECONDS = 600.0
SERVER_SECONDS = 120.0
HERE = Path(__file__).parent / "peers"


@dataclass(frozen=True)
class Measurement:
    """What one peer took for `units` units, and how it was set up."""

    peer: str
    version: str
    units: int
    seconds: float
    how: str
    load: float
    also: dict[str, float] = field(default_factory=dict)

    @property
    def per_unit(self) -> float:
        """Seconds per unit."""
        return self.seconds / self.units


class PeerFailed(RuntimeError):
    """A peer could not be installed, started or run to the end."""


def prefect(units: int = 1000) -> Measurement:
    """Time a flow until its server has stored every task run; the server is warm."""
    depth = _depth(units)
    python = environment("prefect")
    with _scratch() as home, _prefect_server(python, home) as env:
        load = os.getloadavg()[0]
        script = [str(python), str(HERE / "prefect_graph.py"), str(WIDTH), str(depth)]
        figures = _figures(_run([*script, str(home / "prefect.db")], env, home))
    return Measurement(
        peer="prefect",
        version=version(python, "prefect"),
        units=units,
        seconds=figures["seconds"],
        how="async tasks in awaited lanes, own warm server on loopback, SQLite, recorder in "
        "batches of 500, no log shipping; until all states are stored",
        load=load,
        also={"flow returned": figures["returned"]},
    )


def dagster(units: int = 1000) -> Measurement:
    """Time a job in process on a persistent instance; imports and definition are not counted."""
    depth = _depth(units)
    python = environment("dagster")
    with _scratch() as home:
        (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
        load = os.getloadavg()[0]
        script = [str(python), str(HERE / "dagster_graph.py"), str(WIDTH), str(depth)]
        figures = _figures(_run(script, child_env(home, DAGSTER_HOME=str(home)), home))
    return Measurement(
        peer="dagster",
        version=version(python, "dagster"),
        units=units,
        seconds=figures["seconds"],
        how="in-process executor, Nothing dependencies, SQLite instance, console log off",
        load=load,
    )


def ansible(units: int = 200) -> Measurement:
    """Time a playbook over WIDTH local hosts, less what an empty one takes."""
    depth = _depth(units)
    python = environment("ansible")
    with _scratch() as home:
        (home / "hosts").write_text(_inventory(python))
        load = os.getloadavg()[0]
        startup, _ = _playbook(python, home, depth=0)
        whole, recap = _playbook(python, home, depth)
    if len(re.findall(rf"ok={depth}\s+changed={depth}\s", recap)) != WIDTH:
        raise PeerFailed(f"ansible did not run {depth} tasks on each of {WIDTH} hosts:\n{recap}")
    return Measurement(
        peer="ansible-core",
        version=version(python, "ansible-core"),
        units=units,
        seconds=whole - startup,
        how="10 forks, free strategy, pipelining, no facts, `command: true`; start-up taken off; "
        "it stores nothing",
        load=load,
        also={"start-up": startup},
    )


def measure_all(units: int = 1000) -> list[Measurement]:
    """Time every peer, Ansible with at most 200 units."""
    return [prefect(units), dagster(units), ansible(min(units, 200))]


def table(measurements: list[Measurement]) -> str:
    """Lay the measurements out as lines for a terminal."""
    lines = [f"{'peer':<13}{'version':<10}{'units':>6}{'seconds':>9}{'ms/unit':>9}{'load':>7}"]
    for m in measurements:
        lines.append(
            f"{m.peer:<13}{m.version:<10}{m.units:>6}{m.seconds:>9.2f}"
            f"{m.per_unit * 1000:>9.2f}{m.load:>7.2f}"
        )
        lines += [f"  {name}: {seconds:.2f} s" for name, seconds in m.also.items()]
        lines.append(f"  {m.how}")
    return "\n".join(lines)


def _depth(units: int) -> int:
    if units < WIDTH or units % WIDTH:
        raise ValueError(f"units must be a positive multiple of {WIDTH}, not {units}")
    return units // WIDTH


def environment(peer: str) -> Path:
    """Give the Python of the peer's venv, made anew when its pins or our Python have changed."""
    pins = HERE / f"{peer}.txt"
    home = _cache() / peer
    stamp = home / "installed"
    wanted = f"{sys.version}\n{pins.read_text()}"
    python = home / "bin" / "python"
    # The stamp is written last, so an installation cut short is made again.
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(home, clear=True, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--requirement", str(pins)]
        # pip finds its index and certificates where the user has set them: in the environment.
        _run(install, dict(os.environ), home, INSTALL_SECONDS)
        stamp.write_text(wanted)
    return python


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "kubexm-bench"


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kubexm-peer-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def child_env(home: Path, **extra: str) -> dict[str, str]:
    """Give a peer nothing of ours: no proxy, no profile, no state of an earlier use."""
    return {
        "PATH": os.defpath,
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "DO_NOT_TRACK": "1",
        **extra,
    }


@contextmanager
def _prefect_server(python: Path, home: Path) -> Iterator[dict[str, str]]:
    port = _free_port()
    env = _prefect_env(home, port)
    where = ["--host", "127.0.0.1", "--port", str(port)]
    command = [str(python), "-m", "prefect", "server", "start", *where]
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, env=env, cwd=home, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _await_server(server, port, home / "server.log")
            yield env
        finally:
            _stop(server)


def _prefect_env(home: Path, port: int) -> dict[str, str]:
    recorder = "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER"
    return child_env(
        home,
        PREFECT_HOME=str(home),
        PREFECT_API_URL=f"http://127.0.0.1:{port}/api",
        PREFECT_SERVER_ANALYTICS_ENABLED="false",
        PREFECT_SERVER_UI_ENABLED="false",
        PREFECT_LOGGING_LEVEL="ERROR",
        PREFECT_LOGGING_TO_API_ENABLED="false",
        # One row per transaction, the default, takes three times as long to store all.
        **{
            f"{recorder}_BATCH_SIZE": "500",
            f"{recorder}_READ_BATCH_SIZE": "100",
            f"{recorder}_FLUSH_INTERVAL": "0.1",
        },
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_server(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + SERVER_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        if _healthy(port):
            return
        time.sleep(0.2)
    raise PeerFailed(f"the prefect server did not start:\n{_tail(log)}")


def _healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/api/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def _inventory(python: Path) -> str:
    settings = f"ansible_connection=local ansible_python_interpreter={python}"
    return "".join(f"lane{lane} {settings}\n" for lane in range(WIDTH))


def _playbook(python: Path, home: Path, depth: int) -> tuple[float, str]:
    """Run `depth` tasks on every host; give the seconds and what was printed."""
    book = home / f"book-{depth}.yml"
    tasks = "".join('    - ansible.builtin.command: "true"\n' for _ in range(depth))
    book.write_text(f"- hosts: all\n  gather_facts: false\n  tasks:{' []' * (not depth)}\n{tasks}")
    env = child_env(
        home,
        ANSIBLE_FORKS=str(WIDTH),
        ANSIBLE_PIPELINING="1",
        ANSIBLE_STRATEGY="free",
        ANSIBLE_NOCOLOR="1",
    )
    command = [str(python.parent / "ansible-playbook"), "-i", str(home / "hosts"), str(book)]
    start = time.perf_counter()
    printed = _run(command, env, home)
    return time.perf_counter() - start, printed


def version(python: Path, distribution: str) -> str:
    code = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
    with _scratch() as home:
        command = [str(python), "-c", code, distribution]
        return _run(command, child_env(home), home, 60).strip()


def _figures(printed: str) -> dict[str, float]:
    """Read the last line a graph script printed."""
    figures: dict[str, float] = json.loads(printed.splitlines()[-1])
    return figures


def _run(command: list[str], env: dict[str, str], cwd: Path, timeout: float = RUN_SECONDS) -> str:
    """Run a command to its end and give its output; leave no process behind."""
    with tempfile.TemporaryDirectory(prefix="kubexm-peer-") as name:
        out, err = Path(name, "out"), Path(name, "err")
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                command, env=env, cwd=cwd, stdout=stdout, stderr=stderr, start_new_session=True
            )
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                raise PeerFailed(f"`{command[0]}` ran longer than {timeout:g} s") from None
            finally:
                _stop(process)
        if code:
            raise PeerFailed(f"{command} exited with {code}:\n{_tail(err)}\n{_tail(out)}")
        return out.read_text()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process we started and the group it leads: politely, then for certain."""
    if process.poll() is not None:
        return
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(20)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:]


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=1000, help="multiple of 10; default 1000")
    units = parser.parse_args().units
    try:
        print(table(measure_all(units)))
    except (ValueError, PeerFailed) as error:
        parser.exit(1, f"error: {error}\n")


if __name__ == "__main__":
    _main()
