"""The files and images of a world: stand-ins that are kept, packed as the real ones are."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from hashlib import sha256

import pytest
from tests.sim.site import CONTAINERD, PAUSE, Site

from kubexm.common import layout
from kubexm.common.assets import RegistryAccess, Wanted
from kubexm.errors import StepFailed
from kubexm.runtime.assets import Assets
from kubexm.sim import World
from kubexm.sim.assets import SimAssets
from kubexm.templates.contexts.containerd import ContainerdHosts, RegistryEndpoint
from kubexm.templates.contexts.registry import CONFIG, RegistryConfig
from kubexm.templates.contexts.systemd import ContainedUnit, Mount

Make = Callable[..., Site]
URLS = ("https://dl.k8s.io/release/v1.36.4/bin/linux/amd64/kubeadm",)
KUBEADM = Wanted("kubernetes", "v1.36.4", "kubeadm", "amd64", "kubeadm", URLS, "f" * 64)
ARCHIVE = Wanted(
    *("containerd", CONTAINERD, "archive", "amd64", "containerd.tar.gz"),
    urls=("https://github.com/containerd.tar.gz",),
)
MINE = f"reg1:5000/{PAUSE}"
DATA, CERTIFICATE, KEY = (
    "/var/lib/registry",
    f"{layout.PKI}/registry.crt",
    f"{layout.PKI}/registry.key",
)
ADDRESSES = {"reg1": ("10.0.0.7",), "n1": ("10.0.0.1",)}


def silent(_done: int, _all: int) -> None:
    """Nobody watches."""


def fetch(assets: SimAssets, wanted: Wanted) -> str:
    return asyncio.run(assets.fetch(wanted, silent))


def test_they_are_what_steps_ask_for(site: Site) -> None:
    assets: Assets = SimAssets(site.world)

    assert assets.digest("kubernetes/v1.36.4/kubeadm/amd64") is None


def test_a_file_stands_for_a_program_and_has_its_own_digest(site: Site) -> None:
    assets = SimAssets(site.world)

    digest = fetch(assets, KUBEADM)

    assert assets.digest(KUBEADM.key) == digest
    data = assets.path(digest).read_bytes()
    assert data == b"kubexm stand-in: kubeadm v1.36.4 amd64\n"
    assert digest == sha256(data).hexdigest()


def test_what_was_fetched_is_known_when_the_world_is_opened_again(site: Site) -> None:
    digest = fetch(SimAssets(site.world), KUBEADM)
    asyncio.run(SimAssets(site.world).fetch_image(PAUSE, ("amd64",), silent))
    site.close()

    again = World.open(site.world.path)
    assets = SimAssets(again)

    assert assets.digest(KUBEADM.key) == digest
    assert assets.has_image(PAUSE, "amd64")
    assert not assets.has_image(PAUSE, "arm64")
    again.close()


def test_an_archive_is_unpacked_on_a_host_into_programs_that_work(site: Site) -> None:
    assets = SimAssets(site.world)
    data = assets.path(fetch(assets, ARCHIVE)).read_bytes()
    asyncio.run(site.world.connector("n1").put("/srv/containerd.tar.gz", data))

    names = site.do("tar", "-tf", "/srv/containerd.tar.gz").splitlines()
    site.do("mkdir", "/srv/out")
    options = ("--no-same-owner", "--strip-components=1", "-C", "/srv/out")
    site.do("tar", "-xf", "/srv/containerd.tar.gz", *options)

    assert "bin/containerd-shim-runc-v2" in names
    assert CONTAINERD in site.do("/srv/out/containerd", "--version")


@pytest.mark.parametrize(
    ("key", "member"),
    [
        ("cni-plugins/v1.9.1/archive/amd64", "./bridge"),
        ("etcd/v3.6.16/archive/arm64", "etcd-v3.6.16-linux-arm64/etcdutl"),
        ("helm/v4.2.3/archive/amd64", "linux-amd64/helm"),
        ("crictl/v1.36.0/archive/amd64", "crictl"),
        ("chart/https://helm.cilium.io/cilium/1.20.1", "cilium/Chart.yaml"),
    ],
)
def test_archives_have_the_members_of_the_real_ones(made: Make, key: str, member: str) -> None:
    site = made(bundled=True)
    assets = SimAssets(site.world)
    digest = assets.digest(key)
    assert digest is not None
    asyncio.run(site.world.connector("n1").put("/srv/a.tgz", assets.path(digest).read_bytes()))

    assert member in site.do("tar", "-tf", "/srv/a.tgz").splitlines()


def test_a_bundled_world_has_everything_and_one_that_is_cut_off_nothing(made: Make) -> None:
    bundled = SimAssets(made(outside=False, bundled=True).world)
    lacking = SimAssets(made(outside=False).world)

    assert fetch(bundled, KUBEADM) == bundled.digest(KUBEADM.key)
    assert bundled.has_image(PAUSE, "amd64")
    with pytest.raises(StepFailed, match=r"can't fetch `kubeadm` from https://dl\.k8s\.io/"):
        fetch(lacking, KUBEADM)
    with pytest.raises(StepFailed, match=r"can't pull `registry\.k8s\.io/pause"):
        asyncio.run(lacking.fetch_image(PAUSE, ("amd64",), silent))


def test_a_file_that_nobody_may_be_asked_for_has_to_be_there(site: Site) -> None:
    without = Wanted("kubernetes", "v1.36.4", "kubeadm", "amd64", "kubeadm")

    with pytest.raises(StepFailed, match="nobody may be asked"):
        fetch(SimAssets(site.world), without)


def test_an_image_is_written_for_import_under_another_name(site: Site) -> None:
    assets = SimAssets(site.world)
    asyncio.run(assets.fetch_image(PAUSE, ("amd64",), silent))
    file = io.BytesIO()

    assets.write_image(PAUSE, "amd64", MINE, file)

    site.run_containerd()
    asyncio.run(site.world.connector("n1").put("/srv/image", file.getvalue()))
    site.do("ctr", "-n", "k8s.io", "images", "import", "/srv/image")
    assert site.do("ctr", "-n", "k8s.io", "images", "ls", "-q") == MINE
    with pytest.raises(StepFailed, match="is not at hand"):
        assets.write_image(PAUSE, "arm64", MINE, io.BytesIO())


def run_registry(site: Site) -> None:
    image = "docker.io/library/registry:3.0.0"
    site.run_containerd("reg1")
    site.do("ctr", "-n", "kubexm", "images", "pull", image, host="reg1")
    config = RegistryConfig(listen=":5000", data_dir=DATA, certificate=CERTIFICATE, key=KEY)
    site.write("registry/config", config, CONFIG, "reg1")
    for path in (CERTIFICATE, KEY):
        site.put(path, "PEM", host="reg1")
    site.do("mkdir", DATA, host="reg1")
    mounts = tuple(Mount(source=path, target=path) for path in (CONFIG, CERTIFICATE, KEY, DATA))
    unit = ContainedUnit(
        description="registry",
        name="kubexm-registry",
        image=image,
        arguments=("registry", "serve", CONFIG),
        mounts=mounts,
    )
    site.write("systemd/contained", unit, f"{layout.UNITS}/kubexm-registry.service", "reg1")
    site.do("systemctl", "start", "kubexm-registry", host="reg1")


def test_hosts_pull_what_was_pushed_to_a_registry_of_the_world(made: Make) -> None:
    site = made(outside=True, addresses=ADDRESSES)
    run_registry(site)
    assets = SimAssets(site.world)
    asyncio.run(assets.fetch_image(PAUSE, ("amd64",), silent))
    access = RegistryAccess("10.0.0.7:5000", ca="PEM")
    site.run_containerd()
    hosts = ContainerdHosts(
        server=RegistryEndpoint(url="https://reg1:5000", ca=f"{layout.PKI}/ca.crt")
    )
    site.write("containerd/hosts", hosts, f"{layout.CONTAINERD_REGISTRIES}/reg1:5000/hosts.toml")
    pull = ("ctr", "-n", "k8s.io", "images", "pull", "--hosts-dir", layout.CONTAINERD_REGISTRIES)

    assert not asyncio.run(assets.pushed(MINE, access, ("amd64",)))
    assert "unable to load CA file" in site.ask(*pull, MINE).error_text
    site.put(f"{layout.PKI}/ca.crt", "PEM")
    assert f"{PAUSE}: not found" in site.ask(*pull, MINE).error_text
    asyncio.run(assets.push(PAUSE, MINE, access, silent))

    assert asyncio.run(assets.pushed(MINE, access, ("amd64",)))
    assert not asyncio.run(assets.pushed(MINE, access, ("amd64", "arm64")))
    site.do(*pull, MINE)
    assert site.do("ctr", "-n", "k8s.io", "images", "ls", "-q") == MINE
    site.do("systemctl", "stop", "kubexm-registry", host="reg1")
    assert "connection refused" in site.ask(*pull, MINE).error_text
    with pytest.raises(StepFailed, match=r"no registry answers at 10\.0\.0\.7:5000"):
        asyncio.run(assets.pushed(MINE, access, ("amd64",)))


def test_nobody_pushes_to_a_registry_that_nobody_vouches_for(made: Make) -> None:
    site = made(addresses=ADDRESSES)
    run_registry(site)
    assets = SimAssets(site.world)
    asyncio.run(assets.fetch_image(PAUSE, ("amd64",), silent))

    for access, why in (
        (RegistryAccess("10.0.0.7:5000"), "nobody vouches"),
        (RegistryAccess("10.0.0.7:5000", plain_http=True), "speaks TLS"),
    ):
        with pytest.raises(StepFailed, match=why):
            asyncio.run(assets.push(PAUSE, MINE, access, silent))


def test_a_registry_needs_its_certificate(made: Make) -> None:
    site = made(addresses=ADDRESSES)
    run_registry(site)
    site.do("rm", CERTIFICATE, host="reg1")

    site.do("systemctl", "restart", "kubexm-registry", host="reg1")

    assert site.state("kubexm-registry", "reg1") == "activating"
    assert not site.world.host("n1").listens("reg1", 5000)
