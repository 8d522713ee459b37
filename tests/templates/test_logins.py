"""A real containerd, with files by our templates, pulls as the kubelet has it pull."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.templates import programs
from tests.templates.guarded import DIGEST, NAME, PASSWORD, USER, Challenge, Guarded, guarded

from kubexm.runner import containers
from kubexm.templates import render
from kubexm.templates.contexts.containerd import (
    ContainerdConfig,
    ContainerdHosts,
    RegistryEndpoint,
    RegistryLogin,
)

# A container runtime is started for each of them.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containerd runs as root"),
]
BOTH = pytest.mark.parametrize("challenge", ["Basic", "Bearer"])
_PULL = "http://localhost/runtime.v1.ImageService/PullImage"
_NOT_YET = "server is not initialized yet"
_BEGINS = 10.0


class Runtime:
    """A containerd that runs, and what it has said."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.socket = root / "c.sock"
        self.log = ""

    def reach(self, name: str, hosts: ContainerdHosts) -> None:
        """Say how a registry is reached."""
        file = self.root / "certs.d" / name / "hosts.toml"
        file.parent.mkdir(parents=True)
        file.write_text(render.render("containerd/hosts", hosts.data()))

    def pull(self, image: str) -> str:
        """Have it pull for Kubernetes, by the call that kubelet, kubeadm and crictl make of it;
        why it did not, or nothing. Its part for Kubernetes comes a little after the rest."""
        end = time.monotonic() + _BEGINS
        while (said := self._pulled(image)) == _NOT_YET and time.monotonic() < end:
            time.sleep(0.1)
        return said

    def _pulled(self, image: str) -> str:
        request = self.root / "request"
        message = _field(_field(image.encode()))
        request.write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
        done = programs.run(
            *("curl", "--silent", "--show-error", "--http2-prior-knowledge"),
            *("--unix-socket", self.socket, "--dump-header", "-", "--output", os.devnull),
            *("--header", "content-type: application/grpc", "--header", "te: trailers"),
            *("--data-binary", f"@{request}", _PULL),
        )
        assert "grpc-status" in done.stdout, done
        told = re.search(r"^grpc-message: (.+?)\r?$", done.stdout, re.MULTILINE)
        return "" if "grpc-status: 0" in done.stdout else told[1] if told else done.stdout

    def ask(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return programs.run("ctr", "--address", self.socket, *words)


def _field(data: bytes) -> bytes:
    """The first field of a message, as protobuf writes what is short."""
    assert len(data) < 128
    return b"\x0a" + bytes([len(data)]) + data


@contextmanager
def running(**passwords: str) -> Iterator[Runtime]:
    """A containerd that knows a password for each of these hosts."""
    # The path of a socket may have a hundred characters, which a place of the test has already.
    with tempfile.TemporaryDirectory(prefix="kubexm-") as place:
        runtime = Runtime(Path(place))
        config = Path(place) / "config.toml"
        config.write_text(_config(runtime, passwords))
        process = subprocess.Popen(
            [programs.found("containerd"), "--config", config], stderr=subprocess.PIPE, text=True
        )
        reader = threading.Thread(target=_listen, args=(process, runtime))
        try:
            _await_start(process, runtime)
            reader.start()
            yield runtime
        finally:
            process.terminate()
            process.wait()
            if reader.ident is not None:
                reader.join()
            assert process.stderr is not None
            process.stderr.close()


def _config(runtime: Runtime, passwords: dict[str, str]) -> str:
    root = runtime.root
    is_old = " 1." in programs.run("containerd", "--version").stdout
    context = ContainerdConfig(
        version=2 if is_old else 3,
        root=f"{root}/root",
        state=f"{root}/state",
        socket=str(runtime.socket),
        systemd_cgroup=False,
        sandbox_image="pause:3.10",
        registries=f"{root}/certs.d",
        logins=tuple(RegistryLogin(host=host, username=USER) for host in passwords),
        passwords=passwords,
    )
    source = render.source("containerd/config")
    return render.merged(source, context.data(), _apart(root, is_old=is_old), "toml")


def _apart(root: Path, *, is_old: bool) -> dict[str, Any]:
    """What keeps it from the places of this machine, and from mounts that may not be had here."""
    networks = {"cni": {"conf_dir": f"{root}/net.d", "bin_dir": f"{root}/cni"}}
    plugins = {"io.containerd.internal.v1.opt": {"path": f"{root}/opt"}}
    cri = {"containerd": {"snapshotter": "native"}, **networks}
    own = {"io.containerd.grpc.v1.cri": cri} if is_old else _newer(networks)
    return {"plugins": {**plugins, **own}}


def _newer(networks: dict[str, Any]) -> dict[str, Any]:
    return {
        "io.containerd.cri.v1.images": {"snapshotter": "native"},
        "io.containerd.cri.v1.runtime": networks,
        "io.containerd.nri.v1.nri": {"disable": True},
    }


def _await_start(process: subprocess.Popen[str], runtime: Runtime) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        runtime.log += line
        if "successfully booted" in line:
            return
    raise AssertionError(runtime.log)


def _listen(process: subprocess.Popen[str], runtime: Runtime) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        runtime.log += line


def direct(registry: Guarded) -> ContainerdHosts:
    return ContainerdHosts(server=RegistryEndpoint(url=registry.url))


@BOTH
def test_an_image_is_pulled_by_who_has_the_password(challenge: Challenge) -> None:
    with guarded(challenge) as registry, running(**{registry.host: PASSWORD}) as runtime:
        runtime.reach(registry.host, direct(registry))

        why = runtime.pull(f"{registry.host}/{NAME}")

        there = runtime.ask("--namespace", "k8s.io", "images", "ls", "-q").stdout.split()
    assert why == ""
    assert f"{registry.host}/{NAME}" in there
    assert ("200 POST /token" in registry.asked) is (challenge == "Bearer")


@BOTH
def test_an_image_is_not_pulled_by_who_has_another(challenge: Challenge) -> None:
    with guarded(challenge) as registry, running(**{registry.host: "other"}) as runtime:
        runtime.reach(registry.host, direct(registry))

        why = runtime.pull(f"{registry.host}/{NAME}")

    assert re.search("401|authorization failed", why)
    assert not any(line.startswith("200") for line in registry.asked)


@BOTH
def test_ctr_knows_no_login(challenge: Challenge) -> None:
    with guarded(challenge) as registry, running(**{registry.host: PASSWORD}) as runtime:
        runtime.reach(registry.host, direct(registry))
        place = runtime.root / "certs.d"

        done = runtime.ask("images", "pull", "--hosts-dir", place, f"{registry.host}/{NAME}")

    assert done.returncode != 0
    assert not any(line.startswith("200") for line in registry.asked)


@BOTH
def test_a_mirror_is_asked_with_its_own_login(challenge: Challenge) -> None:
    with guarded(challenge) as mirror, running(**{mirror.host: PASSWORD}) as runtime:
        server = RegistryEndpoint(url="http://registry.example.com")
        hosts = ContainerdHosts(server=server, mirrors=(RegistryEndpoint(url=mirror.url),))
        runtime.reach("registry.example.com", hosts)

        assert runtime.pull(f"registry.example.com/{NAME}") == ""


def test_a_registry_without_mirrors_is_where_its_file_says() -> None:
    with guarded("Basic") as registry, running(**{registry.host: PASSWORD}) as runtime:
        runtime.reach("registry.example.com", direct(registry))

        assert runtime.pull(f"registry.example.com/{NAME}") == ""


def test_the_log_has_no_password() -> None:
    with guarded("Bearer") as registry, running(**{registry.host: "unmistakable"}) as runtime:
        runtime.reach(registry.host, direct(registry))
        runtime.pull(f"{registry.host}/{NAME}")

    assert "PullImage" in runtime.log
    assert "unmistakable" not in runtime.log


def test_of_a_tag_and_a_digest_kubernetes_keeps_the_digest() -> None:
    with guarded("Bearer") as registry, running(**{registry.host: PASSWORD}) as runtime:
        runtime.reach(registry.host, direct(registry))
        image = f"{registry.host}/{NAME}@{DIGEST}"

        assert runtime.pull(image) == ""

        there = runtime.ask("--namespace", "k8s.io", "images", "ls", "-q").stdout.split()
    assert containers.kept_as(image) in there
    assert image not in there


def test_what_kubernetes_has_pulled_can_be_handed_on() -> None:
    with guarded("Bearer") as registry, running(**{registry.host: PASSWORD}) as runtime:
        runtime.reach(registry.host, direct(registry))
        image, archive = f"{registry.host}/{NAME}", runtime.root / "image.tar"
        assert runtime.pull(image) == ""

        written = runtime.ask("--namespace", "k8s.io", "images", "export", archive, image)
        taken = runtime.ask("--namespace", "kubexm", "images", "import", "--no-unpack", archive)

        there = runtime.ask("--namespace", "kubexm", "images", "ls", "-q").stdout.split()
    assert (written.returncode, taken.returncode) == (0, 0), (written.stderr, taken.stderr)
    assert there == [image]
