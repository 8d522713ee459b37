"""What comes out of the samples is read by the programs that it is for."""

from __future__ import annotations

import getpass
import re
import tomllib
from pathlib import Path

import pytest
from tests.templates import programs

from kubexm.templates import render
from kubexm.templates.context import Context
from kubexm.templates.registry import TEMPLATES

_TARGETS = ("basic", "multi-user", "network-online", "shutdown", "sysinit", "timers")
_UNITS = {
    "systemd/containerd": "containerd.service",
    "systemd/kubelet": "kubelet.service",
    "systemd/contained": "kubexm-contained.service",
    "systemd/etcd": "etcd.service",
    "systemd/etcd-backup-service": "kubexm-etcd-backup.service",
    "systemd/etcd-backup-timer": "kubexm-etcd-backup.timer",
    "systemd/routed": "kubexm-routed.service",
    "kubelet/dropin": "kubelet.service.d/10-kubexm.conf",
    "proxy/environment": "kubelet.service.d/20-kubexm-proxy.conf",
}


def samples(*names: str) -> pytest.MarkDecorator:
    found = [(name, sample) for name in names for sample in TEMPLATES[name].samples]
    ids = [f"{name}-{number}" for number, (name, _) in enumerate(found)]
    return pytest.mark.parametrize(("name", "sample"), found, ids=ids)


def written(directory: Path, name: str, sample: Context) -> Path:
    file = directory / "file"
    file.write_text(render.render(name, sample.data()))
    return file


def test_every_unit_is_among_those_that_systemd_is_shown() -> None:
    units = {name for name, template in TEMPLATES.items() if template.format == "unit"}

    assert units == set(_UNITS)


@samples(*_UNITS)
def test_systemd_understands_every_unit(tmp_path: Path, name: str, sample: Context) -> None:
    root = host(tmp_path)
    lay(root, name, sample)

    unit = _UNITS[name].split(".d/")[0]
    done = programs.run("systemd-analyze", f"--root={root}", "verify", "--man=no", unit)

    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_tells_of_a_setting_that_it_does_not_know(tmp_path: Path) -> None:
    root = host(tmp_path)
    file = root / "etc/systemd/system/etcd.service"
    file.write_text(file.read_text().replace("Restart=", "Restarts="))

    done = programs.run("systemd-analyze", f"--root={root}", "verify", "--man=no", "etcd.service")

    assert "Unknown key" in done.stderr


def host(root: Path) -> Path:
    """A host with the programs of all units, which do nothing, and with all units."""
    for target in _TARGETS:
        file = root / f"usr/lib/systemd/system/{target}.target"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"[Unit]\nDescription={target}\n")
    for name in _UNITS:
        text = lay(root, name, TEMPLATES[name].samples[0])
        for program in re.findall(r"^Exec\w+=-?(/usr/local/\S+)", text, re.MULTILINE):
            path = root / program.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o755)
    return root


def lay(root: Path, name: str, sample: Context) -> str:
    file = root / "etc/systemd/system" / _UNITS[name]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(render.render(name, sample.data()))
    return file.read_text()


@samples("haproxy/config")
def test_haproxy_takes_its_configuration(tmp_path: Path, name: str, sample: Context) -> None:
    file = written(tmp_path, name, sample)
    me = getpass.getuser()
    file.write_text(re.sub("(user|group) haproxy", rf"\1 {me}", file.read_text()))

    done = programs.run("haproxy", "-c", "-f", file)

    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr


@samples("nginx/config")
def test_nginx_takes_its_configuration(tmp_path: Path, name: str, sample: Context) -> None:
    file = written(tmp_path, name, sample)
    file.write_text(file.read_text().replace("/tmp/nginx.pid", f"{tmp_path}/nginx.pid"))

    module = programs.module("ngx_stream_module")
    done = programs.run("nginx", "-t", "-e", "stderr", "-p", tmp_path, "-c", file, *module)

    assert done.returncode == 0, done.stderr
    assert "[warn]" not in done.stderr


@samples("keepalived/config")
def test_keepalived_takes_its_configuration(tmp_path: Path, name: str, sample: Context) -> None:
    done = programs.run("keepalived", "--config-test", "-f", written(tmp_path, name, sample))

    assert (done.returncode, done.stderr) == (0, "")


@samples("chrony/config")
def test_chrony_takes_its_configuration(tmp_path: Path, name: str, sample: Context) -> None:
    file = written(tmp_path, name, sample)

    done = programs.run("chronyd", "-p", "-f", file)

    assert done.returncode == 0, done.stderr
    assert done.stdout == file.read_text()


@samples("containerd/config")
def test_containerd_takes_its_configuration(tmp_path: Path, name: str, sample: Context) -> None:
    file = written(tmp_path, name, sample)
    form = tomllib.loads(file.read_text())["version"]
    readers = [program for program in programs.every("containerd") if _reads(program) == form]
    if not readers:
        pytest.skip(f"no containerd for version {form} is at hand: python -m lab software")

    for program in readers:
        _require_taken(program, file, sample)


def _reads(containerd: str) -> int:
    """The version of its configuration that is the newest it knows."""
    return 2 if " 1." in programs.run(containerd, "--version").stdout else 3


def _require_taken(containerd: str, file: Path, sample: Context) -> None:
    done = programs.run(containerd, "--config", file, "config", "dump")

    found = tomllib.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert found["root"] == sample.data()["root"]
    assert sample.data()["sandbox_image"] in done.stdout


@samples("registry/config")
def test_a_registry_takes_its_configuration(tmp_path: Path, name: str, sample: Context) -> None:
    file = written(tmp_path, name, sample)
    file.write_text(file.read_text().replace("/var/lib/registry", f"{tmp_path}/data"))
    for place in ("repositories", "blobs"):
        (tmp_path / "data/docker/registry/v2" / place).mkdir(parents=True)

    done = programs.run("docker-registry", "garbage-collect", "--dry-run", file)

    assert done.returncode == 0, done.stderr
