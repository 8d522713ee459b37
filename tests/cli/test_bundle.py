"""`kubexm bundle` and `kubexm catalog lock`: what people and programs are told."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cli.answers import Kubexm
from tests.resource import depot as depots
from tests.resource.depot import Depot

from kubexm.app import bundles
from kubexm.app.bills import BillParams
from kubexm.app.bundles import BuildParams
from kubexm.cli.fetching import STOPPED
from kubexm.common.paths import Home
from kubexm.resource import catalog
from kubexm.resource.materials import bill
from kubexm.resource.needs import Needs
from kubexm.runtime.secrets import SecretVault

NEEDS = Needs(kubernetes="v1.36.3", network="routed")
KUBELET = "/dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet"


@dataclass(frozen=True)
class Site:
    """A depot with all that a cluster needs, and a bundle of it."""

    depot: Depot
    file: Path
    overlay: Path
    bundle: Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    place = tmp_path_factory.mktemp("site")
    with depots.opened(place / "depot") as depot:
        found = depot.stock(bill(catalog.load(), NEEDS))
        overlay = depots.overlay(depot, catalog.load(), found, place / "depot.toml")
        routed = "  network: {plugin: routed}\n"
        file = depots.cluster(depot, place / "cluster.yaml", more=routed)
        file.write_text(file.read_text().replace("address:", "arch: amd64, address:"))
        made = Site(depot, file, overlay, place / "site.tar.zst")
        params = BuildParams(BillParams(file=file, catalogs=(overlay,)), made.bundle)
        home = Home(place / "state", place / "data", place / "cache")
        asyncio.run(bundles.build(params, home, SecretVault()))
        yield made


@pytest.fixture
def damaged(site: Site, tmp_path: Path) -> Path:
    whole = site.bundle.read_bytes()
    path = tmp_path / "damaged.tar.zst"
    path.write_bytes(whole[: len(whole) // 2])
    return path


def test_an_architecture_that_is_taken_for_granted_is_told(
    site: Site, kubexm: Kubexm, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(site.file.read_text().replace("arch: amd64, ", ""))
    common = ("-f", file, "--catalog", site.overlay)
    commands = (
        ("bundle", "build", *common, "-o", tmp_path / "b.tar.zst"),
        ("bundle", "check", site.bundle, *common),
        ("catalog", "lock", *common, "-o", tmp_path / "lock.toml"),
    )

    for command in commands:
        answer = kubexm(*command)
        assert answer.code == 0, answer.err
        note = "note: the architecture of `node1` is not known, and taken to be amd64"
        assert note in answer.err
        assert "`--arch`" in answer.err
        assert kubexm(*command, "--arch", "amd64").err == ""


class TestBuild:
    def test_it_says_what_it_wrote(self, site: Site, kubexm: Kubexm, tmp_path: Path) -> None:
        output = tmp_path / "b.tar.zst"

        answer = kubexm("bundle", "build", "-f", site.file, "--catalog", site.overlay, "-o", output)

        assert answer.code == 0, answer.err
        assert re.fullmatch(
            rf"wrote {re.escape(str(output))}: \d+ files, \d+ images, [\d.]+ KiB,"
            r" [\d.]+ KiB packed\n",
            answer.out,
        )
        assert answer.err == ""
        assert output.read_bytes() == site.bundle.read_bytes()

    def test_what_can_not_be_had_is_told_at_once_and_is_a_failure(
        self, site: Site, kubexm: Kubexm, tmp_path: Path
    ) -> None:
        site.depot.refused |= {KUBELET, KUBELET.replace("kubelet", "kubeadm")}
        try:
            answer = kubexm(
                "bundle", "build", "-f", site.file, "--catalog", site.overlay,
                "-o", tmp_path / "b.tar.zst",
            )  # fmt: skip
        finally:
            site.depot.refused.clear()

        assert answer.code == 1
        assert "`kubernetes/v1.36.3/kubeadm/amd64` from" in answer.err
        assert f"{KUBELET}: it does not have this (404)" in answer.err
        assert not (tmp_path / "b.tar.zst").exists()

    def test_without_a_file_and_a_version_it_is_wrong_usage(
        self, kubexm: Kubexm, tmp_path: Path
    ) -> None:
        answer = kubexm("bundle", "build", "-o", tmp_path / "b.tar.zst")

        assert answer.code == 2
        assert "found neither of `--file` and `--kubernetes`" in answer.err

    def test_an_unknown_version_is_told_with_the_nearest(
        self, kubexm: Kubexm, tmp_path: Path
    ) -> None:
        answer = kubexm("bundle", "build", "--kubernetes", "v1.99.0", "-o", tmp_path / "b")

        assert answer.code == 2
        assert "unknown version `v1.99.0` of `kubernetes`" in answer.err

    def test_a_signal_stops_it_and_the_same_command_goes_on(
        self, site: Site, kubexm: Kubexm, home: Path, tmp_path: Path
    ) -> None:
        arguments = ["bundle", "build", "-f", str(site.file), "--catalog", str(site.overlay)]
        arguments += ["-o", str(tmp_path / "b.tar.zst")]
        site.depot.held[KUBELET] = 5000
        process = subprocess.Popen(
            [sys.executable, "-m", "kubexm", *arguments], stderr=subprocess.PIPE, text=True
        )
        assert site.depot.holding.wait(15)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=15)
        site.depot.held.clear()
        site.depot.released.set()

        assert (process.returncode, told) == (3, f"{STOPPED}\n")
        answer = kubexm(*arguments)
        assert answer.code == 0, answer.err
        assert (tmp_path / "b.tar.zst").read_bytes() == site.bundle.read_bytes()

    def test_at_a_terminal_it_shows_how_far_it_is(
        self, site: Site, home: Path, tmp_path: Path
    ) -> None:
        ours, theirs = pty.openpty()
        site.depot.holding.clear()
        site.depot.released.clear()
        site.depot.held[KUBELET] = 5000
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "kubexm", "bundle", "build", "-f", str(site.file)),
                *("--catalog", str(site.overlay), "-o", str(tmp_path / "b.tar.zst")),
            ],
            stdout=subprocess.PIPE,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        )
        os.close(theirs)

        said = b""
        while b"kubernetes/v1.36.3/kubelet/amd64" not in said:
            assert select.select([ours], [], [], 15)[0], said
            said += os.read(ours, 65536)
        site.depot.held.clear()
        site.depot.released.set()
        out, _ = process.communicate(timeout=15)
        os.close(ours)

        assert out.startswith(b"wrote ")
        assert process.returncode == 0


class TestShow:
    def test_people_get_a_table(self, site: Site, kubexm: Kubexm) -> None:
        answer = kubexm("bundle", "show", site.bundle)

        lines = [line.split() for line in answer.out.splitlines()]
        assert answer.code == 0
        assert lines[0] == ["Kubernetes", "v1.36.3", "for", "amd64"]
        assert lines[2] == ["KIND", "NAME", "VERSION", "ARCH", "SIZE"]
        assert ["file", "kubernetes", "kubelet", "v1.36.3", "amd64"] in [row[:5] for row in lines]
        assert ["image", "registry.k8s.io/pause", "3.10.2", "amd64"] in [row[:4] for row in lines]

    def test_programs_get_the_manifest(self, site: Site, kubexm: Kubexm) -> None:
        shown = json.loads(kubexm("bundle", "show", site.bundle, "-o", "json").out)

        kubelet = shown["artifacts"]["kubernetes/v1.36.3/kubelet/amd64"]
        assert shown["blobs"][kubelet["sha256"]] == kubelet["size"]
        assert shown["kind"] == "Bundle"

    def test_a_file_that_is_no_bundle_is_refused(self, site: Site, kubexm: Kubexm) -> None:
        answer = kubexm("bundle", "show", site.file)

        assert answer.code == 2
        assert "this is no bundle" in answer.err


class TestVerify:
    def test_a_sound_one_is_sound(self, site: Site, kubexm: Kubexm) -> None:
        answer = kubexm("bundle", "verify", site.bundle)

        assert answer.code == 0
        assert f"{site.bundle} is sound: " in answer.out

    def test_damage_is_named_and_is_a_failure(self, damaged: Path, kubexm: Kubexm) -> None:
        answer = kubexm("bundle", "verify", damaged)

        assert answer.code == 1
        first, *_, last = answer.out.splitlines()
        assert re.match(r"✗ blobs/sha256/([0-9a-f]{64}): the file ends too early", first)
        assert re.search(r"found sha256 [0-9a-f]{64}, want [0-9a-f]{64} \(of `", first)
        assert last.startswith(f"{damaged} is damaged: ")

    def test_programs_get_all_of_it(self, damaged: Path, kubexm: Kubexm) -> None:
        told = json.loads(kubexm("bundle", "verify", damaged, "-o", "json").out)

        assert {"entry", "reason", "wanted", "found", "users"} <= told["damages"][0].keys()


class TestDiff:
    def test_the_same_does_not_differ(self, site: Site, kubexm: Kubexm) -> None:
        answer = kubexm("bundle", "diff", site.bundle, site.bundle)

        assert (answer.code, answer.out) == (0, "the same is in both\n")

    def test_other_versions_are_told(self, site: Site, kubexm: Kubexm, tmp_path: Path) -> None:
        newer = site.file.read_text().replace("v1.36.3", "v1.36.4")
        (tmp_path / "newer.yaml").write_text(newer)
        found = site.depot.stock(
            bill(catalog.load(), Needs(kubernetes="v1.36.4", network="routed"))
        )
        overlay = depots.overlay(site.depot, catalog.load(), found, tmp_path / "newer.toml")
        output = tmp_path / "b.tar.zst"
        built = kubexm(
            "bundle", "build", "-f", tmp_path / "newer.yaml", "--catalog", overlay, "-o", output
        )

        answer = kubexm("bundle", "diff", site.bundle, output)
        told = json.loads(kubexm("bundle", "diff", site.bundle, output, "-o", "json").out)

        assert built.code == 0, built.err
        assert "~  file   kubernetes/kubelet/amd64  " in answer.out
        assert "v1.36.3 -> v1.36.4" in answer.out
        assert {"sign", "kind", "name", "before", "after"} == told[0].keys()


class TestCheck:
    def test_what_has_everything_passes(self, site: Site, kubexm: Kubexm) -> None:
        answer = kubexm("bundle", "check", site.bundle, "-f", site.file, "--catalog", site.overlay)

        assert answer.code == 0, answer.err
        assert answer.out == (
            f"{site.bundle} has all that {site.file} needs, by what it says of itself\n"
            f"hint: see that it is whole: kubexm bundle verify {site.bundle}\n"
        )

    def test_everything_that_is_missing_is_told(
        self, site: Site, kubexm: Kubexm, tmp_path: Path
    ) -> None:
        other = tmp_path / "other.yaml"
        other.write_text(site.file.read_text().replace("routed", "flannel"))

        answer = kubexm("bundle", "check", site.bundle, "-f", other, "--catalog", site.overlay)
        told = json.loads(
            kubexm(
                "bundle", "check", site.bundle, "-f", other, "--catalog", site.overlay, "-o", "json"
            ).out
        )

        assert answer.code == 1
        assert "✗ the image `ghcr.io/flannel-io/flannel:" in answer.out
        command = f"kubexm bundle build -f {other} --catalog {site.overlay} -o FILE"
        assert f"hint: build another one: {command}\n" in answer.out
        assert len(told["missing"]) == 2

    def test_what_was_given_is_in_the_command_that_helps(
        self, site: Site, kubexm: Kubexm, tmp_path: Path
    ) -> None:
        (tmp_path / "my file").write_text(site.file.read_text().replace("routed", "flannel"))

        answer = kubexm(
            "bundle", "check", site.bundle, "-f", tmp_path / "my file", "--catalog", site.overlay,
            "--arch", "amd64", "--arch", "arm64",
        )  # fmt: skip

        words = f"--catalog {site.overlay} --arch amd64 --arch arm64 -o FILE"
        assert f"-f '{tmp_path}/my file' {words}\n" in answer.out

    def test_a_file_with_mistakes_is_refused(
        self, site: Site, kubexm: Kubexm, tmp_path: Path
    ) -> None:
        (tmp_path / "bad.yaml").write_text("kind: Cluster\n")

        assert kubexm("bundle", "check", site.bundle, "-f", tmp_path / "bad.yaml").code == 2


class TestPush:
    def test_a_password_is_given_by_reference_alone(self, site: Site, kubexm: Kubexm) -> None:
        answer = kubexm(
            "bundle", "push", site.bundle, "mine.lan", "--username", "me",
            "--password-ref", "the-word-itself",
        )  # fmt: skip

        assert answer.code == 2
        assert "`--password-ref` is no reference" in answer.err
        assert "the-word-itself" not in answer.err

    def test_a_bundle_that_is_not_there_is_told_before_anybody_is_asked(
        self, kubexm: Kubexm, tmp_path: Path
    ) -> None:
        answer = kubexm(
            "bundle", "push", tmp_path / "nope", "127.0.0.1:1", "--plain-http",
            "--username", "me", "--password-ref", "prompt://word",
        )  # fmt: skip

        assert answer.code == 2
        assert str(tmp_path / "nope") in answer.err
        assert "127.0.0.1" not in answer.err
        assert "word" not in answer.err

    @pytest.mark.slow
    def test_a_registry_that_is_not_there_is_told_before_anything_is_unpacked(
        self, site: Site, kubexm: Kubexm, home: Path
    ) -> None:
        answer = kubexm("bundle", "push", site.bundle, "127.0.0.1:1", "--plain-http")

        assert answer.code == 1
        assert "no answer from http://127.0.0.1:1/v2/" in answer.err
        assert not home.exists()


class TestLock:
    def test_where_all_is_known_it_says_so(
        self, site: Site, kubexm: Kubexm, tmp_path: Path
    ) -> None:
        answer = kubexm(
            "catalog", "lock", "-f", site.file, "--catalog", site.overlay,
            "-o", tmp_path / "lock.toml",
        )  # fmt: skip

        assert answer.code == 0, answer.err
        assert "are known: nothing to lock" in answer.out
        assert not (tmp_path / "lock.toml").exists()

    def test_what_was_unknown_is_locked(self, site: Site, kubexm: Kubexm, tmp_path: Path) -> None:
        new = tmp_path / "new.toml"
        new.write_text(
            '[components.runc.versions."v9.9.9"]\n[kubernetes."v1.36"]\ndefaults.runc = "v9.9.9"\n'
        )
        path = "/github.com/opencontainers/runc/releases/download/v9.9.9/runc.amd64"
        digest = site.depot.put(path, b"\x7fELF a runc")
        catalogs = ("--catalog", site.overlay, "--catalog", new)
        lock = tmp_path / "lock.toml"

        answer = kubexm("catalog", "lock", "-f", site.file, *catalogs, "-o", lock)

        assert answer.code == 0, answer.err
        assert f"locked runc v9.9.9 runc amd64: sha256 {digest}\n" in answer.out
        assert "images and charts are held fast by a bundle" in answer.out
        assert "# Images and charts are not in it" in lock.read_text()
        again = kubexm(
            "catalog", "lock", "-f", site.file, *catalogs, "--catalog", lock, "-o", tmp_path / "2"
        )
        assert "nothing to lock" in again.out
