"""Simulated containerd: it takes a configuration that fits it, has images, and runs containers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.sim.site import PAUSE, Site

from kubexm.common import layout
from kubexm.sim import containers
from kubexm.templates.contexts.balancer import Backend, HaproxyConfig
from kubexm.templates.contexts.containerd import ContainerdHosts, RegistryEndpoint
from kubexm.templates.contexts.systemd import ContainedUnit, Mount

Make = Callable[..., Site]
CTR = ("/usr/local/bin/ctr", "-n", "k8s.io")
HAPROXY = "docker.io/library/haproxy:3.2.19-alpine"
CONFIG = f"{layout.BALANCER}/haproxy.cfg"


def image_file(name: str, arch: str = "amd64") -> str:
    return f"kubexm stand-in image: {name} {arch}\n"


def test_containerd_tells_how_it_was_started(site: Site) -> None:
    site.run_containerd()
    shell = site.world.host("n1").shell()

    assert containers.is_running(shell)
    assert containers.systemd_cgroup(shell)
    assert containers.sandbox_image(shell) == PAUSE
    assert containers.can_run(shell) == ""
    assert site.ask("test", "-e", layout.CONTAINERD_SOCKET).ok
    text = site.do("cat", layout.CONTAINERD_CONFIG)
    site.put(
        layout.CONTAINERD_CONFIG, text.replace("SystemdCgroup = true", "SystemdCgroup = false")
    )
    assert containers.systemd_cgroup(shell), "it has read its file when it was started"
    site.do("systemctl", "restart", "containerd")
    assert not containers.systemd_cgroup(shell)


@pytest.mark.parametrize(
    ("version", "config", "why"),
    [
        ("v2.2.7", "version = ", "failed to load TOML"),
        ("v2.2.7", "version = 3\nplugins = 3\n", "failed to load TOML: toml: cannot decode"),
        ("v2.2.7", "version = 3\ngrpc = true\n", "cannot decode TOML boolean `grpc`"),
        ("v2.2.7", "root = '/srv'\n", "expected containerd config version `3`, got `1`"),
        ("v1.7.34", "version = 3\n", "expected containerd config version `2`, got `3`"),
        ("v1.7.34", "version = 2\n", ""),
        ("v2.2.7", "version = 2\n", ""),
        ("v2.2.7", None, "open /etc/containerd/config.toml: no such file or directory"),
    ],
)
def test_a_configuration_has_to_fit_the_version(
    site: Site, version: str, config: str | None, why: str
) -> None:
    site.bring_containerd(version=version)
    site.do("rm", layout.CONTAINERD_CONFIG)
    if config is not None:
        site.put(layout.CONTAINERD_CONFIG, config)

    done = site.ask("systemctl", "start", "containerd")

    assert done.ok is not bool(why)
    assert why in done.error_text


def test_a_container_needs_runc_and_the_shim(site: Site) -> None:
    site.run_containerd()
    shell = site.world.host("n1").shell()

    site.do("rm", "/usr/local/bin/runc")
    assert '"runc": executable file not found' in containers.can_run(shell)
    site.bring("runc", "v1.4.3", arch="arm64")
    assert "Exec format error" in containers.can_run(shell)
    site.bring("runc", "v1.4.3")
    site.do("systemctl", "stop", "containerd")
    assert "containerd.sock" in containers.can_run(shell)


def test_images_are_pulled_listed_tagged_and_removed(site: Site) -> None:
    site.run_containerd()

    site.do(*CTR, "images", "pull", "--hosts-dir", layout.CONTAINERD_REGISTRIES, PAUSE)
    site.do(*CTR, "images", "tag", PAUSE, "mine:1")

    assert site.do(*CTR, "images", "ls", "-q") == f"mine:1\n{PAUSE}"
    assert site.do(*CTR, "images", "ls", "-q", f"name=={PAUSE}") == PAUSE
    assert site.do(*CTR, "images", "ls", "-q", "name==other:1") == ""
    assert site.do("/usr/local/bin/ctr", "-n", "kubexm", "images", "ls", "-q") == ""
    site.do(*CTR, "images", "rm", "mine:1", "never-there:1")
    assert site.do(*CTR, "images", "ls", "-q") == PAUSE


def test_images_go_with_the_data_of_containerd(site: Site) -> None:
    site.run_containerd()
    site.do(*CTR, "images", "pull", PAUSE)
    site.do("systemctl", "stop", "containerd")

    site.do("rm", "-rf", "/var/lib/containerd")
    site.do("systemctl", "start", "containerd")

    assert site.do(*CTR, "images", "ls", "-q") == ""


def test_an_archive_is_taken_only_for_the_machine_it_is_for(site: Site) -> None:
    site.run_containerd()
    site.put("/srv/image.tar", image_file(PAUSE))
    site.put("/srv/other.tar", image_file("other:1", "arm64"))
    site.put("/srv/no-image", "hello")

    assert site.do(*CTR, "images", "import", "/srv/image.tar") == f"{PAUSE} saved"
    assert (
        "no match for platform" in site.ask(*CTR, "images", "import", "/srv/other.tar").error_text
    )
    assert "unrecognized" in site.ask(*CTR, "images", "import", "/srv/no-image").error_text
    assert site.do(*CTR, "images", "ls", "-q") == PAUSE


def test_nothing_answers_while_containerd_does_not_run(site: Site) -> None:
    site.bring_containerd()

    done = site.ask(*CTR, "images", "ls", "-q")

    assert done.exit == 1
    assert layout.CONTAINERD_SOCKET in done.error_text


def test_without_the_world_outside_nothing_is_pulled_but_from_mirrors(made: Make) -> None:
    site = made(outside=False)
    site.run_containerd()

    done = site.ask(*CTR, "images", "pull", "--hosts-dir", layout.CONTAINERD_REGISTRIES, PAUSE)

    assert "lookup registry.k8s.io: no such host" in done.error_text
    mirrored = ContainerdHosts(
        server=RegistryEndpoint(url="https://registry.k8s.io"),
        mirrors=(RegistryEndpoint(url="https://mirror.lan:5000"),),
    )
    path = f"{layout.CONTAINERD_REGISTRIES}/registry.k8s.io/hosts.toml"
    site.write("containerd/hosts", mirrored, path)
    done = site.ask(*CTR, "images", "pull", "--hosts-dir", layout.CONTAINERD_REGISTRIES, PAUSE)
    assert "lookup registry.k8s.io" in done.error_text, "the mirror was tried, and then itself"


def crictl_pull(site: Site, image: str) -> str:
    """Why an image is not pulled for Kubernetes; nothing if it is."""
    site.bring("crictl", "v1.36.0")
    return site.ask("crictl", "--runtime-endpoint", layout.CRI_SOCKET, "pull", image).error_text


def test_who_has_no_login_for_a_registry_gets_nothing_there(site: Site) -> None:
    site.run_containerd(logins=["registry.k8s.io"])

    done = site.ask(*CTR, "images", "pull", "--hosts-dir", layout.CONTAINERD_REGISTRIES, PAUSE)

    assert "failed to fetch anonymous token: 401 Unauthorized" in done.error_text
    assert crictl_pull(site, PAUSE) == ""
    assert site.do(*CTR, "images", "ls", "-q") == PAUSE


def test_a_login_that_comes_late_is_not_known(site: Site) -> None:
    site.run_containerd()
    site.bring_containerd(logins=["registry.k8s.io"])

    late = crictl_pull(site, PAUSE)
    site.do("systemctl", "restart", "containerd")

    assert "401 Unauthorized" in late
    assert crictl_pull(site, PAUSE) == ""


def test_a_mirror_has_a_login_of_its_own(site: Site) -> None:
    site.run_containerd(logins=["registry-1.docker.io"])
    mirrored = ContainerdHosts(
        server=RegistryEndpoint(url="https://registry-1.docker.io"),
        mirrors=(RegistryEndpoint(url="https://mirror.example.com"),),
    )
    site.write("containerd/hosts", mirrored, f"{layout.CONTAINERD_REGISTRIES}/docker.io/hosts.toml")

    done = site.ask(*CTR, "images", "pull", "--hosts-dir", layout.CONTAINERD_REGISTRIES, HAPROXY)

    assert done.ok, "the mirror wants none, and is asked first"
    assert "401" in site.ask(*CTR, "images", "pull", HAPROXY).error_text


def test_an_image_of_one_namespace_can_be_brought_into_another(site: Site) -> None:
    site.run_containerd()
    site.do(*CTR, "images", "pull", PAUSE)

    site.do(*CTR, "images", "export", "/srv/image.tar", PAUSE)
    site.do("ctr", "-n", "kubexm", "images", "import", "/srv/image.tar")

    assert site.do("ctr", "-n", "kubexm", "images", "ls", "-q") == PAUSE
    assert "not found" in site.ask(*CTR, "images", "export", "/srv/x.tar", HAPROXY).error_text


def contained(site: Site, **changes: str) -> None:
    config = HaproxyConfig(
        binds=("127.0.0.1:6443",), backends=(Backend(name="a", address="10.0.0.1:80"),)
    )
    site.write("haproxy/config", config, CONFIG)
    unit = ContainedUnit(
        description="balancer",
        name="kubexm-haproxy",
        image=HAPROXY,
        arguments=("haproxy", "-W", "-db", "-f", CONFIG),
        mounts=(Mount(source=CONFIG, target=CONFIG),),
    )
    site.write("systemd/contained", unit, f"{layout.UNITS}/kubexm-haproxy.service")


def test_a_unit_runs_a_container_of_an_image_that_is_there(site: Site) -> None:
    site.run_containerd()
    contained(site)
    site.do("/usr/local/bin/ctr", "-n", "kubexm", "images", "pull", HAPROXY)

    site.do("systemctl", "enable", "--now", "kubexm-haproxy")

    assert site.state("kubexm-haproxy") == "active"
    assert site.world.host("n1").listens("127.0.0.1", 6443)
    assert "kubexm-haproxy" in site.do("/usr/local/bin/ctr", "-n", "kubexm", "tasks", "ls")
    site.do("systemctl", "restart", "kubexm-haproxy")
    site.do("systemctl", "stop", "containerd")
    assert site.world.host("n1").listens("127.0.0.1", 6443), "its container outlives containerd"
    site.do("systemctl", "stop", "kubexm-haproxy")
    assert not site.world.host("n1").listens("127.0.0.1", 6443)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (("/usr/local/bin/ctr", "-n", "kubexm", "images", "rm", HAPROXY), "not found"),
        (("rm", CONFIG), f"failed to mount {CONFIG}"),
        (("chmod", "0600", CONFIG), "Permission denied"),
        (("rm", "/usr/local/bin/runc"), "executable file not found"),
        (("rm", "/usr/local/bin/ctr"), "No such file or directory"),
    ],
)
def test_a_container_does_not_start_without_what_it_needs(
    site: Site, spoil: tuple[str, ...], why: str
) -> None:
    site.run_containerd()
    contained(site)
    site.do("/usr/local/bin/ctr", "-n", "kubexm", "images", "pull", HAPROXY)
    site.do(*spoil)

    site.do("systemctl", "start", "kubexm-haproxy")

    assert site.state("kubexm-haproxy") == "activating"
    assert why in site.do("journalctl", "--unit", "kubexm-haproxy", "--lines", "30", "--no-pager")


def test_the_image_is_looked_for_in_the_namespace_of_the_unit(site: Site) -> None:
    site.run_containerd()
    contained(site)
    site.do(*CTR, "images", "pull", HAPROXY)

    site.do("systemctl", "start", "kubexm-haproxy")

    assert site.state("kubexm-haproxy") == "activating"
